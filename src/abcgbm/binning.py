"""Learn the bins of a table, and code tables by them."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from abcgbm import _core
from abcgbm.threads import effective_n_threads
from abcgbm.weights import IntegerWeights, check_weights

MAX_BINS = (2, 65534)


class BinMapper(BaseEstimator):
    """Maps numbers to bins: at most ``max_bins`` for values, and one more for missing ones.

    Bins hold about equal weight. With no more distinct values than bins each value has its own.
    Fitting uses all rows, never a sample, so row order does not matter.

    Parameters
    ----------
    max_bins : int, default=255
        Most bins for values, 2 to 65534. Up to 255, codes take one byte.
    n_jobs : int or None, default=None
        Number of threads.

    Attributes
    ----------
    thresholds_ : list of ndarray
        For each feature the thresholds between its bins, ascending. A value's code is the number of
        thresholds below it; NaN has the last code.
    n_features_in_, feature_names_in_
        Of the table seen during fit, as in scikit-learn.
    """

    def __init__(self, max_bins: int = 255, n_jobs: int | None = None) -> None:
        self.max_bins = max_bins
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that missing values are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the thresholds.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Numbers; NaN is missing.
        y : ignored
            There for scikit-learn's sake.
        sample_weight : array-like of shape (n_rows,), optional
            Weights, not negative; 1 if not given.
        """
        _check_max_bins(self.max_bins)
        table = validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
        weight = check_weights(sample_weight, len(table))
        if not weight.all():
            table, weight = table[weight > 0], weight[weight > 0]
        weights = IntegerWeights.from_floats(weight, len(table))
        self.thresholds_ = _core.find_thresholds(
            table, weights.weight, self.max_bins, effective_n_threads(self.n_jobs)
        )
        return self

    def transform(self, X: ArrayLike) -> BinnedTable:
        """Code a table.

        Returns
        -------
        BinnedTable
            Ready for any number of fits: ``ABCBoostClassifier().fit(table, y)``.
        """
        check_is_fitted(self)
        table = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, reset=False)
        codes = _core.bin_table(table, self.thresholds_, effective_n_threads(self.n_jobs))
        return BinnedTable(codes, tuple(self.thresholds_), getattr(self, "feature_names_in_", None))


@dataclass(frozen=True)
class BinnedTable:
    """A table as training sees it: its bin codes, and what they mean.

    Attributes
    ----------
    codes : _core.Binned
        The codes.
    thresholds : tuple of ndarray
        For each feature the thresholds between its bins.
    feature_names : ndarray or None
        Names of the features, if the table had any.
    """

    codes: _core.Binned
    thresholds: tuple[NDArray[np.float64], ...]
    feature_names: NDArray[Any] | None = None

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
        return BinnedTable(self.codes.take(numbers), self.thresholds, self.feature_names)

    def upper_value(
        self, feature: NDArray[np.int32], code: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the thresholds above the given bins; infinity above the last value bin."""
        flat = np.concatenate([np.append(t, np.inf) for t in self.thresholds])
        start = np.cumsum([0, *(len(t) + 1 for t in self.thresholds[:-1])])
        value: NDArray[np.float64] = flat[start[feature] + code]
        return value


def _check_max_bins(max_bins: object) -> None:
    low, high = MAX_BINS
    if not isinstance(max_bins, Integral) or isinstance(max_bins, bool):
        raise TypeError(f"max_bins={max_bins!r}; expected an integer from {low} to {high}")
    if not low <= int(max_bins) <= high:
        raise ValueError(f"max_bins={max_bins!r}; expected an integer from {low} to {high}")
