"""Measure the latency of ``predict_proba`` for single rows in a process that has loaded the model.

``python -m benchmarks.serving run`` fits every system on a generated table and writes the models to files. For
each system and round, a new process loads a model and predicts single rows: in one thread, in four concurrent
threads, and in a child after ``fork``. Every model computes with one thread. Rounds alternate between systems;
lines are appended to ``benchmarks/results/serving.jsonl``. ``report`` writes the table into
``docs/deployment.md`` with the smallest number of the rounds, because other load can only add to it.
"""

import argparse
import json
import os
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks import child, sets
from benchmarks.multi_output.systems import OURS
from benchmarks.peers import PEERS, Setting, System
from benchmarks.report import Lines, markdown, write_between
from benchmarks.results import FOLDER, ROOT, Line, Results, origin

N_THREADS = 4
N_WARM_UP = 50
WAYS = ("alone", "threads", "fork")
MARKER = "serving"  # of the table in the page
TITLE = """\
Microseconds for one row of `{set}` (rows x features x classes), {steps} iterations of {leaves} leaves: median and 99th
percentile of {n_calls:,} calls, the best of {n_rounds} rounds. "Load" is the time to load the file, a pickle or the ONNX
file, without importing the package; the first call follows.
"""

Predict = Callable[[np.ndarray], Any]


class Served(NamedTuple):
    """A system, and the runtime of its model: the package itself or onnxruntime."""

    system: System
    by_onnx: bool = False

    @property
    def package(self) -> str:
        return "onnxruntime" if self.by_onnx else self.system.package

    @property
    def module(self) -> str:
        return "onnxruntime" if self.by_onnx else self.system.module


SERVED: dict[str, Served] = {
    "shared": Served(OURS["shared"]),
    "abc-mart": Served(OURS["abc-mart"]),
    "mart": Served(OURS["mart"]),
    "LightGBM": Served(PEERS["LightGBM"]),
    "XGBoost": Served(PEERS["XGBoost"]),
    "shared, onnxruntime": Served(OURS["shared"], by_onnx=True),
    "mart, onnxruntime": Served(OURS["mart"], by_onnx=True),
}


@dataclass(frozen=True)
class Plan:
    """The measurements that a run is to make."""

    set: str = "20000x20x10"
    systems: Sequence[str] = tuple(SERVED)
    steps: int = 100
    leaves: int = 20
    rounds: int = 5
    calls: int = 2000


@dataclass(frozen=True)
class Job:
    """The measurement of one process; ``folder`` has the models and the rows."""

    folder: str
    system: str
    calls: int

    @property
    def served(self) -> Served:
        return SERVED[self.system]


# ------------------------------------------------------------------------------------------- models


def write_models(plan: Plan, folder: Path) -> None:
    """Fit each system once, and save the models."""
    data = sets.load(plan.set)
    np.save(folder / "rows.npy", data.X_test)
    fitted: dict[str, Any] = {}
    for name in plan.systems:
        system, by_onnx = SERVED[name]
        if system.name not in fitted:
            setting = Setting(plan.steps, 1, max_leaf_nodes=plan.leaves)
            fitted[system.name] = system.make(setting).fit(data.X_train, data.y_train)
        model, file = fitted[system.name], folder / name
        if by_onnx:
            model.to_onnx(file)
        else:
            file.write_bytes(pickle.dumps(model))


def load(job: Job) -> Predict:
    """Load a model; return a function that predicts probabilities with one thread."""
    served, file = job.served, Path(job.folder) / job.system
    if served.by_onnx:
        return load_onnx(file)
    return served.system.predictor(pickle.loads(file.read_bytes()), 1)


def load_onnx(file: Path) -> Predict:
    onnxruntime = import_module("onnxruntime")  # needed only by its own systems
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return lambda rows: session.run(["probabilities"], {"X": rows})


# ---------------------------------------------------------------------------------------- measuring


def measure(job: Job) -> child.Result:
    """Load the model, and measure single rows in every way, in microseconds."""
    rows = np.load(Path(job.folder) / "rows.npy")
    rows = rows.astype(np.float32) if job.served.by_onnx else rows
    import_module(job.served.module)
    began = time.perf_counter()
    predict = load(job)
    loaded = time.perf_counter()
    predict(rows[:1])
    times = {"load": 1e6 * (loaded - began), "first": 1e6 * (time.perf_counter() - loaded)}
    latencies(predict, rows, N_WARM_UP)
    found = {
        "alone": latencies(predict, rows, job.calls),
        "threads": by_threads(predict, rows, job.calls),
        "fork": after_fork(lambda: latencies(predict, rows, job.calls)),
    }
    return {
        **origin(job.served.package),
        **times,
        **{way: summary(of) for way, of in found.items()},
    }


def latencies(predict: Predict, rows: np.ndarray, n_calls: int) -> list[float]:
    """Return the seconds of each call with one row."""
    found = []
    for call in range(n_calls):
        row = rows[call % len(rows)][None]
        began = time.perf_counter()
        predict(row)
        found.append(time.perf_counter() - began)
    return found


def by_threads(predict: Predict, rows: np.ndarray, n_calls: int) -> list[float]:
    """Divide the calls among threads that share the model."""
    with ThreadPoolExecutor(N_THREADS) as pool:
        each = n_calls // N_THREADS
        parts = [pool.submit(latencies, predict, rows, each) for _ in range(N_THREADS)]
        return [seconds for part in parts for seconds in part.result()]


def after_fork(call: Callable[[], list[float]]) -> list[float]:
    """Measure in a forked child process, which inherits the model."""
    end, start = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with os.fdopen(start, "w") as pipe:
                pipe.write(json.dumps(call()))
        finally:
            os._exit(0)  # in any case: the remaining code is the parent's
    os.close(start)
    with os.fdopen(end) as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    found: list[float] = json.loads(answer)
    return found


def summary(seconds: list[float]) -> dict[str, float]:
    """Return the percentiles in microseconds."""
    half, most = np.percentile(np.array(seconds) * 1e6, [50, 99])
    return {"p50": round(float(half), 1), "p99": round(float(most), 1)}


def in_child(job: Job) -> child.Result:
    """Measure in a child process."""
    command = [sys.executable, "-m", "benchmarks.serving", "measure", json.dumps(asdict(job))]
    return child.run(command, 1, give_up_seconds=600)


def run(plan: Plan, results: Results) -> None:
    """Measure round by round; each line is saved at once."""
    with TemporaryDirectory(prefix="serving-") as folder:
        write_models(plan, Path(folder))
        for number in range(plan.rounds):
            for system in plan.systems:
                where = {**asdict(replace(plan, systems=())), "system": system, "round": number}
                try:
                    found = in_child(Job(folder, system, plan.calls))
                except child.ChildFailedError as error:
                    found = {"reason": str(error)}
                results.add({**where, **found})
                print(system, number, found.get("alone", found), flush=True)


# --------------------------------------------------------------------------------------- the report


def tables(results: Results) -> Lines:
    """Return a table for each set with the best round of each system."""
    lines = [line for line in results.lines if "reason" not in line]
    parts: Lines = []
    for name in dict.fromkeys(line["set"] for line in lines):
        parts += table([line for line in lines if line["set"] == name])
    return [*parts, who(lines)]


def table(lines: list[Line]) -> Lines:
    """Return the table of the last measurement of a set."""
    last = lines[-1]
    same = ("steps", "leaves", "calls", "rounds")
    lines = [line for line in lines if all(line[name] == last[name] for name in same)]
    head = ["", "load, ms", "first call", "alone", f"{N_THREADS} threads", "after fork"]
    systems = [system for system in SERVED if any(line["system"] == system for line in lines)]
    rows = [row(system, [of for of in lines if of["system"] == system]) for system in systems]
    title = TITLE.format(**last, n_calls=last["calls"], n_rounds=last["rounds"])
    return [title, *markdown(head, rows)]


def row(system: str, lines: list[Line]) -> list[str]:
    def best(of: Callable[[Line], float]) -> str:
        return f"{min(map(of, lines)):,.0f}"

    ways = [
        " / ".join(best(lambda line, way=way, p=p: line[way][p]) for p in ("p50", "p99"))
        for way in WAYS
    ]
    name = system.replace("shared", "multi-output")
    return [name, best(lambda of: of["load"] / 1000), best(lambda of: of["first"]), *ways]


def who(lines: list[Line]) -> str:
    """Return versions and machine."""
    versions = sorted({f"{SERVED[of['system']].package} {of['version']}" for of in lines})
    loads = [of["load_average"] for of in lines]
    machines, dates = {of["machine"] for of in lines}, {of["date"][:10] for of in lines}
    return (
        f"{', '.join(versions)}; {', '.join(sorted(machines))}; {max(dates, default='')}; the load average was "
        f"{min(loads, default=0):g} to {max(loads, default=0):g}.\n"
    )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; defaults are those of the plan."""
    top = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", argument_default=argparse.SUPPRESS)
    run_parser.add_argument("--set", help="rows x features x classes, or one of the paper's sets")
    run_parser.add_argument("--systems", nargs="+", choices=SERVED)
    for name in ("steps", "leaves", "rounds", "calls"):
        run_parser.add_argument(f"--{name}", type=int)
    report_parser = commands.add_parser("report")
    report_parser.add_argument("--page", type=Path, default=ROOT / "docs" / "deployment.md")
    for command in (run_parser, report_parser):
        command.add_argument("--file", type=Path, default=FOLDER / "serving.jsonl")
    commands.add_parser("measure").add_argument("job", type=json.loads)
    return top


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line."""
    given = vars(parser().parse_args(arguments))
    command = given.pop("command")
    if command == "measure":
        print("\n" + json.dumps(measure(Job(**given["job"]))))
    elif command == "report":
        write_between(given["page"], MARKER, tables(Results(given["file"])))
    else:
        results = Results(given.pop("file"))
        run(Plan(**given), results)


if __name__ == "__main__":
    main()
