"""The loop over steps."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.algorithm import Algorithm, StepPlan, plan_step
from abcgbm.base_class import BasePolicy
from abcgbm.ensemble import EnsembleBuilder
from abcgbm.stopping import stop_reason

Progress = Callable[[int, float], None]


@dataclass(frozen=True)
class BoostConfig:
    """How to boost.

    Attributes
    ----------
    refresh : {"step", "class"}
        When residuals are computed anew: once a step, or after each class's tree, which is how
        Alg. 2 of the paper is printed.
    """

    algorithm: Algorithm
    base_policy: BasePolicy
    max_iter: int
    refresh: str


@dataclass(frozen=True)
class History:
    """What happened at each step.

    Attributes
    ----------
    loss : ndarray of shape (n_steps + 1,)
        Total training loss before the first and after each step.
    class_losses : ndarray of shape (n_steps + 1, n_classes)
        The part of each class.
    base_classes : list of int or None
        The base class of each step.
    search_losses : ndarray of shape (n_steps, n_classes)
        The loss after the step of each base class that was tried; NaN where none was.
    stop_reason : str
        "max_iter", "machine_accuracy" or "no_progress".
    """

    loss: NDArray[np.float64]
    class_losses: NDArray[np.float64]
    base_classes: list[int | None]
    search_losses: NDArray[np.float64]
    stop_reason: str


def boost(
    trainer: _core.Trainer,
    config: BoostConfig,
    builder: EnsembleBuilder,
    progress: Progress | None = None,
) -> History:
    """Take steps until it is time to stop; trees go to ``builder``."""
    losses, class_losses = [trainer.loss()], [trainer.class_losses()]
    bases: list[int | None] = []
    searches: list[NDArray[np.float64]] = []
    reason = stop_reason(0, losses[-1], config.max_iter)
    while reason is None:
        tried, parts = _choose_and_step(trainer, config, class_losses[-1], bases)
        if not parts:
            reason = "no_progress"
            break
        builder.add_step(parts)
        bases.append(parts[0].base if tried else None)
        searches.append(_search_losses(parts[0], tried, builder.n_classes))
        losses.append(trainer.loss())
        class_losses.append(trainer.class_losses())
        if progress is not None:
            progress(len(bases), losses[-1])
        reason = stop_reason(len(bases), losses[-1], config.max_iter)
    search_losses = np.array(searches).reshape(len(bases), builder.n_classes)
    return History(np.array(losses), np.array(class_losses), bases, search_losses, reason)


def _choose_and_step(
    trainer: _core.Trainer,
    config: BoostConfig,
    class_losses: NDArray[np.float64],
    bases: list[int | None],
) -> tuple[tuple[int, ...], list[_core.Step]]:
    """Return the base classes tried and the trees; none if no step makes progress."""

    def step(tried: tuple[int, ...]) -> list[_core.Step]:
        plan = plan_step(config.algorithm, len(class_losses), tried)
        return take_step(trainer, plan, config.refresh, len(class_losses))

    candidates = config.base_policy.candidates
    tried = candidates(len(bases), class_losses, bases[-1] if bases else None)
    parts = step(tried)
    if not parts:  # a base class that is only kept from before gives way to a new search
        again = candidates(len(bases), class_losses, None)
        if again != tried:
            tried, parts = again, step(again)
    return tried, parts


def take_step(
    trainer: _core.Trainer, plan: StepPlan, refresh: str, n_classes: int
) -> list[_core.Step]:
    """Grow the trees of one step: all from the same residuals, or class after class.

    Trees that changed nothing are left out.
    """
    classes = [k for k in range(n_classes) if (k,) != plan.bases]
    groups = [classes] if refresh == "step" else [[k] for k in classes]
    parts = [
        trainer.step(group, plan.bases, plan.base_derivatives, plan.leaf_scale) for group in groups
    ]
    return [part for part in parts if part.changed]


def _search_losses(step: _core.Step, tried: tuple[int, ...], n_classes: int) -> NDArray[np.float64]:
    losses = np.full(n_classes, np.nan)
    if step.candidate_losses:
        losses[list(tried)] = step.candidate_losses
    return losses
