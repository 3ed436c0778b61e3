"""Where training starts: from zero, from the class frequencies, or from an earlier fit."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from abcgbm.answers import Floats
from abcgbm.boosting import Record
from abcgbm.ensemble import Ensemble
from abcgbm.weights import IntegerWeights

_GRID = 2**32  # scores are multiples of one part in this


def init_scores(init: str, y: NDArray[np.int32], weights: IntegerWeights, n_classes: int) -> Floats:
    """Return the scores of the classes before the first step, of shape (n_classes,).

    With rows of one class alone no tree can be split, so the frequencies are all there is to learn.
    """
    if init == "zero" and (y != y[0]).any():
        return np.zeros(n_classes)
    return log_frequencies(y, weights.weight, n_classes)


def log_frequencies(y: NDArray[np.int32], weight: NDArray[np.int64], n_classes: int) -> Floats:
    """Return the logarithms of the weighted class frequencies, on the grid of the scores.

    A class without rows counts as half an average row.
    """
    of_class = np.zeros(n_classes, dtype=np.int64)
    np.add.at(of_class, y, weight)
    total = int(of_class.sum())
    # Twice the weight times the rows, so that half an average row is an integer too.
    counts = [2 * len(y) * int(w) or total for w in of_class]
    return np.array([_log_on_grid(count, 2 * len(y) * total) for count in counts])


def _log_on_grid(numerator: int, denominator: int) -> float:
    """Return log(numerator / denominator); decimals have the same logarithm on every machine."""
    with localcontext(prec=40):
        log = (Decimal(numerator) / Decimal(denominator)).ln()
        return float(int((log * _GRID).to_integral_value()) / _GRID)


def start_raw(init: Floats, n_rows: int) -> Floats | None:
    """Return the scores of all rows, of shape (n_classes, n_rows); None for zero."""
    return np.repeat(init[:, None], n_rows, axis=1) if init.any() else None


@dataclass(frozen=True)
class EarlierFit:
    """What a warm start goes on from: the model of the best step, and how it came about.

    Attributes
    ----------
    ensemble : Ensemble
        The trees.
    classes : ndarray of shape (n_classes,)
        The labels.
    records : list of Record
        The state before the first step and after each one of the model.
    seed : int
        What all draws are keyed by.
    """

    ensemble: Ensemble
    classes: NDArray[Any]
    records: list[Record]
    seed: int

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Take over the fitted attributes of an estimator."""
        return cls(estimator._ensemble, estimator.classes_, _records_of(estimator), estimator._seed)


def _records_of(estimator: Any) -> list[Record]:
    """Return the records up to the best step, from which training goes on as if never stopped."""
    n_steps = estimator.best_iter_
    number = {label: k for k, label in enumerate(estimator.classes_.tolist())}
    bases = [None if b is None else number[b] for b in estimator.base_classes_[:n_steps]]
    searches = estimator.search_losses_[:n_steps]
    n_scores = len(estimator.validation_score_)
    none = [np.nan] * (n_steps + 1)
    return [
        Record(*fields)
        for fields in zip(
            estimator.train_loss_[: n_steps + 1].tolist(),
            estimator.class_losses_[: n_steps + 1],
            [()] * (n_steps + 1),
            [None, *bases],
            [np.full(len(number), np.nan), *searches],
            estimator.validation_loss_[: n_steps + 1].tolist() if n_scores else none,
            estimator.validation_score_[: n_steps + 1].tolist() if n_scores else none,
            strict=True,
        )
    ]
