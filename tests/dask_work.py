"""What ranks do on the workers of `test_dask.py`: functions that workers can import."""

import os
import signal
import threading
from typing import Any

import numpy as np
from distributed import Worker

from abcgbm.communication.communicator import Reducer
from abcgbm.distributed.dask_session import Done, Session, Sessions
from abcgbm.distributed.mesh import PIECE


def sums(session: Session, reducer: Reducer) -> Done:
    """Sum values of several pieces, and exchange items of several sizes."""
    values = np.arange(PIECE // 4 + 3) + reducer.rank
    reducer.sum(values)
    largest = np.array([reducer.rank, -reducer.rank], dtype=np.float64)
    reducer.maximum(largest)
    items = [bytes([reducer.rank]) * to for to in range(reducer.n_ranks)]
    received = [bytes(item) for item in reducer.exchange(items)]
    return Done((values[0], values[-1], largest, received, reducer.gather(reducer.rank)), None)


def out_of_step(session: Session, reducer: Reducer) -> Done:
    values = np.zeros(10, dtype=np.int32 if reducer.rank == 1 else np.int64)
    reducer.sum(values)
    return Done(None, None)


def failing(session: Session, reducer: Reducer) -> Done:
    if reducer.rank == 1:
        raise MemoryError("no room for 8 GiB")
    return Done(reducer.gather(None), None)


def stopped(session: Session, reducer: Reducer) -> Done:
    reducer.gather(None)
    if reducer.rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    return Done(reducer.gather(None), None)


def killed(session: Session, reducer: Reducer) -> Done:
    reducer.gather(None)
    if reducer.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return Done(reducer.gather(None), None)


def result_of(done: Done) -> Any:
    return done.result


def error_of(done: Done) -> str:
    return f"{type(done.error).__name__}: {done.error}"


def left_behind(dask_worker: Worker) -> list[str]:
    """Connections of sessions that are not closed, and their threads."""
    links = [
        repr(link._comm)
        for session in Sessions.of(dask_worker)._by_name.values()
        for link in session.mesh._links.values()
        if not link._comm.closed()
    ]
    return links + [t.name for t in threading.enumerate() if t.name.startswith("abcgbm ")]
