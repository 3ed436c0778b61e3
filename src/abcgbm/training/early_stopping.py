"""Early stopping, and limits of iterations and time."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# The summed loss below which nothing is left to fit: "machine accuracy" of the paper. Rows that weigh
# less than one in all have a smaller one.
MACHINE_ACCURACY = 2e-14


def least_loss(total_weight: float) -> float:
    """Return the loss below which nothing is left to fit."""
    return MACHINE_ACCURACY * min(1.0, total_weight)


@dataclass(frozen=True)
class Limits:
    """How long training may go on.

    Attributes
    ----------
    max_iter : int or None
        Most steps.
    deadline : float or None
        Time on the clock after which no further step begins, but for the first.
    n_iter_no_change : int or None
        Steps without a better validation score after which training stops; None: never.
    tol : float
        A score is better only if it is larger by more than this.
    """

    max_iter: int | None = None
    deadline: float | None = None
    n_iter_no_change: int | None = None
    tol: float = 0.0


class Stopping:
    """Says when it is time to stop, given the state at the start and after each step.

    Parameters
    ----------
    limits : Limits
        How long training may go on.
    scores : sequence of float
        Validation scores of the steps of an earlier fit; NaN where there was none.
    taken : sequence of float
        Those of the steps that this training took before it was broken off; NaN is one of them.
    least_loss : float
        The training loss below which nothing is left to fit.
    clock : callable
        Gives the time, in seconds.
    """

    def __init__(
        self,
        limits: Limits,
        scores: Sequence[float] = (),
        taken: Sequence[float] = (),
        least_loss: float = MACHINE_ACCURACY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._min_loss = least_loss
        self._clock = clock
        self._best = -math.inf
        self._n_waited = -1  # the first score is no wait
        self._has_begun = False
        for score in [*(score for score in scores if not math.isnan(score)), *taken]:
            self._note(score)

    def reason(self, n_iter: int, loss: float, score: float, *, asked: bool = False) -> str | None:
        """Return why training stops before its next step, or None if it goes on.

        Further reasons are known elsewhere: ``"no_progress"`` (no tree of a step splits, or the
        guard shortened it to nothing) and ``"interrupted"``.
        """
        self._note(score)
        limits = self._limits
        reasons = {
            "machine_accuracy": loss < self._min_loss,
            "max_iter": limits.max_iter is not None and n_iter >= limits.max_iter,
            "early_stopping": limits.n_iter_no_change is not None
            and self._n_waited >= limits.n_iter_no_change,
            "callback": asked,
            "time_limit": self._is_time_up(),
        }
        return next((reason for reason, is_so in reasons.items() if is_so), None)

    def _is_time_up(self) -> bool:
        """Whether the deadline has passed; at least one step is taken before anyone looks."""
        had_begun, self._has_begun = self._has_begun, True
        deadline = self._limits.deadline
        return had_begun and deadline is not None and self._clock() >= deadline

    def _note(self, score: float) -> None:
        """Count the steps since the last better score; NaN is never better."""
        if score > self._best + self._limits.tol:
            self._best = score
            self._n_waited = 0
        else:
            self._n_waited += 1


def best_iteration(scores: Sequence[float]) -> int:
    """Return the step of the largest validation score, the first among equals.

    ``scores[0]`` is that before the first step. NaN is no score; without any the last step is the best.
    """
    known = [step for step, score in enumerate(scores) if not math.isnan(score)]
    return max(known, key=lambda step: scores[step]) if known else len(scores) - 1
