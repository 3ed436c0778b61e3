"""Early stopping, and limits of iterations and time."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# Sum of losses below which training stops: "machine accuracy" in the paper.
MACHINE_ACCURACY = 2e-14

# Stop reasons that leave no time for a refit. A callback ends its own phase only.
NO_TIME_LEFT = ("time_limit", "interrupted")
# Stop reasons from outside: the phase has fewer iterations than it would have on its own.
STOP_REQUESTED = ("callback", *NO_TIME_LEFT)


def min_loss(total_weight: float) -> float:
    """Return the sum of losses below which training stops; smaller if rows weigh less than 1."""
    return MACHINE_ACCURACY * min(1.0, total_weight)


@dataclass(frozen=True)
class Limits:
    """Limits of training.

    Attributes
    ----------
    max_iter : int or None
        Maximum number of iterations.
    deadline : float or None
        Time on the clock after which no iteration begins, except the first.
    n_iter_no_change : int or None
        Iterations without improvement after which training stops; None: no early stopping.
    tol : float
        Minimum improvement of the validation score.
    """

    max_iter: int | None = None
    deadline: float | None = None
    n_iter_no_change: int | None = None
    tol: float = 0.0


class Stopping:
    """Decides when to stop, from the state before the first iteration and after each one.

    Parameters
    ----------
    limits : Limits
        Limits of training.
    scores : sequence of float
        Validation scores of a previous fit; NaN is no score.
    resumed_scores : sequence of float
        Validation scores of this fit up to its checkpoint; NaN is a score that is never better.
    min_loss : float
        Training loss below which training stops.
    clock : callable
        Returns the time in seconds.
    """

    def __init__(
        self,
        limits: Limits,
        scores: Sequence[float] = (),
        resumed_scores: Sequence[float] = (),
        min_loss: float = MACHINE_ACCURACY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._min_loss = min_loss
        self._clock = clock
        self._best = -math.inf
        self._n_waited = -1  # the first score is not a wait
        self._has_begun = False
        for score in [*(score for score in scores if not math.isnan(score)), *resumed_scores]:
            self._note(score)

    def reason(
        self, n_iter: int, loss: float, score: float, *, stop_requested: bool = False
    ) -> str | None:
        """Return why training stops before the next iteration, or None if it continues.

        Two more reasons are found by the boosting loop: ``"no_progress"`` (no tree can be split, or
        the line search scales all of them back to zero) and ``"interrupted"``.
        """
        self._note(score)
        limits = self._limits
        reasons = {
            "machine_accuracy": loss < self._min_loss,
            "max_iter": limits.max_iter is not None and n_iter >= limits.max_iter,
            "early_stopping": limits.n_iter_no_change is not None
            and self._n_waited >= limits.n_iter_no_change,
            "callback": stop_requested,
            "time_limit": self._is_time_up(),
        }
        return next((reason for reason, is_so in reasons.items() if is_so), None)

    def _is_time_up(self) -> bool:
        """Whether the deadline has passed; never before the first iteration."""
        had_begun, self._has_begun = self._has_begun, True
        deadline = self._limits.deadline
        return had_begun and deadline is not None and self._clock() >= deadline

    def _note(self, score: float) -> None:
        """Count the iterations since the last improvement; NaN is never one."""
        if score > self._best + self._limits.tol:
            self._best = score
            self._n_waited = 0
        else:
            self._n_waited += 1


def best_iteration(scores: Sequence[float]) -> int:
    """Return the number of iterations of the largest validation score, the smallest among equals.

    ``scores[0]`` is the score before the first iteration. If all scores are NaN, the last iteration
    is the best.
    """
    known = [n_iter for n_iter, score in enumerate(scores) if not math.isnan(score)]
    return max(known, key=lambda n_iter: scores[n_iter]) if known else len(scores) - 1
