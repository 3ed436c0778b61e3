"""Digests of what a pickled state holds, so that a change of it is noticed."""

import hashlib
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def digest_of(value: Any) -> str:
    """Return the SHA-256 of a value: of arrays by dtype, shape and bytes, of others part by part."""
    sha = hashlib.sha256()
    _add(sha, value)
    return sha.hexdigest()


def _add(sha: Any, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        little = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("<"), copy=False))
        _add_text(sha, f"{little.dtype.str}{value.shape}")
        sha.update(little.view(np.uint8).data if value.size else b"")
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
