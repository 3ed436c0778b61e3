"""Digests of pickled states, to detect corruption."""

import hashlib
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def digest_of(value: Any) -> str:
    """Return the SHA-256 of nested arrays, sequences, dicts and dataclasses."""
    sha = hashlib.sha256()
    _add(sha, value)
    return sha.hexdigest()


def _add(sha: Any, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        little = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("<"), copy=False))
        _add_text(sha, f"{little.dtype.str}{value.shape}")
        sha.update(little.view(np.uint8).data if value.size else b"")
    elif isinstance(value, np.ndarray | list | tuple):
        _add_items(sha, list(value))
    elif isinstance(value, dict):
        _add_items(sha, [part for item in value.items() for part in item])
    elif is_dataclass(value):
        _add_items(sha, [part for f in fields(value) for part in (f.name, getattr(value, f.name))])
    else:  # as a Python scalar, because the repr of NumPy scalars has changed between versions
        plain = value.item() if isinstance(value, np.generic) else value
        _add_text(sha, f"{type(value).__name__} {plain!r}")


def _add_items(sha: Any, items: list[Any]) -> None:
    _add_text(sha, str(len(items)))
    for item in items:
        _add(sha, item)


def _add_text(sha: Any, text: str) -> None:
    encoded = text.encode("utf-8", "surrogatepass")
    sha.update(f"{len(encoded)}:".encode() + encoded)
