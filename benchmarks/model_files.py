"""Compare model files with those of the peers: size, time, and the effect of a flipped bit.

``python -m benchmarks.model_files`` measures everything and writes ``benchmarks/results/model_files.json``
and the tables of ``docs/deployment.md``, between its markers; ``--flips 0`` keeps the earlier results of flips.

Systems train with the same generated table (of the shape of Letter), iterations, leaves and learning rate. For
the flips, each system trains a small model; a process for every flip loads the file, with an address space of
6 GiB, and predicts.
"""

import argparse
import json
import os
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Lines, markdown, write_between
from benchmarks.results import FOLDER, ROOT

RESULTS, PAGE, MARKER = FOLDER / "model_files.json", ROOT / "docs" / "deployment.md", "model files"
SECONDS_TO_HANG, ADDRESS_SPACE, N_TIMES = 5, 6 * 2**30, 5
OUTCOMES = ("same", "error", "other", "crash", "hang", "memory")
Floats = NDArray[np.float64]
Predict = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Task:
    """Training rows and parameters."""

    X: Floats
    y: NDArray[np.int64]
    n_iter: int
    n_leaves: int

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1


def drawn(n_rows: int, n_features: int, n_classes: int, n_iter: int, n_leaves: int) -> Task:
    """Generate classes around centres, with values rounded to 16 as in Letter."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_rows)
    X = rng.normal(size=(n_classes, n_features))[y] * 1.3 + rng.normal(size=(n_rows, n_features))
    return Task(np.clip(np.round(2 * X + 8), 0, 15), y, n_iter, n_leaves)


LETTER = (20_000, 16, 26, 50, 20)
FLIPPED = (1_000, 8, 5, 10, 8)


# ---------------------------------------------------------------------------------------- systems


@dataclass(frozen=True)
class System:
    """A file format: functions that train, save, and load a model for prediction."""

    name: str
    package: str
    trees: str
    fit: Callable[[Task], Any]
    save: Callable[[Any, str], None]
    load: Callable[[str], Predict]


def _fit_ours(algorithm: str) -> Callable[[Task], Any]:
    def fit(task: Task) -> Any:
        from abcgbm import ABCBoostClassifier  # noqa: PLC0415

        model = ABCBoostClassifier(
            algorithm,
            max_iter=task.n_iter,
            max_leaf_nodes=task.n_leaves,
            learning_rate=0.1,
            n_jobs=1,
        )
        return model.fit(task.X, task.y)

    return fit


def _load_ours(path: str) -> Predict:
    from abcgbm import ABCBoostClassifier  # noqa: PLC0415

    return ABCBoostClassifier.load_model(path).set_params(n_jobs=1).predict_proba


def _fit_xgboost(strategy: str) -> Callable[[Task], Any]:
    def fit(task: Task) -> Any:
        xgboost = import_module("xgboost")
        parameters = {
            "objective": "multi:softprob",
            "num_class": task.n_classes,
            "multi_strategy": strategy,
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_depth": 0,
            "max_leaves": task.n_leaves,
            "eta": 0.1,
            "nthread": 1,
        }
        return xgboost.train(parameters, xgboost.DMatrix(task.X, task.y), task.n_iter)

    return fit


def _load_xgboost(path: str) -> Predict:
    xgboost = import_module("xgboost")
    booster = xgboost.Booster({"nthread": 1}, model_file=path)
    return lambda X: booster.predict(xgboost.DMatrix(X))


def _fit_lightgbm(task: Task) -> Any:
    lightgbm = import_module("lightgbm")
    parameters = {
        "objective": "multiclass",
        "num_class": task.n_classes,
        "num_leaves": task.n_leaves,
        "learning_rate": 0.1,
        "num_threads": 1,
        "verbose": -1,
    }
    return lightgbm.train(parameters, lightgbm.Dataset(task.X, task.y), task.n_iter)


def _load_lightgbm(path: str) -> Predict:
    booster = import_module("lightgbm").Booster(model_file=path)
    return lambda X: booster.predict(X, num_threads=1)


def _fit_catboost(task: Task) -> Any:
    model = import_module("catboost").CatBoostClassifier(
        iterations=task.n_iter,
        grow_policy="Lossguide",
        max_leaves=task.n_leaves,
        learning_rate=0.1,
        thread_count=1,
        allow_writing_files=False,
        verbose=False,
    )
    return model.fit(task.X, task.y)


def _load_catboost(path: str) -> Predict:
    model = import_module("catboost").CatBoostClassifier()
    model.load_model(path)
    return lambda X: model.predict_proba(X, thread_count=1)


def _save(model: Any, path: str) -> None:
    model.save_model(path)


PER_CLASS, MULTI_OUTPUT = "one per class", "multi-output"
SYSTEMS = {
    "model.abcgbm": System(
        "abcgbm", "abcgbm", PER_CLASS, _fit_ours("logitboost"), _save, _load_ours
    ),
    "model.ubj": System(
        "XGBoost ubj",
        "xgboost",
        PER_CLASS,
        _fit_xgboost("one_output_per_tree"),
        _save,
        _load_xgboost,
    ),
    "model.json": System(
        "XGBoost json",
        "xgboost",
        PER_CLASS,
        _fit_xgboost("one_output_per_tree"),
        _save,
        _load_xgboost,
    ),
    "model.txt": System(
        "LightGBM text", "lightgbm", PER_CLASS, _fit_lightgbm, _save, _load_lightgbm
    ),
    "shared.abcgbm": System(
        "abcgbm", "abcgbm", MULTI_OUTPUT, _fit_ours("multi-output"), _save, _load_ours
    ),
    "shared.ubj": System(
        "XGBoost ubj",
        "xgboost",
        MULTI_OUTPUT,
        _fit_xgboost("multi_output_tree"),
        _save,
        _load_xgboost,
    ),
    "shared.cbm": System(
        "CatBoost cbm", "catboost", MULTI_OUTPUT, _fit_catboost, _save, _load_catboost
    ),
}


# --------------------------------------------------------------------------------- size and time


def best_seconds(call: Callable[[], Any]) -> float:
    """Return the shortest CPU time of a few calls."""
    times = []
    for _ in range(N_TIMES):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times)


def measured(file: str, system: System, folder: Path) -> dict[str, Any]:
    path = str(folder / file)
    model = system.fit(drawn(*LETTER))
    save_seconds = best_seconds(lambda: system.save(model, path))
    rows = drawn(*LETTER).X[:1]
    return {
        "bytes": os.stat(path).st_size,  # noqa: PTH116
        "save_ms": 1e3 * save_seconds,
        "load_ms": 1e3 * best_seconds(lambda: system.load(path)),
        "load_and_predict_ms": 1e3 * best_seconds(lambda: system.load(path)(rows)),
    }


# ------------------------------------------------------------------------------------------ flips


def in_child(work: Callable[[], int], seconds: float = 600) -> int | str:
    """Fork, and return the exit code, or "crash" or "hang"."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        try:
            code = work()
        except MemoryError:
            code = OUTCOMES.index("memory")
        except Exception:  # noqa: BLE001 - whatever a system raises is an error that it noticed
            code = OUTCOMES.index("error")
        os._exit(code)
    deadline = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "crash" if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hang"
        time.sleep(0.001)


def flips(file: str, system: System, folder: Path, n_flips: int) -> dict[str, int]:
    """Flip one bit of the file, load and predict in a new process; count the outcomes."""
    path, changed, expected = folder / file, str(folder / f"changed_{file}"), folder / "answer.npy"
    task = drawn(*FLIPPED)

    def train() -> int:
        system.save(system.fit(task), str(path))
        np.save(expected, system.load(str(path))(task.X[:200]))
        return 0

    def look() -> int:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        answer = system.load(changed)(task.X[:200])
        is_same = np.array_equal(answer, np.load(expected))
        return OUTCOMES.index("same" if is_same else "other")

    import_module(system.package)  # once, before the fork
    if in_child(train) != 0:
        raise RuntimeError(f"{system.name} could not be trained")
    content = path.read_bytes()
    found: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
    for place in np.random.default_rng(0).integers(0, 8 * len(content), n_flips).tolist():
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        Path(changed).write_bytes(damaged)
        code = in_child(look, SECONDS_TO_HANG)
        found[code if isinstance(code, str) else OUTCOMES[code]] += 1
    return dict(found) | {"bytes": len(content)}


# ------------------------------------------------------------------------------------------- page


def tables(results: dict[str, Any]) -> Lines:
    """Return the tables, and the versions of the systems."""
    n_rows, n_features, n_classes, n_iter, n_leaves = LETTER
    task = f"{n_rows:,} rows, {n_features} features, {n_classes} classes, {n_iter} iterations"
    times = ["save, ms", "load, ms", "load and predict a row, ms"]
    what = ["crash", "hang", "silently another model", "out of memory", "error", "same"]
    versions = ", ".join(f"{name} {of}" for name, of in results["versions"].items())
    return [
        f"{task}, {n_leaves} leaves, one thread; CPU time, the best of {N_TIMES}:\n",
        *_table(["kilobytes", *times], results["files"], _sizes_and_times),
        f"Of {results['n_flips']:,} flips of one bit, small models of {FLIPPED[2]} classes:\n",
        *_table(what, results["flips"], _outcomes),
        f"Versions: {versions}.\n",
    ]


def _table(columns: list[str], found: dict[str, Any], cells: Callable[[Any], list[str]]) -> Lines:
    rows = [[of.trees, of.name, *cells(found[file])] for file, of in SYSTEMS.items()]
    return markdown(["trees", "file", *columns], rows)


def _sizes_and_times(of: dict[str, float]) -> list[str]:
    times = [f"{of[name]:.1f}" for name in ("save_ms", "load_ms", "load_and_predict_ms")]
    return [f"{of['bytes'] / 1e3:,.0f}", *times]


def _outcomes(of: dict[str, int]) -> list[str]:
    return [str(of[name]) for name in ("crash", "hang", "other", "memory", "error", "same")]


def measure(n_flips: int, results: dict[str, Any]) -> None:
    """Measure everything, and save each result at once."""

    def note(what: str, found: Any) -> None:
        results[what] = found
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")

    with TemporaryDirectory() as folder:
        if n_flips:  # first, before threads are started
            counts = {}
            for file, system in SYSTEMS.items():
                counts[file] = flips(file, system, Path(folder), n_flips)
                print(system.name, system.trees, counts[file], flush=True)
            note("flips", counts)
            note("n_flips", n_flips)
        note("files", {f: measured(f, s, Path(folder)) for f, s in SYSTEMS.items()})
        note("versions", {s.package: version(s.package) for s in SYSTEMS.values()})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_files", description=__doc__)
    parser.add_argument(
        "--flips", type=int, default=1000, help="flips of each file; 0 keeps the earlier results"
    )
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    measure(parser.parse_args().flips, results)
    write_between(PAGE, MARKER, tables(results))


if __name__ == "__main__":
    main()
