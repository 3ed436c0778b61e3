"""Checks of arrays that come from outside: a pickle, or a model file."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Shape = tuple[int | None, ...]  # None is any length


def check_array(name: str, array: Any, dtype: DTypeLike, shape: Shape) -> tuple[int, ...]:
    """Return the shape of an array that has an expected type and an expected shape."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype or not array.flags.c_contiguous:
        kind = getattr(array, "dtype", type(array).__name__)
        raise ValueError(f"{name} is of type {kind}; expected an array of {np.dtype(dtype)}")
    found: tuple[int, ...] = array.shape
    if not fits(found, shape):
        raise ValueError(f"{name} has shape {found}; expected {shown_shape(shape)}")
    return found


def shown_shape(shape: Shape) -> str:
    """Return an expected shape as text."""
    return str(tuple("any" if length is None else length for length in shape)).replace("'", "")


def fits(found: tuple[int, ...], shape: Shape) -> bool:
    """Whether a shape is the expected one."""
    pairs = zip(found, shape, strict=False)
    return len(found) == len(shape) and all(wanted in (None, length) for length, wanted in pairs)


def check_range(name: str, array: NDArray[Any], low: float, end: float) -> None:
    """Check that numbers are at least ``low`` and less than ``end``; NaN is neither."""
    if array.size and not (array.min() >= low and array.max() < end):
        raise ValueError(f"{name} has numbers out of range; expected {low} to less than {end}")


def check_finite(name: str, array: NDArray[Any]) -> None:
    """Check that there is neither NaN nor infinity among numbers."""
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has numbers that are not finite")


def check_starts(name: str, starts: NDArray[np.int64], end: int) -> None:
    """Check where things begin that lie end to end; the last entry is where they end."""
    rises = len(starts) > 0 and starts[0] == 0 and starts[-1] == end
    if not rises or not (starts[:-1] <= starts[1:]).all():
        raise ValueError(f"{name} does not rise from 0 to {end}")
