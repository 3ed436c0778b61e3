"""What ranks do together but for numbers: errors of one are errors of all, one decides for all."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from abcgbm.ranks.reducer import Reducer
from abcgbm.ranks.share import Share

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


def gathered(share: Share, work: Callable[[], T]) -> list[T]:
    """Return what some work that needs no other rank returns on each, by rank.

    If it fails on any, all ranks raise the error of the first of them, which names it.
    """
    if share.is_alone:
        return [work()]
    done: T | None = None
    failure, own = None, None
    try:
        done = work()
    except Exception as error:  # noqa: BLE001
        own, failure = error, _Failure.of(error, share.name)
    told = share.reducer.gather((done, failure))
    for _, of_rank in told:
        if of_rank is not None:
            raise of_rank.error() from own
    return [value for value, _ in told]


def together(share: Share, work: Callable[[], T]) -> T:
    """Return what some work returns on this rank; an error of any rank is one of all."""
    done: list[T] = []
    gathered(share, lambda: done.append(work()))
    return done[0]


def on_first(reducer: Reducer, ask: Callable[[], T]) -> T:
    """Ask on rank 0 alone, and return its answer on all ranks; so with what it raises."""
    if reducer.n_ranks == 1:
        return ask()
    answer: T | None = None
    failure, own = None, None
    if reducer.rank == 0:
        try:
            answer = ask()
        except BaseException as error:  # noqa: BLE001
            own, failure = error, _Failure.of(error, "rank 0")
    answer, failure = reducer.broadcast((answer, failure))
    if own is not None:
        raise own
    if failure is not None:
        raise failure.error()
    return answer


def dealt(
    share: Share, pieces: Sequence[Any], finish: Callable[[range, list[list[Any]]], list[T]]
) -> list[T]:
    """Deal things out to the ranks; return all of them, finished.

    Parameters
    ----------
    share : Share
        The rank.
    pieces : sequence
        What this rank has of each thing.
    finish : callable
        Is given the places of some things, and of each the pieces of all ranks, by rank; returns
        what becomes of each.
    """
    n_ranks, rank = share.reducer.n_ranks, share.reducer.rank
    sent = [pickle.dumps(pieces[to::n_ranks], protocol=5) for to in range(n_ranks)]
    received = [pickle.loads(item) for item in share.reducer.exchange(sent)]
    own = range(rank, len(pieces), n_ranks)
    finished = gathered(
        share, lambda: finish(own, [list(of) for of in zip(*received, strict=True)])
    )
    return [finished[place % n_ranks][place // n_ranks] for place in range(len(pieces))]
