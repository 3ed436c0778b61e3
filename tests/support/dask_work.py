"""Work of ranks on the workers of `test_dask.py`, in functions that workers can import."""

import os
import signal
import threading
from typing import Any

import numpy as np
from distributed import Worker

from abcgbm.communication.communicator import Communicator
from abcgbm.distributed.dask_session import Session, Sessions, TaskResult
from abcgbm.distributed.mesh import CHUNK_BYTES


def sums(session: Session, communicator: Communicator) -> TaskResult:
    """Sum values that take several chunks, and exchange items of several sizes."""
    values = np.arange(CHUNK_BYTES // 4 + 3) + communicator.rank
    communicator.allreduce(values, "sum")
    largest = np.array([communicator.rank, -communicator.rank], dtype=np.float64)
    communicator.allreduce(largest, "maximum")
    items = [bytes([communicator.rank]) * to for to in range(communicator.n_ranks)]
    received = [bytes(item) for item in communicator.alltoall(items)]
    return TaskResult(
        (values[0], values[-1], largest, received, communicator.allgather(communicator.rank)), None
    )


def out_of_step(session: Session, communicator: Communicator) -> TaskResult:
    values = np.zeros(10, dtype=np.int32 if communicator.rank == 1 else np.int64)
    communicator.allreduce(values, "sum")
    return TaskResult(None, None)


def failing(session: Session, communicator: Communicator) -> TaskResult:
    if communicator.rank == 1:
        raise MemoryError("8 GiB are not available")
    return TaskResult(communicator.allgather(None), None)


def stopped(session: Session, communicator: Communicator) -> TaskResult:
    communicator.allgather(None)
    if communicator.rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    return TaskResult(communicator.allgather(None), None)


def killed(session: Session, communicator: Communicator) -> TaskResult:
    communicator.allgather(None)
    if communicator.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return TaskResult(communicator.allgather(None), None)


def result_of(done: TaskResult) -> Any:
    if done.error is not None:
        raise done.error
    return done.result


def error_of(done: TaskResult) -> str:
    return f"{type(done.error).__name__}: {done.error}"


def unclosed_connections(dask_worker: Worker) -> list[str]:
    """Return unclosed connections of sessions, and running threads."""
    links = [
        repr(link._comm)
        for session in Sessions.of(dask_worker)._by_name.values()
        for link in session.mesh._connections.values()
        if not link._comm.closed()
    ]
    return links + [t.name for t in threading.enumerate() if t.name.startswith("abcgbm ")]
