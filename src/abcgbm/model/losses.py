"""From scores to probabilities and labels, and the scores that training starts from."""

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
    """Whether scores are reported without their row mean: the one rule of it.

    With a base class scores sum to zero by themselves, but for plain warm-up steps and where the
    guard acted; with a start other than zero they would not.
    """
    return bool(recenter or has_base or init.any())


@dataclass(frozen=True)
class SoftmaxLink:
    """What scores say.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The labels.
    is_centred : bool
        Whether scores are reported without their row mean.
    """

    classes: NDArray[Any]
    is_centred: bool

    def labels(self, raw: Floats) -> NDArray[Any]:
        """Return the label of the largest score of each row, the first among equals."""
        labels: NDArray[Any] = self.classes[raw.argmax(axis=1)]
        return labels

    def probabilities(self, raw: Floats, n_threads: int) -> Floats:
        """Return class probabilities of shape (n_rows, n_classes)."""
        return _core.softmax(raw, n_threads)

    def log_probabilities(self, raw: Floats, n_threads: int) -> Floats:
        """Return their logarithms."""
        return _core.log_softmax(raw, n_threads)

    def by_class(self, raw: Floats) -> Floats:
        """Return scores of each class as they are reported; classes are the last axis."""
        return raw - raw.mean(axis=-1, keepdims=True) if self.is_centred else raw

    def reported(self, raw: Floats) -> Floats:
        """Return scores as ``decision_function`` has them; of two classes their difference."""
        if raw.shape[1] == 2:  # noqa: PLR2004
            return raw[:, 1] - raw[:, 0]
        return self.by_class(raw)


class ScoringClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that predicts from scores; whoever inherits says what these are.

    ``n_iter=i`` predicts with the first i iterations, as ``staged_predict`` and the like yield as the i-th;
    0 predicts with the baseline.
    """

    @with_prediction_hints
    def predict(self, X: Any, *, n_iter: int | None = None) -> NDArray[Any]:
        """Return the most probable label of each row, by all iterations or the first ``n_iter``."""
        raw = self._raw(X, n_iter)
        return self._outputs().labels(raw)

    @with_prediction_hints
    def predict_proba(self, X: Any, *, n_iter: int | None = None) -> Floats:
        """Return class probabilities of shape (n_rows, n_classes), columns as in ``classes_``.

        They are those of all iterations, or of the first ``n_iter``.
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
        """Return the scores F, after all iterations or the first ``n_iter``.

        Shape (n_rows, n_classes); with two classes shape (n_rows,), the score of the second class
        minus that of the first, so that its expit is ``predict_proba(X)[:, 1]``.
        """
        raw = self._raw(X, n_iter)
        return self._outputs().reported(raw)

    def _raw(self, X: Any, n_iter: int | None) -> Floats:
        raise NotImplementedError

    def _outputs(self) -> SoftmaxLink:
        raise NotImplementedError

    def _n_threads(self) -> int:
        raise NotImplementedError


_GRID = 2**32  # scores are multiples of one part in this


def init_scores(init: str, rows: LabelledRows) -> Floats:
    """Return the scores of the classes before the first step, of shape (n_classes,).

    With rows of one class alone no tree can be split, so the frequencies are all there is to learn.
    """
    if init == "zero" and not has_one_class(rows):
        return np.zeros(len(rows.class_counts))
    return log_frequencies(rows)


def has_one_class(rows: LabelledRows) -> bool:
    """Whether the rows of all ranks are of the same class."""
    return int(np.count_nonzero(rows.class_counts)) == 1


def log_frequencies(rows: LabelledRows) -> Floats:
    """Return the logarithms of the weighted class frequencies, on the grid of the scores.

    A class without rows counts as half an average row.
    """
    weight_of_class = np.zeros(len(rows.class_counts), dtype=np.int64)
    np.add.at(weight_of_class, rows.y, rows.integer_weights.weight)
    rows.shard.communicator.allreduce(weight_of_class, "sum")
    n_rows, total = rows.n_rows, int(weight_of_class.sum())
    # Twice the weight times the rows, so that half an average row is an integer too.
    counts = [2 * n_rows * int(w) or total for w in weight_of_class]
    return np.array([_log_on_grid(count, 2 * n_rows * total) for count in counts])


def _log_on_grid(numerator: int, denominator: int) -> float:
    """Return log(numerator / denominator); decimals have the same logarithm on every machine."""
    with localcontext(prec=40):
        log = (Decimal(numerator) / Decimal(denominator)).ln()
        return float(int((log * _GRID).to_integral_value()) / _GRID)
