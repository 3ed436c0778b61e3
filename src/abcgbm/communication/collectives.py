"""Steps that all ranks take together: errors, decisions, work by feature and Ctrl-C."""

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

# What an error becomes on other ranks: the first of these that it is one of.
_KINDS: tuple[type[BaseException], ...] = (
    *(KeyboardInterrupt, ValueError, TypeError, MemoryError, ImportError, OSError, LookupError),
    *(ArithmeticError, RuntimeError),
)


class _Failure(NamedTuple):
    """What is told of an error to other ranks."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: BaseException, who: str) -> _Failure:
        kind = next((kind for kind in _KINDS if isinstance(error, kind)), RuntimeError)
        known = isinstance(error, _KINDS)
        text = str(error) if known else repr(error)
        return cls(kind.__name__, f"{who}: {text}")

    def error(self) -> BaseException:
        return next(kind for kind in _KINDS if kind.__name__ == self.kind)(self.message)


def allgather_results(shard: Shard, work: Callable[[], T]) -> list[T]:
    """Return what some work that needs no other rank returns on each, by rank.

    If it fails on any, all ranks raise the error of the first of them, which names it.
    """
    if shard.is_single:
        return [work()]
    done: T | None = None
    failure, own = None, None
    try:
        done = work()
    except Exception as error:  # noqa: BLE001
        own, failure = error, _Failure.of(error, shard.name)
    told = shard.communicator.allgather((done, failure))
    for _, of_rank in told:
        if of_rank is not None:
            raise of_rank.error() from own
    return [value for value, _ in told]


def raise_together(shard: Shard, work: Callable[[], T]) -> T:
    """Return what some work returns on this rank; an error of any rank is one of all."""
    done: list[T] = []
    allgather_results(shard, lambda: done.append(work()))
    return done[0]


def on_rank_zero(communicator: Communicator, ask: Callable[[], T]) -> T:
    """Ask on rank 0 alone, and return its answer on all ranks; so with what it raises."""
    if communicator.n_ranks == 1:
        return ask()
    answer: T | None = None
    failure, own = None, None
    if communicator.rank == 0:
        try:
            answer = ask()
        except BaseException as error:  # noqa: BLE001
            own, failure = error, _Failure.of(error, "rank 0")
    answer, failure = communicator.broadcast((answer, failure))
    if own is not None:
        raise own
    if failure is not None:
        raise failure.error()
    return answer


def split_by_feature(
    shard: Shard, pieces: Sequence[Any], finish: Callable[[range, list[list[Any]]], list[T]]
) -> list[T]:
    """Deal things out to the ranks; return all of them, finished.

    Parameters
    ----------
    shard : Shard
        The rank.
    pieces : sequence
        What this rank has of each thing.
    finish : callable
        Is given the places of some things, and of each the pieces of all ranks, by rank; returns
        what becomes of each.
    """
    n_ranks, rank = shard.communicator.n_ranks, shard.communicator.rank
    sent = [pickle.dumps(pieces[to::n_ranks], protocol=5) for to in range(n_ranks)]
    received = [pickle.loads(item) for item in shard.communicator.exchange(sent)]
    own = range(rank, len(pieces), n_ranks)
    finished = allgather_results(
        shard, lambda: finish(own, [list(of) for of in zip(*received, strict=True)])
    )
    return [finished[place % n_ranks][place // n_ranks] for place in range(len(pieces))]


class Interrupts:
    """Keeps the first Ctrl-C until it is asked for; a second one interrupts at once.

    Where a rank is alone, or in another thread than the main one, nothing is kept.

    Parameters
    ----------
    communicator : Communicator
        The rank.
    """

    def __init__(self, communicator: Communicator) -> None:
        in_main_thread = threading.current_thread() is threading.main_thread()
        self._keeps = (
            communicator.n_ranks > 1
            and in_main_thread
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        self._was_asked = False

    def __enter__(self) -> Self:
        if self._keeps:
            signal.signal(signal.SIGINT, self._keep)
        return self

    def __exit__(self, *_: object) -> None:
        if self._keeps:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def raise_if_asked(self) -> None:
        """Raise KeyboardInterrupt if there was a Ctrl-C."""
        if self._was_asked:
            self._was_asked = False
            raise KeyboardInterrupt

    def _keep(self, number: int, frame: FrameType | None) -> None:
        if self._was_asked:
            signal.default_int_handler(number, frame)
        self._was_asked = True


def uninterrupted(communicator: Communicator, work: Callable[[], T]) -> T:
    """Do some work of all ranks; a Ctrl-C waits for its end, and is one of all then."""
    with Interrupts(communicator) as interrupts:
        done = work()
        on_rank_zero(communicator, interrupts.raise_if_asked)
    return done
