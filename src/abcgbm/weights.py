"""Sample weights as integers, so that sums of them are exact."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

_TOTAL_BITS = 30  # of the sum of all integer weights
_LEAST_TOTAL, _MOST_TOTAL = 1e-200, 1e200  # so that no unit or loss is out of range
_MOST_UNITS = 2.0**62  # more than any sum of weights, and still a 64-bit integer


def check_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Return the weights as floats; None means one for each row."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight.shape == {weights.shape}; expected ({n_rows},)")
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise ValueError(
            f"sample_weight is {weights[bad[0]]} at row {bad[0]} (negative, NaN or infinite at "
            f"{len(bad)} row(s)); expected numbers from 0 on"
        )
    if not weights.any():
        raise ValueError(
            "all weights are zero: sample_weight is 0 at every row; expected some above 0"
        )
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not _LEAST_TOTAL <= total <= _MOST_TOTAL:
        raise ValueError(f"sample_weight sums to {total}; expected {_LEAST_TOTAL} to {_MOST_TOTAL}")
    return weights


@dataclass(frozen=True)
class IntegerWeights:
    """Weights in multiples of a power of two.

    Integers stay themselves, so weight 2 is the row given twice. Others are rounded to about
    1e-9 of their sum.

    Attributes
    ----------
    weight : ndarray of int64 of shape (n_rows,)
        The weights, at least 1.
    unit : float
        What one of them is worth: a power of two.
    """

    weight: NDArray[np.int64]
    unit: float

    @classmethod
    def from_floats(cls, sample_weight: ArrayLike | None, n_rows: int) -> Self:
        """Round positive weights; None means one for each row."""
        if sample_weight is None:
            return cls(np.ones(n_rows, dtype=np.int64), 1.0)
        weights = np.asarray(sample_weight, dtype=np.float64)
        total_exponent = math.frexp(math.fsum(weights))[1]
        unit = math.ldexp(1.0, max(total_exponent - _TOTAL_BITS, _common_exponent(weights)))
        return cls(np.maximum(np.rint(weights / unit), 1).astype(np.int64), unit)

    def units(self, amount: float) -> int:
        """Return the least number of units that make up an amount of weight, at least 1."""
        return max(1, math.ceil(min(amount / self.unit, _MOST_UNITS)))


def _common_exponent(weights: NDArray[np.float64]) -> int:
    """Return the largest e, at most 0, such that 2^e divides every weight."""
    mantissa, exponent = np.frexp(weights)
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    lowest_bit = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    return min(0, int(np.min(exponent - 53 + lowest_bit)))
