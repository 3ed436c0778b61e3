"""Binned tables, and the encoder from values to bin codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abcgbm import _core
from abcgbm.data.arrays import ArrayColumns, Floats, Level, chunks
from abcgbm.data.categories import CategoryMap
from abcgbm.data.digest import digest_of
from abcgbm.data.schema import Kind, Schema
from abcgbm.data.table import Table, read_table_like
from abcgbm.parameters.machine import effective_n_threads

CHUNK_BYTES = 2**26  # of numbers made for prediction at a time


@dataclass(frozen=True)
class ColumnEncoder:
    """How a table becomes numbers, as learned from an earlier one.

    Attributes
    ----------
    schema : Schema
        The columns a table must have.
    levels : dict of int to CategoryMap
        The levels of each categorical feature, and their codes.
    handle_unknown : {"missing", "error"}
        What a level is that was not learned.
    """

    schema: Schema
    levels: dict[int, CategoryMap]
    handle_unknown: str = "missing"

    def check(self) -> None:
        """Raise a ValueError unless levels, names and kinds of features fit each other."""
        self.schema.check()
        if [*self.levels] != np.flatnonzero(self.schema.is_categorical).tolist():
            raise ValueError(
                f"levels of features {[*self.levels]}; expected those of the categorical ones"
            )
        for levels in self.levels.values():
            levels.check()
        if self.handle_unknown not in ("missing", "error"):
            raise ValueError(
                f"handle_unknown={self.handle_unknown!r}; expected 'missing' or 'error'"
            )

    def for_model(self) -> ColumnEncoder:
        """Return a copy that has not warned yet, because each model warns once."""
        levels = {feature: replace(of) for feature, of in self.levels.items()}
        return replace(self, schema=replace(self.schema), levels=levels)

    def n_codes(self) -> NDArray[np.int64]:
        """Return the number of codes of each feature; 0 for numbers."""
        n_codes = np.zeros(len(self.schema.is_categorical), dtype=np.int64)
        for feature, levels in self.levels.items():
            n_codes[feature] = levels.n_codes
        return n_codes

    def read(self, X: Any, owner: str, name: str = "X") -> Table:
        """Return a table of the learned columns; errors speak of its owner, and call it by name."""
        if not isinstance(X, Table):
            return read_table_like(X, self.schema, owner, name)
        if not X.schema.is_same(self.schema):
            raise ValueError(
                f"{name} is a Table of other columns; expected those that were learned"
            )
        return X

    def codes(self, table: Table, feature: int) -> Floats:
        """Return the codes of a categorical feature, of shape (n_rows,); NaN is missing."""
        return self.levels[feature].codes(table.levels(feature), self.handle_unknown)

    def check_unused(self, table: Table, used_features: NDArray[np.intp]) -> None:
        """Raise a TypeError if a category that is not coded has another type than the learned one."""
        for feature in sorted(self.levels.keys() - {*used_features.tolist()}):
            self.levels[feature].check_type(table.levels(feature))

    def matrix(self, table: Table, features: ArrayLike) -> Floats:
        """Return features as numbers, C-contiguous, of shape (n_rows, len(features))."""
        wanted = np.asarray(features, dtype=np.intp)
        categorical = self.schema.is_categorical[wanted]
        values = np.empty((len(table), len(wanted)))
        table.write(values, np.flatnonzero(~categorical), wanted[~categorical])
        for column in np.flatnonzero(categorical):
            values[:, column] = self.codes(table, int(wanted[column]))
        return values

    def is_matrix(self, table: Table) -> bool:
        """Whether a table is a C-contiguous array of floats already."""
        if not isinstance(table.dense, ArrayColumns) or self.schema.is_categorical.any():
            return False
        values = table.dense.values
        is_plain = values.flags.c_contiguous and values.flags.aligned
        return is_plain and values.dtype == np.float64 and values.shape == table.shape

    def chunks(
        self, table: Table, features: ArrayLike | None = None
    ) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of rows, and some or all features of them as ``matrix`` gives them.

        A chunk is of bounded size, but an array that needs no change comes in one piece.
        """
        if features is None and isinstance(table.dense, ArrayColumns) and self.is_matrix(table):
            yield slice(0, len(table)), table.dense.values
            return
        wanted = np.arange(table.shape[1]) if features is None else np.asarray(features, np.intp)
        for rows in row_chunks(len(table), len(wanted)):
            whole = rows == slice(0, len(table))
            yield rows, self.matrix(table if whole else table.take(rows), wanted)


def row_chunks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Cut rows into slices of which the numbers take about ``CHUNK_BYTES``."""
    return chunks(n_rows, max(1, CHUNK_BYTES // (8 * max(1, n_columns))))


_COLUMNS = 8  # per thread, that are floats at a time


@dataclass(frozen=True, eq=False, repr=False)
class BinnedTable:
    """A table as training sees it: its bin codes, and what they mean.

    Attributes
    ----------
    binned : _core.Binned
        The codes, as the core holds them.
    thresholds : tuple of ndarray
        For each feature the thresholds between its bins.
    encoding : ColumnEncoder
        The columns, and the levels of those that are categories.
    """

    binned: _core.Binned
    thresholds: tuple[Floats, ...]
    encoding: ColumnEncoder

    def __repr__(self) -> str:
        n_rows, n_features = self.shape
        return f"BinnedTable({n_rows} rows, {n_features} features, {self.binned.total_bins} bins)"

    def __getstate__(self) -> dict[str, Any]:
        """Return the table as plain arrays, with a digest of all of it."""
        state = {
            "binned": self.binned.state(),
            "thresholds": self.thresholds,
            "encoding": self.encoding,
        }
        return state | {"digest": digest_of(state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a state that is what it was when it was made; every array is checked."""
        content = {name: state[name] for name in ("binned", "thresholds", "encoding")}
        if digest_of(content) != state["digest"]:
            raise ValueError("the state of this BinnedTable was changed: its digest is another")
        binned = _core.Binned.from_state(content["binned"])
        _check_bins(binned, content["thresholds"], content["encoding"])
        self.__dict__.update(content | {"binned": binned})

    @property
    def feature_names(self) -> NDArray[Any] | None:
        """Names of the features, if the table had any."""
        return self.schema.feature_names

    @property
    def schema(self) -> Schema:
        """Names of the features, and which are categories."""
        return self.encoding.schema

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return self.binned.n_rows, self.binned.n_features

    def __len__(self) -> int:
        return self.binned.n_rows

    def __getitem__(self, rows: Any) -> BinnedTable:
        """Return some rows, given as NumPy would take them: numbers, a mask or a slice."""
        row_numbers = np.ascontiguousarray(np.atleast_1d(np.arange(len(self))[rows]))
        if row_numbers.ndim != 1:
            raise IndexError(f"rows of shape {row_numbers.shape}; expected one dimension")
        return self.take(row_numbers)

    def take(self, rows: NDArray[np.int64]) -> BinnedTable:
        """Return some rows, by number."""
        return BinnedTable(self.binned.take(rows), self.thresholds, self.encoding)

    def bin(self, X: Any, n_jobs: int | None = None) -> BinnedTable:
        """Code another table by the same bins."""
        table = self.encoding.read(X, type(self).__name__)
        return bin_table(table, self.thresholds, self.encoding, effective_n_threads(n_jobs))

    def has_bins_of(self, other: BinnedTable) -> bool:
        """Whether a code means the same in both tables."""
        mine, theirs = self.encoding, other.encoding
        same_columns = mine.schema.is_same(theirs.schema) and mine.levels == theirs.levels
        return same_columns and all(map(np.array_equal, self.thresholds, other.thresholds))

    def upper_value(
        self, feature: NDArray[np.int32], code: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the thresholds above the given bins; infinity above the last value bin."""
        flat = np.concatenate([np.append(t, np.inf) for t in self.thresholds])
        start = np.cumsum([0, *(len(t) + 1 for t in self.thresholds[:-1])])
        value: NDArray[np.float64] = flat[start[feature] + code]
        return value

    def values(self, rows: Any, features: ArrayLike | None = None) -> Floats:
        """Return floats that lie in the bins, C-contiguous, of shape (n_rows, n_features).

        In every tree that was grown with these bins they go the way of the values themselves. Each
        is the threshold above its bin, infinite for the last; a category has its code; NaN is
        missing.
        """
        wanted = np.arange(self.shape[1]) if features is None else np.asarray(features)
        codes = self[rows].binned.codes(wanted.astype(np.int32))
        values = np.empty(codes.shape)
        for column, feature in enumerate(wanted.tolist()):
            values[:, column] = self._bin_values(feature)[codes[:, column]]
        return values

    def chunks(self, features: ArrayLike | None = None) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of rows, and some or all features of them as ``values`` gives them."""
        for rows in row_chunks(*self.shape):
            yield rows, self.values(rows, features)

    def _bin_values(self, feature: int) -> Floats:
        """Return a number for each code of a feature, the last for missing."""
        thresholds = self.thresholds[feature]
        if self.encoding.schema.is_categorical[feature]:
            return np.append(np.arange(len(thresholds) + 1.0), np.nan)
        return np.append(thresholds, [np.inf, np.nan])


def _check_bins(binned: _core.Binned, thresholds: Any, encoding: ColumnEncoder) -> None:
    """Raise ValueError unless codes, thresholds and levels are those of one table."""
    is_categorical = encoding.schema.is_categorical
    if [len(t) + 2 for t in thresholds] != list(binned.n_bins):
        raise ValueError("the state of a BinnedTable has thresholds for other bins than its codes")
    if binned.is_categorical != is_categorical.tolist():
        raise ValueError("the state of a BinnedTable has other categories than its codes")


def bin_table(
    table: Table,
    thresholds: tuple[Floats, ...],
    encoding: ColumnEncoder,
    n_threads: int,
    is_seen: NDArray[np.bool_] | None = None,
) -> BinnedTable:
    """Code a table; levels of rows that are not seen are missing."""
    builder = builder_of(len(table), thresholds, encoding)
    add_all(builder, table, encoding, n_threads, is_seen)
    return BinnedTable(builder.finish(), thresholds, encoding)


def builder_of(
    n_rows: int, thresholds: tuple[Floats, ...], encoding: ColumnEncoder
) -> _core.BinnedBuilder:
    """Return what codes so many rows in memory."""
    is_categorical = encoding.schema.is_categorical.astype(np.uint8)
    return _core.BinnedBuilder(n_rows, thresholds, is_categorical)


def add_all(
    builder: _core.BinnedBuilder,
    table: Table,
    encoding: ColumnEncoder,
    n_threads: int,
    is_seen: NDArray[np.bool_] | None = None,
) -> None:
    """Code all rows of a table; levels of those that are not seen are missing."""
    part = table.sparse_part()
    for features, values in column_blocks(table, n_threads):
        builder.add_block(features, values, n_threads)
    for feature, levels in encoding.levels.items():
        codes = levels.codes(seen_categories(table, feature, is_seen), encoding.handle_unknown)
        builder.add_block(np.array([feature], np.int32), codes[:, None], n_threads)
    if part is not None:
        builder.add_sparse(part.features, part.columns(len(table)), n_threads)


def check_binned(table: BinnedTable, schema: Schema | None = None, name: str = "X") -> BinnedTable:
    """Return a table that has rows and, if a schema is known already, its columns."""
    if len(table) == 0:
        raise ValueError(f"{name} has 0 rows; expected at least 1")
    if schema is not None and not table.schema.is_same(schema):
        raise ValueError(
            f"{name} is a BinnedTable of {table.shape[1]} features; expected the columns that were "
            f"learned: {len(schema.is_categorical)} features, the same names and categories"
        )
    return table


def seen_categories(
    table: Table, feature: int, is_seen: NDArray[np.bool_] | None
) -> Iterator[list[Level]]:
    """Yield the levels of a feature, a chunk of rows at a time; of rows not seen they are missing."""
    if is_seen is None:
        yield from table.levels(feature)
        return
    start = 0
    for chunk in table.levels(feature):
        seen = is_seen[start : start + len(chunk)].tolist()
        yield [level if s else None for level, s in zip(chunk, seen, strict=True)]
        start += len(chunk)


def column_blocks(
    table: Table, n_threads: int, rows: NDArray[np.int64] | None = None
) -> Iterator[tuple[NDArray[np.int32], Floats]]:
    """Yield the numeric features, some at a time, so that few of them are floats, or copied, at once.

    An array of floats comes in one piece if all of its rows are wanted: then nothing is copied.
    """
    features = table.features(Kind.NUMERIC)
    floats = isinstance(table.dense, ArrayColumns) and table.dense.values.dtype == np.float64
    whole = floats and rows is None and len(features) == table.shape[1]
    size = table.shape[1] if whole else _COLUMNS * n_threads
    for start in range(0, len(features), size):
        block = features[start : start + size]
        values = table.floats(block)
        yield block.astype(np.int32), values if rows is None else values[rows]
