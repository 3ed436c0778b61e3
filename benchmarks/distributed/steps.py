"""Time iterations of the core on ranks: ``mpirun -n 2 python -m benchmarks.distributed.steps JOB``.

JOB is JSON, such as {"n_rows": 1000000, "n_features": 50, "n_classes": 7, "max_leaf_nodes": 64,
"shared": false, "n_steps": 3}. Rank 0 prints the seconds of an iteration, the seconds in exchanges
(including waiting), the number of exchanges, and their bytes.
"""

import json
import sys
import time
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray
from scipy.special import ndtri

from abcgbm import _core
from abcgbm.distributed import MPICommunicator
from benchmarks.distributed.table import Shape, rows_of_rank

N_BINS = 255


class TimedCommunicator(MPICommunicator):
    """A communicator that counts exchanges, bytes and seconds."""

    seconds, n_sums, n_bytes = 0.0, 0, 0

    def allreduce(self, values: NDArray[Any], op: str) -> None:
        began = time.perf_counter()
        super().allreduce(values, op)
        self._count(values, began)

    def reduce_scatter(self, values: NDArray[Any], ends: NDArray[np.intp], op: str) -> None:
        began = time.perf_counter()
        super().reduce_scatter(values, ends, op)
        self._count(values, began)

    def _count(self, values: NDArray[Any], began: float) -> None:
        self.seconds += time.perf_counter() - began
        self.n_sums += 1
        self.n_bytes += values.nbytes

    def numbers(self) -> np.ndarray:
        return np.array([self.seconds, self.n_sums, self.n_bytes])


def trainer_of(job: dict[str, Any], communicator: TimedCommunicator) -> Any:
    shape = Shape(job["n_rows"], job["n_features"], job["n_classes"])
    X, y = rows_of_rank(shape, communicator.rank, communicator.n_ranks)
    thresholds = ndtri(np.arange(1, N_BINS) / N_BINS)
    kinds = np.zeros(shape.n_features, np.uint8)
    builder = _core.BinnedBuilder(len(X), [thresholds] * shape.n_features, kinds)
    builder.add_block(np.arange(shape.n_features, dtype=np.int32), X.astype(np.float64), 1)
    shard = _core.Shard(communicator) if communicator.n_ranks > 1 else None
    labels = _core.Labels(y, np.ones(len(y), np.int64), 1.0, shape.n_classes, shard=shard)
    grow = _core.GrowParams(job["max_leaf_nodes"])
    split = _core.SplitParams(job["hessian_split"], l2_regularization=0.1)
    params = _core.TrainParams(
        grow,
        split,
        multi_output=job["shared"],
        n_projections=min(7, shape.n_classes) * job["shared"],
    )
    return _core.Trainer(builder.finish(), labels, params, 1, None)


def measure(job: dict[str, Any], communicator: TimedCommunicator) -> dict[str, Any]:
    """Return the best measurements of the iterations after the first."""
    trainer = trainer_of(job, communicator)
    classes = list(range(job["n_classes"]))
    found = []
    for number in range(1 + job["n_steps"]):
        MPI.COMM_WORLD.Barrier()
        before, began = communicator.numbers(), time.perf_counter()
        trainer.train_iteration(classes, [-1], False, 1.0, number)
        found.append([time.perf_counter() - began, *(communicator.numbers() - before)])
    seconds, of_exchange, n_sums, n_bytes = min(found[1:])
    return job | {
        "n_ranks": communicator.n_ranks,
        "seconds": seconds,
        "exchange_seconds": of_exchange,
        "n_sums": n_sums,
        "n_bytes": n_bytes,
    }


def main() -> None:
    communicator = TimedCommunicator(MPI.COMM_WORLD)
    job = {"hessian_split": True, "n_steps": 2, "shared": False} | json.loads(sys.argv[1])
    result = measure(job, communicator)
    if communicator.rank == 0:
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
