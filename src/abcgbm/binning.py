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
from abcgbm.categories import check_handle_unknown
from abcgbm.columns import ArrayColumns, Floats
from abcgbm.encoding import Encoding, row_blocks
from abcgbm.tables import Kind, Schema, Table, read_table
from abcgbm.threads import effective_n_threads
from abcgbm.weights import IntegerWeights, check_weights

MAX_BINS = (2, 65534)
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
        _check_max_bins(self.max_bins)
        check_handle_unknown(self.handle_unknown)
        table = self._read_to_learn(X)
        weight = check_weights(sample_weight, len(table))
        self._remember_columns(table)
        if not weight.all():
            kept = np.flatnonzero(weight)
            table, weight = table.take(kept), weight[kept]
        weights = IntegerWeights.from_floats(weight, len(table)).weight
        known = getattr(self, "_known", None)
        self.encoding_ = known or Encoding.learn(table, weights, self.max_bins, self.handle_unknown)
        self.thresholds_ = self._find_thresholds(table, weights)
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
        return _bin(table, tuple(self.thresholds_), self.encoding_, self.n_jobs)

    def knowing(self, encoding: Encoding) -> Self:
        """Take over the levels of categories that an earlier table had; only bins are learned."""
        self._known = encoding
        return self

    def _read_to_learn(self, X: Any) -> Table:
        if isinstance(X, Table):
            return X
        return read_table(_not_binned(X), self.categorical_features, type(self).__name__)

    def _remember_columns(self, table: Table) -> None:
        self.n_features_in_ = table.shape[1]
        if table.feature_names is not None:
            self.feature_names_in_ = table.feature_names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _find_thresholds(self, table: Table, weight: NDArray[np.int64]) -> list[Floats]:
        found = {f: levels.thresholds() for f, levels in self.encoding_.levels.items()}
        n_threads, part = effective_n_threads(self.n_jobs), table.sparse_part()
        for features, values in _column_blocks(table, n_threads):
            of_block = _core.find_thresholds(values, weight, self.max_bins, n_threads)
            found.update(zip(features.tolist(), of_block, strict=True))
        if part is not None:
            of_part = _core.find_sparse_thresholds(
                *(part.fill, part.indptr, part.indices, part.data),
                *(weight, self.max_bins, n_threads),
            )
            found.update(zip(part.features.tolist(), of_part, strict=True))
        return [found[feature] for feature in range(table.shape[1])]


def check_binned(table: BinnedTable, schema: Schema | None = None) -> BinnedTable:
    """Return a table that has rows and, if a schema is known already, its columns."""
    if len(table) == 0:
        raise ValueError("X has 0 rows; expected at least 1")
    if schema is not None and not table.schema.is_same(schema):
        raise ValueError(
            f"X is a BinnedTable of {table.shape[1]} features; expected the columns that were "
            f"learned: {len(schema.is_categorical)} features, the same names and categories"
        )
    return table


def _not_binned(X: Any) -> Any:
    if isinstance(X, BinnedTable):
        raise TypeError("X is a BinnedTable; expected the values themselves")
    return X


def _bin(
    table: Table, thresholds: tuple[Floats, ...], encoding: Encoding, n_jobs: int | None
) -> BinnedTable:
    is_categorical = encoding.schema.is_categorical.astype(np.uint8)
    builder = _core.BinnedBuilder(len(table), thresholds, is_categorical)
    n_threads, part = effective_n_threads(n_jobs), table.sparse_part()
    for features, values in _column_blocks(table, n_threads):
        builder.add_block(features, values, n_threads)
    for feature in encoding.levels:
        codes = encoding.codes(table, feature)[:, None]
        builder.add_block(np.array([feature], np.int32), codes, n_threads)
    if part is not None:
        builder.add_sparse(
            *(part.features, part.fill, part.indptr, part.indices, part.data), n_threads
        )
    return BinnedTable(builder.finish(n_threads), thresholds, encoding)


def _column_blocks(table: Table, n_threads: int) -> Iterator[tuple[NDArray[np.int32], Floats]]:
    """Yield the numeric features, some at a time, so that few of them are floats at once."""
    features = table.features(Kind.NUMERIC)
    floats = isinstance(table.dense, ArrayColumns) and table.dense.values.dtype == np.float64
    size = table.shape[1] if floats and len(features) == table.shape[1] else _COLUMNS * n_threads
    for start in range(0, len(features), size):
        block = features[start : start + size]
        yield block.astype(np.int32), table.numbers(block)


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

    def bin(self, X: Any, n_jobs: int | None = None, owner: str = "BinnedTable") -> BinnedTable:
        """Code another table by the same bins; ``owner`` is the estimator that errors speak of."""
        return _bin(self.encoding.read(X, owner), self.thresholds, self.encoding, n_jobs)

    def with_unknown_missing(self) -> BinnedTable:
        """Return the table such that unknown levels in others are missing."""
        return replace(self, encoding=replace(self.encoding, handle_unknown="missing"))

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


def _check_max_bins(max_bins: object) -> None:
    low, high = MAX_BINS
    if not isinstance(max_bins, Integral) or isinstance(max_bins, bool):
        raise TypeError(f"max_bins={max_bins!r}; expected an integer from {low} to {high}")
    if not low <= int(max_bins) <= high:
        raise ValueError(f"max_bins={max_bins!r}; expected an integer from {low} to {high}")
