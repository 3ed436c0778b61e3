"""Ranks that are processes of MPI."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    from mpi4py import MPI
except ImportError as error:
    raise ImportError(
        f"MPIReducer needs mpi4py and an MPI library: pip install 'abcgbm[mpi]' ({error})"
    ) from error

from abcgbm.ranks.reducer import Buffer, Header, RanksError, Reducer


class MPIReducer(Reducer):
    """One process of several that `mpirun` has started.

    Each exchange begins with one of a few bytes, by which all ranks learn whether they are in step.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        The processes that train together: ``MPI.COMM_WORLD``, say. Nothing else may go over it
        meanwhile.

    Examples
    --------
    Each process has its rows, and calls

    >>> from mpi4py import MPI
    >>> ABCBoostClassifier().fit(X, y, share=MPIReducer(MPI.COMM_WORLD))  # doctest: +SKIP
    """

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
        self._check(header)
        sent = np.array([memoryview(part).nbytes for part in parts], dtype=np.int64)
        received = np.empty_like(sent)
        self._comm.Alltoall(sent, received)
        arrived = np.empty(received.sum(), dtype=np.uint8)
        parcels = [np.frombuffer(part, dtype=np.uint8) for part in parts]
        self._comm.Alltoallv(
            [np.concatenate(parcels), sent, MPI.BYTE], [arrived, received, MPI.BYTE]
        )
        return [part.data for part in np.split(arrived, np.cumsum(received)[:-1])]

    def _reduce(self, what: str, values: NDArray[Any]) -> None:
        if self.n_ranks == 1 or not values.size:
            return
        self._check(self._next(what, values.dtype.str, values.size))
        self._comm.Allreduce(MPI.IN_PLACE, values, op={"sum": MPI.SUM, "maximum": MPI.MAX}[what])

    def _check(self, header: Header) -> None:
        """Raise RanksError on all ranks unless all are about to do the same."""
        digest = zlib.crc32(repr(tuple(header)).encode())
        bounds = np.array([digest, -digest], dtype=np.int64)
        self._comm.Allreduce(MPI.IN_PLACE, bounds, op=MPI.MAX)
        if bounds[0] != -bounds[1]:
            for rank, other in enumerate(self._comm.allgather(tuple(header))):
                header.check(other, rank)
            raise RanksError(f"another rank is out of step in exchange {header.number}")
