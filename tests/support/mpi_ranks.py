"""The program that `test_mpi.py` runs by `mpirun`."""

import io

import numpy as np
import pytest
from mpi4py import MPI
from sklearn.datasets import load_iris

from abcgbm import ABCBoostClassifier
from abcgbm.communication.communicator import RanksError
from abcgbm.distributed.mpi import MPICommunicator


def sums(communicator: MPICommunicator) -> None:
    for dtype in ("int32", "int64", "float64"):
        values = np.arange(7, dtype=dtype) + communicator.rank
        largest = values.copy()
        communicator.allreduce(values, "sum")
        communicator.allreduce(largest, "maximum")
        n = communicator.n_ranks
        np.testing.assert_array_equal(values, np.arange(7) * n + n * (n - 1) // 2)
        np.testing.assert_array_equal(largest, np.arange(7) + n - 1)
    values = np.full(5, 2**40)
    ends = np.linspace(0, 5, communicator.n_ranks + 1).astype(int)[1:]
    communicator.reduce_scatter(values, ends, "sum")
    assert values.max() == communicator.n_ranks * 2**40
    assert communicator.allgather("x" * communicator.rank) == [
        "x" * r for r in range(communicator.n_ranks)
    ]
    assert communicator.broadcast(communicator.rank) == 0
    items = [bytes([communicator.rank]) * to for to in range(communicator.n_ranks)]
    received = [bytes(item) for item in communicator.alltoall(items)]
    assert received == [bytes([r]) * communicator.rank for r in range(communicator.n_ranks)]


def sums_in_chunks(communicator: MPICommunicator) -> None:
    communicator.max_bytes = 7  # of one MPI call
    sums(communicator)
    communicator.max_bytes = MPICommunicator.max_bytes


def out_of_step(communicator: MPICommunicator) -> None:
    op = "maximum" if communicator.rank == 1 else "sum"
    with pytest.raises(RanksError, match="out of step"):
        communicator.allreduce(np.zeros(3, dtype=np.int64), op)


def same_model(communicator: MPICommunicator) -> None:
    """Compare models; rank 0 has more rows than the others, and the last rank has none."""
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    ends = [
        0,
        *(100 + 50 * (rank + 1) // communicator.n_ranks for rank in range(communicator.n_ranks)),
    ]
    ends[-2:] = [150, 150] if communicator.n_ranks > 2 else ends[-2:]
    own = slice(ends[communicator.rank], ends[communicator.rank + 1])
    for algorithm in ("abc-mart", "multi-output"):
        model, local = (
            ABCBoostClassifier(algorithm, max_iter=3, learning_rate=0.15) for _ in range(2)
        )
        model.fit(X[own], y[own], communicator=communicator)
        assert bytes_of(model) == bytes_of(local.fit(X, y))


def bytes_of(model: ABCBoostClassifier) -> bytes:
    file = io.BytesIO()
    model.save_model(file)
    return file.getvalue()


if __name__ == "__main__":
    for what in (sums, sums_in_chunks, same_model, out_of_step):
        what(MPICommunicator(MPI.COMM_WORLD))
    print("well")
