"""Learn the bins of a table, and code tables by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from abcgbm import _core
from abcgbm.data.categories import Levels, check_handle_unknown
from abcgbm.data.columns import ArrayColumns, Floats, Level, SparsePart
from abcgbm.data.encoding import Encoding, row_blocks
from abcgbm.data.tables import Kind, Schema, Table, read_table
from abcgbm.data.weights import IntegerWeights, check_weights
from abcgbm.settings.threads import effective_n_threads

_MAX_BINS = (2, 65534)
_COLUMNS = 8  # per thread, that are floats at a time


class BinMapper(BaseEstimator):
    """Maps values to bins: at most ``max_bins`` for values, and one more for missing ones.

    Bins of numbers hold about equal weight. With no more distinct values than bins each value has
    its own. Each level of a category has its own bin; if there are too many, the lightest share one.
    Fitting uses all rows, never a sample, so row order does not matter.

    Parameters
    ----------
    max_bins : int, default=255
        Most bins for values, 2 to 65534. Up to 255, codes take one byte.
    categorical_features : "auto", None, or list of names, indices or truth values, default="auto"
        Which columns are categories. "auto": those of strings, categories, enums and dictionaries.
    handle_unknown : {"missing", "error"}, default="missing"
        Whether a level that was not seen during fit is missing, or an error.
    n_jobs : int or None, default=None
        Number of threads.

    Attributes
    ----------
    thresholds_ : list of ndarray
        For each feature the thresholds between its bins, ascending. A value's code is the number of
        thresholds below it; NaN has the last code. Those of a category lie between its codes.
    encoding_ : Encoding
        The columns, and the levels of those that are categories.
    n_features_in_, feature_names_in_
        Of the table seen during fit, as in scikit-learn.
    """

    def __init__(
        self,
        max_bins: int = 255,
        *,
        categorical_features: Any = "auto",
        handle_unknown: str = "missing",
        n_jobs: int | None = None,
    ) -> None:
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that missing values and sparse tables are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the bins.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            An array-like of numbers, a data frame, an Arrow table or a sparse matrix. NaN and null
            are missing.
        y : ignored
            There for scikit-learn's sake.
        sample_weight : array-like of shape (n_rows,), optional
            Weights, not negative; 1 if not given.
        """
        check_max_bins(self.max_bins)
        check_handle_unknown(self.handle_unknown)
        table = read_table(_not_binned(X), self.categorical_features, type(self).__name__)
        weight = integer_weights(check_weights(sample_weight, len(table)))
        self._remember_columns(table)
        self.encoding_ = learn_encoding(table, weight, self.max_bins, self.handle_unknown)
        n_threads = effective_n_threads(self.n_jobs)
        found = learn_thresholds(table, weight, self.encoding_, self.max_bins, n_threads)
        self.thresholds_ = list(found)
        return self

    def transform(self, X: Any) -> BinnedTable:
        """Code a table.

        Returns
        -------
        BinnedTable
            Ready for any number of fits: ``ABCBoostClassifier().fit(table, y)``.
        """
        check_is_fitted(self)
        table = self.encoding_.read(_not_binned(X), type(self).__name__)
        n_threads = effective_n_threads(self.n_jobs)
        return bin_table(table, tuple(self.thresholds_), self.encoding_, n_threads)

    def _remember_columns(self, table: Table) -> None:
        self.n_features_in_ = table.shape[1]
        if table.feature_names is not None:
            self.feature_names_in_ = table.feature_names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


def integer_weights(weight: Floats) -> NDArray[np.int64]:
    """Return weights as integers; 0 stays 0, all others are at least 1."""
    if weight.all():
        return np.array(IntegerWeights.from_floats(weight, len(weight)).weight)
    integers = np.zeros(len(weight), dtype=np.int64)
    kept = np.flatnonzero(weight)
    integers[kept] = IntegerWeights.from_floats(weight[kept], len(kept)).weight
    return integers


def learn_encoding(
    table: Table, weight: NDArray[np.int64], max_bins: int, handle_unknown: str
) -> Encoding:
    """Learn the levels of a table's categories, at most ``max_bins`` codes for each.

    ``weight``, of shape (n_rows,), is 0 for rows that are not looked at.
    """
    is_seen = _mask_of(weight > 0)
    levels = {
        feature: Levels.learn(
            table.schema.label(feature), _seen_levels(table, feature, is_seen), weight, max_bins
        )
        for feature in table.features(Kind.CATEGORICAL).tolist()
    }
    return Encoding(table.schema, levels, handle_unknown)


def learn_thresholds(
    table: Table,
    weight: NDArray[np.int64],
    encoding: Encoding,
    max_bins: int,
    n_threads: int,
) -> tuple[Floats, ...]:
    """Learn the thresholds between the bins of each feature; those of categories are known.

    ``weight``, of shape (n_rows,), is 0 for rows that are not looked at.
    """
    found = {f: levels.thresholds() for f, levels in encoding.levels.items()}
    rows = None if weight.all() else np.flatnonzero(weight)
    weight, part = weight if rows is None else weight[rows], table.sparse_part()
    for features, values in _column_blocks(table, n_threads, rows):
        of_block = _core.find_thresholds(values, weight, max_bins, n_threads)
        found.update(zip(features.tolist(), of_block, strict=True))
    if part is not None:
        part = part if rows is None else _part_of_rows(part, rows, len(table))
        columns = _sparse_columns(part, len(weight))
        of_part = _core.find_sparse_thresholds(columns, weight, max_bins, n_threads)
        found.update(zip(part.features.tolist(), of_part, strict=True))
    return tuple(found[feature] for feature in range(table.shape[1]))


def bin_table(
    table: Table,
    thresholds: tuple[Floats, ...],
    encoding: Encoding,
    n_threads: int,
    is_seen: NDArray[np.bool_] | None = None,
) -> BinnedTable:
    """Code a table; levels of rows that are not seen are missing."""
    is_categorical = encoding.schema.is_categorical.astype(np.uint8)
    builder = _core.BinnedBuilder(len(table), thresholds, is_categorical)
    part = table.sparse_part()
    for features, values in _column_blocks(table, n_threads):
        builder.add_block(features, values, n_threads)
    for feature, levels in encoding.levels.items():
        codes = levels.codes(_seen_levels(table, feature, is_seen), encoding.handle_unknown)
        builder.add_block(np.array([feature], np.int32), codes[:, None], n_threads)
    if part is not None:
        builder.add_sparse(part.features, _sparse_columns(part, len(table)), n_threads)
    return BinnedTable(builder.finish(), thresholds, encoding)


def _seen_levels(
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


def _mask_of(is_seen: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    return None if is_seen.all() else is_seen


def _column_blocks(
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
        values = table.numbers(block)
        yield block.astype(np.int32), values if rows is None else values[rows]


def _sparse_columns(part: SparsePart, n_rows: int) -> _core.SparseColumns:
    return _core.SparseColumns(n_rows, part.fill, part.indptr, part.indices, part.data)


def _part_of_rows(part: SparsePart, rows: NDArray[np.int64], n_rows: int) -> SparsePart:
    """Return some rows of sparse columns, numbered anew."""
    number = np.full(n_rows, -1, dtype=np.int32)
    number[rows] = np.arange(len(rows), dtype=np.int32)
    indices = number[part.indices]
    is_kept = indices >= 0
    start = np.concatenate([[0], np.cumsum(is_kept)])[part.indptr]
    return replace(part, indptr=start, indices=indices[is_kept], data=part.data[is_kept])


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


def _not_binned(X: Any) -> Any:
    if isinstance(X, BinnedTable):
        raise TypeError("X is a BinnedTable; expected the values themselves")
    return X


@dataclass(frozen=True)
class BinnedTable:
    """A table as training sees it: its bin codes, and what they mean.

    Attributes
    ----------
    codes : _core.Binned
        The codes.
    thresholds : tuple of ndarray
        For each feature the thresholds between its bins.
    encoding : Encoding
        The columns, and the levels of those that are categories.
    """

    codes: _core.Binned
    thresholds: tuple[Floats, ...]
    encoding: Encoding

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
        return self.codes.n_rows, self.codes.n_features

    def __len__(self) -> int:
        return self.codes.n_rows

    def __getitem__(self, rows: Any) -> BinnedTable:
        """Return some rows, given as NumPy would take them: numbers, a mask or a slice."""
        numbers = np.ascontiguousarray(np.atleast_1d(np.arange(len(self))[rows]))
        if numbers.ndim != 1:
            raise IndexError(f"rows of shape {numbers.shape}; expected one dimension")
        return self.take(numbers)

    def take(self, rows: NDArray[np.int64]) -> BinnedTable:
        """Return some rows, by number."""
        return BinnedTable(self.codes.take(rows), self.thresholds, self.encoding)

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
        """Return numbers that lie in the bins, C-contiguous, of shape (n_rows, n_features).

        In every tree that was grown with these bins they go the way of the values themselves. Each
        is the threshold above its bin, infinite for the last; a category has its code; NaN is
        missing.
        """
        wanted = np.arange(self.shape[1]) if features is None else np.asarray(features)
        codes = self[rows].codes.codes(wanted.astype(np.int32))
        values = np.empty(codes.shape)
        for column, feature in enumerate(wanted.tolist()):
            values[:, column] = self._bin_values(feature)[codes[:, column]]
        return values

    def blocks(self, features: ArrayLike | None = None) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of rows, and some or all features of them as ``values`` gives them."""
        for rows in row_blocks(*self.shape):
            yield rows, self.values(rows, features)

    def _bin_values(self, feature: int) -> Floats:
        """Return a number for each code of a feature, the last for missing."""
        thresholds = self.thresholds[feature]
        if self.encoding.schema.is_categorical[feature]:
            return np.append(np.arange(len(thresholds) + 1.0), np.nan)
        return np.append(thresholds, [np.inf, np.nan])


def check_max_bins(max_bins: object) -> None:
    """Raise TypeError or ValueError if that is no number of bins."""
    low, high = _MAX_BINS
    if not isinstance(max_bins, Integral) or isinstance(max_bins, bool):
        raise TypeError(f"max_bins={max_bins!r}; expected an integer from {low} to {high}")
    if not low <= int(max_bins) <= high:
        raise ValueError(f"max_bins={max_bins!r}; expected an integer from {low} to {high}")
