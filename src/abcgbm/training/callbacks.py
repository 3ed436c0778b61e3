"""Callbacks: reports of iterations, and the callbacks of scikit-learn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from abcgbm.parameters.hints import OF_REPORT, attribute_hint
from abcgbm.parameters.parameters import Callback
from abcgbm.training.boosting import Boosting
from abcgbm.training.checkpoint import CheckpointWriter
from abcgbm.training.progress import ProgressLine


@dataclass(frozen=True)
class IterationReport:
    """What a callback is given after an iteration.

    Attributes
    ----------
    iteration : int
        Number of iterations so far; 1 after the first.
    train_loss : float
        Mean training loss (multinomial log loss, weighted).
    class_losses : ndarray of shape (n_classes,)
        The part of each class in it.
    base_class : object
        The label of the base class; None without one.
    was_scaled_back : bool
        Whether the line search changed the length of the step, or of the base class's part of it.
    validation_loss, validation_score : float or None
        Mean loss and score of the validation rows; None without any.
    phase : {"train", "plain", "refit"}
        Which training of the fit it is, each with iterations from 1 on: the first; the one without a
        base class, if no iteration of the first improves the validation score; the one on all rows,
        with ``refit=True``.
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
        said = "" if name.startswith("__") else attribute_hint(name, vars(self), OF_REPORT)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{said}")


Means = tuple[float, float | None]  # losses of a row: of those learned from, of those validated on


@dataclass(frozen=True)
class RemoteListener:
    """Who follows a fit from another process, where it may have been broken off before.

    Attributes
    ----------
    on_iteration : callable or None
        Is told of each step, after the callbacks, with the losses as means; True asks to stop.
    stopped : frozenset of tuple
        Phases and steps after which somebody has asked to stop already.
    elapsed : float
        Seconds that have passed since the fit began there.
    """

    on_iteration: Callable[[IterationReport, Means], bool] | None = None
    stopped: frozenset[tuple[str, int]] = field(default_factory=frozenset)
    elapsed: float = 0.0


class FitCallback(Protocol):
    """Hears of the steps of a fit; it may ask how the model could be made, and to stop."""

    def begin_iteration(self) -> None:
        """Hear that a step begins."""

    def end_iteration(self, fitted: Callable[[], dict[str, Any]] | None) -> bool:
        """Hear that a step ended, and how the model could be made; return whether to stop."""


class CallbackList:
    """Tells everyone who wants to know of each step.

    Parameters
    ----------
    labels : list
        The classes.
    progress : ProgressLine
        The line that is shown.
    callbacks : sequence of callable
        The user's functions.
    task : FitCallback
        The fit as scikit-learn's callbacks see it.
    fitted : callable
        Gives the fitted attributes, as if training ended here.
    checkpoints : CheckpointWriter
        Writes checkpoints, before the user's functions are called.

    Attributes
    ----------
    afar : RemoteListener
        Who follows from another process; nobody, unless it is set.
    """

    def __init__(
        self,
        labels: list[Any],
        progress: ProgressLine,
        callbacks: Sequence[Callback],
        task: FitCallback,
        fitted: Callable[[], dict[str, Any]],
        checkpoints: CheckpointWriter,
    ) -> None:
        self._labels = labels
        self._progress = progress
        self._callbacks = callbacks
        self._task = task
        self._fitted = fitted
        self._checkpoints = checkpoints
        self.afar = RemoteListener()

    def was_asked(self, boosting: Boosting) -> bool:
        """Return whether somebody asked to stop here, before the fit was broken off."""
        return (boosting.phase, boosting.n_iter) in self.afar.stopped

    def begin_iteration(self) -> None:
        """Hear that a step begins."""
        self._task.begin_iteration()

    def end_iteration(self, boosting: Boosting, *, has_progress: bool) -> bool:
        """Tell all, in order; return whether any of them asks to stop."""
        if not has_progress:
            self._task.end_iteration(None)
            return False
        self._checkpoints.end_iteration()
        has_listeners = self._progress.enabled or self._callbacks or self.afar.on_iteration
        asked = self._tell(boosting) if has_listeners else False
        return self._task.end_iteration(self._fitted) or asked

    def _tell(self, boosting: Boosting) -> bool:
        report = self._report(boosting)
        losses, phase = boosting.mean_losses(), report.phase
        self._progress.show(report.iteration, *losses, phase, report.base_class)
        returned = [callback(report) for callback in self._callbacks]
        if self.afar.on_iteration is not None:
            returned.append(self.afar.on_iteration(report, losses))
        return any(isinstance(value, bool | np.bool_) and bool(value) for value in returned)

    def _report(self, boosting: Boosting) -> IterationReport:
        last, trees = boosting.records[-1], boosting.trees[-1]
        train_loss, validation_loss = boosting.mean_losses()
        return IterationReport(
            iteration=boosting.n_iter,
            train_loss=train_loss,
            class_losses=last.class_losses / boosting.total_weight,
            base_class=None if last.base_class is None else self._labels[last.base_class],
            was_scaled_back=any(part.n_halvings != 0 or part.base_scale != 1 for part in trees),
            validation_loss=validation_loss,
            validation_score=None if validation_loss is None else last.validation_score,
            phase=boosting.phase,
        )
