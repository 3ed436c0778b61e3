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
        Phase of the fit.
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
        last, monitor = self.records[-1], self.monitor
        validation = None if monitor is None else last.validation_loss / monitor.total_weight
        return last.loss / self.total_weight, validation

    def add(self, candidates: tuple[int, ...], trees: Trees) -> None:
        """Record a finished iteration."""
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
    plan: ResolvedParameters,
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
            decision = _StoppingDecision(state, stopping, observer, interrupts)
            reason = on_rank_zero(communicator, decision.before_first_iteration)
            while reason is None:
                candidates, trees = choose_and_train(state, plan)
                if trees:
                    state.add(candidates, trees)
                decide = partial(decision.after_iteration, has_progress=bool(trees))
                reason = on_rank_zero(communicator, decide)
            return reason
    except KeyboardInterrupt:
        if not plan.settings.keep_on_interrupt or state.n_iter == 0:
            raise
        return "interrupted"


class _StoppingDecision(NamedTuple):
    """Decides between iterations whether to stop; otherwise announces the next iteration."""

    state: BoostingState
    stopping: Stopping
    observer: IterationObserver
    interrupts: Interrupts

    def before_first_iteration(self) -> str | None:
        return self._decide(stop_requested=self.observer.stop_was_requested(self.state))

    def after_iteration(self, *, has_progress: bool) -> str | None:
        stop_requested = self.observer.end_iteration(self.state, has_progress=has_progress)
        if not has_progress:
            return "no_progress"
        self.interrupts.raise_if_requested()
        return self._decide(stop_requested=stop_requested)

    def _decide(self, *, stop_requested: bool) -> str | None:
        n_iter, last = self.state.n_iter, self.state.records[-1]
        reason = self.stopping.reason(
            n_iter, last.loss, last.validation_score, stop_requested=stop_requested
        )
        if reason is None:
            self.observer.begin_iteration()
        return reason


def choose_and_train(
    state: BoostingState, plan: ResolvedParameters
) -> tuple[tuple[int, ...], Trees]:
    """Train one iteration; return the candidates for its base class, and its trees.

    There are no trees if none can be split, or if the line search scales all of them back to zero.
    """
    # With subsample the line search uses the loss of the drawn rows: on all rows it may rise, and
    # the iteration would be scaled back to zero and end training. Other draws are tried if one
    # allows no split.
    for attempt in range(_MAX_DRAWS if plan.has_draws else 1):
        candidates, trees = _try_iteration(state, plan, key=state.n_iter + (attempt << 32))
        if trees:
            break
    return candidates, trees


def _try_iteration(
    state: BoostingState, plan: ResolvedParameters, key: int
) -> tuple[tuple[int, ...], Trees]:
    last, settings = state.records[-1], plan.settings
    n_classes = len(last.class_losses)

    def train(candidates: tuple[int, ...]) -> Trees:
        iteration = plan_iteration(settings.algorithm, n_classes, candidates)
        return train_iteration(
            state.trainer, iteration, n_classes, key, sequential=settings.sequential_residuals
        )

    choose = plan.base_policy.candidates
    candidates = choose(state.n_iter, last.class_losses, last.base_class)
    trees = train(candidates)
    if not trees:
        # The base class may have been kept from the previous iteration: search for a new one.
        searched = choose(state.n_iter, last.class_losses, None)
        if searched != candidates:
            candidates, trees = searched, train(searched)
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

    The factor (K-1)/K applies to boosting without a base class only. With two classes that is
    boosting against base class 0: half the quotient r - p over p (1 - p) is the quotient of
    2 (r - p) over 4 p (1 - p), so one tree serves both classes. A multi-output tree does so anyway.
    """
    if candidates:
        return IterationPlan(candidates, algorithm.base_derivatives, 1.0)
    if n_classes == 2 and not algorithm.multi_output:  # noqa: PLR2004
        return IterationPlan((0,), True, 1.0)
    return IterationPlan((NO_BASE,), False, (n_classes - 1) / n_classes)


def train_iteration(
    trainer: _core.Trainer, plan: IterationPlan, n_classes: int, key: int, *, sequential: bool
) -> Trees:
    """Grow the trees of one iteration: all from the same residuals, or class after class.

    Results that change no score are left out. Draws depend on the key alone.
    """
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
    """Return the record of the current state, after updating the validation scores by the trees."""
    if monitor is not None:
        monitor.add(trees)
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
