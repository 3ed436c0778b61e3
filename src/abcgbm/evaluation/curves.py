"""Errors, losses and base classes by iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.arrays import Floats
from abcgbm.evaluation.predictions import Predictions, mean_loss
from abcgbm.model.ensemble import NO_BASE
from abcgbm.model.history import History

_MAX_PROBABILITIES = 200_000_000  # to compute for one curve
_MAX_POINTS, _MIN_POINTS = 500, 25


@dataclass(frozen=True, eq=False)
class StagedScores:
    """Errors and losses before the first iteration and after each, or after some of them.

    Attributes
    ----------
    iteration : ndarray of int64 of shape (n_points,)
        Number of iterations at each point: from 0 to all of them.
    errors : ndarray of shape (n_points,)
        Total weight of the errors.
    loss : ndarray of shape (n_points,)
        Mean log loss of the rows whose label is a class of the model.
    """

    iteration: NDArray[np.int64]
    errors: Floats
    loss: Floats

    @property
    def is_thinned(self) -> bool:
        """Whether iterations are left out."""
        return len(self.iteration) <= int(self.iteration[-1])

    @property
    def lowest_errors(self) -> int:
        """Index of the point with fewest errors; the first of equal ones."""
        return int(self.errors.argmin())

    @property
    def lowest_loss(self) -> int:
        """Index of the point of lowest loss; the first of equal ones."""
        return int(self.loss.argmin())


def staged_scores(predictions: Predictions, max_points: int | None = None) -> StagedScores:
    """Return errors and losses by iteration, at evenly spaced points if there are many iterations.

    ``max_points`` bounds their number; by default it follows from the numbers of rows and classes.
    """
    model = predictions.model.model_
    if max_points is None:
        max_points = min(_MAX_POINTS, affordable_points(predictions))
    iterations = spaced(model.n_iter, max_points)
    raw = np.tile(model.ensemble.init, (len(predictions.table), 1))
    scores = [_score(raw, predictions)]
    points = {*iterations.tolist()}
    for n_iter, raw in enumerate(
        model.staged_raw_scores(predictions.table, predictions.n_threads), 1
    ):
        if n_iter in points:
            scores.append(_score(raw, predictions))
    errors, losses = np.array(scores).T
    return StagedScores(iterations, errors, losses)


def affordable_points(predictions: Predictions) -> int:
    """Return the number of points that can be evaluated within seconds."""
    return max(_MIN_POINTS, _MAX_PROBABILITIES // max(1, predictions.log_proba.size))


def spaced(last: int, max_points: int) -> NDArray[np.int64]:
    """Return at most ``max_points`` evenly spaced integers from 0 to ``last``, with both ends."""
    points = np.linspace(0, last, min(last + 1, max(max_points, 2)))
    return np.unique(np.rint(points).astype(np.int64))


def _score(raw: Floats, predictions: Predictions) -> tuple[float, float]:
    """Return the total weight of the errors, and the mean loss."""
    raw = raw[predictions.row] if len(predictions) < len(raw) else raw
    is_error = raw.argmax(axis=1) != predictions.y_true
    log_proba = predictions.model.model_.link.log_probabilities(raw, predictions.n_threads)
    return math.fsum(predictions.weight[is_error]), mean_loss(log_proba, predictions)


class BaseClassRun(NamedTuple):
    """Consecutive iterations with the same base class; the first iteration of a model is 1."""

    class_number: int
    first: int
    n_iter: int


def history_of_model(model: ABCBoostClassifier) -> History:
    """Return the history of the training that made the model: the second after a refit."""
    return model.history_ if model.refit_history_ is None else model.refit_history_


def base_class_runs(model: ABCBoostClassifier) -> list[BaseClassRun]:
    """Return the runs of base classes in order; iterations without a base class are in none."""
    base = history_of_model(model).base_classes[: model.model_.n_iter]
    starts = np.flatnonzero(np.diff(base, prepend=NO_BASE - 1))
    ends = np.append(starts, len(base))[1:]
    runs = zip(base[starts].tolist(), starts.tolist(), ends.tolist(), strict=True)
    return [BaseClassRun(k, start + 1, end - start) for k, start, end in runs if k != NO_BASE]
