"""Fitted attributes of the classifier, and models of its first iterations."""

from typing import Any, Self

from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from abcgbm.data.arrays import Floats
from abcgbm.model.explanation import class_gain_importances, gain_importances
from abcgbm.model.history import History
from abcgbm.model.model import Model
from abcgbm.parameters.hints import with_prediction_hints
from abcgbm.parameters.validators import check_integer


class FittedAttributes:
    """Fitted attributes, derived from ``model_`` and ``history_``."""

    model_: Model
    history_: History
    refit_history_: History | None

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether ``fit`` has been called, for scikit-learn."""
        return "model_" in self.__dict__

    @property
    def _model(self) -> Model:
        check_is_fitted(self)  # raises NotFittedError, an AttributeError, so that hasattr works
        return self.model_

    @property
    def _history(self) -> History:
        check_is_fitted(self)
        return self.history_

    @property
    def classes_(self) -> NDArray[Any]:
        """Class labels, sorted."""
        return self._model.classes

    @property
    def baseline_(self) -> Floats:
        """Raw scores before the first iteration."""
        return self._model.ensemble.init.copy()

    @property
    def n_features_in_(self) -> int:
        """Number of features seen during fit."""
        return len(self._model.encoding.schema.is_categorical)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Feature names, if X was a data frame with string column names."""
        names = self._model.encoding.schema.feature_names
        if names is None:
            raise AttributeError(
                "feature_names_in_: X had no column names, or some that are not strings"
            )
        return names

    @property
    def feature_importances_(self) -> Floats:
        """Fraction of the total gain of each feature; zeros without splits."""
        return gain_importances(self._model.ensemble)

    @property
    def feature_importances_by_class_(self) -> Floats:
        """Fraction of the gain of each class of each feature, of shape (n_classes, n_features)."""
        return class_gain_importances(self._model.ensemble)

    @property
    def n_iter_(self) -> int:
        """Number of iterations of the training."""
        return self._history.n_iter

    @property
    def best_iteration_(self) -> int:
        """Number of iterations of the model."""
        return self._history.best_iteration

    @property
    def best_score_(self) -> float:
        """Validation score of ``best_iteration_``."""
        scores = self._history.validation_score
        if not len(scores):
            raise AttributeError("best_score_: the model was trained without validation rows")
        return float(scores[self._history.best_iteration])

    @property
    def train_loss_(self) -> Floats:
        """Mean training loss before the first iteration and after each."""
        return self._history.mean_train_loss()

    @property
    def class_losses_(self) -> Floats:
        """Part of each class in ``train_loss_``, of shape (n_iter + 1, n_classes)."""
        return self._history.mean_class_losses()

    @property
    def validation_loss_(self) -> Floats:
        """Mean validation loss before the first iteration and after each; empty without validation."""
        return self._history.mean_validation_loss()

    @property
    def validation_score_(self) -> Floats:
        """Validation score before the first iteration and after each; empty without validation."""
        return self._history.validation_score.copy()

    @property
    def resolved_params_(self) -> dict[str, Any]:
        """Resolved values of the parameters that can be "auto", by name."""
        return dict(self._history.chosen)

    @property
    def stop_reason_(self) -> str:
        """Why training stopped."""
        return self._history.stop_reason


class Truncation(FittedAttributes):
    """Models of the first iterations."""

    @with_prediction_hints
    def truncate(self, n_iter: int) -> Self:
        """Return a copy with the first ``n_iter`` iterations.

        Its history ends there, too: ``n_iter_`` and ``best_iteration_`` are ``n_iter``, and
        ``stop_reason_`` is "truncated" if iterations were removed. A warm start continues from its last
        iteration. ``model[:n_iter]`` is the same, where a negative number counts from the end.

        Parameters
        ----------
        n_iter : int
            Number of iterations to keep, from 0 to that of the model.
        """
        n_iter = check_integer(
            "n_iter", n_iter, 0, self._model.n_iter, note=" (those of the model)"
        )
        cut: Self = clone(self)
        cut.model_ = self.model_.first_iterations(n_iter)
        cut.history_ = _first_iterations(self.history_, n_iter)
        second = self.refit_history_
        cut.refit_history_ = None if second is None else _first_iterations(second, n_iter)
        return cut

    def __getitem__(self, key: Any) -> Self:
        """Return a copy with the first iterations: ``model[:100]``, ``model[:-5]``."""
        is_slice = isinstance(key, slice)
        if not is_slice or key.start not in (None, 0) or key.step not in (None, 1):
            error = ValueError if is_slice else TypeError
            raise error(
                f"model[{_shown(key)}]; expected a slice from the first iteration on, such as [:100], "
                "because an iteration depends on all before it"
            )
        n_iter, stop = self._model.n_iter, key.stop
        if stop is None:
            return self.truncate(n_iter)
        stop = check_integer(
            "the end of a slice", stop, -n_iter, n_iter, note=" (iterations of the model)"
        )
        return self.truncate(stop + n_iter if stop < 0 else stop)

    __iter__ = None  # slices work, but a classifier is no sequence


def _first_iterations(history: History, n_iter: int) -> History:
    is_whole = n_iter == history.n_iter
    return history if is_whole else history.first_iterations(n_iter, "truncated")


def _shown(key: Any) -> str:
    if not isinstance(key, slice):
        return repr(key)
    parts = [key.start, key.stop] + ([] if key.step is None else [key.step])
    return ":".join("" if part is None else repr(part) for part in parts)
