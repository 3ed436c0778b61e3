"""Confusion matrix and calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.arrays import Floats
from abcgbm.data.labels import known_label
from abcgbm.evaluation.predictions import Answers
from abcgbm.parameters.validators import check_integer


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often each class was taken for each.

    Attributes
    ----------
    labels : list of labels
        The classes.
    counts : ndarray of shape (n_classes + 1, n_classes)
        Sums of weights by the class of the rows and by their prediction. The last row are the
        labels that the model does not know.
    """

    labels: list[Any]
    counts: Floats

    @classmethod
    def from_answers(cls, answers: Answers) -> Self:
        """Count answers."""
        n_classes = answers.n_classes
        truth = np.minimum(answers.truth, n_classes).astype(np.intp)
        place = truth * n_classes + answers.predicted
        sums = np.bincount(place, answers.weight, minlength=(n_classes + 1) * n_classes)
        counts = sums.astype(np.float64).reshape(n_classes + 1, n_classes)
        return cls(answers.labels, counts)

    @property
    def right(self) -> Floats:
        """The right answers of each class."""
        return self.counts.diagonal()

    @property
    def support(self) -> Floats:
        """The rows of each class, without those of labels that are not known."""
        support: Floats = self.counts[:-1].sum(axis=1)
        return support

    @property
    def predicted(self) -> Floats:
        """How often each class was predicted."""
        predicted: Floats = self.counts.sum(axis=0)
        return predicted

    @property
    def precision(self) -> Floats:
        """The share of a prediction that is right; NaN if it was never made."""
        return ratio(self.right, self.predicted)

    @property
    def recall(self) -> Floats:
        """The share of a class that was found; NaN for a class without rows."""
        return ratio(self.right, self.support)

    @property
    def f1(self) -> Floats:
        """The harmonic mean of precision and recall; NaN where there are neither."""
        return ratio(2.0 * self.right, self.support + self.predicted)

    @property
    def row_shares(self) -> Floats:
        """The same as shares of the rows of a label; 0 where there are none."""
        return np.nan_to_num(ratio(self.counts, self.counts.sum(axis=1, keepdims=True)))

    @property
    def has_unseen(self) -> bool:
        """Whether there are rows of labels that are not known."""
        return bool(self.counts[-1].any())

    def worst(self, most: int) -> list[tuple[int, int]]:
        """Return the pairs (class, prediction) of most errors, at most so many, the largest first."""
        wrong = self.counts.copy()
        np.fill_diagonal(wrong, 0.0)
        order = np.argsort(-wrong, axis=None, kind="stable")[:most]
        truth, predicted = np.unravel_index(order, wrong.shape)
        pairs = zip(truth.tolist(), predicted.tolist(), strict=True)
        return [pair for pair in pairs if wrong[pair] > 0]


def ratio(part: Floats, of: Floats) -> Floats:
    """Return quotients; NaN where there is nothing to divide by."""
    shape = np.broadcast_shapes(part.shape, of.shape)
    quotient: Floats = np.full(shape, np.nan)
    np.divide(part, of, out=quotient, where=np.broadcast_to(of > 0, shape))
    return quotient


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
