"""Make one measurement in its own process: ``python -m benchmarks.multi_output.measure JOB``.

Everything runs in one thread, and times are CPU times of the process. A small warm-up fit is not timed.
"""

import json
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.model_selection import train_test_split

from benchmarks import child, sets
from benchmarks.multi_output.systems import SYSTEMS
from benchmarks.peers import Floats, Setting, System
from benchmarks.results import origin

HELD_OUT = 0.1  # fraction of the training rows of each class
BATCH = 50_000
N_CALLS = 3
N_SEEDS = 5


@dataclass(frozen=True)
class Job:
    """The measurement; ``folder`` has the arrays."""

    what: str
    folder: str
    system: str
    leaves: int
    steps: int
    ridge: float

    @property
    def of(self) -> System:
        return SYSTEMS[self.system]

    def read(self, part: str) -> tuple[Floats, np.ndarray]:
        return sets.read(Path(self.folder), part)

    def make(self, steps: int) -> Any:
        return self.of.make(Setting(steps, 1, max_leaf_nodes=self.leaves, ridge=self.ridge))


def in_child(job: Job, python: str, give_up_seconds: float | None) -> child.Result:
    """Run the job in a child process of a given Python."""
    command = [python, "-m", "benchmarks.multi_output.measure", json.dumps(asdict(job))]
    return child.run(command, 1, give_up_seconds)


def errors(job: Job) -> child.Result:
    """Measure test errors after each iteration, lowest and last log loss, and time of the fit."""
    fitted, cpu = timed_fit(job, job.steps)
    errors, losses = curve(job.of, fitted, *job.read("test"))
    return {"cpu": cpu, "errors": errors, "lowest_loss": min(losses), "last_loss": losses[-1]}


def validation(job: Job) -> child.Result:
    """Find the best iterations on held-out rows, by loss and by errors, and their test errors."""
    X, y = job.read("train")
    X_fit, X_held, y_fit, y_held = train_test_split(
        X, y, test_size=HELD_OUT, stratify=y, random_state=0
    )
    fitted = job.make(job.steps).fit(X_fit, y_fit)
    held_errors, held_losses = curve(job.of, fitted, X_held, y_held)
    errors, _ = curve(job.of, fitted, *job.read("test"))
    steps = {"by_loss": first_lowest(held_losses), "by_errors": first_lowest(held_errors)}
    return {**steps, **{f"errors_{by}": errors[step - 1] for by, step in steps.items()}}


def seeds(job: Job) -> child.Result:
    """Measure lowest and last errors and log loss of our fits with different random states."""
    X, y = job.read("train")
    found: child.Result = {"lowest": [], "last": [], "lowest_loss": [], "last_loss": []}
    for seed in range(N_SEEDS):
        fitted = job.make(job.steps).set_params(random_state=seed).fit(X, y)
        errors, losses = curve(job.of, fitted, *job.read("test"))
        for name, value in (("lowest", min(errors)), ("last", errors[-1])):
            found[name].append(value)
        for name, value in (("lowest_loss", min(losses)), ("last_loss", losses[-1])):
            found[name].append(value)
    return found


def step(job: Job) -> child.Result:
    """Measure training, and training of one iteration, which includes the preparation."""
    _, first = timed_fit(job, 1)
    _, cpu = timed_fit(job, job.steps)
    return {"cpu": cpu, "cpu_first": first}


def model(job: Job) -> child.Result:
    """Measure predict_proba of many rows, the best of some calls, and the pickled size."""
    fitted, _ = timed_fit(job, job.steps)
    X, _ = job.read("test")
    batch = np.resize(X, (BATCH, X.shape[1]))
    predict_proba = job.of.predictor(fitted, 1)
    seconds = min(timed(lambda: predict_proba(batch))[1] for _ in range(N_CALLS))
    return {"cpu": seconds, "rows": BATCH, "pickle": len(pickle.dumps(fitted))}


def target(job: Job) -> child.Result:
    """Measure training up to the first iteration that reaches the target."""
    fitted, cpu = timed_fit(job, job.steps)
    X, y = job.read("test")
    predicted = np.ravel(fitted.predict(X))
    return {"cpu": cpu, "last": int(np.count_nonzero(predicted != y))}


MEASURES: dict[str, Callable[[Job], child.Result]] = {
    "errors": errors,
    "seeds": seeds,
    "validation": validation,
    "step": step,
    "model": model,
    "target": target,
}


def curve(system: System, fitted: Any, X: Floats, y: np.ndarray) -> tuple[list[int], list[float]]:
    """Return errors and mean log loss after each iteration."""
    found = [judged(raw, y) for raw in system.staged_raw(fitted, X)]
    return [n for n, _ in found], [loss for _, loss in found]


def judged(raw: Floats, y: np.ndarray) -> tuple[int, float]:
    raw = np.asarray(raw, dtype=np.float64)
    losses = logsumexp(raw, axis=1) - raw[np.arange(len(y)), y]
    return int(np.count_nonzero(raw.argmax(axis=1) != y)), round(float(losses.mean()), 6)


def timed_fit(job: Job, steps: int) -> tuple[Any, float]:
    """Return the model, and CPU seconds of the whole fit including binning."""
    X, y = job.read("train")
    _warm_up(job)
    return timed(lambda: job.make(steps).fit(X, y))


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


def _warm_up(job: Job) -> None:
    X = np.random.default_rng(0).normal(size=(200, 4))
    job.make(2).fit(X, np.arange(200) % 3).predict_proba(X)


def run(job: Job) -> child.Result:
    """Return the measurement and its origin."""
    return {**origin(job.of.package), **MEASURES[job.what](job)}


def first_lowest(values: Sequence[float]) -> int:
    """Return the first iteration, counted from 1, of the lowest value."""
    return int(np.argmin(values)) + 1


if __name__ == "__main__":
    print("\n" + json.dumps(run(Job(**json.loads(sys.argv[1])))))
