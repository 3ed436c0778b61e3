"""Communicators: allreduce, allgather and alltoall over the ranks of a training."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Buffer = bytes | bytearray | memoryview
_SMALL = 1 << 15  # bytes; smaller arrays take less time to send than one more exchange
_COMBINE = {"sum": np.add, "maximum": np.maximum}


class RanksError(RuntimeError):
    """Communication failed: a rank is lost, silent, out of step, or has failed."""


class RankLostError(RanksError):
    """A rank is lost, or has been silent for too long.

    Parameters
    ----------
    message : str
        Error message.
    rank : int
        Number of the lost rank.
    """

    def __init__(self, message: str, rank: int) -> None:
        super().__init__(message)
        self.rank = rank

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.rank)


class Header(NamedTuple):
    """Header of every exchange, by which ranks that are out of step are detected.

    Attributes
    ----------
    number : int
        Sequence number of the exchange.
    what : str
        The operation.
    dtype : str
        Type of the values; ``"bytes"`` for items.
    count : int
        Number of values, equal on all ranks; -1 if each rank may have its own.
    """

    number: int
    what: str
    dtype: str
    count: int  # type: ignore[assignment]

    def check(self, other: Sequence[Any], rank: int) -> None:
        """Raise RanksError unless the header that a rank sent is the same."""
        if tuple(other) != tuple(self):
            raise RanksError(
                f"rank {rank} is out of step: it sent {tuple(other)!r}; expected {tuple(self)!r}"
            )


class Communicator(ABC):
    """Communicator of one rank: allreduce, reduce_scatter, allgather, alltoall and broadcast.

    Every rank holds some of the rows. All ranks call the same methods in the same order; a rank that
    cannot continue raises RanksError. A subclass implements ``_alltoall``. The native core calls
    ``allreduce``, ``reduce_scatter`` and ``allgather``.

    Attributes
    ----------
    rank : int
        Number of this rank, from 0.
    n_ranks : int
        Number of ranks.
    min_scatter_bytes : int
        Size of histograms from which each rank reduces only its segment of them, and the best splits
        are exchanged: fewer bytes, but more exchanges.
    """

    rank: int = 0
    n_ranks: int = 1
    min_scatter_bytes: int = 1 << 20

    def __init__(self) -> None:
        self._number = 0

    @abstractmethod
    def _alltoall(self, header: Header, parts: Sequence[Buffer]) -> list[Buffer]:
        """Send one part to each rank; return the parts sent to this rank, by rank.

        The part for this rank itself is returned as it is. Raises RanksError if the header of
        another rank differs.
        """

    # -------------------------------------------------------------------------- numbers, in place

    def allreduce(self, values: NDArray[Any], op: str) -> None:
        """Replace the values by their sum or maximum over all ranks.

        Parameters
        ----------
        values : ndarray
            Changed in place. Integers for ``"sum"``, so that the order of ranks does not matter.
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
        header = self._next_header(f"allgather of {op}", values.dtype.str, values.size)
        for to, part in zip(segments, self._alltoall(header, [own] * self.n_ranks), strict=True):
            if to is not segments[self.rank]:
                to[:] = np.frombuffer(part, dtype=values.dtype)

    def reduce_scatter(self, values: NDArray[Any], ends: NDArray[np.intp], op: str) -> None:
        """Reduce this rank's segment of the values; the other segments are left unchanged.

        Parameters
        ----------
        values : ndarray
            The segment of this rank is changed in place.
        ends : ndarray of shape (n_ranks,)
            The segment of rank r ends at ``ends[r]`` and starts at the end of the previous one.
        op : {"sum", "maximum"}
            The reduction.
        """
        segments = np.split(values, ends[:-1])
        header = self._next_header(f"reduce_scatter of {op}", values.dtype.str, values.size)
        own = segments[self.rank]
        received = self._alltoall(header, [part.view(np.uint8).data for part in segments])
        for rank, part in enumerate(received):
            if rank != self.rank:
                _COMBINE[op](own, np.frombuffer(part, dtype=values.dtype), out=own)

    def _allreduce_at_once(self, values: NDArray[Any], op: str) -> None:
        """Send all values to every rank: more bytes with three or more ranks, but one exchange."""
        own = values.view(np.uint8).data
        header = self._next_header(op, values.dtype.str, values.size)
        received = self._alltoall(header, [own] * self.n_ranks)
        for rank, part in enumerate(received):
            if rank != self.rank:
                _COMBINE[op](values, np.frombuffer(part, dtype=values.dtype), out=values)

    # --------------------------------------------------------------------------------------- items

    def alltoall(self, items: Sequence[Buffer]) -> list[Buffer]:
        """Send one item to each rank; return the items sent to this rank, by rank."""
        if self.n_ranks == 1:
            return list(items)
        return self._alltoall(self._next_header("alltoall", "bytes", -1), items)

    def allgather(self, item: Any) -> list[Any]:
        """Return the items of all ranks, by rank, on every rank."""
        if self.n_ranks == 1:
            return [item]
        packed = pickle.dumps(item)
        return [pickle.loads(other) for other in self.alltoall([packed] * self.n_ranks)]

    def broadcast(self, item: Any) -> Any:
        """Return the item of rank 0 on every rank."""
        if self.n_ranks == 1:
            return item
        packed = pickle.dumps(item) if self.rank == 0 else b""
        return pickle.loads(self.alltoall([packed] * self.n_ranks)[0])

    def _next_header(self, what: str, dtype: str, count: int) -> Header:
        self._number += 1
        return Header(self._number, what, dtype, count)


class SingleProcess(Communicator):
    """Communicator of a single process, which exchanges nothing."""

    def _alltoall(self, header: Header, parts: Sequence[Buffer]) -> list[Buffer]:
        return list(parts)
