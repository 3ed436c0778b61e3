"""Summary of Shapley values, and the hardest rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.arrays import Floats
from abcgbm.evaluation.predictions import Predictions, largest
from abcgbm.model.explanation import Explanation, explain

MAX_ROWS, _MIN_ROWS = 300, 10
_MAX_VALUES = 20_000_000  # rows x features x classes in memory
_MAX_TREES = 6_000_000  # rows x trees to explain


@dataclass(frozen=True, eq=False)
class ShapleySummary:
    """Shapley values of some rows.

    Attributes
    ----------
    position : ndarray of int64 of shape (n_sampled,)
        Positions of the rows in the predictions, ascending.
    explanation : Explanation
        Shapley values of these rows.
    """

    position: NDArray[np.int64]
    explanation: Explanation

    @property
    def by_class(self) -> Floats:
        """Mean absolute value, of shape (n_features, n_classes)."""
        means: Floats = np.abs(self.explanation.values).mean(axis=0)
        return means

    @property
    def overall(self) -> Floats:
        """Mean absolute value over rows and classes, of shape (n_features,)."""
        means: Floats = self.by_class.mean(axis=1)
        return means

    def of_prediction(self, predictions: Predictions) -> Floats:
        """Return the values for the predicted class of each row, of shape (n_sampled, n_features)."""
        predicted = predictions.predicted[self.position]
        values: Floats = self.explanation.values[np.arange(len(predicted)), :, predicted]
        return values


def shapley_summary(predictions: Predictions, max_rows: int = MAX_ROWS) -> ShapleySummary:
    """Explain a sample of the rows, with a fixed seed, or all rows if they are few."""
    n_rows = min(len(predictions), max_rows, _affordable_rows(predictions))
    sample = np.random.default_rng(0).choice(len(predictions), n_rows, replace=False)
    position = np.sort(sample).astype(np.int64)
    return ShapleySummary(position, explain_rows(predictions, position))


def explain_rows(predictions: Predictions, position: NDArray[np.int64]) -> Explanation:
    """Explain rows by their positions in the predictions."""
    table = predictions.table.take(predictions.row[position])
    return explain(predictions.model.model_, table, predictions.n_threads, None)


def _affordable_rows(predictions: Predictions) -> int:
    """Return the number of rows that can be explained within seconds and in little memory."""
    ensemble = predictions.model.model_.ensemble
    values = ensemble.n_features * ensemble.n_classes
    n_trees = max(1, len(ensemble.tree_class))
    return max(_MIN_ROWS, min(_MAX_VALUES // values, _MAX_TREES // n_trees))


_MAX_ROWS, _MAX_REASONS = 20, 3


class Reason(NamedTuple):
    """Contribution of a feature to the score of the prediction minus that of the true label."""

    feature: str
    value: Any
    contribution: float


class HardRow(NamedTuple):
    """A misclassified row.

    Attributes
    ----------
    row : int
        Index in the table, from 0.
    label, prediction : label
        True and predicted label.
    probability : float
        Probability of the prediction.
    label_probability : float
        Probability of the true label; NaN if it is not a class of the model.
    reasons : list of Reason
        Features with the largest contributions to the error.
    """

    row: int
    label: Any
    prediction: Any
    probability: float
    label_probability: float
    reasons: list[Reason]


def hardest_rows(predictions: Predictions, max_rows: int = _MAX_ROWS) -> list[HardRow]:
    """Return the misclassified rows with the largest probabilities, in descending order."""
    errors = np.flatnonzero(~predictions.is_correct)
    log_proba = predictions.log_proba[errors].max(axis=1)
    positions = errors[np.argsort(-log_proba, kind="stable")[:max_rows]].astype(np.int64)
    if not len(positions):
        return []
    explanation = explain_rows(predictions, positions)
    return [
        _hard_row(predictions, position, explanation, index)
        for index, position in enumerate(positions.tolist())
    ]


def _hard_row(
    predictions: Predictions, position: int, explanation: Explanation, index: int
) -> HardRow:
    y_true, predicted = int(predictions.y_true[position]), int(predictions.predicted[position])
    log_proba, is_known = predictions.log_proba[position], y_true < predictions.n_classes
    return HardRow(
        int(predictions.row[position]),
        predictions.all_labels[y_true],
        predictions.labels[predicted],
        math.exp(log_proba[predicted]),
        math.exp(log_proba[y_true]) if is_known else math.nan,
        _reasons(explanation, index, predicted, y_true if is_known else None),
    )


def _reasons(
    explanation: Explanation, index: int, predicted: int, y_true: int | None
) -> list[Reason]:
    values = explanation.values[index]
    contributions = values[:, predicted] - (0.0 if y_true is None else values[:, y_true])
    data = explanation.data if explanation.display_data is None else explanation.display_data
    return [
        Reason(explanation.feature_names[f], data[index, f], float(contributions[f]))
        for f in largest(contributions, _MAX_REASONS)
    ]
