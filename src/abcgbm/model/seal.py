"""A pickled model says when a bit of it has changed."""

import hashlib
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


class Sealed:
    """A frozen dataclass whose pickled state holds a digest of its fields, which loading checks."""

    def __getstate__(self) -> dict[str, Any]:
        state = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return state | {"digest": digest_of(state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        names = {field.name for field in fields(self)}  # type: ignore[arg-type]
        values = {name: value for name, value in state.items() if name != "digest"}
        if values.keys() != names or state.get("digest") != digest_of(values):
            raise ValueError(
                f"the pickled {type(self).__name__} was changed or damaged, or is of another "
                "version of abcgbm: its digest is not that of what it holds"
            )
        self.__dict__.update(values)


def digest_of(value: Any) -> str:
    """Return the SHA-256 of a value: of arrays by dtype, shape and bytes, of others part by part."""
    sha = hashlib.sha256()
    _add(sha, value)
    return sha.hexdigest()


def _add(sha: Any, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        _add_text(sha, f"{value.dtype.str}{value.shape}")
        sha.update(np.ascontiguousarray(value).view(np.uint8).data if value.size else b"")
    elif isinstance(value, np.ndarray | list | tuple):
        _add_parts(sha, list(value))
    elif isinstance(value, dict):
        _add_parts(sha, [part for item in value.items() for part in item])
    elif is_dataclass(value):
        _add_parts(sha, [part for f in fields(value) for part in (f.name, getattr(value, f.name))])
    else:  # a scalar of NumPy is written as its Python value: the former's repr has changed before
        plain = value.item() if isinstance(value, np.generic) else value
        _add_text(sha, f"{type(value).__name__} {plain!r}")


def _add_parts(sha: Any, parts: list[Any]) -> None:
    _add_text(sha, str(len(parts)))
    for part in parts:
        _add(sha, part)


def _add_text(sha: Any, text: str) -> None:
    encoded = text.encode("utf-8", "surrogatepass")
    sha.update(f"{len(encoded)}:".encode() + encoded)
