"""Digests of rows: those of parts add up, and they are others if a value or its place is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MIX = np.uint64(0x9E3779B97F4A7C15)


def digest_of(values: NDArray[np.uint64], first_row: int) -> int:
    """Return the digest of values in the rows from ``first_row`` on, modulo 2^64."""
    odd = 2 * np.arange(first_row, first_row + len(values), dtype=np.uint64) + np.uint64(1)
    with np.errstate(over="ignore"):
        mixed = (values ^ (values >> np.uint64(32))) * _MIX
        return int(((mixed ^ (mixed >> np.uint64(29))) * odd).sum(dtype=np.uint64))
