"""Bridge to scikit-learn's callback protocol, which scikit-learn has from 1.9 on."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

try:
    import sklearn.callback as _framework
except ImportError:  # scikit-learn before 1.9
    _framework = None

# Stack frames that the decorator of fit adds: the stacklevel of warnings counts them.
FRAMES_AROUND_FIT = 0 if _framework is None else 1
CallbackSupportMixin: Any = type("CallbackSupportMixin", (), {})  # nothing to mix in
if _framework is not None:
    CallbackSupportMixin = _framework.CallbackSupportMixin
Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(method: Method) -> Method:
    """Decorate a method such that scikit-learn's callbacks are torn down after it, even on an error."""
    return method if _framework is None else cast(Method, _framework.with_callbacks(method))


class FitTask:
    """A fit as a task of scikit-learn's callbacks, with one subtask per iteration.

    Does nothing without scikit-learn 1.9 or without callbacks.

    Parameters
    ----------
    estimator : ABCBoostClassifier
        The estimator.
    n_iter : int or None
        Maximum number of iterations still to be trained.
    arguments : dict
        X, y and metadata of the fit.
    """

    def __init__(self, estimator: Any, n_iter: int | None, arguments: dict[str, Any]) -> None:
        self._arguments = {"estimator": estimator, **arguments}
        self._task: Any = None
        self._iteration: Any = None
        # A private interface of scikit-learn, touched only if callbacks are set: if it changes, other
        # fits are not affected.
        if hasattr(estimator, "_skl_callbacks"):
            self._task = estimator._init_callback_context(max_subtasks=n_iter)

    def begin(self) -> None:
        """Notify callbacks that the fit begins."""
        if self._task is not None:
            self._task.call_on_fit_task_begin(**self._arguments)

    def begin_iteration(self) -> None:
        """Notify callbacks that an iteration begins."""
        if self._task is not None:
            self._iteration = self._task.subcontext(task_name="step")
            self._iteration.call_on_fit_task_begin(**self._arguments)

    def end_iteration(self, fitted: Callable[[], dict[str, Any]] | None) -> bool:
        """Notify callbacks that an iteration ended; return whether one of them requests a stop.

        ``fitted`` returns the attributes of the model so far.
        """
        if self._task is None:
            return False
        return bool(
            self._iteration.call_on_fit_task_end(
                **self._arguments, reconstruction_attributes=fitted
            )
        )

    def end(self) -> None:
        """Notify callbacks that the estimator is fitted."""
        if self._task is not None:
            self._task.call_on_fit_task_end(**self._arguments, reconstruction_attributes={})
