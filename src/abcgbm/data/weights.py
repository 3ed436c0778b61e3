"""Validation of sample and class weights, and conversion to exact integers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abcgbm.communication.shard import LOCAL, Shard
from abcgbm.data.arrays import Floats, as_float, as_reals, chunks
from abcgbm.data.labels import class_numbers
from abcgbm.parameters.validators import is_finite_real

SCALE = 1126  # sums are multiples of 2^-SCALE, the last of 53 digits of the smallest float
_DIGITS = 53
_LOW_DIGITS = 27  # high and low digits are summed apart: each sum of a chunk fits into 53 bits
_ROWS = 2**20  # rows of a chunk
_TOTAL_BITS = 30  # of the sum of all integer weights, more if class factors need it
_FACTOR_BITS = 9  # at least, of the mean class factor, if sample weights are exact
_MIN_TOTAL, _MAX_TOTAL = 1e-200, 1e200  # keeps units and losses in the range of floats
_MAX_UNITS = 2.0**62  # above any sum of weights, and within int64
_MAX_WHOLE = 2.0**53  # floats represent all integers up to this
_MIN_SLACK, _MAX_SLACK = 2.0**-40, 2.0**-10  # tolerance of min_samples_leaf for rounding


# --------------------------------------------------------------------------------- sample weights


def check_weights(
    sample_weight: ArrayLike | None, n_rows: int, name: str = "sample_weight"
) -> Floats:
    """Return the weights of all rows as floats, at least one of them positive."""
    weights = read_weights(sample_weight, n_rows, name)
    check_sum_of_weights(weights, name)
    return weights


def read_weights(
    sample_weight: ArrayLike | None, n_rows: int, name: str = "sample_weight"
) -> Floats:
    """Return the weights as floats; None means 1 for each row."""
    if sample_weight is None:
        return np.broadcast_to(1.0, n_rows)  # a view of a single 1: no memory per row
    weights = as_reals(sample_weight, name)
    if weights.shape != (n_rows,):
        raise ValueError(f"{name}.shape == {weights.shape}; expected ({n_rows},)")
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise ValueError(
            f"{name} is {weights[bad[0]]} at row {bad[0]} (negative, NaN or infinite at "
            f"{len(bad)} row(s)); expected finite numbers, at least 0"
        )
    return weights


def check_sum_of_weights(weights: Floats, name: str, shard: Shard = LOCAL) -> None:
    """Raise a ValueError if the weights of all ranks sum to 0, or to too little or too much."""
    no_class = np.broadcast_to(np.int32(0), len(weights))
    (own,) = exact_class_sums(weights, no_class, 1)
    total = sum(shard.communicator.allgather(own))
    if total == 0:
        raise ValueError(f"all weights are zero: {name} is 0 at every row; expected some above 0")
    check_total(Fraction(total, 1 << SCALE), name)


def whole_weights(
    sample_weight: ArrayLike | None, n_rows: int, name: str = "sample_weight"
) -> NDArray[np.int64]:
    """Return weights that must be integers, as int64."""
    if sample_weight is None:
        return np.ones(n_rows, dtype=np.int64)
    weights = check_weights(sample_weight, n_rows, name)
    other = np.flatnonzero((weights != np.rint(weights)) | (weights > _MAX_WHOLE))
    if len(other):
        raise ValueError(
            f"{name} is {weights[other[0]]} at row {other[0]}; expected integers, at most 2^53"
        )
    return weights.astype(np.int64)


def check_total(total: Fraction, name: str) -> None:
    """Raise a ValueError if a sum of weights is out of the range of the arithmetic."""
    if not _MIN_TOTAL <= total <= _MAX_TOTAL:
        raise ValueError(f"{name} sums to {as_float(total)}; expected {_MIN_TOTAL} to {_MAX_TOTAL}")


# ------------------------------------------------------------------------------------- exact sums


@dataclass(frozen=True)
class WeightSums:
    """Sums over all rows that the rounding of weights depends on.

    Sums of several shards can be merged; the result is exact.

    Attributes
    ----------
    class_sums : tuple of int
        Sum of the sample weights of each class, in multiples of 2^-1126.
    lowest_bit : int
        The largest e <= 0 such that 2^e divides every sample weight.
    """

    class_sums: tuple[int, ...]
    lowest_bit: int

    @classmethod
    def from_rows(cls, weight: Floats, y: NDArray[np.int32], n_classes: int) -> Self:
        """Sum the positive weights of some rows."""
        return cls(exact_class_sums(weight, y, n_classes), lowest_bit(weight))

    def merged(self, other: Self) -> Self:
        """Return the sums over these rows and others."""
        sums = tuple(a + b for a, b in zip(self.class_sums, other.class_sums, strict=True))
        return type(self)(sums, min(self.lowest_bit, other.lowest_bit))

    def over_ranks(self, shard: Shard) -> Self:
        """Return the sums over the rows of all ranks."""
        sums: Self = reduce(type(self).merged, shard.communicator.allgather(self))
        return sums

    @property
    def has_rows(self) -> NDArray[np.bool_]:
        """Mask of the classes that have rows."""
        return np.array([of > 0 for of in self.class_sums])

    def total(self, factor: Sequence[float] | Floats | None = None) -> Fraction:
        """Return the sum of all weights, times class factors if given."""
        factors = [1.0] * len(self.class_sums) if factor is None else list(factor)
        total = Fraction(0)
        for f, of in zip(factors, self.class_sums, strict=True):
            total += Fraction(f) * of
        return total / (1 << SCALE)


def exact_class_sums(values: Floats, y: NDArray[np.int32], n_classes: int) -> tuple[int, ...]:
    """Return the exact sum of the rows' values in each class, in multiples of 2^-SCALE.

    Parameters
    ----------
    values : ndarray of float64 of shape (n_rows,)
        Finite, not negative.
    y : ndarray of int32 of shape (n_rows,)
        Class numbers.
    n_classes : int
        Number of classes.
    """
    if values.strides == (0,) and len(values):  # a broadcast number
        counts = [len(y)] if n_classes == 1 else np.bincount(y, minlength=n_classes).tolist()
        numerator, denominator = float(values[0]).as_integer_ratio()
        return tuple(count * ((numerator << SCALE) // denominator) for count in counts)
    total = [0] * n_classes
    for rows in chunks(len(values), _ROWS):
        _add_chunk(total, values[rows], y[rows])
    return tuple(total)


def _add_chunk(total: list[int], values: Floats, y: NDArray[np.int32]) -> None:
    """Add values to the sums of their classes, by summing digits by class and exponent."""
    mantissa, exponent = np.frexp(values)
    digits = np.ldexp(mantissa, _DIGITS).astype(np.int64)
    lowest = int(exponent.min())
    span = int(exponent.max()) - lowest + 1
    group = y.astype(np.int64) * span + (exponent - lowest)
    low = np.bincount(group, digits & (2**_LOW_DIGITS - 1))  # exact: integers below 2^53
    high = np.bincount(group, digits >> _LOW_DIGITS)
    for at in np.flatnonzero((low > 0) | (high > 0)).tolist():
        summed = (int(high[at]) << _LOW_DIGITS) + int(low[at])
        total[at // span] += summed << (at % span + lowest - _DIGITS + SCALE)


def lowest_bit(values: Floats) -> int:
    """Return the largest e <= 0 such that 2^e divides every value; all are positive."""
    if values.strides == (0,):
        values = values[:1]
    mantissa, exponent = np.frexp(values)
    digits = np.ldexp(mantissa, _DIGITS).astype(np.int64)
    place = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    return min(0, int(np.min(exponent - _DIGITS + place, initial=0)))


# ---------------------------------------------------------------------------------- class weights


def class_weights(
    given: Mapping[Any, float] | str | None, classes: NDArray[Any], sums: WeightSums
) -> Floats:
    """Return the factor of each class.

    "balanced" gives all classes that have rows the same sum of weights and preserves the total. It
    uses sums of weights rather than numbers of rows, so that weight 2 equals duplicating the row.
    """
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str) and given == "balanced":
        total, n_present = sum(sums.class_sums), int(sums.has_rows.sum())
        return np.array([float(Fraction(total, n_present * of or total)) for of in sums.class_sums])
    if not isinstance(given, Mapping):
        raise TypeError(
            f"class_weight={given!r}; expected None, 'balanced', or a dict from label to weight"
        )
    return _class_weights_by_label(given, classes)


def _class_weights_by_label(given: Mapping[Any, float], classes: NDArray[Any]) -> Floats:
    labels = np.empty(len(given), dtype=object)
    labels[:] = list(given)
    factor = np.ones(len(classes))
    for k, (label, value) in zip(
        class_numbers(labels, classes, "class_weight"), given.items(), strict=True
    ):
        if not (is_finite_real(value) and value >= 0):
            raise ValueError(
                f"class_weight={{{label!r}: {value!r}}}; expected finite numbers, at least 0"
            )
        factor[k] = value
    return factor


def check_class_weighted_total(sums: WeightSums, factor: Floats, suffix: str = "") -> None:
    """Raise a ValueError if the weights, times class factors, sum to 0, too little or too much."""
    total = sums.total(factor)
    if total == 0:
        raise ValueError(f"all weights are zero: class_weight is 0 for every class in y{suffix}")
    check_total(total, f"sample_weight{suffix} times class_weight")


def mean_factor(sums: WeightSums, factor: Floats) -> float:
    """Return the weighted mean of the class factors over all rows with a positive factor."""
    return float(sums.total(factor) / sums.total(np.where(factor > 0, 1.0, 0.0)))


# --------------------------------------------------------------------------------------- integers


@dataclass(frozen=True)
class IntegerWeights:
    """Weights in multiples of a unit.

    Integer weights are exact, so weight 2 equals duplicating the row. Others are rounded to about
    1e-9 of their sum.

    Attributes
    ----------
    weight : ndarray of int64 of shape (n_rows,)
        The weights, at least 1.
    unit : float
        Value of one unit: a power of two, times the factor common to all classes.
    max_rounding_loss : float
        Largest fraction of its weight that any row loses by rounding.
    n_raised : int
        Number of rows that weigh at most half a unit, and count as one unit.
    n_units : int
        Sum of the weights.
    shard : Shard
        Rank of these rows. All attributes except ``weight`` are over the rows of all ranks.
    """

    weight: NDArray[np.int64]
    unit: float
    max_rounding_loss: float
    n_raised: int
    n_units: int
    shard: Shard = LOCAL

    @classmethod
    def from_integers(
        cls, weight: NDArray[np.int64], unit: float, max_rounding_loss: float, n_raised: int = 0
    ) -> IntegerWeights:
        """Sum up the weights of some rows."""
        return cls(weight, unit, max_rounding_loss, n_raised, int(weight.sum()))

    def over_ranks(self, shard: Shard) -> IntegerWeights:
        """Return the same weights, with the other attributes over the rows of all ranks."""
        loss, counts = (
            np.array([self.max_rounding_loss]),
            np.array([self.n_raised, self.n_units]),
        )
        shard.communicator.allreduce(loss, "maximum")
        shard.communicator.allreduce(counts, "sum")
        n_raised, n_units = counts.tolist()
        return IntegerWeights(self.weight, self.unit, float(loss[0]), n_raised, n_units, shard)

    @classmethod
    def from_rows(
        cls,
        weight: Floats,
        y: NDArray[np.int32] | None = None,
        factor: Floats | None = None,
        shard: Shard = LOCAL,
    ) -> IntegerWeights:
        """Round positive weights, times class factors if given."""
        y = np.broadcast_to(np.int32(0), len(weight)) if y is None else y
        factor = np.ones(1) if factor is None else factor
        sums = WeightSums.from_rows(weight, y, len(factor)).over_ranks(shard)
        rounded = WeightGrid.from_sums(sums, factor).round(weight, y).over_ranks(shard)
        if rounded.n_raised and shard.communicator.rank == 0:
            least = rounded.unit / rounded.total
            warnings.warn(
                f"{rounded.n_raised} row(s) weigh at most {least / 2:.1e} of the sum of all "
                f"weights; each of them counts as {least:.1e} of it, the smallest representable weight",
                UserWarning,
                stacklevel=1,  # the depth of the user's call varies
            )
        return rounded

    @property
    def total(self) -> float:
        """Sum of the rounded weights."""
        return self.n_units * self.unit

    def count(self, rows: NDArray[np.bool_]) -> int:
        """Return the integer weight of the masked rows of all ranks; a collective operation."""
        counted = self.weight[rows].sum(keepdims=True)
        self.shard.communicator.allreduce(counted, "sum")
        return int(counted[0])

    def units(self, amount: float) -> int:
        """Return the number of units of an amount of weight, at least 1.

        Rows of this total weight have as many units even after rounding, except for rows of less
        than 512 units, which may lose more.
        """
        slack = _MIN_SLACK + min(_MAX_SLACK, self.max_rounding_loss)
        return max(1, math.ceil(min(amount * (1 - slack) / self.unit, _MAX_UNITS)))


@dataclass(frozen=True)
class WeightGrid:
    """The grid that weights are rounded to; see "Weights" in docs/arithmetic.md.

    Attributes
    ----------
    unit_bit : int
        Weights become multiples of 2^unit_bit.
    sample_bit : int or None
        Sample weights are multiples of 2^sample_bit, and factors are rounded before the product;
        None: the product is rounded.
    factor : ndarray of float64 of shape (n_classes,)
        Factor of the sample weights of each class.
    common_factor : float
        Factor of all weights, kept apart because it need not change any integer.
    """

    unit_bit: int
    sample_bit: int | None
    factor: Floats
    common_factor: float

    @classmethod
    def from_sums(cls, sums: WeightSums, factor: Floats) -> Self:
        """Choose the grid from the sums over all rows."""
        factor = np.where(sums.has_rows, factor, 1.0)  # unused factors may be arbitrarily large
        used = factor[sums.has_rows]
        common = 1.0
        if (used == used[0]).all():
            common, factor, used = float(used[0]), np.ones(len(factor)), np.ones(1)
        digits = _exponent(sums.total()) - sums.lowest_bit
        is_exact = digits <= _TOTAL_BITS
        bits = max(_TOTAL_BITS, digits + _FACTOR_BITS) if is_exact else _TOTAL_BITS
        finest = _exponent(sums.total(factor)) - bits
        return cls(
            max(finest, sums.lowest_bit + lowest_bit(used)),
            sums.lowest_bit if is_exact else None,
            factor,
            common,
        )

    def round(self, weight: Floats, y: NDArray[np.int32]) -> IntegerWeights:
        """Round the weights of some or all rows."""
        unit = math.ldexp(self.common_factor, self.unit_bit)
        if self.sample_bit is None:
            units = np.ldexp(weight * self.factor[y], -self.unit_bit)
            return IntegerWeights.from_integers(
                _integers(units), unit, _max_rounding_loss(units), _n_raised(units)
            )
        factor_units = np.ldexp(self.factor, self.sample_bit - self.unit_bit)
        loss = _max_rounding_loss(factor_units[np.unique(y)])
        if weight.strides == (0,) and (factor_units == 1).all():  # again no memory per row
            return IntegerWeights.from_integers(
                np.broadcast_to(np.int64(1), len(weight)), unit, loss
            )
        times = np.ldexp(weight, -self.sample_bit).astype(np.int64)
        integers, n_raised = times * _integers(factor_units)[y], _n_raised(factor_units[y])
        return IntegerWeights.from_integers(integers, unit, loss, n_raised)


def _exponent(total: Fraction) -> int:
    return math.frexp(float(total))[1]


def _integers(units: Floats) -> NDArray[np.int64]:
    return np.maximum(np.rint(units), 1).astype(np.int64)


def _max_rounding_loss(units: Floats) -> float:
    """Return the largest fraction that rounding to integers takes from any value; 0 if none."""
    with np.errstate(divide="ignore"):  # the product of tiny numbers may be 0
        return float(np.max((units - np.maximum(np.rint(units), 1)) / units, initial=0.0))


def _n_raised(units: Floats) -> int:
    """Return how many values would be rounded to 0, and become 1 instead."""
    return int(np.count_nonzero(np.rint(units) == 0))


def integer_weights(weight: Floats) -> NDArray[np.int64]:
    """Return weights as integers; zero weights stay 0, all others are at least 1."""
    if weight.all():
        return np.array(IntegerWeights.from_rows(weight).weight)
    integers = np.zeros(len(weight), dtype=np.int64)
    positive = np.flatnonzero(weight)
    integers[positive] = IntegerWeights.from_rows(weight[positive]).weight
    return integers
