"""Ranks that are processes of MPI."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm.communication.communicator import Buffer, Communicator, Header, RanksError

try:
    from mpi4py import MPI
except ImportError as error:
    raise ImportError(
        f"MPICommunicator needs mpi4py and an MPI library: pip install 'abcgbm[mpi]' ({error})"
    ) from error


class MPICommunicator(Communicator):
    """One process of several that `mpirun` has started.

    Each exchange begins with one of a few bytes, by which all ranks learn whether they are in step.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        The processes that train together: ``MPI.COMM_WORLD``, say. Nothing else may go over it
        meanwhile.

    Attributes
    ----------
    max_bytes : int
        How many go in one call of MPI, which numbers them by 32 bits.

    Examples
    --------
    Each process has its rows, and calls

    >>> from mpi4py import MPI
    >>> ABCBoostClassifier().fit(X, y, communicator=MPICommunicator(MPI.COMM_WORLD))  # doctest: +SKIP
    """

    max_bytes: int = 1 << 30

    def __init__(self, comm: MPI.Intracomm) -> None:
        if not isinstance(comm, MPI.Intracomm):
            raise TypeError(
                f"comm={comm!r} is a {type(comm).__name__}; expected a communicator of mpi4py, "
                "such as MPI.COMM_WORLD"
            )
        super().__init__()
        self._comm = comm
        self.rank, self.n_ranks = comm.Get_rank(), comm.Get_size()

    def swap(self, header: Header, parts: Sequence[Buffer]) -> list[Buffer]:
        """Send a part to each rank, and return what each has sent to this one."""
        parcels = [np.frombuffer(part, dtype=np.uint8) for part in parts]
        sizes = np.array([parcel.size for parcel in parcels], dtype=np.int64)
        largest = self._check(header, sizes.max())
        of_others = np.empty_like(sizes)
        self._comm.Alltoall(sizes, of_others)
        arrivals = _Arrivals(of_others)
        for piece in self._pieces(largest):
            sent = np.concatenate([parcel[piece] for parcel in parcels])
            into, counts = arrivals.room(piece)
            n_sent = _within(piece, sizes)
            self._comm.Alltoallv([sent, n_sent, MPI.BYTE], [into, counts, MPI.BYTE])
            arrivals.take(piece, into, counts)
        return [part.data for part in arrivals.parts]

    def allgather(self, item: Any) -> list[Any]:
        """Return the items of all ranks, by rank, on every rank; none is copied for each of them."""
        if self.n_ranks == 1:
            return [item]
        packed = np.frombuffer(pickle.dumps(item), dtype=np.uint8)
        largest = self._check(self._next("gather", "bytes", -1), packed.size)
        sizes = np.empty(self.n_ranks, dtype=np.int64)
        self._comm.Allgather(np.array([packed.size], dtype=np.int64), sizes)
        arrivals = _Arrivals(sizes)
        for piece in self._pieces(largest):
            into, counts = arrivals.room(piece)
            self._comm.Allgatherv([packed[piece], MPI.BYTE], [into, counts, MPI.BYTE])
            arrivals.take(piece, into, counts)
        return [pickle.loads(part.data) for part in arrivals.parts]

    def _pieces(self, largest: int) -> Iterator[slice]:
        """Cut items so that those of all ranks together are as many bytes as MPI can number."""
        size = max(1, self.max_bytes // self.n_ranks)
        return (slice(start, start + size) for start in range(0, largest, size))

    def allreduce(self, values: NDArray[Any], op: str) -> None:
        """Replace the values by their sum or maximum over all ranks."""
        if self.n_ranks == 1 or not values.size:
            return
        self._check(self._next(op, values.dtype.str, values.size))
        self._comm.Allreduce(MPI.IN_PLACE, values, op={"sum": MPI.SUM, "maximum": MPI.MAX}[op])

    def _check(self, header: Header, size: int = 0) -> int:
        """Return the largest size; raise RanksError on all ranks unless all are about to do the same."""
        digest = zlib.crc32(repr(tuple(header)).encode())
        bounds = np.array([digest, -digest, size], dtype=np.int64)
        self._comm.Allreduce(MPI.IN_PLACE, bounds, op=MPI.MAX)
        if bounds[0] != -bounds[1]:
            for rank, other in enumerate(self._comm.allgather(tuple(header))):
                header.check(other, rank)
            raise RanksError(f"another rank is out of step in exchange {header.number}")
        return int(bounds[2])


class _Arrivals:
    """What all ranks send to this one, piece by piece, in the order of the ranks."""

    def __init__(self, sizes: NDArray[np.int64]) -> None:
        self._sizes = sizes
        self.parts = [np.empty(size, dtype=np.uint8) for size in sizes]

    def room(self, piece: slice) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return where a piece of each can arrive, and the bytes of each."""
        counts = _within(piece, self._sizes)
        return np.empty(counts.sum(), dtype=np.uint8), counts

    def take(self, piece: slice, arrived: NDArray[np.uint8], counts: NDArray[np.int64]) -> None:
        """Put a piece of each where it belongs."""
        stretches = np.split(arrived, np.cumsum(counts)[:-1])
        for part, stretch in zip(self.parts, stretches, strict=True):
            part[piece] = stretch


def _within(piece: slice, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many bytes of a piece items of these sizes have."""
    counts: NDArray[np.int64] = np.clip(sizes - piece.start, 0, piece.stop - piece.start)
    return counts
