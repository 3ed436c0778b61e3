"""What features add to the scores of some rows, in brief."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.columns import Floats
from abcgbm.evaluation.answers import Answers
from abcgbm.model.explanation import Explanation, explain

MOST_ROWS, _LEAST_ROWS = 300, 10
_MOST_VALUES = 20_000_000  # rows x features x classes that are kept
_MOST_WALKS = 6_000_000  # rows x trees that are gone through


@dataclass(frozen=True, eq=False)
class ShapleySummary:
    """Shapley values of some rows.

    Attributes
    ----------
    place : ndarray of int64 of shape (n_drawn,)
        The rows, by their place among the answers, ascending.
    explanation : Explanation
        Their values.
    """

    place: NDArray[np.int64]
    explanation: Explanation

    @property
    def by_class(self) -> Floats:
        """The mean of the absolute values, of shape (n_features, n_classes)."""
        means: Floats = np.abs(self.explanation.values).mean(axis=0)
        return means

    @property
    def overall(self) -> Floats:
        """Its mean over the classes, of shape (n_features,)."""
        means: Floats = self.by_class.mean(axis=1)
        return means

    def of_prediction(self, answers: Answers) -> Floats:
        """Return what features add to the score of the predicted class, (n_drawn, n_features)."""
        predicted = answers.predicted[self.place]
        values: Floats = self.explanation.values[np.arange(len(self.place)), :, predicted]
        return values


def shapley_summary(answers: Answers, most_rows: int = MOST_ROWS) -> ShapleySummary:
    """Explain rows that are drawn, always the same ones; all of them if they are few."""
    n_rows = min(len(answers), most_rows, _affordable_rows(answers))
    drawn = np.random.default_rng(0).choice(len(answers), n_rows, replace=False)
    place = np.sort(drawn).astype(np.int64)
    return ShapleySummary(place, explain_rows(answers, place))


def explain_rows(answers: Answers, place: NDArray[np.int64]) -> Explanation:
    """Explain some rows by their place among the answers."""
    table = answers.table.take(answers.row[place])
    return explain(answers.model.model_, table, answers.n_threads, None)


def _affordable_rows(answers: Answers) -> int:
    """Return how many rows can be explained in seconds and in little memory."""
    ensemble = answers.model.model_.ensemble
    values = ensemble.n_features * ensemble.n_classes
    walks = max(1, len(ensemble.tree_class))
    return max(_LEAST_ROWS, min(_MOST_VALUES // values, _MOST_WALKS // walks))
