"""The rows of a fit: read, labelled, weighed, and binned. Their table is never copied."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abcgbm.data.binned_table import BinnedTable, bin_table, check_binned
from abcgbm.data.binning import learn_encoding, learn_thresholds, most_codes
from abcgbm.data.columns import Floats
from abcgbm.data.encoding import Encoding
from abcgbm.data.labels import (
    AnyLabels,
    CodedLabels,
    as_labels,
    check_rows_labels,
    class_numbers,
    encode_labels,
)
from abcgbm.data.lazy import lazy
from abcgbm.data.parts.labels import read_labels
from abcgbm.data.parts.large_table import LargeTable, Watch, as_large
from abcgbm.data.parts.learning import Learning, bin_like, learn_and_bin
from abcgbm.data.parts.parted_table import PartedTable, features_like, features_of
from abcgbm.data.tables import Schema, Table, read_table, read_table_like
from abcgbm.data.weights import (
    IntegerWeights,
    WeightSums,
    check_weighed_total,
    check_weights,
    class_weights,
    mean_factor,
)

AnyTable = Table | BinnedTable
RowsTable = AnyTable | PartedTable
Which = NDArray[np.int64] | slice


# ------------------------------------------------------------------------------------------ reading


class LargeRows(NamedTuple):
    """A table that is read in parts, and what is known of its rows."""

    large: LargeTable
    apart: tuple[str | None, ...]  # columns that are no features
    n_rows: int


def read_large(
    given: tuple[Any, Any, Any], suffix: str = "", watch: Watch | None = None
) -> tuple[LargeRows, CodedLabels, Floats | None]:
    """Read the labels and weights of a table that is read in parts; these are given by name.

    ``given`` are X, y and sample_weight; ``watch`` is told of all that is read of it from now on.
    """
    X, y, sample_weight = given
    large = as_large(X).watched(watch)
    label = large.find(y, f"y{suffix}")
    weight = None if sample_weight is None else large.find(sample_weight, f"sample_weight{suffix}")
    if label == weight:
        raise ValueError(f"sample_weight{suffix}={weight!r}, as y{suffix}; expected another column")
    marks, labels, weights = read_labels(large, label, weight)
    if not len(labels.code):
        raise ValueError(f"X{suffix} is {large!r}, which has no rows; expected at least 1")
    return LargeRows(large.marked(marks), (label, weight), len(labels.code)), labels, weights


def read_to_learn(X: Any, categorical_features: Any, owner: str) -> RowsTable:
    """Read a table to learn from; ``owner`` is the estimator that errors speak of."""
    if isinstance(X, BinnedTable):
        return check_binned(X)
    if isinstance(X, LargeRows):
        schema = features_of(X.large, X.apart, categorical_features)
        return PartedTable(X.large, schema, X.n_rows, owner)
    return read_table(X, categorical_features, owner)


def read_like(X: Any, schema: Schema, owner: str, name: str = "X") -> AnyTable:
    """Read a table that must have the columns known already; ``name`` is what errors call it."""
    if isinstance(X, BinnedTable):
        return check_binned(X, schema, name)
    return read_table_like(X, schema, owner, name)


def read_rows_like(X: Any, schema: Schema, owner: str, name: str = "X") -> RowsTable:
    """Do the same for rows to learn from or to validate on, which may be read in parts."""
    if isinstance(X, LargeRows):
        return PartedTable(X.large, features_like(X.large, X.apart, schema), X.n_rows, owner)
    return read_like(X, schema, owner, name)


# ---------------------------------------------------------------------------------- labels, weights


@dataclass(frozen=True)
class LabelledRows:
    """Some rows of a table, with class numbers and weights above 0.

    Attributes
    ----------
    table : Table, BinnedTable or PartedTable
        The table, all of it.
    which : ndarray of int64 of shape (n_rows,) or slice
        Which rows of it these are, ascending.
    y : ndarray of int32 of shape (n_rows,)
        Their classes.
    sample_weight : ndarray of float64 of shape (n_rows,)
        Their weights as given.
    factor : ndarray of float64 of shape (n_classes,)
        What the weights of each class are multiplied by.
    class_factor : float
        The mean of the factors of all rows that count: what bounds on rows are multiplied by.
    given : object
        The table in the user's own form, if these are all of its rows; else None.
    """

    table: RowsTable
    which: Which
    y: NDArray[np.int32]
    sample_weight: Floats
    factor: Floats
    class_factor: float = 1.0
    given: Any = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def row_numbers(self) -> NDArray[np.int64]:
        """Numbers of these rows in the table."""
        return np.arange(len(self.table))[self.which]

    @lazy
    def weight(self) -> Floats:
        """Their weights times the factors of their classes."""
        is_plain = (self.factor == 1).all()
        weight: Floats = (
            self.sample_weight if is_plain else self.sample_weight * self.factor[self.y]
        )
        return weight

    @lazy
    def integer_weights(self) -> IntegerWeights:
        """These weights as integers, which training and validation count."""
        return IntegerWeights.from_rows(self.sample_weight, self.y, self.factor)

    def take(self, places: NDArray[np.int64]) -> Self:
        """Return some of the rows, by their place among these."""
        return replace(
            self,
            which=self.row_numbers[places],
            y=self.y[places],
            sample_weight=self.sample_weight[places],
            given=None,
        )

    def as_given(self) -> Any:
        """Return the rows as the user gave them, or else as a table of them alone."""
        if isinstance(self.table, PartedTable):
            raise ValueError(  # noqa: TRY004 (the value of scoring)
                "a scorer cannot be handed rows that are read in parts; expected scoring='loss' or "
                "'error', or an X_val that is in memory"
            )
        return self.table.take(self.row_numbers) if self.given is None else self.given


@dataclass(frozen=True)
class CountedRows:
    """The rows of a table that count, still with the user's labels: weight 0 is the row absent.

    Attributes
    ----------
    table : Table, BinnedTable or PartedTable
        The table, all of it.
    which : ndarray of int64 of shape (n_rows,) or slice
        Which rows of it count.
    labels : ndarray of shape (n_rows,)
        Their labels, none missing.
    weight : ndarray of float64 of shape (n_rows,)
        Their weights.
    suffix : {"", "_val"}
        What the names of the arguments end with.
    """

    table: RowsTable
    which: Which
    labels: AnyLabels
    weight: Floats
    suffix: str = ""

    @classmethod
    def from_given(
        cls,
        table: RowsTable,
        y: ArrayLike | CodedLabels,
        sample_weight: ArrayLike | None,
        suffix: str = "",
        *,
        has_classes: bool = False,
    ) -> Self:
        """Check labels and weights; the labels of absent rows are not looked at.

        ``has_classes``: which labels there are is known already.
        """
        labels = as_labels(y, len(table), f"y{suffix}")
        weight = check_weights(sample_weight, len(table), f"sample_weight{suffix}")
        which = slice(None) if weight.all() else np.flatnonzero(weight)
        checked = check_rows_labels(labels, f"y{suffix}", which, has_classes=has_classes)
        return cls(table, which, checked, weight[which], suffix)

    def sums(self, y: NDArray[np.int32], n_classes: int) -> WeightSums:
        """Return what the weights of these rows, which are of the classes y, add up to."""
        return WeightSums.from_rows(self.weight, y, n_classes)

    def weighed(
        self, y: NDArray[np.int32], factor: Floats, sums: WeightSums, given: Any = None
    ) -> LabelledRows:
        """Weigh rows by the factors of their classes too; those of a factor 0 are absent.

        ``sums`` are those of all rows that count.
        """
        check_weighed_total(sums, factor, self.suffix)
        of_all = given if len(y) == len(self.table) else None
        mean = mean_factor(sums, factor)
        rows = LabelledRows(self.table, self.which, y, self.weight, factor, mean, of_all)
        counts = factor[y] > 0
        return rows if counts.all() else rows.take(np.flatnonzero(counts))


class Classes(NamedTuple):
    """The labels, sorted, and the factor of the weights of each."""

    labels: NDArray[Any]
    factor: Floats


def rows_to_learn(
    table: RowsTable,
    y: ArrayLike | CodedLabels,
    sample_weight: ArrayLike | None,
    known: NDArray[Any] | None,
    class_weight: Any,
) -> tuple[LabelledRows, Classes]:
    """Check labels and weights; return the rows that count, and the classes.

    ``known`` are the labels that can occur; None: those that do.
    """
    counted = CountedRows.from_given(table, y, sample_weight, has_classes=known is not None)
    labels, class_of_row = encode_labels(counted.labels, known)
    sums = counted.sums(class_of_row, len(labels))
    factor = class_weights(class_weight, labels, sums)
    return counted.weighed(class_of_row, factor, sums), Classes(labels, factor)


def rows_to_validate(
    given: tuple[Any, ArrayLike | None, ArrayLike | None],
    schema: Schema,
    classes: Classes,
    owner: str,
) -> LabelledRows | None:
    """Check X_val, y_val and sample_weight_val; return the rows that count, if any were given."""
    X, y, sample_weight = given
    if X is None and y is None and sample_weight is None:
        return None
    if X is None or y is None:
        missing = "X_val" if X is None else "y_val"
        raise ValueError(f"{missing} is None; expected X_val and y_val together, or neither")
    table = read_rows_like(X, schema, owner, "X_val")
    counted = CountedRows.from_given(table, y, sample_weight, "_val", has_classes=True)
    class_of_row = class_numbers(counted.labels, classes.labels, "y_val")
    sums = counted.sums(class_of_row, len(classes.labels))
    return counted.weighed(class_of_row, classes.factor, sums, given=X)


# ------------------------------------------------------------------------------------------ binning


class BinnedRows(NamedTuple):
    """Rows, and a table of their codes alone."""

    rows: LabelledRows
    table: BinnedTable

    @classmethod
    def from_table(cls, rows: LabelledRows, table: BinnedTable) -> Self:
        """Take the rows out of a coded table."""
        return cls(rows, table if len(rows) == len(table) else table.take(rows.row_numbers))


@dataclass(frozen=True)
class Binning:
    """How rows are binned.

    Attributes
    ----------
    max_bins : int
        Most bins of a feature.
    handle_unknown : {"missing", "error"}
        What a level is that was not learned.
    n_threads : int
        Number of threads.
    known : Encoding or None
        The levels that the trees of an earlier fit know; no others are learned then.
    """

    max_bins: int
    handle_unknown: str
    n_threads: int
    known: Encoding | None = None


def bin_rows(
    learned: LabelledRows, validated: LabelledRows | None, how: Binning
) -> tuple[BinnedRows, BinnedRows | None]:
    """Learn bins from rows, and code these and those to validate on.

    Rows that were held out of the same table are coded with it; levels that they alone have are
    missing.
    """
    if validated is None:
        return BinnedRows.from_table(learned, _learn_and_bin([learned], how)), None
    if validated.table is learned.table:
        table = _learn_and_bin([learned, validated], how)
        return BinnedRows.from_table(learned, table), BinnedRows.from_table(validated, table)
    table = _learn_and_bin([learned], how)
    other = _bin_like(table, validated, how.n_threads)
    return BinnedRows.from_table(learned, table), BinnedRows.from_table(validated, other)


def _learn_and_bin(parts: list[LabelledRows], how: Binning) -> BinnedTable:
    """Learn from the first of some parts of a table, and code all of it, once."""
    learned, table = parts[0], parts[0].table
    if isinstance(table, BinnedTable):
        return table
    weight = _weight_in_table(learned)
    if isinstance(table, PartedTable):
        coded = learn_and_bin(table, _learning(weight, _is_among(parts, len(table)), how))
        if how.known is None:
            return coded
        # The model keeps the names that it knows, or that there are none.
        return replace(coded, encoding=replace(how.known, handle_unknown=how.handle_unknown))
    if how.known is None:
        encoding = learn_encoding(table, weight, how.max_bins, how.handle_unknown)
    else:
        encoding = replace(how.known, handle_unknown=how.handle_unknown)
    thresholds = learn_thresholds(table, weight, encoding, how.max_bins, how.n_threads)
    lenient = replace(encoding, handle_unknown="missing")
    coded = bin_table(table, thresholds, lenient, how.n_threads, _is_among(parts, len(table)))
    return replace(coded, encoding=encoding)


def _learning(
    weight: NDArray[np.int64], is_seen: NDArray[np.bool_] | None, how: Binning
) -> Learning:
    """Say what is learned of a table that is read in parts."""
    return Learning(
        weight,
        is_seen,
        how.max_bins,
        most_codes(how.max_bins),
        how.handle_unknown,
        how.n_threads,
        None if how.known is None else how.known.levels,
    )


def _weight_in_table(rows: LabelledRows) -> NDArray[np.int64]:
    """Return the weight of each row of the table as an integer, 0 where it is not among these."""
    weight = np.zeros(len(rows.table), dtype=np.int64)
    weight[rows.which] = rows.integer_weights.weight
    return weight


def _bin_like(table: BinnedTable, rows: LabelledRows, n_threads: int) -> BinnedTable:
    """Code the table of other rows by the bins of a table."""
    other = rows.table
    if isinstance(other, Table):
        is_seen = _is_among([rows], len(other))
        return bin_table(other, table.thresholds, table.encoding, n_threads, is_seen)
    if isinstance(other, PartedTable):
        is_seen = _is_among([rows], len(other))
        return bin_like(other, table, n_threads, is_seen)
    if not other.has_bins_of(table):
        raise ValueError("X_val is a BinnedTable with other bins than X; expected the same")
    return other


def _is_among(parts: Iterable[LabelledRows], n_rows: int) -> NDArray[np.bool_] | None:
    """Tell which rows of a table are in some part of it; None if all are."""
    mask = np.zeros(n_rows, dtype=bool)
    for part in parts:
        mask[part.which] = True
    return None if mask.all() else mask
