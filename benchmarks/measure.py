"""Make one measurement in its own process: ``python -m benchmarks.measure JOB``.

Imports, reading the data, and a small fit (which starts threads and runs lazy imports) come before the clock
starts.
"""

import ctypes
import gc
import json
import pickle
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import child, sets
from benchmarks.limit import limit_of
from benchmarks.peers import SYSTEMS, Setting, System

MIN_BATCH = 50_000
MAX_CALLS = 1_000
MAX_SECONDS_OF_CALLS = 2.0

Result = child.Result


@dataclass(frozen=True)
class Job:
    """The measurement; ``folder`` has the arrays and the models of earlier jobs."""

    what: str
    folder: str
    system: str
    n_threads: int
    max_iter: int

    @property
    def of(self) -> System:
        return SYSTEMS[self.system]

    @property
    def model_path(self) -> Path:
        return Path(self.folder) / f"{self.system}-{self.max_iter}.pickle"

    def train(self) -> tuple[np.ndarray, np.ndarray]:
        return sets.read(Path(self.folder), "train")

    def test(self) -> tuple[np.ndarray, np.ndarray]:
        return sets.read(Path(self.folder), "test")


def in_child(job: Job, give_up_seconds: float | None = None) -> Result:
    """Run the job in a child process, and return its measurement."""
    command = [sys.executable, "-m", "benchmarks.measure", json.dumps(asdict(job))]
    return child.run(command, job.n_threads, give_up_seconds)


def training(job: Job) -> Result:
    """Measure CPU and wall time of the whole fit, including binning or creating a data set."""
    X, y = job.train()
    model = warmed_up(job)
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    result = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    if not job.model_path.exists():
        job.model_path.write_bytes(pickle.dumps(model))
    return result


def memory(job: Job) -> Result:
    """Measure the increase of the process's peak memory by the fit."""
    X, y = job.train()
    model = warmed_up(job)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # freed memory must not be reused unnoticed
    before = _kilobytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    model.fit(X, y)
    return {"bytes": 1024 * (_kilobytes("VmHWM") - before)}


def curve(job: Job) -> Result:
    """Measure errors on the test rows after each iteration."""
    X, y = job.test()
    staged = job.of.staged_classes(fitted(job), X)
    errors = [int(np.count_nonzero(np.ravel(classes) != y)) for classes in staged]
    return {"errors": errors, "n_test": len(y)}


def prediction(job: Job) -> Result:
    """Measure predict_proba of many rows in one call, and of one row as the median of many calls."""
    X, _ = job.test()
    predict_proba = job.of.predictor(fitted(job), job.n_threads)
    batch = np.tile(X, (-(-MIN_BATCH // len(X)), 1)) if len(X) < MIN_BATCH else X
    predict_proba(X[:1000])
    wall, cpu = time.perf_counter(), time.process_time()
    predict_proba(batch)
    return {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "rows": len(batch),
        "one_row": _median_of_calls(predict_proba, X),
    }


def size(job: Job) -> Result:
    """Measure the size of the model, pickled and in the system's own format, and its number of leaves."""
    model = fitted(job)
    saved = job.of.saved(model)
    return {
        "pickle": len(pickle.dumps(model)),
        "saved": None if saved is None else len(saved),
        "leaves": job.of.n_leaves(model),
    }


def limit(job: Job) -> Result:
    """Measure the CPU seconds of the bare loop."""
    return {"cpu": limit_of(fitted(job), job.train()[0])}


MEASURES: dict[str, Callable[[Job], Result]] = {
    "training": training,
    "curve": curve,
    "prediction": prediction,
    "size": size,
    "memory": memory,
    "load": training,  # while other processes use the CPUs
    "scaling": training,
    "limit": limit,
}


def fitted(job: Job) -> Any:
    """Return the model of an earlier job, or fit and save it."""
    if not job.model_path.exists():
        training(job)
    return pickle.loads(job.model_path.read_bytes())


def warmed_up(job: Job) -> Any:
    """Return the estimator after a warm-up fit of another one."""
    X = np.random.default_rng(0).normal(size=(200, 4))
    job.of.make(Setting(2, job.n_threads)).fit(X, np.arange(200) % 3).predict_proba(X)
    return job.of.make(Setting(job.max_iter, job.n_threads))


def _median_of_calls(predict_proba: Callable[[Any], Any], X: np.ndarray) -> float:
    seconds: list[float] = []
    while len(seconds) < MAX_CALLS and sum(seconds) < MAX_SECONDS_OF_CALLS:
        row = X[len(seconds) % len(X)].reshape(1, -1)
        began = time.perf_counter()
        predict_proba(row)
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))


def _kilobytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    job = Job(**json.loads(sys.argv[1]))
    print("\n" + json.dumps(MEASURES[job.what](job)))
