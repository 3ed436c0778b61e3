"""From scores to answers: labels, probabilities, reported scores."""

from typing import Any

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from abcgbm import _core
from abcgbm.data.columns import Floats
from abcgbm.settings.threads import effective_n_threads


class ScoringClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that answers from scores.

    Who inherits has ``classes_`` and ``n_jobs``, and says what the scores of some rows are and
    whether they are reported without their row mean.
    """

    classes_: NDArray[Any]
    n_jobs: int | None

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each row."""
        return self._labels(self._raw(X))

    def predict_proba(self, X: Any) -> Floats:
        """Return class probabilities of shape (n_rows, n_classes), columns as in ``classes_``."""
        return _core.softmax(self._raw(X), effective_n_threads(self.n_jobs))

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the class probabilities."""
        return _core.log_softmax(self._raw(X), effective_n_threads(self.n_jobs))

    def decision_function(self, X: Any) -> Floats:
        """Return the scores F.

        Shape (n_rows, n_classes); with two classes shape (n_rows,), the score of the second class
        minus that of the first, so that its expit is ``predict_proba(X)[:, 1]``.
        """
        return self._reported(self._raw(X))

    def _raw(self, X: Any) -> Floats:
        raise NotImplementedError

    def _is_centred(self) -> bool:
        raise NotImplementedError

    def _labels(self, raw: Floats) -> NDArray[Any]:
        labels: NDArray[Any] = self.classes_[raw.argmax(axis=1)]
        return labels

    def _reported(self, raw: Floats) -> Floats:
        if raw.shape[1] == 2:  # noqa: PLR2004
            return raw[:, 1] - raw[:, 0]
        return raw - raw.mean(axis=1, keepdims=True) if self._is_centred() else raw
