"""The boosting loop."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from abcgbm import _core
from abcgbm.communication.collectives import Interrupts, on_rank_zero
from abcgbm.communication.communicator import Communicator
from abcgbm.model.ensemble import NO_BASE
from abcgbm.model.history import Record
from abcgbm.parameters.parameters import Algorithm
from abcgbm.training.early_stopping import Stopping
from abcgbm.training.resolved import ResolvedParameters
from abcgbm.training.validation import Monitor


@dataclass(frozen=True)
class IterationPlan:
    """The trees of one step, in the words of the native core.

    Attributes
    ----------
    bases : tuple of int
        Candidates for the class that takes the trees' values with a minus sign; (NO_BASE,) for none.
    base_derivatives : bool
        Whether residuals and hessians are those against the base class.
    leaf_scale : float
        Factor of the leaf values.
    """

    bases: tuple[int, ...]
    base_derivatives: bool
    leaf_scale: float


def plan_iteration(algorithm: Algorithm, n_classes: int, bases: tuple[int, ...]) -> IterationPlan:
    """Say how a step with these candidates for the base class, or with none, is taken.

    The factor (K-1)/K belongs to plain boosting alone. With two classes plain boosting is boosting
    against base class 0: half the quotient r - p over p (1 - p) is the quotient of 2 (r - p) over
    4 p (1 - p), so one tree serves both classes. A shared tree does so by itself.
    """
    if bases:
        return IterationPlan(bases, algorithm.base_derivatives, 1.0)
    if n_classes == 2 and not algorithm.shared_trees:  # noqa: PLR2004
        return IterationPlan((0,), True, 1.0)
    return IterationPlan((NO_BASE,), False, (n_classes - 1) / n_classes)


_MAX_DRAWS = 20  # of rows, features and directions, for one step

Trees = tuple[
    _core.IterationResult, ...
]  # of a step: one part or, with sequential residuals, one for each class


@dataclass
class Boosting:
    """A training under way.

    Attributes
    ----------
    trainer : _core.Trainer
        The scores of the rows that are learned from.
    monitor : Monitor or None
        Those of the rows that are validated on.
    records : list of Record
        The state before the first step, and after each one.
    phase : {"train", "plain", "refit"}
        Which training of a fit it is.
    total_weight : float
        What the rows that are learned from weigh together.
    trees : list of Trees
        The trees of each step that was taken here; those of an earlier fit are not among them.
    """

    trainer: _core.Trainer
    monitor: Monitor | None
    records: list[Record]
    phase: str = "train"
    total_weight: float = 1.0
    trees: list[Trees] = field(default_factory=list)

    @property
    def n_iter(self) -> int:
        """Number of steps, those of an earlier fit included."""
        return len(self.records) - 1

    def mean_losses(self) -> tuple[float, float | None]:
        """Return the loss of a row as it stands, of those learned from and of those validated on."""
        last, monitor = self.records[-1], self.monitor
        validated = None if monitor is None else last.validation_loss / monitor.total_weight
        return last.loss / self.total_weight, validated

    def add(self, tried: tuple[int, ...], trees: Trees) -> None:
        """Take note of a step that has been made, all of it at once."""
        after = record(self.trainer, self.monitor, tried, trees)
        self.trees.append(trees)
        self.records.append(after)


class IterationObserver(Protocol):
    """Hears of every step, and may ask to stop."""

    def was_asked(self, boosting: Boosting) -> bool:
        """Return whether somebody asked to stop here, before the fit was broken off."""

    def begin_iteration(self) -> None:
        """Hear that a step begins."""

    def end_iteration(self, boosting: Boosting, *, has_progress: bool) -> bool:
        """Hear how it ended; True asks to stop."""


def boost(
    boosting: Boosting,
    plan: ResolvedParameters,
    stopping: Stopping,
    watcher: IterationObserver,
    communicator: Communicator,
) -> str:
    """Take steps until it is time to stop; return the reason.

    A step is added when all of it is done, so that whatever ends the loop in between leaves whole
    steps. Of several ranks the first one asks, and all do as it says.
    """
    try:
        with Interrupts(communicator) as interrupts:
            verdict = _StoppingDecision(boosting, stopping, watcher, interrupts)
            return _boost(boosting, plan, verdict, communicator)
    except KeyboardInterrupt:
        if not plan.settings.keep_on_interrupt or boosting.n_iter == 0:
            raise
        return "interrupted"


def _boost(
    boosting: Boosting,
    plan: ResolvedParameters,
    verdict: _StoppingDecision,
    communicator: Communicator,
) -> str:
    reason = on_rank_zero(communicator, verdict.before_first_iteration)
    while reason is None:
        tried, trees = choose_and_train(boosting, plan)
        if trees:
            boosting.add(tried, trees)
        reason = on_rank_zero(
            communicator, partial(verdict.after_iteration, has_progress=bool(trees))
        )
    return reason


class _StoppingDecision(NamedTuple):
    """Asks all who may know why training should stop; where it goes on, tells of the next step."""

    boosting: Boosting
    stopping: Stopping
    watcher: IterationObserver
    interrupts: Interrupts

    def before_first_iteration(self) -> str | None:
        asked = self.watcher.was_asked(self.boosting)
        return self._with_beginning(_stop_reason(self.stopping, self.boosting, asked=asked))

    def after_iteration(self, *, has_progress: bool) -> str | None:
        asked = self.watcher.end_iteration(self.boosting, has_progress=has_progress)
        if not has_progress:
            return "no_progress"
        self.interrupts.raise_if_asked()
        return self._with_beginning(_stop_reason(self.stopping, self.boosting, asked=asked))

    def _with_beginning(self, reason: str | None) -> str | None:
        if reason is None:
            self.watcher.begin_iteration()
        return reason


def record(
    trainer: _core.Trainer,
    monitor: Monitor | None,
    tried: tuple[int, ...] = (),
    trees: Trees = (),
) -> Record:
    """Return the state now, after a step with some candidates for the base class or before any."""
    if monitor is not None:
        monitor.add(trees)
    class_losses = trainer.class_losses()
    search_losses = np.full(len(class_losses), np.nan)
    if trees and trees[0].candidate_losses:
        search_losses[list(tried)] = trees[0].candidate_losses
    return Record(
        loss=trainer.loss(),
        class_losses=class_losses,
        base_class=trees[0].base if tried else None,
        search_losses=search_losses,
        validation_loss=monitor.loss() if monitor else math.nan,
        validation_score=monitor.score() if monitor else math.nan,
    )


def _stop_reason(stopping: Stopping, boosting: Boosting, *, asked: bool) -> str | None:
    last = boosting.records[-1]
    return stopping.reason(boosting.n_iter, last.loss, last.validation_score, asked=asked)


def choose_and_train(boosting: Boosting, plan: ResolvedParameters) -> tuple[tuple[int, ...], Trees]:
    """Return the base classes tried and the trees; none if no step makes progress."""
    for attempt in range(_MAX_DRAWS if plan.has_draws else 1):
        tried, trees = _try_iteration(boosting, plan, boosting.n_iter + (attempt << 32))
        if trees:
            break
    return tried, trees


def _try_iteration(
    boosting: Boosting, plan: ResolvedParameters, key: int
) -> tuple[tuple[int, ...], Trees]:
    last = boosting.records[-1]
    n_classes = len(last.class_losses)

    def step(tried: tuple[int, ...]) -> Trees:
        how = plan_iteration(plan.settings.algorithm, n_classes, tried)
        return train_iteration(
            boosting.trainer, how, n_classes, key, sequential=plan.settings.sequential_residuals
        )

    candidates = plan.base_policy.candidates
    tried = candidates(boosting.n_iter, last.class_losses, last.base_class)
    trees = step(tried)
    if not trees:  # a base class that is only kept from before gives way to a new search
        again = candidates(boosting.n_iter, last.class_losses, None)
        if again != tried:
            tried, trees = again, step(again)
    return tried, trees


def train_iteration(
    trainer: _core.Trainer, how: IterationPlan, n_classes: int, key: int, *, sequential: bool
) -> Trees:
    """Grow the trees of one step: all from the same residuals, or class after class.

    Trees that changed nothing are left out. Draws depend on the key alone.
    """
    classes = [k for k in range(n_classes) if (k,) != how.bases]
    groups = [[k] for k in classes] if sequential else [classes]
    parts = [
        trainer.train_iteration(group, how.bases, how.base_derivatives, how.leaf_scale, key)
        for group in groups
    ]
    return tuple(part for part in parts if part.changed)
