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
from abcgbm.data.files.large_table import LargeTable, ReadObserver, as_large, read_labels
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
    check_class_weighted_total,
    check_sum_of_weights,
    class_weights,
    mean_factor,
    read_weights,
)

AnyTable = Table | BinnedTable
RowsTable = AnyTable | BatchedTable


class LargeRows(NamedTuple):
    """A table that is read in batches, after its labels and weights were read.

    Attributes
    ----------
    large : LargeTable
        The table.
    not_features : tuple of str or None
        Columns that are not features.
    n_rows : int
        Number of rows.
    """

    large: LargeTable
    not_features: tuple[str | None, ...]
    n_rows: int


def read_large(
    given: tuple[Any, Any, Any], suffix: str = "", observer: ReadObserver | None = None
) -> tuple[LargeRows, CodedLabels, Floats | None]:
    """Read the labels and weights of a table that is read in batches.

    Parameters
    ----------
    given : tuple
        X, y and sample_weight; the latter two are names of columns.
    suffix : {"", "_val"}
        Suffix of these arguments' names in errors.
    observer : ReadObserver or None
        Observes this pass over the table and all later ones.
    """
    X, y, sample_weight = given
    large = as_large(X).with_observer(observer)
    label = large.find(y, f"y{suffix}")
    weight = None if sample_weight is None else large.find(sample_weight, f"sample_weight{suffix}")
    if label == weight:
        raise ValueError(
            f"sample_weight{suffix}={weight!r} is also y{suffix}; expected another column"
        )
    fingerprint, labels, weights = read_labels(large, label, weight)
    if not len(labels.code):
        raise ValueError(f"X{suffix} is {large!r} with 0 rows; expected at least 1")
    rows = LargeRows(large.with_fingerprint(fingerprint), (label, weight), len(labels.code))
    return rows, labels, weights


def read_to_learn(X: Any, categorical_features: Any, owner: str) -> RowsTable:
    """Read a table to train on; ``owner`` is the name of the estimator in errors."""
    if isinstance(X, BinnedTable):
        return check_binned(X)
    if isinstance(X, LargeRows):
        schema = features_of(X.large, X.not_features, categorical_features)
        return BatchedTable(X.large, schema, X.n_rows, owner)
    return read_table(X, categorical_features, owner)


def read_like(X: Any, schema: Schema, owner: str, name: str = "X") -> AnyTable:
    """Read a table that must have the columns of ``schema``; ``name`` is its name in errors."""
    if isinstance(X, BinnedTable):
        return check_binned(X, schema, name)
    return read_table_like(X, schema, owner, name)


def read_rows_like(X: Any, schema: Schema, owner: str, name: str = "X") -> RowsTable:
    """Read a table as `read_like` does, or return a `BatchedTable`."""
    if isinstance(X, LargeRows):
        return BatchedTable(
            X.large, features_like(X.large, X.not_features, schema), X.n_rows, owner
        )
    return read_like(X, schema, owner, name)


# ------------------------------------------------------------------------------------ several ranks


def read_together(
    shard: Shard, X: Any, read: Callable[[Any], RowsTable], name: str = "X"
) -> RowsTable:
    """Read the table of this rank, with the schema of all ranks.

    Ranks without rows return an empty table.
    """
    if shard.is_single:
        return read(X)
    tables: list[Table] = []

    def partial_schema() -> tuple[str, PartialSchema | None]:
        if has_no_rows(X):
            return shard.name, None
        tables.append(_in_memory(read(X), name))
        return shard.name, PartialSchema.of(tables[0])

    schema = unite_schemas(allgather_results(shard, partial_schema), name)
    return with_schema(tables[0], schema) if tables else empty_table(schema)


def has_no_rows(X: Any) -> bool:
    """Whether X is None or has no rows."""
    shape = getattr(X, "shape", None)
    return X is None or (shape is not None and len(shape) > 0 and shape[0] == 0)


def _in_memory(table: RowsTable, name: str) -> Table:
    if not isinstance(table, Table):
        kind = "already binned" if isinstance(table, BinnedTable) else "read in batches"
        raise TypeError(
            f"{name} is {kind}; training on several ranks expects a table of values in memory"
        )
    return table


Which = NDArray[np.int64] | slice


@dataclass(frozen=True)
class LabelledRows:
    """Some rows of a table, with class numbers and positive weights.

    Attributes
    ----------
    table : Table, BinnedTable or BatchedTable
        The whole table.
    which : ndarray of int64 of shape (n_rows,) or slice
        Row numbers in the table, ascending.
    y : ndarray of int32 of shape (n_rows,)
        Class numbers.
    sample_weight : ndarray of float64 of shape (n_rows,)
        Weights as given.
    factor : ndarray of float64 of shape (n_classes,)
        Factor of the weights of each class.
    class_factor : float
        Mean factor of all rows, by which bounds on rows are multiplied.
    given : object
        The table as the user passed it, if these are all of its rows; else None.
    shard : Shard
        Position of these rows among those of all ranks.
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
        """Row numbers in the table."""
        return np.arange(len(self.table))[self.which]

    @lazy
    def weight(self) -> Floats:
        """Sample weights times class factors."""
        is_plain = (self.factor == 1).all()
        weight: Floats = (
            self.sample_weight if is_plain else self.sample_weight * self.factor[self.y]
        )
        return weight

    @lazy
    def integer_weights(self) -> IntegerWeights:
        """The weights as integers, with which training and validation compute."""
        return IntegerWeights.from_rows(self.sample_weight, self.y, self.factor, self.shard)

    @lazy
    def class_counts(self) -> NDArray[np.int64]:
        """Number of rows of each class on all ranks. The first access is a collective operation."""
        class_counts: NDArray[np.int64] = np.bincount(self.y, minlength=len(self.factor))
        self.shard.communicator.allreduce(class_counts, "sum")
        return class_counts

    @property
    def n_rows(self) -> int:
        """Number of rows on all ranks."""
        return int(self.class_counts.sum())

    def take(self, places: NDArray[np.int64]) -> Self:
        """Return some of the rows, by position among these."""
        return replace(
            self,
            which=self.row_numbers[places],
            y=self.y[places],
            sample_weight=self.sample_weight[places],
            given=None,
            shard=self.shard.take(places),
        )

    def as_given(self) -> Any:
        """Return the rows as the user passed them, or else as a table of exactly these rows."""
        if isinstance(self.table, BatchedTable):
            raise ValueError(  # noqa: TRY004 (the value of scoring is wrong)
                "scoring='loss' or 'error' is required if the validation rows are read in batches; "
                "expected one of these, or an X_val in memory"
            )
        return self.table.take(self.row_numbers) if self.given is None else self.given


class GivenRows(NamedTuple):
    """Training or validation rows as passed by the user.

    Attributes
    ----------
    table : Table, BinnedTable or BatchedTable
        Their table.
    y, sample_weight : array-like or None
        Labels and weights.
    shard : Shard
        Position of these rows among those of all ranks.
    suffix : {"", "_val"}
        Suffix of the arguments' names in errors.
    """

    table: RowsTable
    y: Any
    sample_weight: Any = None
    shard: Shard = LOCAL
    suffix: str = ""

    def weights(self) -> Floats:
        """Return the weights after checking them on this rank."""
        given = self.sample_weight if len(self.table) else None
        return read_weights(given, len(self.table), f"sample_weight{self.suffix}")

    def labels(self, which: Which, *, has_classes: bool) -> AnyLabels:
        """Return the labels of the given rows after checking them on this rank."""
        given = self.y if len(self.table) else np.empty(0, dtype=object)
        labels, name = as_labels(given, len(self.table), f"y{self.suffix}"), f"y{self.suffix}"
        return check_rows_labels(labels, name, which, has_classes=has_classes)


@dataclass(frozen=True)
class CountedRows:
    """The rows of a table with a positive weight, with labels as given.

    Attributes
    ----------
    table : Table, BinnedTable or BatchedTable
        The whole table.
    which : ndarray of int64 of shape (n_rows,) or slice
        Row numbers in the table.
    labels : ndarray of shape (n_rows,)
        Labels, none of them missing.
    weight : ndarray of float64 of shape (n_rows,)
        Weights.
    suffix : {"", "_val"}
        Suffix of the arguments' names in errors.
    shard : Shard
        Position of these rows among those of all ranks.
    """

    table: RowsTable
    which: Which
    labels: AnyLabels
    weight: Floats
    suffix: str = ""
    shard: Shard = LOCAL

    @classmethod
    def from_given(cls, given: GivenRows, *, has_classes: bool = False) -> Self:
        """Validate labels and weights; the labels of zero-weight rows are ignored.

        ``has_classes`` is whether the set of possible labels is known.
        """
        table, shard, suffix = given.table, given.shard, given.suffix
        has_classes |= not shard.is_single  # few rows of many labels are normal on one rank
        weight = raise_together(shard, given.weights)
        check_sum_of_weights(weight, f"sample_weight{suffix}", shard)
        which = slice(None) if weight.all() else np.flatnonzero(weight)
        labels = raise_together(shard, partial(given.labels, which, has_classes=has_classes))
        shard = raise_together(shard, partial(shard.with_rows, len(table)))
        shard = shard if isinstance(which, slice) else shard.take(which)
        return cls(table, which, labels, weight[which], suffix, shard)

    def sums(self, y: NDArray[np.int32], n_classes: int) -> WeightSums:
        """Return the sums of the weights of all ranks, given the class numbers of these rows."""
        return WeightSums.from_rows(self.weight, y, n_classes).over_ranks(self.shard)

    def with_class_weights(
        self, y: NDArray[np.int32], factor: Floats, sums: WeightSums, given: Any = None
    ) -> LabelledRows:
        """Apply class factors; rows whose factor is 0 are removed.

        ``sums`` are the sums of the weights of all ranks.
        """
        check_class_weighted_total(sums, factor, self.suffix)
        whole = given if len(y) == len(self.table) else None
        mean = mean_factor(sums, factor)
        rows = LabelledRows(self.table, self.which, y, self.weight, factor, mean, whole, self.shard)
        is_positive = factor[y] > 0
        return rows if is_positive.all() else rows.take(np.flatnonzero(is_positive))


class ClassLabels(NamedTuple):
    """The sorted labels of the classes, and the factor of each class's weights."""

    labels: NDArray[Any]
    factor: Floats


def rows_to_learn(
    given: GivenRows, known: NDArray[Any] | None, class_weight: Any
) -> tuple[LabelledRows, ClassLabels]:
    """Validate labels and weights; return the rows to train on, and the classes.

    ``known`` are the possible labels; None: those that occur.
    """
    counted = CountedRows.from_given(given, has_classes=known is not None)
    labels, class_of_row = encode_labels(counted.labels, known, given.shard)
    sums = counted.sums(class_of_row, len(labels))
    factor = class_weights(class_weight, labels, sums)
    return counted.with_class_weights(class_of_row, factor, sums), ClassLabels(labels, factor)


class ToValidate(NamedTuple):
    """X_val, y_val and sample_weight_val as passed by the user."""

    X: Any
    y: Any
    sample_weight: Any

    def are_given(self) -> bool:
        """Whether a validation table was passed; X_val or y_val alone is an error."""
        if all(value is None for value in self):
            return False
        if self.X is None or self.y is None:
            missing = "X_val" if self.X is None else "y_val"
            raise ValueError(f"{missing} is None; expected X_val and y_val together, or neither")
        return True


def rows_to_validate(
    given: ToValidate, schema: Schema, classes: ClassLabels, owner: str, shard: Shard = LOCAL
) -> LabelledRows | None:
    """Validate X_val, y_val and sample_weight_val; return the validation rows, if any."""
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
    return counted.with_class_weights(class_of_row, classes.factor, sums, given=given.X)
