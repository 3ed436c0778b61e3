"""Collective operations: errors raised on all ranks, decisions of rank 0, work by feature, Ctrl-C."""

from __future__ import annotations

import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NamedTuple, Self, TypeVar

from abcgbm.communication.communicator import Communicator
from abcgbm.communication.shard import Shard

T = TypeVar("T")

# Types an error can have on other ranks: the first one that it is an instance of. Types of other
# packages may be unknown there, so they become RuntimeError.
_KINDS: tuple[type[BaseException], ...] = (
    *(KeyboardInterrupt, ValueError, TypeError, MemoryError, ImportError, OSError, LookupError),
    *(ArithmeticError, RuntimeError),
)


class _Failure(NamedTuple):
    """An error as other ranks receive it."""

    kind: str
    message: str

    @classmethod
    def from_error(cls, error: BaseException, rank_name: str) -> _Failure:
        kind = next((kind for kind in _KINDS if isinstance(error, kind)), RuntimeError)
        text = str(error) if isinstance(error, _KINDS) else repr(error)
        return cls(kind.__name__, f"{rank_name}: {text}")

    def to_error(self) -> BaseException:
        return next(kind for kind in _KINDS if kind.__name__ == self.kind)(self.message)


def allgather_results(shard: Shard, work: Callable[[], T]) -> list[T]:
    """Run a function on every rank and return the results of all ranks, by rank.

    If it fails on any rank, all ranks raise the error of the first of these, which names the rank.
    The function must not communicate.
    """
    if shard.is_single:
        return [work()]
    result: T | None = None
    failure, own_error = None, None
    try:
        result = work()
    except Exception as error:  # noqa: BLE001
        own_error, failure = error, _Failure.from_error(error, shard.name)
    gathered = shard.communicator.allgather((result, failure))
    for _, of_rank in gathered:
        if of_rank is not None:
            raise of_rank.to_error() from own_error
    return [value for value, _ in gathered]


def raise_together(shard: Shard, work: Callable[[], T]) -> T:
    """Return the result of a function on this rank; an error of any rank is raised on all."""
    own: list[T] = []
    allgather_results(shard, lambda: own.append(work()))
    return own[0]


def on_rank_zero(communicator: Communicator, decide: Callable[[], T]) -> T:
    """Run a function on rank 0 alone; return its result, or raise its error, on all ranks."""
    if communicator.n_ranks == 1:
        return decide()
    result: T | None = None
    failure, own_error = None, None
    if communicator.rank == 0:
        try:
            result = decide()
        except BaseException as error:  # noqa: BLE001
            own_error, failure = error, _Failure.from_error(error, "rank 0")
    result, failure = communicator.broadcast((result, failure))
    if own_error is not None:
        raise own_error
    if failure is not None:
        raise failure.to_error()
    return result


def split_by_feature(
    shard: Shard, items: Sequence[Any], finish: Callable[[range, list[list[Any]]], list[T]]
) -> list[T]:
    """Divide the work on features among the ranks; return the results for all features.

    Parameters
    ----------
    shard : Shard
        Shard of this rank.
    items : sequence
        What this rank contributes to each feature.
    finish : callable
        Called with the indices of the features that this rank works on and, for each of them, the
        items of all ranks, by rank. Returns one result per feature.
    """
    n_ranks, rank = shard.communicator.n_ranks, shard.communicator.rank
    sent = [pickle.dumps(items[to::n_ranks], protocol=5) for to in range(n_ranks)]
    received = [pickle.loads(item) for item in shard.communicator.alltoall(sent)]
    own = range(rank, len(items), n_ranks)
    results = allgather_results(
        shard, lambda: finish(own, [list(of) for of in zip(*received, strict=True)])
    )
    return [results[index % n_ranks][index // n_ranks] for index in range(len(items))]


class Interrupts:
    """Defer the first Ctrl-C to a safe point; a second one interrupts at once.

    With a single rank, or outside the main thread, Ctrl-C is not deferred.

    Parameters
    ----------
    communicator : Communicator
        Communicator of this rank.
    """

    def __init__(self, communicator: Communicator) -> None:
        in_main_thread = threading.current_thread() is threading.main_thread()
        self._is_deferring = (
            communicator.n_ranks > 1
            and in_main_thread
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        self._was_requested = False

    def __enter__(self) -> Self:
        if self._is_deferring:
            signal.signal(signal.SIGINT, self._defer)
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_deferring:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def raise_if_requested(self) -> None:
        """Raise KeyboardInterrupt if there was a Ctrl-C."""
        if self._was_requested:
            self._was_requested = False
            raise KeyboardInterrupt

    def _defer(self, number: int, frame: FrameType | None) -> None:
        if self._was_requested:
            signal.default_int_handler(number, frame)
        self._was_requested = True


def uninterrupted(communicator: Communicator, work: Callable[[], T]) -> T:
    """Run collective work to its end; a Ctrl-C of any rank is then raised on all ranks."""
    # A rank that stops in the middle of an exchange would leave the others waiting.
    with Interrupts(communicator) as interrupts:
        result = work()
        on_rank_zero(communicator, interrupts.raise_if_requested)
    return result
