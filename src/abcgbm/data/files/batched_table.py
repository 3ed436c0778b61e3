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
from abcgbm.errors import require_pyarrow, shortened, shown_bytes
from abcgbm.parameters.machine import available_bytes


@dataclass(frozen=True, eq=False)
class BatchedTable:
    """Rows of features that are read again whenever they are needed.

    Attributes
    ----------
    large : LargeTable
        Where they come from.
    schema : Schema
        Names, and which features are categories.
    n_rows : int
        Number of rows, in all parts.
    owner : str
        The estimator that errors speak of.
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
        """Return what some features are."""
        is_categorical = self.schema.is_categorical[features]
        return [Kind.CATEGORICAL if is_one else Kind.NUMERIC for is_one in is_categorical.tolist()]

    def groups(self, max_bytes: int, of_value: int, n_threads: int = 1) -> list[NDArray[np.intp]]:
        """Return the features in groups that are read together.

        Where columns can be read apart, those of a group take so many bytes at most, but for a group
        of one, and no thread has more of them than the others; else all features are one group, and
        their rows are read once.
        """
        n_features = self.shape[1]
        size = n_features
        if self.large.source.is_columnar:
            size = max(1, max_bytes // (of_value * self.n_rows))
            size -= size % n_threads if size > n_threads else 0
        return [np.arange(f, min(f + size, n_features)) for f in range(0, n_features, size)]

    def fits(self, features: NDArray[np.intp], max_bytes: int, of_value: int) -> bool:
        """Whether all rows of some features take no more than so many bytes."""
        return of_value * self.n_rows * len(features) <= max_bytes

    def whole(self, features: NDArray[np.intp]) -> Table:
        """Return some features of all rows, in memory."""
        arrow, schema = require_pyarrow(), _some(self.schema, features)
        names = schema.feature_names
        assert names is not None
        parts = [*self.large.parts(names.tolist())]
        self._check_rows(sum(map(len, parts)))
        table = arrow.concat_tables(parts, promote_options="permissive")
        return read_table_like(table, schema, self.owner)

    def storage_of_codes(self) -> _core.Storage:
        """Return where its codes can lie: in a folder, if there is one and memory is too small."""
        if 2 * self.code_bytes <= self.large.free_bytes():  # other things need room, too
            return _core.Storage()
        available = available_bytes()
        if self.large.cache_dir is None and available is not None and self.code_bytes > available:
            n_rows, n_features = self.shape
            raise MemoryError(
                f"the bin codes of {n_rows} rows x {n_features} features take about "
                f"{shown_bytes(self.code_bytes)}; {shown_bytes(available)} are available. Expected "
                f"{self.large!r} with a cache_dir, where they can lie, or with fewer columns (ignore)"
            )
        return _core.Storage(self.large.cache_dir)

    @property
    def code_bytes(self) -> int:
        """About how many bytes its codes take."""
        return self.n_rows * self.shape[1]

    def parts(self, features: NDArray[np.intp]) -> Iterator[tuple[int, Table]]:
        """Yield the number of the first row of each part, and the part: some features of its rows."""
        first_row = 0
        for table in feature_batches(self.large, _some(self.schema, features), self.owner):
            if first_row + len(table) > self.n_rows:
                self._check_rows(first_row + len(table))
            yield first_row, table
            first_row += len(table)
        self._check_rows(first_row)

    def _check_rows(self, now: int) -> None:
        if now != self.n_rows:
            raise ChangedTableError(
                f"{self.large!r} had {self.n_rows} rows when it was first read; now it has "
                f"{'more' if now > self.n_rows else now}"
            )

    def parts_of_rows(self, rows: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], Table]]:
        """Yield some rows, ascending by number, part by part: their places among these, and they."""
        for first_row, part in self.parts(np.arange(self.shape[1])):
            begin, end = np.searchsorted(rows, [first_row, first_row + len(part)])
            if begin < end:
                yield np.arange(begin, end), part.take(rows[begin:end] - first_row)


def _some(schema: Schema, features: NDArray[np.intp]) -> Schema:
    names = schema.feature_names
    return Schema(schema.is_categorical[features], None if names is None else names[features])


def feature_batches(large: LargeTable, schema: Schema, owner: str) -> Iterator[Table]:
    """Yield the features that a schema names, of all rows, a part at a time."""
    known = features_like(large, (), schema)
    names = known.feature_names
    assert names is not None
    for part in large.parts(names.tolist()):
        yield read_table_like(part, known, owner)


def features_of(
    large: LargeTable, apart: tuple[str | None, ...], categorical_features: Any
) -> Schema:
    """Return names and kinds of the features of a table: all columns but those ``apart``."""
    names = np.array([n for n in large.column_names if n not in apart], dtype=object)
    if not len(names):
        raise ValueError(f"{large!r} has no column left to learn from; expected features")
    if isinstance(categorical_features, str) and categorical_features == "auto":
        return Schema(np.array([_is_level(large, n) for n in names], dtype=bool), names)
    return Schema(chosen_columns(categorical_features, len(names), names), names)


def features_like(large: LargeTable, apart: tuple[str | None, ...], schema: Schema) -> Schema:
    """Return the features of a table that must have the columns known already, by their names.

    Where these had no names, they are all columns but those ``apart``, in their order.
    """
    names = [n for n in large.column_names if n not in apart]
    if schema.feature_names is not None:
        for name in schema.feature_names.tolist():
            if name not in large.column_names:
                raise ValueError(
                    f"{large!r} has no column {name!r}, which the model was fitted with; it has "
                    f"{shortened(large.column_names, 20)}"
                )
        return schema
    if len(names) != len(schema.is_categorical):
        raise ValueError(
            f"{large!r} has {len(names)} features, but {len(schema.is_categorical)} were learned"
        )
    return Schema(schema.is_categorical, np.array(names, dtype=object))


def _is_level(large: LargeTable, name: str) -> bool:
    """Whether a column is of strings or dictionaries, or of nothing at all."""
    types, of = require_pyarrow("pyarrow.types"), large.source.schema.field(name).type
    is_string = types.is_string(of) or types.is_large_string(of) or types.is_string_view(of)
    return bool(is_string or types.is_dictionary(of) or types.is_null(of))
