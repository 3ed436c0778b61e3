"""Features of a `LargeTable`, in batches or groups of columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.data.files.large_table import ChangedTableError, LargeTable
from abcgbm.data.schema import Kind, Schema, chosen_columns
from abcgbm.data.table import Table, read_table_like
from abcgbm.errors import format_bytes, quoted_list, require_pyarrow
from abcgbm.parameters.machine import available_bytes


@dataclass(frozen=True, eq=False)
class BatchedTable:
    """Features of a `LargeTable`, read again whenever they are needed.

    Attributes
    ----------
    large : LargeTable
        The table.
    schema : Schema
        Names and kinds of the features.
    n_rows : int
        Number of rows.
    owner : str
        Name of the estimator in errors.
    """

    large: LargeTable
    schema: Schema
    n_rows: int
    owner: str

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return self.n_rows, len(self.schema.is_categorical)

    def __len__(self) -> int:
        return self.n_rows

    @property
    def feature_names(self) -> NDArray[Any] | None:
        """Names of the features."""
        return self.schema.feature_names

    def kinds(self, features: NDArray[np.intp]) -> list[Kind]:
        """Return the kinds of some features."""
        is_categorical = self.schema.is_categorical[features]
        return [Kind.CATEGORICAL if is_one else Kind.NUMERIC for is_one in is_categorical.tolist()]

    def groups(
        self, max_bytes: int, bytes_per_value: int, n_threads: int = 1
    ) -> list[NDArray[np.intp]]:
        """Return groups of features to be read in one pass each.

        If columns can be read separately, a group takes at most ``max_bytes`` (unless it is a
        single feature) and divides evenly among the threads. Otherwise all features are one group,
        so that the rows are read once.
        """
        n_features = self.shape[1]
        size = n_features
        if self.large.source.is_columnar:
            size = max(1, max_bytes // (bytes_per_value * self.n_rows))
            size -= size % n_threads if size > n_threads else 0
        return [np.arange(f, min(f + size, n_features)) for f in range(0, n_features, size)]

    def fits(self, features: NDArray[np.intp], max_bytes: int, bytes_per_value: int) -> bool:
        """Whether all rows of some features fit into ``max_bytes``."""
        return bytes_per_value * self.n_rows * len(features) <= max_bytes

    def whole(self, features: NDArray[np.intp]) -> Table:
        """Return some features of all rows, in memory."""
        arrow, schema = require_pyarrow(), _subset(self.schema, features)
        names = schema.feature_names
        assert names is not None
        batches = [*self.large.batches(names.tolist())]
        self._check_rows(sum(map(len, batches)))
        table = arrow.concat_tables(batches, promote_options="permissive")
        return read_table_like(table, schema, self.owner)

    def storage_of_codes(self) -> _core.Storage:
        """Return storage for the codes: in ``cache_dir`` if memory is too small, else in memory."""
        if 2 * self.code_bytes <= self.large.free_bytes():  # leave memory for scores and histograms
            return _core.Storage()
        available = available_bytes()
        if self.large.cache_dir is None and available is not None and self.code_bytes > available:
            n_rows, n_features = self.shape
            raise MemoryError(
                f"the bin codes of {n_rows} rows x {n_features} features take about "
                f"{format_bytes(self.code_bytes)}; {format_bytes(available)} are available. Expected "
                f"{self.large!r} with a cache_dir to store them in, or with fewer columns (ignore)"
            )
        return _core.Storage(self.large.cache_dir)

    @property
    def code_bytes(self) -> int:
        """Approximate size of the codes."""
        return self.n_rows * self.shape[1]

    def batches(self, features: NDArray[np.intp]) -> Iterator[tuple[int, Table]]:
        """Yield some features in batches, each with the number of its first row."""
        first_row = 0
        for table in feature_batches(self.large, _subset(self.schema, features), self.owner):
            if first_row + len(table) > self.n_rows:
                self._check_rows(first_row + len(table))
            yield first_row, table
            first_row += len(table)
        self._check_rows(first_row)

    def _check_rows(self, now: int) -> None:
        if now != self.n_rows:
            raise ChangedTableError(
                f"{self.large!r} had {self.n_rows} rows when it was first read, but now has "
                f"{'more' if now > self.n_rows else now}; expected the same rows each time"
            )

    def batches_of_rows(self, rows: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], Table]]:
        """Yield some rows, given in ascending order, in batches, with their positions in ``rows``."""
        for first_row, batch in self.batches(np.arange(self.shape[1])):
            begin, end = np.searchsorted(rows, [first_row, first_row + len(batch)])
            if begin < end:
                yield np.arange(begin, end), batch.take(rows[begin:end] - first_row)


def _subset(schema: Schema, features: NDArray[np.intp]) -> Schema:
    names = schema.feature_names
    return Schema(schema.is_categorical[features], None if names is None else names[features])


def feature_batches(large: LargeTable, schema: Schema, owner: str) -> Iterator[Table]:
    """Yield the features of a schema in batches of rows."""
    known = features_like(large, (), schema)
    names = known.feature_names
    assert names is not None
    for batch in large.batches(names.tolist()):
        yield read_table_like(batch, known, owner)


def features_of(
    large: LargeTable, not_features: tuple[str | None, ...], categorical_features: Any
) -> Schema:
    """Return the schema of all columns except those in ``not_features``."""
    names = np.array([n for n in large.column_names if n not in not_features], dtype=object)
    if not len(names):
        raise ValueError(
            f"{large!r} has no columns besides labels and weights; expected at least one feature"
        )
    if isinstance(categorical_features, str) and categorical_features == "auto":
        return Schema(np.array([_is_categorical(large, n) for n in names], dtype=bool), names)
    return Schema(chosen_columns(categorical_features, len(names), names), names)


def features_like(
    large: LargeTable, not_features: tuple[str | None, ...], schema: Schema
) -> Schema:
    """Return a fitted model's schema, with names, after checking that the table has its features.

    If it has no names, features are all columns except those in ``not_features``, in order.
    """
    names = [n for n in large.column_names if n not in not_features]
    if schema.feature_names is not None:
        for name in schema.feature_names.tolist():
            if name not in large.column_names:
                raise ValueError(
                    f"{large!r} has no column {name!r}, which the model was fitted with; it has "
                    f"{quoted_list(large.column_names, 20)}"
                )
        return schema
    if len(names) != len(schema.is_categorical):
        raise ValueError(
            f"{large!r} has {len(names)} features; expected {len(schema.is_categorical)} as in fit"
        )
    return Schema(schema.is_categorical, np.array(names, dtype=object))


def _is_categorical(large: LargeTable, name: str) -> bool:
    """Whether a column holds strings or dictionaries, or only missing values."""
    types, of = require_pyarrow("pyarrow.types"), large.source.schema.field(name).type
    is_string = types.is_string(of) or types.is_large_string(of) or types.is_string_view(of)
    return bool(is_string or types.is_dictionary(of) or types.is_null(of))
