"""Confusion matrix, per-class metrics and calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.arrays import Floats
from abcgbm.data.labels import known_label
from abcgbm.evaluation.predictions import Predictions
from abcgbm.parameters.validators import check_integer


@dataclass(frozen=True, eq=False)
class Confusion:
    """Confusion matrix and the metrics derived from it.

    Attributes
    ----------
    labels : list of labels
        Class labels.
    counts : ndarray of shape (n_classes + 1, n_classes)
        Total weights by true class and prediction. The last row holds labels that are not classes of
        the model.
    """

    labels: list[Any]
    counts: Floats

    @classmethod
    def from_predictions(cls, predictions: Predictions) -> Self:
        """Count predictions by true and predicted class."""
        n_classes = predictions.n_classes
        y_true = np.minimum(predictions.y_true, n_classes).astype(np.intp)
        cell = y_true * n_classes + predictions.predicted
        sums = np.bincount(cell, predictions.weight, minlength=(n_classes + 1) * n_classes)
        counts = sums.astype(np.float64).reshape(n_classes + 1, n_classes)
        return cls(predictions.labels, counts)

    @property
    def correct(self) -> Floats:
        """Weight of the correct predictions of each class."""
        return self.counts.diagonal()

    @property
    def support(self) -> Floats:
        """Weight of the rows of each class."""
        support: Floats = self.counts[:-1].sum(axis=1)
        return support

    @property
    def predicted(self) -> Floats:
        """Weight of the predictions of each class."""
        predicted: Floats = self.counts.sum(axis=0)
        return predicted

    @property
    def precision(self) -> Floats:
        """Fraction of the predictions of each class that are correct; NaN without predictions."""
        return ratio(self.correct, self.predicted)

    @property
    def recall(self) -> Floats:
        """Fraction of the rows of each class that are predicted correctly; NaN without rows."""
        return ratio(self.correct, self.support)

    @property
    def f1(self) -> Floats:
        """Harmonic mean of precision and recall; NaN where both are."""
        return ratio(2.0 * self.correct, self.support + self.predicted)

    @property
    def row_fractions(self) -> Floats:
        """Counts as fractions of the rows of each label; 0 for labels without rows."""
        return np.nan_to_num(ratio(self.counts, self.counts.sum(axis=1, keepdims=True)))

    @property
    def has_unseen(self) -> bool:
        """Whether any labels are not classes of the model."""
        return bool(self.counts[-1].any())

    def worst(self, max_pairs: int) -> list[tuple[int, int]]:
        """Return the pairs (true class, predicted class) with most errors, in descending order."""
        errors = self.counts.copy()
        np.fill_diagonal(errors, 0.0)
        order = np.argsort(-errors, axis=None, kind="stable")[:max_pairs]
        y_true, predicted = np.unravel_index(order, errors.shape)
        pairs = zip(y_true.tolist(), predicted.tolist(), strict=True)
        return [pair for pair in pairs if errors[pair] > 0]


def ratio(part: Floats, total: Floats) -> Floats:
    """Return part / total; NaN where the total is 0."""
    shape = np.broadcast_shapes(part.shape, total.shape)
    quotient: Floats = np.full(shape, np.nan)
    np.divide(part, total, out=quotient, where=np.broadcast_to(total > 0, shape))
    return quotient


N_BINS = 10


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibration curve with bins of equal width.

    A bin holds probabilities above its lower edge and up to its upper one; the first also holds 0.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins, from 0 to 1.
    weight : ndarray of shape (n_bins,)
        Total weight of the rows.
    prob_pred : ndarray of shape (n_bins,)
        Mean predicted probability; NaN for a bin without rows.
    prob_true : ndarray of shape (n_bins,)
        Fraction of the rows that are of the class; NaN for a bin without rows.
    """

    edges: Floats
    weight: Floats
    prob_pred: Floats
    prob_true: Floats

    @classmethod
    def from_rows(
        cls, proba: Floats, is_true: NDArray[np.bool_], weight: Floats, n_bins: int
    ) -> Self:
        """Assign rows to bins by their predicted probability."""
        n_bins = check_integer("n_bins", n_bins, 1)
        edges = np.linspace(0.0, 1.0, n_bins + 1)
        bins = np.searchsorted(edges[1:-1], proba)

        def summed(values: Floats) -> Floats:
            return np.bincount(bins, values, minlength=n_bins).astype(np.float64)

        total = summed(weight)
        prob_pred = ratio(summed(weight * proba), total)
        return cls(edges, total, prob_pred, ratio(summed(weight * is_true), total))

    @property
    def expected_error(self) -> float:
        """Expected calibration error (ECE): weighted mean of |prob_pred - prob_true| over bins."""
        distance = np.nan_to_num(np.abs(self.prob_pred - self.prob_true))
        return float((distance * self.weight).sum() / self.weight.sum())


def top_calibration(predictions: Predictions, n_bins: int = N_BINS) -> Calibration:
    """Return the calibration of the probability of the predicted class."""
    proba = np.exp(predictions.log_proba.max(axis=1))
    return Calibration.from_rows(proba, predictions.is_correct, predictions.weight, n_bins)


def class_calibration(predictions: Predictions, class_: Any, n_bins: int = N_BINS) -> Calibration:
    """Return the calibration of the probability of one class, over all rows."""
    k = predictions.labels.index(known_label(class_, predictions.labels))
    proba = np.exp(predictions.log_proba[:, k])
    return Calibration.from_rows(proba, predictions.y_true == k, predictions.weight, n_bins)
