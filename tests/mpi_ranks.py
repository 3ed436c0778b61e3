"""What `mpirun` runs for `test_mpi.py`: `mpirun -n 2 python mpi_ranks.py <what>`."""

import sys

import numpy as np
from mpi4py import MPI

from abcgbm.distributed.mpi import MPIReducer
from abcgbm.ranks.reducer import RanksError


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


def out_of_step(reducer: MPIReducer) -> None:
    try:
        if reducer.rank == 1:
            reducer.maximum(np.zeros(3, dtype=np.int64))
        else:
            reducer.sum(np.zeros(3, dtype=np.int64))
    except RanksError as error:
        assert "out of step" in str(error)
    else:
        raise AssertionError("nobody noticed")


if __name__ == "__main__":
    globals()[sys.argv[1]](MPIReducer(MPI.COMM_WORLD))
    print("well")
