"""Summaries of Shapley values, and the rows that are hardest to classify."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.arrays import Floats
from abcgbm.evaluation.predictions import Answers
from abcgbm.model.explanation import Explanation, explain

MAX_ROWS, _MIN_ROWS = 300, 10
_MAX_VALUES = 20_000_000  # rows x features x classes that are kept
_MAX_WALKS = 6_000_000  # rows x trees that are gone through


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


def shapley_summary(answers: Answers, max_rows: int = MAX_ROWS) -> ShapleySummary:
    """Explain rows that are drawn, always the same ones; all of them if they are few."""
    n_rows = min(len(answers), max_rows, _affordable_rows(answers))
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
    return max(_MIN_ROWS, min(_MAX_VALUES // values, _MAX_WALKS // walks))


_MAX_ROWS, _MAX_REASONS = 20, 3


class Reason(NamedTuple):
    """What a feature adds to the lead of the prediction over the label."""

    feature: str
    value: Any
    adds: float


class HardRow(NamedTuple):
    """A row with a wrong answer.

    Attributes
    ----------
    row : int
        Its number in the table, from 0.
    label, prediction : label
        What it is, and what the model says.
    said : float
        The probability of the prediction.
    of_label : float
        That of the label; NaN if the model does not know it.
    reasons : list of Reason
        The features that add most to the score of the prediction, less that of the label.
    """

    row: int
    label: Any
    prediction: Any
    said: float
    of_label: float
    reasons: list[Reason]


def hardest_rows(answers: Answers, most: int = _MAX_ROWS) -> list[HardRow]:
    """Return the wrong answers of largest probability, the first rows among equals."""
    wrong = np.flatnonzero(~answers.is_right)
    said = answers.log_proba[wrong].max(axis=1)
    place = wrong[np.argsort(-said, kind="stable")[:most]].astype(np.int64)
    if not len(place):
        return []
    found = explain_rows(answers, place)
    return [_hard_row(answers, p, found, at) for at, p in enumerate(place.tolist())]


def _hard_row(answers: Answers, place: int, found: Explanation, at: int) -> HardRow:
    truth, predicted = int(answers.truth[place]), int(answers.predicted[place])
    log_proba, is_known = answers.log_proba[place], truth < answers.n_classes
    return HardRow(
        int(answers.row[place]),
        answers.all_labels[truth],
        answers.labels[predicted],
        math.exp(log_proba[predicted]),
        math.exp(log_proba[truth]) if is_known else math.nan,
        _reasons(found, at, predicted, truth if is_known else None),
    )


def _reasons(found: Explanation, at: int, predicted: int, truth: int | None) -> list[Reason]:
    values = found.values[at]
    lead = values[:, predicted] - (0.0 if truth is None else values[:, truth])
    shown = found.data if found.display_data is None else found.display_data
    largest = np.argsort(-lead, kind="stable")[:_MAX_REASONS].tolist()
    return [
        Reason(found.feature_names[f], shown[at, f], float(lead[f])) for f in largest if lead[f] > 0
    ]
