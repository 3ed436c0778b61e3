"""Training and validation samples: features, class numbers and weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from abcgbm.communication.collectives import allgather_results, raise_together
from abcgbm.communication.shard import LOCAL, Shard
from abcgbm.data.arrays import Floats
from abcgbm.data.binned_table import BinnedTable, check_binned
from abcgbm.data.files.batched_table import BatchedTable, features_like, features_of
from abcgbm.data.files.large_table import LargeTable, Watch, as_large, read_labels
from abcgbm.data.labels import (
    AnyLabels,
    CodedLabels,
    as_labels,
    check_rows_labels,
    class_numbers,
    encode_labels,
)
from abcgbm.data.once import lazy
from abcgbm.data.schema import Schema
from abcgbm.data.shard_schema import PartialSchema, empty_table, unite_schemas
from abcgbm.data.table import Table, read_table, read_table_like, with_schema
from abcgbm.data.weights import (
    IntegerWeights,
    WeightSums,
    check_sum_of_weights,
    check_weighed_total,
    class_weights,
    mean_factor,
    read_weights,
)

AnyTable = Table | BinnedTable
RowsTable = AnyTable | BatchedTable


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
        return BatchedTable(X.large, schema, X.n_rows, owner)
    return read_table(X, categorical_features, owner)


def read_like(X: Any, schema: Schema, owner: str, name: str = "X") -> AnyTable:
    """Read a table that must have the columns known already; ``name`` is what errors call it."""
    if isinstance(X, BinnedTable):
        return check_binned(X, schema, name)
    return read_table_like(X, schema, owner, name)


def read_rows_like(X: Any, schema: Schema, owner: str, name: str = "X") -> RowsTable:
    """Do the same for rows to learn from or to validate on, which may be read in parts."""
    if isinstance(X, LargeRows):
        return BatchedTable(X.large, features_like(X.large, X.apart, schema), X.n_rows, owner)
    return read_like(X, schema, owner, name)


# ------------------------------------------------------------------------------------------ by ranks


def read_together(
    shard: Shard, X: Any, read: Callable[[Any], RowsTable], name: str = "X"
) -> RowsTable:
    """Read the table of this rank; all have the same columns, and some may have no rows."""
    if shard.is_single:
        return read(X)
    tables: list[Table] = []

    def look() -> tuple[str, PartialSchema | None]:
        if has_no_rows(X):
            return shard.name, None
        tables.append(_in_memory(read(X), name))
        return shard.name, PartialSchema.of(tables[0])

    schema = unite_schemas(allgather_results(shard, look), name)
    return with_schema(tables[0], schema) if tables else empty_table(schema)


def has_no_rows(X: Any) -> bool:
    """Whether a rank was given no table, or one without rows."""
    shape = getattr(X, "shape", None)
    return X is None or (shape is not None and len(shape) > 0 and shape[0] == 0)


def _in_memory(table: RowsTable, name: str) -> Table:
    if not isinstance(table, Table):
        kind = "binned already" if isinstance(table, BinnedTable) else "read in parts"
        raise TypeError(
            f"{name} is {kind}; expected a table of values in memory, where several ranks share rows"
        )
    return table


Which = NDArray[np.int64] | slice


@dataclass(frozen=True)
class LabelledRows:
    """Some rows of a table, with class numbers and weights above 0.

    Attributes
    ----------
    table : Table, BinnedTable or BatchedTable
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
    shard : Shard
        Where they stand among the rows of all ranks.
    """

    table: RowsTable
    which: Which
    y: NDArray[np.int32]
    sample_weight: Floats
    factor: Floats
    class_factor: float = 1.0
    given: Any = None
    shard: Shard = LOCAL

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
        return IntegerWeights.from_rows(self.sample_weight, self.y, self.factor, self.shard)

    @lazy
    def of_class(self) -> NDArray[np.int64]:
        """How many rows of all ranks each class has; when it is asked for first, by all of them."""
        of_class: NDArray[np.int64] = np.bincount(self.y, minlength=len(self.factor))
        self.shard.communicator.allreduce(of_class, "sum")
        return of_class

    @property
    def n_rows(self) -> int:
        """How many there are on all ranks."""
        return int(self.of_class.sum())

    def take(self, places: NDArray[np.int64]) -> Self:
        """Return some of the rows, by their place among these."""
        return replace(
            self,
            which=self.row_numbers[places],
            y=self.y[places],
            sample_weight=self.sample_weight[places],
            given=None,
            shard=self.shard.take(places),
        )

    def as_given(self) -> Any:
        """Return the rows as the user gave them, or else as a table of them alone."""
        if isinstance(self.table, BatchedTable):
            raise ValueError(  # noqa: TRY004 (the value of scoring)
                "a scorer cannot be handed rows that are read in parts; expected scoring='loss' or "
                "'error', or an X_val that is in memory"
            )
        return self.table.take(self.row_numbers) if self.given is None else self.given


class GivenRows(NamedTuple):
    """Rows as they are given to learn from, or to validate on.

    Attributes
    ----------
    table : Table, BinnedTable or BatchedTable
        Their table.
    y, sample_weight : array-like or None
        Their labels and weights.
    shard : Shard
        Where they stand among the rows of all ranks.
    suffix : {"", "_val"}
        What the names of the arguments end with.
    """

    table: RowsTable
    y: Any
    sample_weight: Any = None
    shard: Shard = LOCAL
    suffix: str = ""

    def weights(self) -> Floats:
        """Return the weights, checked by themselves."""
        given = self.sample_weight if len(self.table) else None
        return read_weights(given, len(self.table), f"sample_weight{self.suffix}")

    def labels(self, which: Which, *, has_classes: bool) -> AnyLabels:
        """Return the labels of those that count, checked by themselves."""
        given = self.y if len(self.table) else np.empty(0, dtype=object)
        labels, name = as_labels(given, len(self.table), f"y{self.suffix}"), f"y{self.suffix}"
        return check_rows_labels(labels, name, which, has_classes=has_classes)


@dataclass(frozen=True)
class CountedRows:
    """The rows of a table that count, still with the user's labels: weight 0 is the row absent.

    Attributes
    ----------
    table : Table, BinnedTable or BatchedTable
        The table, all of it.
    which : ndarray of int64 of shape (n_rows,) or slice
        Which rows of it count.
    labels : ndarray of shape (n_rows,)
        Their labels, none missing.
    weight : ndarray of float64 of shape (n_rows,)
        Their weights.
    suffix : {"", "_val"}
        What the names of the arguments end with.
    shard : Shard
        Where they stand among the rows of all ranks that count.
    """

    table: RowsTable
    which: Which
    labels: AnyLabels
    weight: Floats
    suffix: str = ""
    shard: Shard = LOCAL

    @classmethod
    def from_given(cls, given: GivenRows, *, has_classes: bool = False) -> Self:
        """Check labels and weights; the labels of absent rows are not looked at.

        ``has_classes``: which labels there are is known already.
        """
        table, shard, suffix = given.table, given.shard, given.suffix
        has_classes |= not shard.is_single  # a rank alone may have few rows of many labels
        weight = raise_together(shard, given.weights)
        check_sum_of_weights(weight, f"sample_weight{suffix}", shard)
        which = slice(None) if weight.all() else np.flatnonzero(weight)
        labels = raise_together(shard, partial(given.labels, which, has_classes=has_classes))
        shard = raise_together(shard, partial(shard.with_rows, len(table)))
        shard = shard if isinstance(which, slice) else shard.take(which)
        return cls(table, which, labels, weight[which], suffix, shard)

    def sums(self, y: NDArray[np.int32], n_classes: int) -> WeightSums:
        """Return what the weights of the rows of all ranks add up to; those here are of classes y."""
        return WeightSums.from_rows(self.weight, y, n_classes).of_all(self.shard)

    def weighed(
        self, y: NDArray[np.int32], factor: Floats, sums: WeightSums, given: Any = None
    ) -> LabelledRows:
        """Weigh rows by the factors of their classes too; those of a factor 0 are absent.

        ``sums`` are those of all rows that count.
        """
        check_weighed_total(sums, factor, self.suffix)
        of_all = given if len(y) == len(self.table) else None
        mean = mean_factor(sums, factor)
        rows = LabelledRows(
            self.table, self.which, y, self.weight, factor, mean, of_all, self.shard
        )
        counts = factor[y] > 0
        return rows if counts.all() else rows.take(np.flatnonzero(counts))


class ClassLabels(NamedTuple):
    """The labels, sorted, and the factor of the weights of each."""

    labels: NDArray[Any]
    factor: Floats


def rows_to_learn(
    given: GivenRows, known: NDArray[Any] | None, class_weight: Any
) -> tuple[LabelledRows, ClassLabels]:
    """Check labels and weights; return the rows that count, and the classes.

    ``known`` are the labels that can occur; None: those that do.
    """
    counted = CountedRows.from_given(given, has_classes=known is not None)
    labels, class_of_row = encode_labels(counted.labels, known, given.shard)
    sums = counted.sums(class_of_row, len(labels))
    factor = class_weights(class_weight, labels, sums)
    return counted.weighed(class_of_row, factor, sums), ClassLabels(labels, factor)


class ToValidate(NamedTuple):
    """X_val, y_val and sample_weight_val, as they were given."""

    X: Any
    y: Any
    sample_weight: Any

    def are_given(self) -> bool:
        """Whether there are any; a table without labels is an error."""
        if all(value is None for value in self):
            return False
        if self.X is None or self.y is None:
            missing = "X_val" if self.X is None else "y_val"
            raise ValueError(f"{missing} is None; expected X_val and y_val together, or neither")
        return True


def rows_to_validate(
    given: ToValidate, schema: Schema, classes: ClassLabels, owner: str, shard: Shard = LOCAL
) -> LabelledRows | None:
    """Check X_val, y_val and sample_weight_val; return the rows that count, if any were given."""
    shard = shard.for_validation()
    if not any(allgather_results(shard, given.are_given)):
        return None
    read = partial(read_rows_like, schema=schema, owner=owner, name="X_val")
    rows = GivenRows(
        read_together(shard, given.X, read, "X_val"), given.y, given.sample_weight, shard, "_val"
    )
    counted = CountedRows.from_given(rows, has_classes=True)
    class_of_row = raise_together(
        shard, lambda: class_numbers(counted.labels, classes.labels, "y_val")
    )
    sums = counted.sums(class_of_row, len(classes.labels))
    return counted.weighed(class_of_row, classes.factor, sums, given=given.X)
