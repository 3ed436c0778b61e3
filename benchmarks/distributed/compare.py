"""Compare two workers of one thread with one process of one thread, and with other packages on Dask.

    python -m benchmarks.distributed.compare run       # needs 16 GB and two idle cores, half an hour
    python -m benchmarks.distributed.compare show

The seconds of an iteration are the difference of two fits over the difference of their iterations, so reading,
binning and starting are left out. Systems alternate. Results are appended to results/distributed.jsonl.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.distributed.table import Shape, part, rows_of_rank

RESULTS = Path(__file__).parents[1] / "results" / "distributed.jsonl"
DRAWN = Shape(5_000_000, 50, 7)
LEAVES, N_TURNS = 64, 1


class Job(NamedTuple):
    """A system and its task."""

    system: str
    table: str  # "drawn", or "covertype"
    kind: str  # "per class", or "shared"
    n_iter: int


def parameters(job: Job) -> dict[str, Any]:
    trees = {"algorithm": "multi-output"} if job.kind == "shared" else {"algorithm": "logitboost"}
    return trees | {
        "max_iter": job.n_iter,
        "learning_rate": 0.1,
        "max_leaf_nodes": LEAVES,
        "max_features": None,
        "l2_regularization": 0.1,
        "n_jobs": 1,
    }


# ------------------------------------------------------------------------------------------- tables


def whole(table: str, rank: int = 0, n_ranks: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a rank as one array."""
    if table == "drawn":
        return rows_of_rank(DRAWN, rank, n_ranks)
    from experiments.datasets import load  # noqa: PLC0415 (only where that table is asked for)

    split = load("covertype")
    rows = np.array_split(np.arange(len(split.y_train)), n_ranks)[rank]
    return split.X_train[rows].astype(np.float32), split.y_train[rows]


def collections(table: str, client: Any) -> tuple[Any, Any]:
    """Return X and y as dask arrays with chunks on the workers."""
    import dask.array as da  # noqa: PLC0415
    from dask import delayed, persist  # noqa: PLC0415
    from distributed import wait  # noqa: PLC0415

    if table == "drawn":
        n_parts, draw = DRAWN.n_parts, delayed(lambda i: part(DRAWN, i), pure=False)
    else:
        n_parts, draw = 4, delayed(lambda i: whole(table, i, 4), pure=False)
    drawn = persist(*[draw(i) for i in range(n_parts)])
    wait(drawn)
    n_features = drawn[0][0].compute().shape[1]
    lengths = [len(client.compute(rows[1]).result()) for rows in drawn]
    X = [
        da.from_delayed(rows[0], (n, n_features), np.float32)
        for rows, n in zip(drawn, lengths, strict=True)
    ]
    y = [da.from_delayed(rows[1], (n,), np.int32) for rows, n in zip(drawn, lengths, strict=True)]
    X, y = persist(da.concatenate(X), da.concatenate(y))
    wait([X, y])
    return X, y


# ------------------------------------------------------------------------------------------ systems


def fit_alone(job: Job) -> float:
    from abcgbm import ABCBoostClassifier  # noqa: PLC0415

    X, y = whole(job.table)
    began = time.perf_counter()
    ABCBoostClassifier(**parameters(job)).fit(X, y)
    return time.perf_counter() - began


def fit_on_mpi(job: Job) -> float:
    command = [str(Path(sys.executable).with_name("mpirun")), "--allow-run-as-root", "-n", "2"]
    return _seconds_of([*command, *_child("rank", job)])


def fit_rank(job: Job) -> float:
    from mpi4py import MPI  # noqa: PLC0415

    from abcgbm import ABCBoostClassifier  # noqa: PLC0415
    from abcgbm.distributed import MPICommunicator  # noqa: PLC0415

    communicator = MPICommunicator(MPI.COMM_WORLD)
    X, y = whole(job.table, communicator.rank, communicator.n_ranks)
    MPI.COMM_WORLD.Barrier()
    began = time.perf_counter()
    ABCBoostClassifier(**parameters(job)).fit(X, y, communicator=communicator)
    return time.perf_counter() - began


def on_dask(fit: Callable[[Job, Any, Any, Any], None]) -> Callable[[Job], float]:
    def timed(job: Job) -> float:
        from distributed import Client, LocalCluster  # noqa: PLC0415

        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            X, y = collections(job.table, client)
            began = time.perf_counter()
            fit(job, client, X, y)
            return time.perf_counter() - began

    return timed


def fit_ours(job: Job, client: Any, X: Any, y: Any) -> None:
    from abcgbm.distributed import DaskABCBoostClassifier  # noqa: PLC0415

    DaskABCBoostClassifier(**parameters(job), client=client).fit(X, y)


def fit_xgboost(job: Job, client: Any, X: Any, y: Any) -> None:
    from xgboost import dask as xgb  # noqa: PLC0415

    strategy = "multi_output_tree" if job.kind == "shared" else "one_output_per_tree"
    model = xgb.DaskXGBClassifier(
        n_estimators=job.n_iter,
        max_leaves=LEAVES,
        max_depth=0,
        grow_policy="lossguide",
        tree_method="hist",
        max_bin=256,
        learning_rate=0.1,
        reg_lambda=0.1,
        n_jobs=1,
        multi_strategy=strategy,
    )
    model.client = client
    model.fit(X, y)


def fit_lightgbm(job: Job, client: Any, X: Any, y: Any) -> None:
    from lightgbm import DaskLGBMClassifier  # noqa: PLC0415

    DaskLGBMClassifier(
        client=client,
        n_estimators=job.n_iter,
        num_leaves=LEAVES,
        learning_rate=0.1,
        reg_lambda=0.1,
        min_child_samples=10,
        n_jobs=1,
        verbosity=-1,
    ).fit(X, y)


FITS: dict[str, Callable[[Job], float]] = {
    "alone": fit_alone,
    "MPI": fit_on_mpi,
    "Dask": on_dask(fit_ours),
    "xgboost.dask": on_dask(fit_xgboost),
    "lightgbm.dask": on_dask(fit_lightgbm),
}
SYSTEMS = {"per class": tuple(FITS), "shared": ("alone", "MPI", "Dask", "xgboost.dask")}
RESULT_PREFIX = "seconds: "  # of the measurement in a child process's output; packages print, too
STEPS = {
    ("drawn", "per class"): (1, 5),
    ("drawn", "shared"): (2, 14),
    ("covertype", "per class"): (5, 25),
    ("covertype", "shared"): (5, 55),
}


# ---------------------------------------------------------------------------------------- measuring


def _child(what: str, job: Job) -> list[str]:
    return [sys.executable, "-m", "benchmarks.distributed.compare", what, json.dumps(job)]


def _seconds_of(command: list[str]) -> float:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    results = [line for line in done.stdout.splitlines() if line.startswith(RESULT_PREFIX)]
    return min(float(line.removeprefix(RESULT_PREFIX)) for line in results)


def run(tables: list[str]) -> None:
    """Measure the missing results."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    keys = ("system", "table", "kind", "turn")
    known = [{key: json.loads(line)[key] for key in keys} for line in lines]
    with RESULTS.open("a") as results:
        for turn, (table, (kind, systems)) in product(
            range(N_TURNS), product(tables, SYSTEMS.items())
        ):
            for system in systems:
                found = {"system": system, "table": table, "kind": kind, "turn": turn}
                if found in known:
                    continue
                steps = STEPS[table, kind]
                seconds = [_measured(Job(system, table, kind, n)) for n in steps]
                line = found | {"steps": steps, "seconds": seconds}
                results.write(json.dumps(line) + "\n")
                results.flush()


def _measured(job: Job) -> float | str:
    try:
        return _seconds_of(_child("fit", job))
    except RuntimeError as error:
        return str(error).strip().splitlines()[-1][:200]


def show() -> None:
    best: dict[tuple[str, str, str], float] = {}
    for line in RESULTS.read_text().splitlines():
        found = json.loads(line)
        key = (found["table"], found["kind"], found["system"])
        if any(isinstance(seconds, str) for seconds in found["seconds"]):
            print(*key, found["seconds"])
            continue
        few, many = found["steps"]
        of_step = (found["seconds"][1] - found["seconds"][0]) / (many - few)
        best[key] = min(of_step, best.get(key, np.inf))
    print(
        "| table | trees | system | seconds per iteration | beside one process |\n|---|---|---|---|---|"
    )
    for (table, kind, system), of_step in best.items():
        ratio = of_step / best[table, kind, "alone"]
        print(f"| {table} | {kind} | {system} | {of_step:.2f} | {ratio:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["run", "show", "fit", "rank"])
    parser.add_argument("given", nargs="*", default=["drawn", "covertype"])
    given = parser.parse_args()
    if given.what in ("fit", "rank"):
        job = Job(*json.loads(given.given[0]))
        seconds = (fit_rank if given.what == "rank" else FITS[job.system])(job)
        print(f"{RESULT_PREFIX}{seconds}", flush=True)
    elif given.what == "run":
        run(given.given)
    else:
        show()


if __name__ == "__main__":
    main()
