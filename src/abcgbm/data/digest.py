"""Digests of what a state holds, so that a change of it is noticed."""

import dataclasses
import hashlib
from typing import Any

import numpy as np


def digest(content: Any) -> str:
    """Return a digest of arrays, numbers, strings, and dataclasses, dicts and sequences of them.

    Arrays count by type, shape and bytes, the same on every machine; anything else by type and value.
    """
    sha = hashlib.sha256()
    _add(sha, content)
    return sha.hexdigest()


def _add(sha: Any, content: Any) -> None:
    if isinstance(content, np.ndarray) and content.dtype != object:
        little = content.astype(content.dtype.newbyteorder("<"), order="C", copy=False)
        sha.update(f"array {little.dtype.str} {little.shape} ".encode())
        sha.update(np.ascontiguousarray(little).view(np.uint8).data)
        return
    if isinstance(content, np.ndarray):
        content = ("objects", content.shape, content.ravel().tolist())
    elif dataclasses.is_dataclass(content):
        fields = dataclasses.fields(content)
        content = (type(content).__name__, [(f.name, getattr(content, f.name)) for f in fields])
    elif isinstance(content, dict):
        content = ("dict", list(content.items()))
    if isinstance(content, list | tuple):
        sha.update(f"{len(content)} of ".encode())
        for item in content:
            _add(sha, item)
        return
    sha.update(f"{type(content).__name__} {content!r} ".encode())
