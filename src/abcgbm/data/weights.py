"""Sample weights as integers, so that sums of them are exact."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abcgbm.data.labels import class_numbers

_TOTAL_BITS = 30  # of the sum of all integer weights
_LEAST_TOTAL, _MOST_TOTAL = 1e-200, 1e200  # so that no unit or loss is out of range
_MOST_UNITS = 2.0**62  # more than any sum of weights, and still a 64-bit integer


def check_weights(
    sample_weight: ArrayLike | None, n_rows: int, name: str = "sample_weight"
) -> NDArray[np.float64]:
    """Return the weights as floats; None means one for each row, and takes no memory."""
    if sample_weight is None:
        return np.broadcast_to(1.0, n_rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"{name}.shape == {weights.shape}; expected ({n_rows},)")
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise ValueError(
            f"{name} is {weights[bad[0]]} at row {bad[0]} (negative, NaN or infinite at "
            f"{len(bad)} row(s)); expected numbers from 0 on"
        )
    if not weights.any():
        raise ValueError(f"all weights are zero: {name} is 0 at every row; expected some above 0")
    _check_total(weights, name)
    return weights


def _check_total(weights: NDArray[np.float64], name: str) -> None:
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not _LEAST_TOTAL <= total <= _MOST_TOTAL:
        raise ValueError(f"{name} sums to {total}; expected {_LEAST_TOTAL} to {_MOST_TOTAL}")


def class_weights(
    given: Mapping[Any, float] | str | None,
    classes: NDArray[Any],
    y: NDArray[np.int32],
    weight: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the factor of each class.

    "balanced" gives all classes that have rows the same sum of weights, and leaves the sum of all
    as it is. Sums of weights rather than rows are evened out, so weight 2 stays the row twice.
    """
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str) and given == "balanced":
        count = np.bincount(y, weight, minlength=len(classes))
        present = np.count_nonzero(count)
        factor: NDArray[np.float64] = np.ones(len(classes))
        factor[count > 0] = count.sum() / (present * count[count > 0])
        return factor
    if not isinstance(given, Mapping):
        raise TypeError(
            f"class_weight={given!r}; expected None, 'balanced', or a dict from label to weight"
        )
    return _class_weights_of(given, classes)


def _class_weights_of(given: Mapping[Any, float], classes: NDArray[Any]) -> NDArray[np.float64]:
    labels = np.empty(len(given), dtype=object)
    labels[:] = list(given)
    factor = np.ones(len(classes))
    for k, (label, value) in zip(
        class_numbers(labels, classes, "class_weight"), given.items(), strict=True
    ):
        if not (isinstance(value, Real) and math.isfinite(value) and value >= 0):
            raise ValueError(
                f"class_weight={{{label!r}: {value!r}}}; expected finite numbers from 0 on"
            )
        factor[k] = value
    return factor


def weigh_classes(
    weight: NDArray[np.float64],
    y: NDArray[np.int32],
    factor: NDArray[np.float64],
    suffix: str = "",
) -> NDArray[np.float64]:
    """Return the weights times their class's factor; errors speak of y and this suffix."""
    if (factor == 1).all():
        return weight
    with np.errstate(over="ignore"):
        weighed: NDArray[np.float64] = weight * factor[y]
    if not weighed.any():
        raise ValueError(f"all weights are zero: class_weight is 0 for every class in y{suffix}")
    _check_total(weighed, f"sample_weight{suffix} times class_weight")
    return weighed


def mean_factor(weight: NDArray[np.float64], weighed: NDArray[np.float64]) -> float:
    """Return by how much class weights have changed the weights of rows that count, on average.

    Nine digits, so that 1 is 1 whatever the order of the rows.
    """
    if weighed is weight:
        return 1.0
    return float(f"{weighed.sum() / weight[weighed > 0].sum():.9g}")


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
        """Round positive weights; None means one for each row. Ones take no memory."""
        weights = np.asarray(1.0 if sample_weight is None else sample_weight, dtype=np.float64)
        if (weights == 1).all():
            return cls(np.broadcast_to(np.int64(1), n_rows), 1.0)
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
