"""Scores after each iteration, and base classes over iterations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.arrays import Floats
from abcgbm.evaluation.predictions import Answers, mean_loss
from abcgbm.model.ensemble import NO_BASE
from abcgbm.model.history import History

_MAX_ANSWERS = 200_000_000  # probabilities that are computed for one curve
_MAX_POINTS, _MIN_POINTS = 500, 25


@dataclass(frozen=True, eq=False)
class StagedScores:
    """Scores before the first step and after each, or after some of them.

    Attributes
    ----------
    step : ndarray of int64 of shape (n_points,)
        The numbers of steps: from 0 to all of them.
    errors : ndarray of shape (n_points,)
        Sums of the weights of wrong answers.
    loss : ndarray of shape (n_points,)
        Mean losses of the rows whose labels are known.
    """

    step: NDArray[np.int64]
    errors: Floats
    loss: Floats

    @property
    def is_thinned(self) -> bool:
        """Whether steps were left out."""
        return len(self.step) <= int(self.step[-1])

    @property
    def lowest_errors(self) -> int:
        """The first point of fewest errors."""
        return int(self.errors.argmin())

    @property
    def lowest_loss(self) -> int:
        """The first point of lowest loss."""
        return int(self.loss.argmin())


def staged_scores(answers: Answers, max_points: int | None = None) -> StagedScores:
    """Judge a model before its first step and after each, or after evenly spaced ones if it is long.

    ``most_points`` bounds the points; by default it follows from the rows and classes.
    """
    model = answers.model.model_
    if max_points is None:
        max_points = min(_MAX_POINTS, affordable_points(answers))
    steps = spaced(model.n_iter, max_points)
    raw = np.tile(model.ensemble.init, (len(answers.table), 1))
    scores = [_score(raw, answers)]
    wanted = {*steps.tolist()}
    for number, later in enumerate(model.staged_raw(answers.table, answers.n_threads), 1):
        if number in wanted:
            scores.append(_score(later, answers))
    errors, losses = np.array(scores).T
    return StagedScores(steps, errors, losses)


def affordable_points(answers: Answers) -> int:
    """Return how many steps can be judged in seconds."""
    return max(_MIN_POINTS, _MAX_ANSWERS // max(1, answers.log_proba.size))


def spaced(last: int, most: int) -> NDArray[np.int64]:
    """Return the numbers from 0 to the last, or so many of them, evenly spaced, with both ends."""
    points = np.linspace(0, last, min(last + 1, max(most, 2)))
    return np.unique(np.rint(points).astype(np.int64))


def _score(raw: Floats, answers: Answers) -> tuple[float, float]:
    """Return the errors and the mean loss of scores."""
    of_rows = raw[answers.row] if len(answers) < len(raw) else raw
    wrong = of_rows.argmax(axis=1) != answers.truth
    outputs = answers.model.model_.outputs
    log_proba = outputs.log_probabilities(of_rows, answers.n_threads)
    return math.fsum(answers.weight[wrong]), mean_loss(log_proba, answers)


class BaseClassRun(NamedTuple):
    """Steps one after the other with the same base class; the first step of a model is 1."""

    class_number: int
    first: int
    n_iter: int


def history_of_model(model: ABCBoostClassifier) -> History:
    """Return the record of the training that the model is of: the second, if it was refitted."""
    return model.history_ if model.refit_history_ is None else model.refit_history_


def base_class_runs(model: ABCBoostClassifier) -> list[BaseClassRun]:
    """Return the runs of base classes of a model, in order; steps without one are in none."""
    base = history_of_model(model).base_classes[: model.model_.n_iter]
    starts = np.flatnonzero(np.diff(base, prepend=NO_BASE - 1))
    ends = np.append(starts, len(base))[1:]
    runs = zip(base[starts].tolist(), starts.tolist(), ends.tolist(), strict=True)
    return [BaseClassRun(k, start + 1, end - start) for k, start, end in runs if k != NO_BASE]
