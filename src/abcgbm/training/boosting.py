"""The boosting loop."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np

from abcgbm import _core
from abcgbm.communication.collectives import Interrupts, on_rank_zero
from abcgbm.communication.communicator import Communicator
from abcgbm.model.ensemble import NO_BASE
from abcgbm.model.history import Record
from abcgbm.parameters.objects import Algorithm
from abcgbm.training.early_stopping import Stopping
from abcgbm.training.resolved import ResolvedParameters
from abcgbm.training.validation import Monitor

# Draws of rows, features and projections that are tried in one iteration.
_MAX_DRAWS = 20

# The trees of an iteration: in one result or, with sequential residuals, in one for each class.
Trees = tuple[_core.IterationResult, ...]


@dataclass
class BoostingState:
    """State of one training phase.

    Attributes
    ----------
    trainer : _core.Trainer
        Native trainer, which holds the scores of the training rows.
    monitor : Monitor or None
        Scores of the validation rows.
    records : list of Record
        State before the first iteration and after each one.
    phase : {"train", "plain", "refit"}
        Phase of the fit. "plain" is the restart without a base class; see ``ResolvedParameters``.
    total_weight : float
        Sum of the weights of the training rows.
    trees : list of Trees
        Trees of each iteration trained here, without those of a previous fit.
    """

    trainer: _core.Trainer
    monitor: Monitor | None
    records: list[Record]
    phase: str = "train"
    total_weight: float = 1.0
    trees: list[Trees] = field(default_factory=list)

    @property
    def n_iter(self) -> int:
        """Number of iterations, including those of a previous fit."""
        return len(self.records) - 1

    def mean_losses(self) -> tuple[float, float | None]:
        """Return the current mean loss of the training rows and of the validation rows."""
        last = self.records[-1]
        validation = None
        if self.monitor is not None:
            validation = last.validation_loss / self.monitor.total_weight
        return last.loss / self.total_weight, validation

    def add(self, candidates: tuple[int, ...], trees: Trees) -> None:
        """Update the validation scores by a finished iteration, and record it."""
        if self.monitor is not None:
            self.monitor.add(trees)
        record = make_record(self.trainer, self.monitor, candidates, trees)
        self.trees.append(trees)
        self.records.append(record)


class IterationObserver(Protocol):
    """Follows the iterations of a phase and may request to stop."""

    def stop_was_requested(self, state: BoostingState) -> bool:
        """Return whether an interrupted attempt of this fit was asked to stop at this iteration."""

    def begin_iteration(self) -> None:
        """Prepare for the next iteration."""

    def end_iteration(self, state: BoostingState, *, has_progress: bool) -> bool:
        """Handle the end of an iteration; return whether to stop."""


def boost(
    state: BoostingState,
    resolved: ResolvedParameters,
    stopping: Stopping,
    observer: IterationObserver,
    communicator: Communicator,
) -> str:
    """Train iterations until it is time to stop; return the reason.

    Rank 0 decides for all ranks. An iteration is added when all of it is done, so an interrupt
    leaves whole iterations.
    """
    try:
        with Interrupts(communicator) as interrupts:
            between = _BetweenIterations(state, stopping, observer, interrupts)
            reason = on_rank_zero(communicator, between.before_first)
            while reason is None:
                candidates, trees = choose_and_train(state, resolved)
                if trees:
                    state.add(candidates, trees)
                next_or_stop = partial(between.after, has_progress=bool(trees))
                reason = on_rank_zero(communicator, next_or_stop)
            return reason
    except KeyboardInterrupt:
        if not resolved.settings.keep_on_interrupt or state.n_iter == 0:
            raise
        return "interrupted"


@dataclass
class _BetweenIterations:
    """Stops between iterations, with a reason, or begins the next one."""

    state: BoostingState
    stopping: Stopping
    observer: IterationObserver
    interrupts: Interrupts

    def before_first(self) -> str | None:
        return self._next_or_stop(stop_requested=self.observer.stop_was_requested(self.state))

    def after(self, *, has_progress: bool) -> str | None:
        stop_requested = self.observer.end_iteration(self.state, has_progress=has_progress)
        if not has_progress:
            return "no_progress"
        self.interrupts.raise_if_requested()
        return self._next_or_stop(stop_requested=stop_requested)

    def _next_or_stop(self, *, stop_requested: bool) -> str | None:
        last = self.state.records[-1]
        reason = self.stopping.reason(
            self.state.n_iter, last.loss, last.validation_score, stop_requested=stop_requested
        )
        if reason is None:
            self.observer.begin_iteration()
        return reason


def choose_and_train(
    state: BoostingState, resolved: ResolvedParameters
) -> tuple[tuple[int, ...], Trees]:
    """Train one iteration; return the candidates for its base class, and its trees.

    There are no trees if none can be split, or if the line search scales all of them back to zero.
    """
    # A draw of rows, features or projections may allow no split; try others. With subsample the line
    # search uses the loss of the drawn rows: that of all rows may rise, which would end training.
    for attempt in range(_MAX_DRAWS if resolved.has_draws else 1):
        candidates, trees = _try_iteration(state, resolved, draw_key(state.n_iter, attempt))
        if trees:
            break
    return candidates, trees


def draw_key(n_iter: int, attempt: int) -> int:
    """Return the seed of the draws of one attempt; that of attempt 0 is the iteration number."""
    return n_iter + (attempt << 32)


def _try_iteration(
    state: BoostingState, resolved: ResolvedParameters, key: int
) -> tuple[tuple[int, ...], Trees]:
    last = state.records[-1]
    settings = resolved.settings
    n_classes = len(last.class_losses)

    def train(candidates: tuple[int, ...]) -> Trees:
        plan = plan_iteration(settings.algorithm, n_classes, candidates)
        return train_iteration(
            state.trainer, plan, n_classes, key, sequential=settings.sequential_residuals
        )

    policy = resolved.base_policy
    candidates = policy.candidates(state.n_iter, last.class_losses, last.base_class)
    trees = train(candidates)
    if not trees:
        # The base class may have been kept from the previous iteration: search for a new one.
        searched = policy.candidates(state.n_iter, last.class_losses, None)
        if searched != candidates:
            return searched, train(searched)
    return candidates, trees


@dataclass(frozen=True)
class IterationPlan:
    """How the native core trains the trees of one iteration.

    Attributes
    ----------
    bases : tuple of int
        Candidates for the base class, from whose score the values of all trees are subtracted;
        (NO_BASE,) for none.
    base_derivatives : bool
        Whether residuals and hessians are those with respect to the base class.
    leaf_scale : float
        Factor of the leaf values.
    """

    bases: tuple[int, ...]
    base_derivatives: bool
    leaf_scale: float


def plan_iteration(
    algorithm: Algorithm, n_classes: int, candidates: tuple[int, ...]
) -> IterationPlan:
    """Return the plan of an iteration with these candidates for the base class, or with none.

    Friedman's factor (K-1)/K applies to boosting without a base class only.
    """
    if candidates:
        return IterationPlan(candidates, algorithm.base_derivatives, 1.0)
    # For K = 2, where r_0 = -r_1, one tree of class 1 against base class 0 changes both scores:
    # Friedman's 1/2 r/(p(1-p)) equals 2r/(4p(1-p)), the quotient of the base class's derivatives.
    # A multi-output tree has values for both classes anyway.
    if n_classes == 2 and not algorithm.multi_output:  # noqa: PLR2004
        return IterationPlan((0,), True, 1.0)
    return IterationPlan((NO_BASE,), False, (n_classes - 1) / n_classes)


def train_iteration(
    trainer: _core.Trainer, plan: IterationPlan, n_classes: int, key: int, *, sequential: bool
) -> Trees:
    """Grow the trees of one iteration: all from the same residuals, or class after class.

    Results that change no score are left out. Draws depend on the key alone.
    """
    # A single base class needs no tree. Several candidates have one each, which the others need.
    classes = [k for k in range(n_classes) if (k,) != plan.bases]
    groups = [[k] for k in classes] if sequential else [classes]
    results = [
        trainer.train_iteration(group, plan.bases, plan.base_derivatives, plan.leaf_scale, key)
        for group in groups
    ]
    return tuple(result for result in results if result.changed)


def make_record(
    trainer: _core.Trainer,
    monitor: Monitor | None,
    candidates: tuple[int, ...] = (),
    trees: Trees = (),
) -> Record:
    """Return the record of the current state; without trees, that before the first iteration.

    An iteration without trees is not recorded, so candidates always come with trees.
    """
    class_losses = trainer.class_losses()
    search_losses = np.full(len(class_losses), np.nan)
    if trees and trees[0].candidate_losses:
        search_losses[list(candidates)] = trees[0].candidate_losses
    return Record(
        loss=trainer.loss(),
        class_losses=class_losses,
        base_class=trees[0].base if candidates else None,
        search_losses=search_losses,
        validation_loss=monitor.loss() if monitor else math.nan,
        validation_score=monitor.score() if monitor else math.nan,
    )
