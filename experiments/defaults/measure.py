"""Measure one cell: time of a fit on a part of a table, and its errors on held-out rows.

``python -m experiments.defaults.measure`` reads one job from each line of the input and prints a line for
each. All times are CPU times of one thread.
"""

import json
import os
import sys
import time
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.results import machine
from numpy.typing import NDArray

from experiments.defaults import pool
from experiments.defaults.candidates import Parameters
from experiments.defaults.frames import levels_of
from experiments.defaults.rows import Parts, Rows
from experiments.defaults.systems import MAX_STEPS, Fitted, System, Task, system

TEST = "test"
VALIDATION_SHARE = 0.25  # fraction of the training part in each of its splits
HELD_OUT = 0.2  # fraction of the training rows, for early stopping
SMALLEST_PROBA = 1e-15
FEW_STEPS = 100  # fits of at most this many iterations need no estimate of the time
PROBED = 6

Line = dict[str, Any]


class TooSlowError(Exception):
    """A fit would exceed the time limit."""


class Job(NamedTuple):
    """The measurement."""

    file: str
    mode: str  # "defaults" or "stopping"
    part: str  # "test", or "cv-0" and so on
    system: str
    parameters: Parameters
    limit: float  # CPU seconds


@lru_cache(maxsize=1)
def read(file: str) -> Parts:
    return pool.read(Path(file))


def measure(job: Job) -> Line:
    """Fit and evaluate."""
    fit_rows, judged_rows = parts_of(read(job.file), job.part)
    train, held_out = fit_rows, None
    if job.mode == "stopping":
        train, held_out = fit_rows.parted(HELD_OUT, seed=1)
    of, levels = system(job.system), levels_of(train)
    validation = held_out and (of.as_table(held_out, levels), held_out.y)
    categories = [f"x{i}" for i in levels]
    task = Task(of.as_table(train, levels), train.y, validation, categories, job.parameters)
    warm_up(of)
    fitted, seconds, most = timed_fit(of, task, job.limit)
    judged = judge(fitted.model.predict_proba(of.as_table(judged_rows, levels)), judged_rows.y)
    return {**judged, "cpu": round(seconds, 4), "steps": int(fitted.n_iter), **most, **origin(of)}


def parts_of(parts: Parts, part: str) -> tuple[Rows, Rows]:
    """Return training and evaluation rows: both parts, or a split of the training part."""
    if part == TEST:
        return parts.train, parts.test
    return parts.train.parted(VALIDATION_SHARE, seed=100 + int(part.removeprefix("cv-")))


def timed_fit(of: System, task: Task, limit: float) -> tuple[Fitted, float, Line]:
    """Return the model, the time of the fit, and the reduced maximum of iterations, if any."""
    if task.validation is None:
        steps = task.parameters.get("max_iter")
        expected = steps or of.default_steps
        if expected > FEW_STEPS and affordable(of, task, expected, limit) < expected:
            raise TooSlowError(f"{expected} steps would take more than {limit:g} s")
        return *timed(of, task, steps), {}
    most = affordable(of, task, MAX_STEPS, limit)
    return *timed(of, task, most), {"most_steps": most} if most < MAX_STEPS else {}


def affordable(of: System, task: Task, steps: int, limit: float) -> int:
    """Return the number of iterations within the time limit; the first includes the preparation."""
    _, first = timed(of, task, 1)
    if first * steps <= limit:
        return steps
    _, probed = timed(of, task, PROBED)
    # Clocks are coarse: an iteration takes at least a tenth of the measured time.
    a_step = max((probed - first) / (PROBED - 1), probed / PROBED / 10)
    return max(1, min(steps, int((limit - first) / a_step)))


def timed(of: System, task: Task, steps: int | None) -> tuple[Fitted, float]:
    began = time.process_time()
    fitted = of.fit(task, steps)
    return fitted, time.process_time() - began


@lru_cache
def warm_up(of: System) -> None:
    """Fit a few rows before the clock starts."""
    X, y = np.random.default_rng(0).normal(size=(200, 4)), np.arange(200) % 3
    of.fit(Task(X, y, None, [], {}), 2).model.predict_proba(X)


def judge(proba: NDArray[np.floating[Any]], y: NDArray[np.int64]) -> Line:
    """Return errors and mean log loss."""
    of_label = np.clip(proba[np.arange(len(y)), y].astype(np.float64), SMALLEST_PROBA, 1)
    errors = int(np.count_nonzero(proba.argmax(axis=1) != y))
    return {"errors": errors, "n": len(y), "log_loss": round(float(-np.log(of_label).mean()), 6)}


def origin(of: System) -> Line:
    """Return the origin of a measurement: versions and machine."""
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    return {"version": version(of.package), "date": date, "machine": machine()}


def answer(job: Job) -> Line:
    """Return the measurement, or the reason why there is none."""
    try:
        return measure(job)
    except Exception as error:  # noqa: BLE001  whatever a package raises is its result
        words = str(error).strip().splitlines() or [""]
        return {"reason": f"{type(error).__name__}: {words[-1]}"[:300]}


def main() -> None:
    """Answer jobs until the end of the input."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # so that output of packages is not read as a result
    for line in sys.stdin:
        print(json.dumps(answer(Job(**json.loads(line)))), file=answers, flush=True)


if __name__ == "__main__":
    main()
