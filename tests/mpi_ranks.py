"""What `mpirun` runs for `test_mpi.py`."""

import io

import numpy as np
import pytest
from mpi4py import MPI
from sklearn.datasets import load_iris

from abcgbm import ABCBoostClassifier
from abcgbm.communication.communicator import RanksError
from abcgbm.distributed.mpi import MPIReducer


def sums(reducer: MPIReducer) -> None:
    for dtype in ("int32", "int64", "float64"):
        values = np.arange(7, dtype=dtype) + reducer.rank
        largest = values.copy()
        reducer.sum(values)
        reducer.maximum(largest)
        n = reducer.n_ranks
        np.testing.assert_array_equal(values, np.arange(7) * n + n * (n - 1) // 2)
        np.testing.assert_array_equal(largest, np.arange(7) + n - 1)
    values = np.full(5, 2**40)
    reducer.reduce_scatter("sum", values, np.linspace(0, 5, reducer.n_ranks + 1).astype(int)[1:])
    assert values.max() == reducer.n_ranks * 2**40
    assert reducer.gather("x" * reducer.rank) == ["x" * r for r in range(reducer.n_ranks)]
    assert reducer.broadcast(reducer.rank) == 0
    items = [bytes([reducer.rank]) * to for to in range(reducer.n_ranks)]
    received = [bytes(item) for item in reducer.exchange(items)]
    assert received == [bytes([r]) * reducer.rank for r in range(reducer.n_ranks)]


def in_pieces(reducer: MPIReducer) -> None:
    reducer.most_bytes = 7  # in one call
    sums(reducer)
    reducer.most_bytes = MPIReducer.most_bytes


def out_of_step(reducer: MPIReducer) -> None:
    call = reducer.maximum if reducer.rank == 1 else reducer.sum
    with pytest.raises(RanksError, match="out of step"):
        call(np.zeros(3, dtype=np.int64))


def same_model(reducer: MPIReducer) -> None:
    """Rank 0 has more rows than the others, and the last one none."""
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    ends = [0, *(100 + 50 * (rank + 1) // reducer.n_ranks for rank in range(reducer.n_ranks))]
    ends[-2:] = [150, 150] if reducer.n_ranks > 2 else ends[-2:]
    own = slice(ends[reducer.rank], ends[reducer.rank + 1])
    for trees in ("per-class", "shared"):
        model, local = (
            ABCBoostClassifier(max_iter=3, learning_rate=0.15, trees=trees) for _ in range(2)
        )
        model.fit(X[own], y[own], share=reducer)
        assert bytes_of(model) == bytes_of(local.fit(X, y))


def bytes_of(model: ABCBoostClassifier) -> bytes:
    file = io.BytesIO()
    model.save_model(file)
    return file.getvalue()


if __name__ == "__main__":
    for what in (sums, in_pieces, same_model, out_of_step):
        what(MPIReducer(MPI.COMM_WORLD))
    print("well")
