"""`BinMapper`: a transformer from values to bin codes."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from abcgbm.data.arrays import Floats
from abcgbm.data.binned_table import BinnedTable, ColumnEncoder, bin_table
from abcgbm.data.binning import learn_encoding, learn_thresholds, max_codes
from abcgbm.data.counting import ColumnCounts
from abcgbm.data.digest import digest_of
from abcgbm.data.schema import Schema
from abcgbm.data.table import read_table
from abcgbm.data.weights import check_weights, integer_weights, whole_weights
from abcgbm.parameters.machine import effective_n_threads
from abcgbm.parameters.objects import HANDLE_UNKNOWN
from abcgbm.parameters.parameters import MAX_BINS

_FITTED = ("n_features_in_", "feature_names_in_", "encoding_", "thresholds_", "_seen")


class BinMapper(BaseEstimator):
    """Map values to bins: at most ``max_bins`` for values, and one more for missing values.

    Numeric bins hold about equal weight; a feature with at most ``max_bins`` distinct values has
    one bin for each of them. Each category has its own bin; if there are too many categories, those
    of the smallest weight share one. Fitting uses all rows rather than a sample, so row order does
    not matter.

    Parameters
    ----------
    max_bins : int, default=255
        Maximum number of bins for values, 2 to 65534; categorical features may have 16 times as
        many. Up to 255, codes take one byte.
    categorical_features : "auto", None, or list of names, indices or booleans, default="auto"
        Categorical columns. "auto": columns of strings, categories, enums and dictionaries.
    handle_unknown : {"missing", "error"}, default="missing"
        Whether a category that was not seen during fit is treated as missing or is an error.
    n_jobs : int or None, default=None
        Number of threads.

    Attributes
    ----------
    thresholds_ : list of ndarray
        Thresholds between the bins of each feature, ascending. The code of a value is the number of
        thresholds below it; NaN has the last code. Thresholds of a categorical feature separate its
        codes.
    encoding_ : ColumnEncoder
        Names and kinds of the columns, and the categories of categorical ones.
    n_features_in_, feature_names_in_
        Number and names of the features seen during fit, as in scikit-learn.
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
        """Declare support for missing values and sparse input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with a digest, which `__setstate__` verifies."""
        given: dict[str, Any] = super().__getstate__()
        # The counts of partial_fit may be as large as the table.
        state = {name: value for name, value in given.items() if name != "_seen"}
        return state | {"digest": _digest_of_bins(state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a state, after its digest was verified."""
        content = {name: value for name, value in state.items() if name != "digest"}
        if state.get("digest") != _digest_of_bins(content):
            raise ValueError("the pickled BinMapper is corrupted: its digest does not match")
        super().__setstate__(content)

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the bins.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            An array-like of numbers, a data frame, an Arrow table or a sparse matrix. NaN and null
            are missing.
        y : ignored
            Accepted for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_rows,), optional
            Non-negative weights; 1 if not given.
        """
        MAX_BINS("max_bins", self.max_bins)
        HANDLE_UNKNOWN("handle_unknown", self.handle_unknown)
        table = read_table(_not_binned(X), self.categorical_features, type(self).__name__)
        weight = integer_weights(check_weights(sample_weight, len(table)))
        encoding = learn_encoding(table, weight, self.max_bins, self.handle_unknown)
        n_threads = effective_n_threads(self.n_jobs)
        thresholds = learn_thresholds(table, weight, encoding, self.max_bins, n_threads)
        self._set_fitted(table.schema, encoding, thresholds)
        return self

    def partial_fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from further rows; the bins are those of a single fit to all rows so far.

        Distinct values and categories are counted exactly, so batches may come in any size and
        order. For a table that does not fit into memory use ``LargeTable``.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Further rows of the same columns.
        y : ignored
            Accepted for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_rows,), optional
            Non-negative integers. Other weights would be rounded relative to the sum of all
            weights, which is not known before the last batch.
        """
        MAX_BINS("max_bins", self.max_bins)
        HANDLE_UNKNOWN("handle_unknown", self.handle_unknown)
        seen = vars(self).get("_seen")
        if seen is None and hasattr(self, "encoding_"):
            raise ValueError(
                "partial_fit cannot continue after fit, or after unpickling; expected a new BinMapper"
            )
        owner = type(self).__name__
        if seen is None:
            table = read_table(_not_binned(X), self.categorical_features, owner)
            seen = ColumnCounts(table.kind.tolist(), effective_n_threads(self.n_jobs))
        else:
            table = self.encoding_.read(_not_binned(X), owner)
        weight = whole_weights(sample_weight, len(table))
        seen.add(table, weight, seen.n_rows)
        self._set_fitted(table.schema, *self._learned_bins(table.schema, seen))
        self._seen = seen
        return self

    def _learned_bins(
        self, schema: Schema, seen: ColumnCounts
    ) -> tuple[ColumnEncoder, tuple[Floats, ...]]:
        """Return the categories and thresholds of the values counted so far."""
        names = {f: schema.label(f) for f in range(len(schema.is_categorical))}
        categories = seen.categories(names, max_codes(self.max_bins))
        found = seen.thresholds(self.max_bins) | {
            f: of.thresholds() for f, of in categories.items()
        }
        encoding = ColumnEncoder(schema, dict(sorted(categories.items())), self.handle_unknown)
        return encoding, tuple(found[f] for f in sorted(found))

    def _set_fitted(
        self, schema: Schema, encoding: ColumnEncoder, thresholds: tuple[Floats, ...]
    ) -> None:
        """Set the fitted attributes."""
        fitted: dict[str, Any] = {"n_features_in_": len(schema.is_categorical)}
        if schema.feature_names is not None:
            fitted["feature_names_in_"] = schema.feature_names
        fitted |= {"encoding_": encoding, "thresholds_": list(thresholds)}
        # One assignment: an interrupted refit keeps all attributes of the previous fit.
        self.__dict__ = {k: v for k, v in vars(self).items() if k not in _FITTED} | fitted

    def transform(self, X: Any) -> BinnedTable:
        """Encode a table.

        Returns
        -------
        BinnedTable
            The bin codes. Use it for any number of fits: ``ABCBoostClassifier().fit(table, y)``.
        """
        check_is_fitted(self)
        table = self.encoding_.read(_not_binned(X), type(self).__name__)
        n_threads = effective_n_threads(self.n_jobs)
        return bin_table(table, tuple(self.thresholds_), self.encoding_, n_threads)


def _digest_of_bins(state: dict[str, Any]) -> str:
    return digest_of({name: state.get(name) for name in _FITTED if name != "_seen"})


def _not_binned(X: Any) -> Any:
    if isinstance(X, BinnedTable):
        raise TypeError("X is a BinnedTable; expected a table of values")
    return X
