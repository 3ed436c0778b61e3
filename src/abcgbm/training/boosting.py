"""The loop over steps."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.settings.algorithm import Algorithm, StepPlan, plan_step
from abcgbm.training.base_class import BasePolicy
from abcgbm.training.stopping import Stopping
from abcgbm.training.validation import Monitor

_MOST_DRAWS = 20  # of rows and features, for one step


@dataclass(frozen=True)
class BoostConfig:
    """How to boost.

    Attributes
    ----------
    refresh : {"step", "class"}
        When residuals are computed anew: once a step, or after each class's tree, which is how
        Alg. 2 of the paper is printed.
    keeps_interrupted : bool
        Whether Ctrl-C ends training with the steps taken so far, if there are any.
    has_draws : bool
        Whether rows or features are drawn: then a step that changes nothing is tried again with
        other draws before it ends training.
    """

    algorithm: Algorithm
    base_policy: BasePolicy
    refresh: str
    keeps_interrupted: bool = False
    has_draws: bool = False


@dataclass(frozen=True)
class Record:
    """A step and the state after it; the first record of a training is the state before any step.

    Attributes
    ----------
    loss : float
        Total training loss.
    class_losses : ndarray of shape (n_classes,)
        The part of each class.
    parts : tuple of _core.StepResult
        The trees: usually one part; with ``refresh="class"`` one for each class. Empty for the
        first record, and for steps of an earlier fit.
    base_class : int or None
        The base class.
    search_losses : ndarray of shape (n_classes,)
        The loss after the step of each base class that was tried; NaN where none was.
    validation_loss, validation_score : float
        On the validation rows; NaN without any.
    """

    loss: float
    class_losses: NDArray[np.float64]
    parts: tuple[_core.StepResult, ...]
    base_class: int | None
    search_losses: NDArray[np.float64]
    validation_loss: float = math.nan
    validation_score: float = math.nan


class Watcher(Protocol):
    """Hears of every step, and may ask to stop."""

    def begin_step(self) -> None:
        """Hear that a step begins."""

    def end_step(self, records: list[Record], *, has_progress: bool) -> bool:
        """Hear how it ended; True asks to stop."""


def boost(
    trainer: _core.Trainer,
    config: BoostConfig,
    records: list[Record],
    stopping: Stopping,
    watcher: Watcher,
    monitor: Monitor | None = None,
) -> str:
    """Take steps, a record for each, until it is time to stop; return the reason.

    A record is added when all of its step is done, so that whatever ends the loop in between leaves
    whole steps.
    """
    try:
        return _boost(trainer, config, records, stopping, watcher, monitor)
    except KeyboardInterrupt:
        if not config.keeps_interrupted or len(records) == 1:
            raise
        return "interrupted"


def _boost(
    trainer: _core.Trainer,
    config: BoostConfig,
    records: list[Record],
    stopping: Stopping,
    watcher: Watcher,
    monitor: Monitor | None,
) -> str:
    reason = _stop_reason(stopping, records, asked=False)
    while reason is None:
        watcher.begin_step()
        tried, parts = _choose_and_step(trainer, config, records)
        if parts:
            records.append(record(trainer, monitor, tried, tuple(parts)))
        asked = watcher.end_step(records, has_progress=bool(parts))
        reason = _stop_reason(stopping, records, asked=asked) if parts else "no_progress"
    return reason


def record(
    trainer: _core.Trainer,
    monitor: Monitor | None,
    tried: tuple[int, ...] = (),
    parts: tuple[_core.StepResult, ...] = (),
) -> Record:
    """Return the state now, after a step with some candidates for the base class or before any."""
    if monitor is not None:
        monitor.add(parts)
    class_losses = trainer.class_losses()
    search_losses = np.full(len(class_losses), np.nan)
    if parts and parts[0].candidate_losses:
        search_losses[list(tried)] = parts[0].candidate_losses
    return Record(
        loss=trainer.loss(),
        class_losses=class_losses,
        parts=parts,
        base_class=parts[0].base if tried else None,
        search_losses=search_losses,
        validation_loss=monitor.loss() if monitor else math.nan,
        validation_score=monitor.score() if monitor else math.nan,
    )


def _stop_reason(stopping: Stopping, records: list[Record], *, asked: bool) -> str | None:
    last = records[-1]
    return stopping.reason(len(records) - 1, last.loss, last.validation_score, asked=asked)


def _choose_and_step(
    trainer: _core.Trainer, config: BoostConfig, records: list[Record]
) -> tuple[tuple[int, ...], list[_core.StepResult]]:
    """Return the base classes tried and the trees; none if no step makes progress."""
    for attempt in range(_MOST_DRAWS if config.has_draws else 1):
        tried, parts = _try_step(trainer, config, records, len(records) - 1 + (attempt << 32))
        if parts:
            break
    return tried, parts


def _try_step(
    trainer: _core.Trainer, config: BoostConfig, records: list[Record], key: int
) -> tuple[tuple[int, ...], list[_core.StepResult]]:
    number, last = len(records) - 1, records[-1]
    n_classes = len(last.class_losses)

    def step(tried: tuple[int, ...]) -> list[_core.StepResult]:
        plan = plan_step(config.algorithm, n_classes, tried)
        return take_step(trainer, plan, config.refresh, n_classes, key)

    candidates = config.base_policy.candidates
    tried = candidates(number, last.class_losses, last.base_class)
    parts = step(tried)
    if not parts:  # a base class that is only kept from before gives way to a new search
        again = candidates(number, last.class_losses, None)
        if again != tried:
            tried, parts = again, step(again)
    return tried, parts


def take_step(
    trainer: _core.Trainer, plan: StepPlan, refresh: str, n_classes: int, key: int
) -> list[_core.StepResult]:
    """Grow the trees of one step: all from the same residuals, or class after class.

    Trees that changed nothing are left out. Draws of rows and features depend on the key alone.
    """
    classes = [k for k in range(n_classes) if (k,) != plan.bases]
    groups = [classes] if refresh == "step" else [[k] for k in classes]
    parts = [
        trainer.step(group, plan.bases, plan.base_derivatives, plan.leaf_scale, key)
        for group in groups
    ]
    return [part for part in parts if part.changed]
