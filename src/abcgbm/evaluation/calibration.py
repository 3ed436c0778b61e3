"""Whether what is said with 80 % probability is true of 80 % of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.columns import Floats
from abcgbm.data.labels import known_label
from abcgbm.evaluation.answers import Answers
from abcgbm.evaluation.confusion import ratio
from abcgbm.settings.checks import check_integer

N_BINS = 10


@dataclass(frozen=True, eq=False)
class Calibration:
    """Rows by the probability that was said, in bins of equal width.

    A bin holds probabilities above its lower edge and up to its upper one; the first holds 0, too.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins, 0 to 1.
    weight : ndarray of shape (n_bins,)
        Sums of the weights of the rows.
    said : ndarray of shape (n_bins,)
        The mean probability; NaN for a bin without rows.
    true : ndarray of shape (n_bins,)
        The share of the rows of which it was true; NaN for a bin without rows.
    """

    edges: Floats
    weight: Floats
    said: Floats
    true: Floats

    @classmethod
    def from_rows(
        cls, said: Floats, is_true: NDArray[np.bool_], weight: Floats, n_bins: int
    ) -> Self:
        """Sort rows into bins."""
        n_bins = check_integer("n_bins", n_bins, 1)
        edges = np.linspace(0.0, 1.0, n_bins + 1)
        bins = np.searchsorted(edges[1:-1], said)

        def summed(values: Floats) -> Floats:
            return np.bincount(bins, values, minlength=n_bins).astype(np.float64)

        total = summed(weight)
        true = ratio(summed(weight * is_true), total)
        return cls(edges, total, ratio(summed(weight * said), total), true)

    @property
    def expected_error(self) -> float:
        """The mean distance of what was said from what was true, each bin by its weight (ECE)."""
        distance = np.nan_to_num(np.abs(self.said - self.true))
        return float((distance * self.weight).sum() / self.weight.sum())


def top_calibration(answers: Answers, n_bins: int = N_BINS) -> Calibration:
    """Judge the probability of the class that is predicted."""
    said = np.exp(answers.log_proba.max(axis=1))
    return Calibration.from_rows(said, answers.is_right, answers.weight, n_bins)


def class_calibration(answers: Answers, class_: Any, n_bins: int = N_BINS) -> Calibration:
    """Judge the probability of one class, over all rows."""
    k = answers.labels.index(known_label(class_, answers.labels))
    said = np.exp(answers.log_proba[:, k])
    return Calibration.from_rows(said, answers.truth == k, answers.weight, n_bins)
