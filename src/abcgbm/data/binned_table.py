"""Tables of bin codes, and the encoder from values to codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abcgbm import _core
from abcgbm.data.arrays import ArrayColumns, Category, Floats, chunks
from abcgbm.data.categories import CategoryMap
from abcgbm.data.digest import digest_of
from abcgbm.data.schema import Kind, Schema
from abcgbm.data.table import Table, read_table_like
from abcgbm.parameters.machine import effective_n_threads

CHUNK_BYTES = 2**26  # of floats converted at a time for prediction


@dataclass(frozen=True)
class ColumnEncoder:
    """Converts tables to numbers, with the columns and categories learned during fit.

    Attributes
    ----------
    schema : Schema
        The columns that a table must have.
    categories : dict of int to CategoryMap
        Categories of each categorical feature, and their codes.
    handle_unknown : {"missing", "error"}
        How unknown categories are treated.
    """

    schema: Schema
    categories: dict[int, CategoryMap]
    handle_unknown: str = "missing"

    def check(self) -> None:
        """Raise a ValueError unless categories, names and kinds of features are consistent."""
        self.schema.check()
        if [*self.categories] != np.flatnonzero(self.schema.is_categorical).tolist():
            raise ValueError(
                f"categories of features {[*self.categories]}; expected the categorical features"
            )
        for categories in self.categories.values():
            categories.check()
        if self.handle_unknown not in ("missing", "error"):
            raise ValueError(
                f"handle_unknown={self.handle_unknown!r}; expected 'missing' or 'error'"
            )

    def for_model(self) -> ColumnEncoder:
        """Return a copy with its own record of warnings, because each model warns once."""
        categories = {feature: replace(known) for feature, known in self.categories.items()}
        return replace(self, schema=replace(self.schema), categories=categories)

    def n_codes(self) -> NDArray[np.int64]:
        """Return the number of codes of each feature; 0 for numeric ones."""
        n_codes = np.zeros(len(self.schema.is_categorical), dtype=np.int64)
        for feature, categories in self.categories.items():
            n_codes[feature] = categories.n_codes
        return n_codes

    def read(self, X: Any, owner: str, name: str = "X") -> Table:
        """Return a table with the learned columns.

        Parameters
        ----------
        X : table
            The table.
        owner, name : str
            Names of the estimator and of the table in errors.
        """
        if not isinstance(X, Table):
            return read_table_like(X, self.schema, owner, name)
        if not X.schema.is_same(self.schema):
            raise ValueError(
                f"{name} is a Table with other columns; expected the columns seen during fit"
            )
        return X

    def codes(self, table: Table, feature: int) -> Floats:
        """Return the codes of a categorical feature, of shape (n_rows,); NaN is missing."""
        return self.categories[feature].codes(table.categories(feature), self.handle_unknown)

    def check_unused(self, table: Table, used_features: NDArray[np.intp]) -> None:
        """Raise a TypeError if an unused categorical feature has another type than in fit."""
        for feature in sorted(self.categories.keys() - {*used_features.tolist()}):
            self.categories[feature].check_type(table.categories(feature))

    def matrix(self, table: Table, features: ArrayLike) -> Floats:
        """Return features as a C-contiguous array of floats of shape (n_rows, len(features))."""
        wanted = np.asarray(features, dtype=np.intp)
        categorical = self.schema.is_categorical[wanted]
        values = np.empty((len(table), len(wanted)))
        table.write(values, np.flatnonzero(~categorical), wanted[~categorical])
        for column in np.flatnonzero(categorical):
            values[:, column] = self.codes(table, int(wanted[column]))
        return values

    def is_matrix(self, table: Table) -> bool:
        """Whether the table already is the array that `matrix` would build.

        `chunks` can then yield it uncopied.
        """
        if not isinstance(table.dense, ArrayColumns) or self.schema.is_categorical.any():
            return False
        values = table.dense.values
        is_plain = values.flags.c_contiguous and values.flags.aligned
        return is_plain and values.dtype == np.float64 and values.shape == table.shape

    def chunks(
        self, table: Table, features: ArrayLike | None = None
    ) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of rows, and `matrix` of some or all features for them.

        Chunks are of bounded size, except that an array that needs no conversion is one chunk.
        """
        if features is None and isinstance(table.dense, ArrayColumns) and self.is_matrix(table):
            yield slice(0, len(table)), table.dense.values
            return
        wanted = np.arange(table.shape[1]) if features is None else np.asarray(features, np.intp)
        for rows in row_chunks(len(table), len(wanted)):
            is_all = rows == slice(0, len(table))
            yield rows, self.matrix(table if is_all else table.take(rows), wanted)


def row_chunks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield slices of rows whose floats take about ``CHUNK_BYTES``."""
    return chunks(n_rows, max(1, CHUNK_BYTES // (8 * max(1, n_columns))))


_COLUMNS = 8  # columns per thread that are converted to floats at a time


@dataclass(frozen=True, eq=False, repr=False)
class BinnedTable:
    """The bin codes of a table, with the thresholds and categories that define them.

    Attributes
    ----------
    binned : _core.Binned
        The codes, as stored by the core.
    thresholds : tuple of ndarray
        Thresholds between the bins of each feature.
    encoding : ColumnEncoder
        Names and kinds of the columns, and the categories of categorical ones.
    """

    binned: _core.Binned
    thresholds: tuple[Floats, ...]
    encoding: ColumnEncoder

    def __repr__(self) -> str:
        n_rows, n_features = self.shape
        return f"BinnedTable({n_rows} rows, {n_features} features, {self.binned.total_bins} bins)"

    def __getstate__(self) -> dict[str, Any]:
        """Return the table as plain arrays, with a digest that `__setstate__` verifies."""
        state = {
            "binned": self.binned.state(),
            "thresholds": self.thresholds,
            "encoding": self.encoding,
        }
        return state | {"digest": digest_of(state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a state, after its digest and its arrays were verified."""
        content = {name: state[name] for name in ("binned", "thresholds", "encoding")}
        if digest_of(content) != state["digest"]:
            raise ValueError("the pickled BinnedTable is corrupted: its digest does not match")
        binned = _core.Binned.from_state(content["binned"])
        _check_bins(binned, content["thresholds"], content["encoding"])
        self.__dict__.update(content | {"binned": binned})

    @property
    def feature_names(self) -> NDArray[Any] | None:
        """Names of the features, or None."""
        return self.schema.feature_names

    @property
    def schema(self) -> Schema:
        """Names of the features, and which are categorical."""
        return self.encoding.schema

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return self.binned.n_rows, self.binned.n_features

    def __len__(self) -> int:
        return self.binned.n_rows

    def __getitem__(self, rows: Any) -> BinnedTable:
        """Return some of the rows, indexed as in NumPy by numbers, a mask or a slice."""
        row_numbers = np.ascontiguousarray(np.atleast_1d(np.arange(len(self))[rows]))
        if row_numbers.ndim != 1:
            raise IndexError(f"rows of shape {row_numbers.shape}; expected one dimension")
        return self.take(row_numbers)

    def take(self, rows: NDArray[np.int64]) -> BinnedTable:
        """Return some of the rows, by row number."""
        return BinnedTable(self.binned.take(rows), self.thresholds, self.encoding)

    def bin(self, X: Any, n_jobs: int | None = None) -> BinnedTable:
        """Encode another table with the same bins."""
        table = self.encoding.read(X, type(self).__name__)
        return bin_table(table, self.thresholds, self.encoding, effective_n_threads(n_jobs))

    def has_bins_of(self, other: BinnedTable) -> bool:
        """Whether two tables have the same bins."""
        mine, theirs = self.encoding, other.encoding
        same_columns = mine.schema.is_same(theirs.schema) and mine.categories == theirs.categories
        return same_columns and all(map(np.array_equal, self.thresholds, other.thresholds))

    def upper_value(
        self, feature: NDArray[np.int32], code: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the threshold above each of the given bins; infinity above the last one."""
        flat = np.concatenate([np.append(t, np.inf) for t in self.thresholds])
        start = np.cumsum([0, *(len(t) + 1 for t in self.thresholds[:-1])])
        value: NDArray[np.float64] = flat[start[feature] + code]
        return value

    def values(self, rows: Any, features: ArrayLike | None = None) -> Floats:
        """Return one representative float for each code, as an array of shape (n_rows, n_features).

        Trees grown with these bins route the representatives like the original values. A
        representative is the threshold above its bin, infinite for the last bin; for a category it
        is its code; NaN is missing. The array is C-contiguous.
        """
        wanted = np.arange(self.shape[1]) if features is None else np.asarray(features)
        codes = self[rows].binned.codes(wanted.astype(np.int32))
        values = np.empty(codes.shape)
        for column, feature in enumerate(wanted.tolist()):
            values[:, column] = self._bin_values(feature)[codes[:, column]]
        return values

    def chunks(self, features: ArrayLike | None = None) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of rows, and `values` of some or all features for them."""
        for rows in row_chunks(*self.shape):
            yield rows, self.values(rows, features)

    def _bin_values(self, feature: int) -> Floats:
        """Return the representative of each code of a feature; the last is missing."""
        thresholds = self.thresholds[feature]
        if self.encoding.schema.is_categorical[feature]:
            return np.append(np.arange(len(thresholds) + 1.0), np.nan)
        return np.append(thresholds, [np.inf, np.nan])


def _check_bins(binned: _core.Binned, thresholds: Any, encoding: ColumnEncoder) -> None:
    """Raise a ValueError unless codes, thresholds and categories belong to one table."""
    is_categorical = encoding.schema.is_categorical
    if [len(t) + 2 for t in thresholds] != list(binned.n_bins):
        raise ValueError("the pickled BinnedTable has thresholds that do not fit its codes")
    if binned.is_categorical != is_categorical.tolist():
        raise ValueError(
            "the pickled BinnedTable has categorical features that do not fit its codes"
        )


def bin_table(
    table: Table,
    thresholds: tuple[Floats, ...],
    encoding: ColumnEncoder,
    n_threads: int,
    is_encoded: NDArray[np.bool_] | None = None,
) -> BinnedTable:
    """Encode a table; rows outside ``is_encoded`` get missing categories."""
    builder = builder_of(len(table), thresholds, encoding)
    add_all(builder, table, encoding, n_threads, is_encoded)
    return BinnedTable(builder.finish(), thresholds, encoding)


def builder_of(
    n_rows: int, thresholds: tuple[Floats, ...], encoding: ColumnEncoder
) -> _core.BinnedBuilder:
    """Return a builder of codes in memory for ``n_rows`` rows."""
    is_categorical = encoding.schema.is_categorical.astype(np.uint8)
    return _core.BinnedBuilder(n_rows, thresholds, is_categorical)


def add_all(
    builder: _core.BinnedBuilder,
    table: Table,
    encoding: ColumnEncoder,
    n_threads: int,
    is_encoded: NDArray[np.bool_] | None = None,
) -> None:
    """Encode all rows of a table; rows outside ``is_encoded`` get missing categories."""
    part = table.sparse_part()
    for features, values in column_blocks(table, n_threads):
        builder.add_block(features, values, n_threads)
    for feature, categories in encoding.categories.items():
        codes = categories.codes(
            masked_categories(table, feature, is_encoded), encoding.handle_unknown
        )
        builder.add_block(np.array([feature], np.int32), codes[:, None], n_threads)
    if part is not None:
        builder.add_sparse(part.features, part.columns(len(table)), n_threads)


def check_binned(table: BinnedTable, schema: Schema | None = None, name: str = "X") -> BinnedTable:
    """Return the table, after checking that it has rows and the columns of ``schema``, if given."""
    if len(table) == 0:
        raise ValueError(f"{name} has 0 rows; expected at least 1")
    if schema is not None and not table.schema.is_same(schema):
        raise ValueError(
            f"{name} is a BinnedTable of {table.shape[1]} features; expected the columns seen during fit: "
            f"{len(schema.is_categorical)} features with the same names and kinds"
        )
    return table


def masked_categories(
    table: Table, feature: int, is_selected: NDArray[np.bool_] | None
) -> Iterator[list[Category]]:
    """Yield the categories of a feature by chunk; rows outside ``is_selected`` get missing ones."""
    if is_selected is None:
        yield from table.categories(feature)
        return
    start = 0
    for chunk in table.categories(feature):
        selected = is_selected[start : start + len(chunk)].tolist()
        yield [category if s else None for category, s in zip(chunk, selected, strict=True)]
        start += len(chunk)


def column_blocks(
    table: Table, n_threads: int, rows: NDArray[np.int64] | None = None
) -> Iterator[tuple[NDArray[np.int32], Floats]]:
    """Yield the numeric features in blocks, which bounds the memory for converted columns.

    A float array is one block if no rows are selected, as nothing is copied then.
    """
    features = table.features(Kind.NUMERIC)
    floats = isinstance(table.dense, ArrayColumns) and table.dense.values.dtype == np.float64
    whole = floats and rows is None and len(features) == table.shape[1]
    size = table.shape[1] if whole else _COLUMNS * n_threads
    for start in range(0, len(features), size):
        block = features[start : start + size]
        values = table.floats(block)
        yield block.astype(np.int32), values if rows is None else values[rows]
