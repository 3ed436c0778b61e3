"""Kill or stop workers during a fit: `python -m benchmarks.distributed_faults`.

A random worker is killed after a random time, and the fit must end with byte for byte the model of a single
process. The other workers must notice a stopped one within ten seconds.
"""

import argparse
import io
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import dask.array
import numpy as np
from distributed import Client, LocalCluster, Worker

from abcgbm import ABCBoostClassifier
from abcgbm.distributed import DaskABCBoostClassifier
from abcgbm.distributed.dask_session import Sessions
from abcgbm.distributed.recovery import RetryingFit

N_ROWS, N_COLUMNS, N_CLASSES, N_PARTITIONS = 20_000, 12, 4, 6
PARAMETERS = {"max_iter": 40, "learning_rate": 0.15, "max_leaf_nodes": 16}
NOTICED = 10.0  # seconds


@dataclass
class Fault:
    """A signal that is sent to a worker after some seconds, and its outcome."""

    number: signal.Signals
    after: float
    log: list[str] = field(default_factory=list)
    sent: float = float("nan")
    noticed: float = float("nan")

    def strike(self, client: Client, pids: dict[str, int]) -> None:
        while self.number is signal.SIGSTOP and not any(client.run(has_session).values()):
            time.sleep(0.02)  # until training starts; Dask computes before that
        time.sleep(self.after)
        address, pid = random.choice(sorted(pids.items()))
        self.sent = time.monotonic()
        self.pid = pid
        os.kill(pid, self.number)
        self.log.append(f"{self.number.name} to {address} after {self.after:.2f} s")


def has_session(dask_worker: Worker) -> bool:
    return bool(Sessions.of(dask_worker)._by_name)


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_COLUMNS))
    y = np.argmax(X[:, :N_CLASSES] + rng.normal(size=(N_ROWS, N_CLASSES)), axis=1)
    return X, y


def bytes_of(model: Any) -> bytes:
    file = io.BytesIO()
    model.save_model(file)
    return file.getvalue()


def is_noted(attempt: Callable[..., Any], fault: Fault) -> Callable[..., Any]:
    """Record when an attempt of a retrying fit ends because a worker was lost."""

    def noted(driver: RetryingFit, *arguments: Any) -> Any:
        try:
            return attempt(driver, *arguments)
        except Exception as error:
            fault.log.append(f"after {driver.n_iter} steps: {type(error).__name__}: {error}")
            raise

    return noted


def when_noticed(gathered: Callable[..., Any], fault: Fault) -> Callable[..., Any]:
    """Record when a retrying fit stops polling and collects results."""

    def noted(driver: RetryingFit, *arguments: Any) -> Any:
        if np.isnan(fault.noticed) and not np.isnan(fault.sent):
            fault.noticed = time.monotonic()
        return gathered(driver, *arguments)

    return noted


def fit(fault: Fault | None, n_workers: int) -> tuple[bytes, float]:
    """Return the bytes of the model, and the seconds."""
    X, y = rows()
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        size = -(-N_ROWS // N_PARTITIONS)
        given = (dask.array.from_array(X, chunks=(size, -1)), dask.array.from_array(y, chunks=size))
        model = DaskABCBoostClassifier(**PARAMETERS)
        if fault is not None:
            pids = client.run(os.getpid)
            threading.Thread(target=fault.strike, args=(client, pids), daemon=True).start()
        began = time.monotonic()
        model.fit(*given)
        seconds = time.monotonic() - began
        if fault is not None and fault.number is signal.SIGSTOP and not np.isnan(fault.sent):
            os.kill(fault.pid, signal.SIGKILL)  # else the cluster waits for it when it closes
    return bytes_of(model), seconds


def with_fault(fault: Fault, n_workers: int) -> tuple[bytes, float]:
    attempt, gathered = RetryingFit._attempt, RetryingFit._collect
    RetryingFit._attempt, RetryingFit._collect = (
        is_noted(attempt, fault),
        when_noticed(gathered, fault),
    )
    try:
        return fit(fault, n_workers)
    finally:
        RetryingFit._attempt, RetryingFit._collect = attempt, gathered


def series(number: signal.Signals, n_faults: int, longest: float, n_workers: int) -> int:
    """Cause faults one by one; return the number of fits that ended as expected."""
    X, y = rows()
    expected = bytes_of(ABCBoostClassifier(**PARAMETERS).fit(X, y))
    n_well = 0
    for count in range(1, n_faults + 1):
        fault = Fault(number, random.uniform(0.0, longest))
        found, seconds = with_fault(fault, n_workers)
        wait = fault.noticed - fault.sent
        is_well = found == expected and not (number is signal.SIGSTOP and wait > NOTICED)
        n_well += is_well
        verdict = "identical" if found == expected else "ANOTHER MODEL"
        noticed = "" if np.isnan(wait) else f", noticed after {wait:.2f} s"
        print(
            f"{count:3d} {verdict} in {seconds:.1f} s{noticed}: {'; '.join(fault.log)}", flush=True
        )
    print(f"{number.name}: {n_well} of {n_faults} ended well")
    return n_well


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--stops", type=int, default=5)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    random.seed(chosen.seed)
    _, seconds = fit(None, chosen.workers)
    print(f"without a fault {seconds:.1f} s", flush=True)
    n_well = series(signal.SIGKILL, chosen.kills, seconds, chosen.workers)
    n_well += series(signal.SIGSTOP, chosen.stops, seconds, chosen.workers)
    return 0 if n_well == chosen.kills + chosen.stops else 1


if __name__ == "__main__":
    sys.exit(main())
