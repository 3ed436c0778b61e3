"""Measure the time of an allreduce over Dask workers: `python -m benchmarks.distributed_sums [workers]`."""

import sys
import time

import numpy as np
from distributed import Client, LocalCluster

from abcgbm.communication.communicator import Communicator
from abcgbm.distributed.dask_engine import WorkerGroup
from abcgbm.distributed.dask_session import Session, TaskResult

SIZES = {"8 KB": 1 << 10, "1 MB": 1 << 17, "20 MB": 20 << 17}
N_TIMES = {"8 KB": 300, "1 MB": 200, "20 MB": 20}


def work(session: Session, communicator: Communicator) -> TaskResult:
    found = {}
    for name, size in SIZES.items():
        values = np.ones(size, dtype=np.int64)
        seconds = []
        for _ in range(N_TIMES[name]):
            began = time.perf_counter()
            communicator.allreduce(values, "sum")
            seconds.append(time.perf_counter() - began)
        found[name] = 1000 * np.quantile(seconds, [0, 0.5, 0.9])
    return TaskResult(found, None)


def main(n_workers: int) -> None:
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        ranks = WorkerGroup(client, sorted(client.nthreads()), 6.0)
        ranks.start([work] * n_workers)
        answers = ranks.collect(lambda done: done, [0], 120)
        ranks.end("done")
    print(answers.errors or "", f"{n_workers} workers: least, median and 9th decile in ms")
    for name, found in answers.given[0].result.items():
        print(f"{name:>6}", *(f"{ms:8.2f}" for ms in found))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
