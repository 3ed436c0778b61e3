"""Learn the bins of a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from abcgbm import _core
from abcgbm.data.binned_table import BinnedTable, bin_table, column_blocks, seen_levels
from abcgbm.data.categories import Levels
from abcgbm.data.columns import Floats, SparsePart, row_numbers
from abcgbm.data.digest import digest_of
from abcgbm.data.encoding import Encoding
from abcgbm.data.parts.counts import ColumnCounts
from abcgbm.data.tables import Kind, Schema, Table, read_table
from abcgbm.data.weights import IntegerWeights, check_weights, whole_weights
from abcgbm.settings.settings import HANDLE_UNKNOWN, MAX_BINS
from abcgbm.settings.threads import effective_n_threads

_CODES_PER_BIN = 16  # levels in any order need more bins than values, which have one
_FITTED = ("n_features_in_", "feature_names_in_", "encoding_", "thresholds_", "_seen")


class BinMapper(BaseEstimator):
    """Maps values to bins: at most ``max_bins`` for values, and one more for missing ones.

    Bins of numbers hold about equal weight. With no more distinct values than bins each value has
    its own. Each level of a category has its own bin; if there are too many, the lightest share one.
    Fitting uses all rows, never a sample, so row order does not matter.

    Parameters
    ----------
    max_bins : int, default=255
        Most bins for values, 2 to 65534; a category may have 16 times as many. Up to 255, codes
        take one byte.
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

    def __getstate__(self) -> dict[str, Any]:
        """Add a digest of what was learned, which loading checks."""
        given: dict[str, Any] = super().__getstate__()
        # What was counted may be as large as the table.
        state = {name: value for name, value in given.items() if name != "_seen"}
        return state | {"digest": _digest_of_bins(state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a state whose bins are what they were."""
        kept = {name: value for name, value in state.items() if name != "digest"}
        if state.get("digest") != _digest_of_bins(kept):
            raise ValueError("the pickled BinMapper was changed or damaged: its digest is another")
        super().__setstate__(kept)

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
        MAX_BINS("max_bins", self.max_bins)
        HANDLE_UNKNOWN("handle_unknown", self.handle_unknown)
        table = read_table(_not_binned(X), self.categorical_features, type(self).__name__)
        weight = integer_weights(check_weights(sample_weight, len(table)))
        encoding = learn_encoding(table, weight, self.max_bins, self.handle_unknown)
        n_threads = effective_n_threads(self.n_jobs)
        thresholds = learn_thresholds(table, weight, encoding, self.max_bins, n_threads)
        self._keep(table.schema, encoding, thresholds)
        return self

    def partial_fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from further rows; the bins are those of all rows so far at once.

        Distinct values and levels are counted and kept, so nothing is lost, and rows may come in any
        parts and order. A table that is not in memory is learned from, and coded, by ``LargeTable``.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Further rows of the same columns.
        y : ignored
            There for scikit-learn's sake.
        sample_weight : array-like of shape (n_rows,), optional
            Whole numbers from 0 on: others are rounded by the sum of all, which is not known yet.
        """
        MAX_BINS("max_bins", self.max_bins)
        HANDLE_UNKNOWN("handle_unknown", self.handle_unknown)
        seen = vars(self).get("_seen")
        if seen is None and hasattr(self, "encoding_"):
            raise ValueError(
                "partial_fit of a BinMapper that was fitted as a whole, or pickled; expected a new one"
            )
        table = self._read_part(X, seen)
        if seen is None:
            seen = ColumnCounts(table.kind.tolist(), effective_n_threads(self.n_jobs))
        weight = whole_weights(sample_weight, len(table))
        seen.add(table, weight, seen.n_rows)
        self._keep(table.schema, *self._learned(table.schema, seen))
        self._seen = seen
        return self

    def _read_part(self, X: Any, seen: ColumnCounts | None) -> Table:
        owner = type(self).__name__
        if seen is not None:
            encoding: Encoding = self.encoding_
            return encoding.read(_not_binned(X), owner)
        return read_table(_not_binned(X), self.categorical_features, owner)

    def _learned(self, schema: Schema, seen: ColumnCounts) -> tuple[Encoding, tuple[Floats, ...]]:
        """Return the levels and thresholds of what was counted."""
        names = {f: schema.label(f) for f in range(len(schema.is_categorical))}
        levels = seen.levels(names, most_codes(self.max_bins))
        found = seen.thresholds(self.max_bins) | {f: of.thresholds() for f, of in levels.items()}
        encoding = Encoding(schema, dict(sorted(levels.items())), self.handle_unknown)
        return encoding, tuple(found[f] for f in sorted(found))

    def _keep(self, schema: Schema, encoding: Encoding, thresholds: tuple[Floats, ...]) -> None:
        """Take over what was learned."""
        fitted: dict[str, Any] = {"n_features_in_": len(schema.is_categorical)}
        if schema.feature_names is not None:
            fitted["feature_names_in_"] = schema.feature_names
        fitted |= {"encoding_": encoding, "thresholds_": list(thresholds)}
        # All at once: an interrupted refit leaves the bins of the fit before, whole.
        self.__dict__ = {k: v for k, v in vars(self).items() if k not in _FITTED} | fitted

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


def _digest_of_bins(state: dict[str, Any]) -> str:
    return digest_of({name: state.get(name) for name in _FITTED if name != "_seen"})


def integer_weights(weight: Floats) -> NDArray[np.int64]:
    """Return weights as integers; 0 stays 0, all others are at least 1."""
    if weight.all():
        return np.array(IntegerWeights.from_rows(weight).weight)
    integers = np.zeros(len(weight), dtype=np.int64)
    kept = np.flatnonzero(weight)
    integers[kept] = IntegerWeights.from_rows(weight[kept]).weight
    return integers


def most_codes(max_bins: int) -> int:
    """Return how many codes a category may have: more than a number has bins, up to 16 bits of them."""
    return min(_CODES_PER_BIN * max_bins, 65534)


def learn_encoding(
    table: Table, weight: NDArray[np.int64], max_bins: int, handle_unknown: str
) -> Encoding:
    """Learn the levels of a table's categories, and their codes: 16 times ``max_bins`` at most.

    ``weight``, of shape (n_rows,), is 0 for rows that are not looked at.
    """
    is_seen, most = _mask_of(weight > 0), most_codes(max_bins)
    levels = {
        feature: Levels.learn(
            table.schema.label(feature), seen_levels(table, feature, is_seen), weight, most
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
    for features, values in column_blocks(table, n_threads, rows):
        of_block = _core.find_thresholds(values, weight, max_bins, n_threads)
        found.update(zip(features.tolist(), of_block, strict=True))
    if part is not None:
        part = part if rows is None else _part_of_rows(part, rows, len(table))
        columns = part.columns(len(weight))
        of_part = _core.find_sparse_thresholds(columns, weight, max_bins, n_threads)
        found.update(zip(part.features.tolist(), of_part, strict=True))
    return tuple(found[feature] for feature in range(table.shape[1]))


def _mask_of(is_seen: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    return None if is_seen.all() else is_seen


def _part_of_rows(part: SparsePart, rows: NDArray[np.int64], n_rows: int) -> SparsePart:
    """Return some rows of sparse columns, numbered anew."""
    is_row = np.zeros(n_rows, dtype=np.bool_)
    is_row[rows] = True
    is_kept = is_row[part.indices]
    start = np.concatenate([[0], np.cumsum(is_kept)])[part.indptr]
    number = np.cumsum(is_row, dtype=np.uint32)
    indices = row_numbers(number[part.indices[is_kept]] - 1, len(rows))
    return replace(part, indptr=start, indices=indices, data=part.data[is_kept])


def _not_binned(X: Any) -> Any:
    if isinstance(X, BinnedTable):
        raise TypeError("X is a BinnedTable; expected the values themselves")
    return X
