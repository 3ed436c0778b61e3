"""Random draws that depend on nothing but their key, as in the native core."""

import numpy as np
from numpy.typing import NDArray

HELD_OUT = 3  # the kind of draw; the core's are 1 (rows) and 2 (features)


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return splitmix64 of each number: a bijection without pattern."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed


def draw(seed: int, kind: int, number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return one draw for each number; no two numbers have the same."""
    key = mix(mix(np.array([seed], np.uint64)) ^ np.uint64(kind))
    return mix(mix(key) ^ number)
