"""Sums of floats over rows as integers: the same for any order and any parts of the rows."""

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.columns import Floats, chunks

SCALE = 1126  # exact sums count multiples of 2^-SCALE: the last of 53 digits of the smallest float
_DIGITS = 53
_LOW_DIGITS = (
    27  # digits are summed in two parts, so that no sum of a chunk needs more than 53 bits
)
_ROWS = 2**20  # of a chunk


def exact_class_sums(values: Floats, y: NDArray[np.int32], n_classes: int) -> tuple[int, ...]:
    """Return the sum of the rows' values in each class, in multiples of 2^-SCALE.

    Parameters
    ----------
    values : ndarray of float64 of shape (n_rows,)
        Finite, not negative.
    y : ndarray of int32 of shape (n_rows,)
        The class of each row.
    n_classes : int
        Number of classes.
    """
    if values.strides == (0,) and len(values):  # one number for all rows
        counts = [len(y)] if n_classes == 1 else np.bincount(y, minlength=n_classes).tolist()
        return tuple(count * _scaled(float(values[0])) for count in counts)
    total = [0] * n_classes
    for rows in chunks(len(values), _ROWS):
        _add_chunk(total, values[rows], y[rows])
    return tuple(total)


def _scaled(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return (numerator << SCALE) // denominator


def _add_chunk(total: list[int], values: Floats, y: NDArray[np.int32]) -> None:
    """Add values to the sums of their classes: digits by class and exponent, then shifted."""
    mantissa, exponent = np.frexp(values)
    digits = np.ldexp(mantissa, _DIGITS).astype(np.int64)
    lowest = int(exponent.min())
    span = int(exponent.max()) - lowest + 1
    group = y.astype(np.int64) * span + (exponent - lowest)
    low = np.bincount(group, digits & (2**_LOW_DIGITS - 1))  # floats, but integers below 2^53
    high = np.bincount(group, digits >> _LOW_DIGITS)
    for at in np.flatnonzero((low > 0) | (high > 0)).tolist():
        summed = (int(high[at]) << _LOW_DIGITS) + int(low[at])
        total[at // span] += summed << (at % span + lowest - _DIGITS + SCALE)


def lowest_bit(values: Floats) -> int:
    """Return the largest e, at most 0, such that 2^e divides every value; all are above 0."""
    if values.strides == (0,):
        values = values[:1]
    mantissa, exponent = np.frexp(values)
    digits = np.ldexp(mantissa, _DIGITS).astype(np.int64)
    place = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    return min(0, int(np.min(exponent - _DIGITS + place, initial=0)))
