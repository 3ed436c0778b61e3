"""Softmax loss: link from raw scores to probabilities and labels, and baseline scores."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from abcgbm import _core
from abcgbm.data.arrays import Floats
from abcgbm.data.samples import LabelledRows
from abcgbm.parameters.hints import with_prediction_hints


def reports_centred_scores(*, recenter: bool, has_base: bool, init: Floats) -> bool:
    """Whether scores are reported centred, that is without their mean over classes."""
    # With a base class scores sum to zero, except for warm-up iterations without one and where the line
    # search scaled back the base class. With a baseline other than zero they do not.
    return bool(recenter or has_base or init.any())


@dataclass(frozen=True)
class SoftmaxLink:
    """Convert raw scores to labels, probabilities and reported scores.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels.
    is_centred : bool
        Whether scores are reported without their mean over classes.
    """

    classes: NDArray[Any]
    is_centred: bool

    def labels(self, raw: Floats) -> NDArray[Any]:
        """Return the label of the largest score of each row; the first of equal ones."""
        labels: NDArray[Any] = self.classes[raw.argmax(axis=1)]
        return labels

    def probabilities(self, raw: Floats, n_threads: int) -> Floats:
        """Return class probabilities of shape (n_rows, n_classes)."""
        return _core.softmax(raw, n_threads)

    def log_probabilities(self, raw: Floats, n_threads: int) -> Floats:
        """Return logarithms of the class probabilities."""
        return _core.log_softmax(raw, n_threads)

    def by_class(self, raw: Floats) -> Floats:
        """Return one reported score per class; classes are the last axis."""
        return raw - raw.mean(axis=-1, keepdims=True) if self.is_centred else raw

    def reported(self, raw: Floats) -> Floats:
        """Return scores in the form of ``decision_function``: for two classes their difference."""
        if raw.shape[1] == 2:  # noqa: PLR2004
            return raw[:, 1] - raw[:, 0]
        return self.by_class(raw)


class ScoringClassifier(ClassifierMixin, BaseEstimator):
    """Base class of classifiers that predict from raw scores, which subclasses provide.

    ``n_iter=i`` predicts with the first i iterations, like the i-th item of ``staged_predict``; 0
    predicts with the baseline.
    """

    @with_prediction_hints
    def predict(self, X: Any, *, n_iter: int | None = None) -> NDArray[Any]:
        """Return the most probable label of each row, with all or the first ``n_iter`` iterations."""
        raw = self._raw(X, n_iter)
        return self._outputs().labels(raw)

    @with_prediction_hints
    def predict_proba(self, X: Any, *, n_iter: int | None = None) -> Floats:
        """Return class probabilities of shape (n_rows, n_classes), in the order of ``classes_``.

        With all or the first ``n_iter`` iterations.
        """
        raw = self._raw(X, n_iter)
        return self._outputs().probabilities(raw, self._n_threads())

    @with_prediction_hints
    def predict_log_proba(self, X: Any, *, n_iter: int | None = None) -> Floats:
        """Return the logarithms of the class probabilities."""
        raw = self._raw(X, n_iter)
        return self._outputs().log_probabilities(raw, self._n_threads())

    @with_prediction_hints
    def decision_function(self, X: Any, *, n_iter: int | None = None) -> Floats:
        """Return the scores F after all or the first ``n_iter`` iterations.

        Of shape (n_rows, n_classes). With two classes of shape (n_rows,): the score of the second
        class minus that of the first, so that its expit is ``predict_proba(X)[:, 1]``.
        """
        raw = self._raw(X, n_iter)
        return self._outputs().reported(raw)

    def _raw(self, X: Any, n_iter: int | None) -> Floats:
        raise NotImplementedError

    def _outputs(self) -> SoftmaxLink:
        raise NotImplementedError

    def _n_threads(self) -> int:
        raise NotImplementedError


_GRID = 2**32  # scores are multiples of 1 / _GRID


def init_scores(init: str, rows: LabelledRows) -> Floats:
    """Return the baseline: the scores before the first iteration, of shape (n_classes,)."""
    # If all rows have the same class no tree can be split, and the frequencies are all there is to learn.
    if init == "zero" and not has_one_class(rows):
        return np.zeros(len(rows.class_counts))
    return log_frequencies(rows)


def has_one_class(rows: LabelledRows) -> bool:
    """Whether the rows of all ranks have the same class."""
    return int(np.count_nonzero(rows.class_counts)) == 1


def log_frequencies(rows: LabelledRows) -> Floats:
    """Return the logarithms of the weighted class frequencies, on the grid of the scores.

    A class without rows gets the weight of half an average row.
    """
    weight_of_class = np.zeros(len(rows.class_counts), dtype=np.int64)
    np.add.at(weight_of_class, rows.y, rows.integer_weights.weight)
    rows.shard.communicator.allreduce(weight_of_class, "sum")
    n_rows, total = rows.n_rows, int(weight_of_class.sum())
    # Twice the weight times the rows, so that half an average row is an integer too.
    counts = [2 * n_rows * int(w) or total for w in weight_of_class]
    return np.array([_log_on_grid(count, 2 * n_rows * total) for count in counts])


def _log_on_grid(numerator: int, denominator: int) -> float:
    """Return log(numerator / denominator), rounded to the grid of the scores."""
    # Unlike math.log, decimal gives the same digits on every machine.
    with localcontext(prec=40):
        log = (Decimal(numerator) / Decimal(denominator)).ln()
        return float(int((log * _GRID).to_integral_value()) / _GRID)
