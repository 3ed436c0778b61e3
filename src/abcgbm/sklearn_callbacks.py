"""scikit-learn's callback protocol."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

try:
    import sklearn.callback as _framework
except ImportError:  # scikit-learn before 1.9
    _framework = None

# Frames that the decorator of fit puts on the stack.
FRAMES_AROUND_FIT = 0 if _framework is None else 1
CallbackSupportMixin: Any = type("CallbackSupportMixin", (), {})  # nothing to mix in
if _framework is not None:
    CallbackSupportMixin = _framework.CallbackSupportMixin
Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(method: Method) -> Method:
    """Let scikit-learn's callbacks clean up after a method, whatever happens in it."""
    return method if _framework is None else cast(Method, _framework.with_callbacks(method))


class FitTask:
    """One fit as scikit-learn's callbacks see it: a task, and a task in it for each step.

    Without scikit-learn 1.9, or without callbacks, nobody hears of it.

    Parameters
    ----------
    estimator : ABCBoostClassifier
        The estimator.
    n_iter : int or None
        Steps to come, at most.
    arguments : dict
        X, y and metadata of the fit.
    """

    def __init__(self, estimator: Any, n_iter: int | None, arguments: dict[str, Any]) -> None:
        self._arguments = {"estimator": estimator, **arguments}
        self._task: Any = None
        self._step: Any = None
        # A private interface: a change of it may concern those who set callbacks, but nobody else.
        if hasattr(estimator, "_skl_callbacks"):
            self._task = estimator._init_callback_context(max_subtasks=n_iter)

    def begin(self) -> None:
        """Tell that the fit begins."""
        if self._task is not None:
            self._task.call_on_fit_task_begin(**self._arguments)

    def begin_iteration(self) -> None:
        """Tell that a step begins."""
        if self._task is not None:
            self._step = self._task.subcontext(task_name="step")
            self._step.call_on_fit_task_begin(**self._arguments)

    def end_iteration(self, fitted: Callable[[], dict[str, Any]] | None) -> bool:
        """Tell that a step ended, and how the model could be made; return whether to stop."""
        if self._task is None:
            return False
        return bool(
            self._step.call_on_fit_task_end(**self._arguments, reconstruction_attributes=fitted)
        )

    def end(self) -> None:
        """Tell that the estimator is fitted."""
        if self._task is not None:
            self._task.call_on_fit_task_end(**self._arguments, reconstruction_attributes={})
