"""Communicators: allreduce, allgather and alltoall over the ranks of a training."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Buffer = bytes | bytearray | memoryview
_SMALL = 1 << 15  # bytes of an array that takes less time to send than an exchange does
_COMBINE = {"sum": np.add, "maximum": np.maximum}


class RanksError(RuntimeError):
    """Ranks are not where they should be: one is lost, silent, out of step, or has failed."""


class RankLostError(RanksError):
    """A rank is gone, or has been silent for too long.

    Parameters
    ----------
    message : str
        What is known.
    rank : int
        Its number.
    """

    def __init__(self, message: str, rank: int) -> None:
        super().__init__(message)
        self.rank = rank

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.rank)


class Header(NamedTuple):
    """What every exchange carries, so that ranks out of step are an error.

    Attributes
    ----------
    number : int
        Of the exchange: each has the next one.
    what : str
        The operation.
    dtype : str
        Of the values; ``"bytes"`` for items.
    count : int
        How many values all ranks must have; -1 where each may have its own.
    """

    number: int
    what: str
    dtype: str
    count: int  # type: ignore[assignment]

    def check(self, other: Sequence[Any], rank: int) -> None:
        """Raise RanksError unless a rank has sent the same."""
        if tuple(other) != tuple(self):
            raise RanksError(
                f"rank {rank} is out of step: it sent {tuple(other)!r}; expected {tuple(self)!r}"
            )


class Communicator(ABC):
    """One of several ranks, each of which holds some of the rows.

    All ranks call the same methods in the same order. A rank that cannot go on raises RanksError.

    Attributes
    ----------
    rank : int
        Number of this one, from 0 on.
    n_ranks : int
        How many there are.
    min_scatter_bytes : int
        From how many bytes on each rank gets its share of the histograms of a round alone, and
        the best cuts are exchanged: fewer bytes, but more exchanges.
    """

    rank: int = 0
    n_ranks: int = 1
    min_scatter_bytes: int = 1 << 20

    def __init__(self) -> None:
        self._number = 0

    @abstractmethod
    def swap(self, header: Header, parts: Sequence[Buffer]) -> list[Buffer]:
        """Send a part to each rank, and return what each has sent to this one, by rank.

        Raises RanksError if another rank is in another exchange. The part for this rank itself
        comes back as it is.
        """

    # -------------------------------------------------------------------------- numbers, in place

    def allreduce(self, values: NDArray[Any], op: str) -> None:
        """Replace the values by their sum or maximum over all ranks.

        Parameters
        ----------
        values : ndarray
            Changed in place; integers for ``"sum"``, whose result must not depend on the order.
        op : {"sum", "maximum"}
            The reduction.
        """
        if self.n_ranks == 1 or not values.size:
            return
        if self.n_ranks == 2 or values.nbytes <= _SMALL:  # noqa: PLR2004
            self._allreduce_at_once(values, op)
            return
        ends = np.arange(1, self.n_ranks + 1) * values.size // self.n_ranks
        self.reduce_scatter(values, ends, op)
        segments = np.split(values, ends[:-1])
        own = segments[self.rank].view(np.uint8).data
        header = self._next(f"gathered {op}", values.dtype.str, values.size)
        for to, part in zip(segments, self.swap(header, [own] * self.n_ranks), strict=True):
            if to is not segments[self.rank]:
                to[:] = np.frombuffer(part, dtype=values.dtype)

    def reduce_scatter(self, values: NDArray[Any], ends: NDArray[np.intp], op: str) -> None:
        """Reduce this rank's segment of the values; the other segments stay as they are.

        Parameters
        ----------
        values : ndarray
            Its segment is changed in place.
        ends : ndarray of shape (n_ranks,)
            The segment of rank r ends at ``ends[r]`` and starts at the end of the one before.
        op : {"sum", "maximum"}
            The reduction.
        """
        segments = np.split(values, ends[:-1])
        header = self._next(f"scattered {op}", values.dtype.str, values.size)
        own = segments[self.rank]
        received = self.swap(header, [part.view(np.uint8).data for part in segments])
        for rank, part in enumerate(received):
            if rank != self.rank:
                _COMBINE[op](own, np.frombuffer(part, dtype=values.dtype), out=own)

    def _allreduce_at_once(self, values: NDArray[Any], op: str) -> None:
        """Send all values to every rank: from three ranks on more bytes, but a single exchange."""
        own = values.view(np.uint8).data
        header = self._next(op, values.dtype.str, values.size)
        received = self.swap(header, [own] * self.n_ranks)
        for rank, part in enumerate(received):
            if rank != self.rank:
                _COMBINE[op](values, np.frombuffer(part, dtype=values.dtype), out=values)

    # --------------------------------------------------------------------------------------- items

    def exchange(self, items: Sequence[Buffer]) -> list[Buffer]:
        """Send an item to each rank; return what each has sent to this one."""
        if self.n_ranks == 1:
            return list(items)
        return self.swap(self._next("exchange", "bytes", -1), items)

    def allgather(self, item: Any) -> list[Any]:
        """Return the items of all ranks, by rank, on every rank."""
        if self.n_ranks == 1:
            return [item]
        packed = pickle.dumps(item)
        return [pickle.loads(other) for other in self.exchange([packed] * self.n_ranks)]

    def broadcast(self, item: Any) -> Any:
        """Return the item of rank 0 on every rank."""
        if self.n_ranks == 1:
            return item
        packed = pickle.dumps(item) if self.rank == 0 else b""
        return pickle.loads(self.exchange([packed] * self.n_ranks)[0])

    def _next(self, what: str, dtype: str, count: int) -> Header:
        self._number += 1
        return Header(self._number, what, dtype, count)


class SingleProcess(Communicator):
    """The only rank: there is nobody to exchange anything with."""

    def swap(self, header: Header, parts: Sequence[Buffer]) -> list[Buffer]:
        """Return what was sent."""
        return list(parts)
