"""Callbacks: reports of iterations, and who receives them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from abcgbm.parameters.hints import OF_REPORT, attribute_hint
from abcgbm.parameters.parameters import Callback
from abcgbm.training.boosting import BoostingState
from abcgbm.training.checkpoint import CheckpointWriter
from abcgbm.training.progress import ProgressLine


@dataclass(frozen=True)
class IterationReport:
    """Report of an iteration, passed to callbacks.

    Attributes
    ----------
    iteration : int
        Number of iterations so far; 1 after the first.
    train_loss : float
        Mean training loss (multinomial log loss, weighted).
    class_losses : ndarray of shape (n_classes,)
        Part of each class in the training loss.
    base_class : object
        Label of the base class of the iteration; None without one.
    was_scaled_back : bool
        Whether the line search changed the length of the step, or of the base class's part of it.
    validation_loss, validation_score : float or None
        Mean loss and score of the validation rows; None without any.
    phase : {"train", "plain", "refit"}
        Phase of the fit; iterations are counted from 1 in each. "train" is the first phase; "plain"
        trains without a base class, if no iteration of the first phase improves the validation score;
        "refit" trains on all rows, with ``refit=True``.
    """

    iteration: int
    train_loss: float
    class_losses: NDArray[np.float64]
    base_class: Any
    was_scaled_back: bool
    validation_loss: float | None
    validation_score: float | None
    phase: str = "train"

    def __getattr__(self, name: str) -> Any:
        hint = "" if name.startswith("__") else attribute_hint(name, vars(self), OF_REPORT)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")


Means = tuple[float, float | None]  # mean losses of the training rows and of the validation rows


@dataclass(frozen=True)
class RemoteListener:
    """Listener in another process, which may have restarted the fit from a checkpoint.

    Attributes
    ----------
    on_iteration : callable or None
        Called after each iteration, after the callbacks, with the report and the mean losses; True
        stops training.
    stopped : frozenset of tuple
        Phases and iterations at which earlier attempts were asked to stop.
    elapsed : float
        Seconds since the fit began in the other process.
    """

    on_iteration: Callable[[IterationReport, Means], bool] | None = None
    stopped: frozenset[tuple[str, int]] = field(default_factory=frozenset)
    elapsed: float = 0.0


class FitCallback(Protocol):
    """Callback of a fit that can make the current model, such as scikit-learn's callbacks."""

    def begin_iteration(self) -> None:
        """Prepare for the next iteration."""

    def end_iteration(self, fitted: Callable[[], dict[str, Any]] | None) -> bool:
        """Handle the end of an iteration; return whether to stop.

        ``fitted`` returns the fitted attributes as if training had ended here; None without progress.
        """


class CallbackList:
    """Notifies the progress line, checkpoints and all callbacks of each iteration.

    Parameters
    ----------
    labels : list
        Labels of the classes.
    progress : ProgressLine
        Progress line.
    callbacks : sequence of callable
        The user's callbacks.
    sklearn_callback : FitCallback
        The fit for scikit-learn's callbacks.
    fitted : callable
        Returns the fitted attributes as if training had ended here.
    checkpoints : CheckpointWriter
        Writes checkpoints, before the user's callbacks are called.

    Attributes
    ----------
    listener : RemoteListener
        Listener in another process; by default none.
    """

    def __init__(
        self,
        labels: list[Any],
        progress: ProgressLine,
        callbacks: Sequence[Callback],
        sklearn_callback: FitCallback,
        fitted: Callable[[], dict[str, Any]],
        checkpoints: CheckpointWriter,
    ) -> None:
        self._labels = labels
        self._progress = progress
        self._callbacks = callbacks
        self._sklearn_callback = sklearn_callback
        self._fitted = fitted
        self._checkpoints = checkpoints
        self.listener = RemoteListener()

    def stop_was_requested(self, state: BoostingState) -> bool:
        """Return whether an interrupted attempt of this fit was asked to stop at this iteration."""
        return (state.phase, state.n_iter) in self.listener.stopped

    def begin_iteration(self) -> None:
        """Prepare for the next iteration."""
        self._sklearn_callback.begin_iteration()

    def end_iteration(self, state: BoostingState, *, has_progress: bool) -> bool:
        """Notify all of the end of an iteration, in order; return whether one requests to stop."""
        if not has_progress:
            self._sklearn_callback.end_iteration(None)
            return False
        self._checkpoints.end_iteration()
        is_reported = self._progress.enabled or self._callbacks or self.listener.on_iteration
        stop_requested = self._notify(state) if is_reported else False
        return self._sklearn_callback.end_iteration(self._fitted) or stop_requested

    def _notify(self, state: BoostingState) -> bool:
        report, losses = self._report(state), state.mean_losses()
        self._progress.show(report.iteration, *losses, report.phase, report.base_class)
        returned = [callback(report) for callback in self._callbacks]
        if self.listener.on_iteration is not None:
            returned.append(self.listener.on_iteration(report, losses))
        return any(isinstance(value, bool | np.bool_) and bool(value) for value in returned)

    def _report(self, state: BoostingState) -> IterationReport:
        last, trees = state.records[-1], state.trees[-1]
        train_loss, validation_loss = state.mean_losses()
        return IterationReport(
            iteration=state.n_iter,
            train_loss=train_loss,
            class_losses=last.class_losses / state.total_weight,
            base_class=None if last.base_class is None else self._labels[last.base_class],
            was_scaled_back=any(
                result.n_halvings != 0 or result.base_scale != 1 for result in trees
            ),
            validation_loss=validation_loss,
            validation_score=None if validation_loss is None else last.validation_score,
            phase=state.phase,
        )
