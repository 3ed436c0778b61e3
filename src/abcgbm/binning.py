"""Learn the bins of a table, and code tables by them."""

from dataclasses import dataclass, field
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from abcgbm import _core
from abcgbm.threads import effective_n_threads
from abcgbm.weights import IntegerWeights, check_weights

MAX_BINS = (2, 65534)


@dataclass
class BinMapper:
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
    """

    max_bins: int = 255
    n_jobs: int | None = None
    thresholds_: list[NDArray[np.float64]] = field(init=False, repr=False)

    def fit(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the thresholds.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Numbers; NaN is missing.
        sample_weight : array-like of shape (n_rows,), optional
            Positive weights; 1 if not given.
        """
        _check_max_bins(self.max_bins)
        table = _as_table(X)
        weight = check_weights(sample_weight, len(table))
        if not weight.all():
            table, weight = table[weight > 0], weight[weight > 0]
        weights = IntegerWeights.from_floats(weight, len(table))
        self.thresholds_ = _core.find_thresholds(
            table, weights.weight, self.max_bins, effective_n_threads(self.n_jobs)
        )
        return self

    def transform(self, X: ArrayLike) -> "BinnedTable":
        """Code a table.

        Returns
        -------
        BinnedTable
            Ready for any number of fits: ``ABCBoostClassifier().fit(table, y)``.
        """
        if not hasattr(self, "thresholds_"):
            raise NotFittedError("this BinMapper has no bins yet; call fit first")
        table = _as_table(X)
        if table.shape[1] != len(self.thresholds_):
            raise ValueError(
                f"X has {table.shape[1]} features; the bins were learned from "
                f"{len(self.thresholds_)}"
            )
        n_threads = effective_n_threads(self.n_jobs)
        return BinnedTable(self, _core.bin_table(table, self.thresholds_, n_threads))

    def upper_value(
        self, feature: NDArray[np.int32], code: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the thresholds above the given bins; infinity above the last value bin."""
        flat = np.concatenate([np.append(t, np.inf) for t in self.thresholds_])
        start = np.cumsum([0, *(len(t) + 1 for t in self.thresholds_[:-1])])
        value: NDArray[np.float64] = flat[start[feature] + code]
        return value


@dataclass(frozen=True)
class BinnedTable:
    """A table as training sees it: its bin codes, and the mapper that knows what they mean."""

    mapper: BinMapper
    codes: _core.Binned

    def __len__(self) -> int:
        return self.codes.n_rows

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.codes.n_features

    def __getitem__(self, rows: NDArray[np.integer]) -> "BinnedTable":
        """Return the given rows, by number: for folds that share their bins."""
        rows = np.asarray(rows)
        numbers = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
        return BinnedTable(self.mapper, self.codes.take(numbers))


def _check_max_bins(max_bins: object) -> None:
    low, high = MAX_BINS
    if not isinstance(max_bins, Integral):
        raise TypeError(f"max_bins={max_bins!r}; expected an integer from {low} to {high}")
    if not low <= int(max_bins) <= high:
        raise ValueError(f"max_bins={max_bins!r}; expected {low} to {high}")


def _as_table(X: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(X, dtype=np.float64)
    if table.ndim != 2:  # noqa: PLR2004
        raise ValueError(f"X has {table.ndim} dimension(s); expected 2")
    return table
