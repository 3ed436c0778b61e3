"""Communicator of MPI processes."""

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
    """Communicator of one process started by `mpirun`.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        Communicator of mpi4py for the processes that train together, such as ``MPI.COMM_WORLD``. It
        must not be used for anything else during training.

    Attributes
    ----------
    max_bytes : int
        Maximum number of bytes in one call of MPI, whose counts have 32 bits.

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

    def _alltoall(self, header: Header, parts: Sequence[Buffer]) -> list[Buffer]:
        outgoing = [np.frombuffer(part, dtype=np.uint8) for part in parts]
        sizes = np.array([part.size for part in outgoing], dtype=np.int64)
        largest = self._check(header, sizes.max())
        incoming_sizes = np.empty_like(sizes)
        self._comm.Alltoall(sizes, incoming_sizes)
        incoming = _Incoming(incoming_sizes)
        for chunk in self._chunks(largest):
            sent = np.concatenate([part[chunk] for part in outgoing])
            buffer, counts = incoming.allocate(chunk)
            n_sent = _n_bytes_within(chunk, sizes)
            self._comm.Alltoallv([sent, n_sent, MPI.BYTE], [buffer, counts, MPI.BYTE])
            incoming.store(chunk, buffer, counts)
        return [part.data for part in incoming.parts]

    def allgather(self, item: Any) -> list[Any]:
        """Return the items of all ranks, by rank, on every rank."""
        # Unlike that of the base class it does not copy the item for every rank.
        if self.n_ranks == 1:
            return [item]
        packed = np.frombuffer(pickle.dumps(item), dtype=np.uint8)
        largest = self._check(self._next_header("allgather", "bytes", -1), packed.size)
        sizes = np.empty(self.n_ranks, dtype=np.int64)
        self._comm.Allgather(np.array([packed.size], dtype=np.int64), sizes)
        incoming = _Incoming(sizes)
        for chunk in self._chunks(largest):
            buffer, counts = incoming.allocate(chunk)
            self._comm.Allgatherv([packed[chunk], MPI.BYTE], [buffer, counts, MPI.BYTE])
            incoming.store(chunk, buffer, counts)
        return [pickle.loads(part.data) for part in incoming.parts]

    def _chunks(self, largest: int) -> Iterator[slice]:
        """Return chunks of an item, such that those of all ranks have at most max_bytes."""
        size = max(1, self.max_bytes // self.n_ranks)
        return (slice(start, start + size) for start in range(0, largest, size))

    def allreduce(self, values: NDArray[Any], op: str) -> None:
        """Replace the values by their sum or maximum over all ranks."""
        if self.n_ranks == 1 or not values.size:
            return
        self._check(self._next_header(op, values.dtype.str, values.size))
        self._comm.Allreduce(MPI.IN_PLACE, values, op={"sum": MPI.SUM, "maximum": MPI.MAX}[op])

    def _check(self, header: Header, size: int = 0) -> int:
        """Return the largest size of all ranks; raise RanksError unless their headers are equal."""
        digest = zlib.crc32(repr(tuple(header)).encode())
        bounds = np.array([digest, -digest, size], dtype=np.int64)
        self._comm.Allreduce(MPI.IN_PLACE, bounds, op=MPI.MAX)
        if bounds[0] != -bounds[1]:
            for rank, other in enumerate(self._comm.allgather(tuple(header))):
                header.check(other, rank)
            raise RanksError(f"another rank is out of step in exchange {header.number}")
        return int(bounds[2])


class _Incoming:
    """Parts that all ranks send to this one, received chunk by chunk."""

    def __init__(self, sizes: NDArray[np.int64]) -> None:
        self._sizes = sizes
        self.parts = [np.empty(size, dtype=np.uint8) for size in sizes]

    def allocate(self, chunk: slice) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return a buffer for one chunk of every part, and the bytes of each."""
        counts = _n_bytes_within(chunk, self._sizes)
        return np.empty(counts.sum(), dtype=np.uint8), counts

    def store(self, chunk: slice, buffer: NDArray[np.uint8], counts: NDArray[np.int64]) -> None:
        """Copy one chunk of every part from the buffer."""
        segments = np.split(buffer, np.cumsum(counts)[:-1])
        for part, segment in zip(self.parts, segments, strict=True):
            part[chunk] = segment


def _n_bytes_within(chunk: slice, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many bytes of items of these sizes are in a chunk."""
    counts: NDArray[np.int64] = np.clip(sizes - chunk.start, 0, chunk.stop - chunk.start)
    return counts
