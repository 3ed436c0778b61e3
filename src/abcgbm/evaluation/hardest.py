"""The rows that a model is wrong about, and most sure of."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from abcgbm.evaluation.answers import Answers
from abcgbm.evaluation.shapley import explain_rows
from abcgbm.model.explanation import Explanation

_MOST_ROWS, _MOST_REASONS = 20, 3


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


def hardest_rows(answers: Answers, most: int = _MOST_ROWS) -> list[HardRow]:
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
    largest = np.argsort(-lead, kind="stable")[:_MOST_REASONS].tolist()
    return [
        Reason(found.feature_names[f], shown[at, f], float(lead[f])) for f in largest if lead[f] > 0
    ]
