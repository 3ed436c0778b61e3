"""Compare errors, log loss and times with the peers on tables with categories and missing values.

``python -m experiments.real_tables run [data set ...] [--systems name ...]`` measures cells missing
in ``experiments/results/real_tables.jsonl``; ``python -m experiments.real_tables report`` writes the
tables of ``docs/benchmarks.md`` from it, between their markers, and prints them.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import catboost
import lightgbm
import numpy as np
import pandas as pd
import xgboost
from benchmarks.report import markdown, write_between
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from abcgbm import ABCBoostClassifier
from experiments import datasets

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "experiments" / "results" / "real_tables.jsonl"
PAGE = ROOT / "docs" / "benchmarks.md"
MARKER = "real tables"

N_THREADS = 1  # so that times on a busy machine are comparable
LEARNING_RATE = 0.1
MAX_LEAF_NODES = 20
MAX_BINS = 255
N_ITER_NO_CHANGE = 10
MIN_SAMPLES_LEAF = {"soybean": 5}  # its smallest class has 6 rows; 10 for the other sets
MAX_ITER = {"100 steps": 100, "early stopping": 1000}
SMALLEST_PROBA = 1e-15


class Rows(NamedTuple):
    """Features and class numbers; -1 is a label that does not occur in the training part."""

    X: pd.DataFrame
    y: NDArray[np.int64]

    def take(self, is_taken: NDArray[np.bool_]) -> "Rows":
        return Rows(self.X[is_taken].reset_index(drop=True), self.y[is_taken])


class Task(NamedTuple):
    """The data of a fit; with validation rows it uses early stopping."""

    train: Rows
    validation: Rows | None
    max_iter: int
    min_samples_leaf: int


class System(NamedTuple):
    """A package, its fit, and its conversion of data frames."""

    package: str
    fit: Callable[[Task], tuple[Any, int]]  # the model and its number of iterations in prediction
    as_table: Callable[[pd.DataFrame], pd.DataFrame] = lambda X: X


def fit_ours(algorithm: str, task: Task) -> tuple[Any, int]:
    """Fit one of our algorithms; validation rows turn on early stopping."""
    model = ABCBoostClassifier.paper(
        algorithm,
        learning_rate=LEARNING_RATE,
        max_iter=task.max_iter,
        max_leaf_nodes=MAX_LEAF_NODES,
        min_samples_leaf=task.min_samples_leaf,
        max_bins=MAX_BINS,
        n_iter_no_change=N_ITER_NO_CHANGE,
        n_jobs=N_THREADS,
    )
    if task.validation is None:
        return model.fit(*task.train), model.n_iter_
    model.fit(*task.train, X_val=task.validation.X, y_val=task.validation.y)
    return model, model.best_iteration_


def fit_lightgbm(task: Task) -> tuple[Any, int]:
    """Fit LightGBM: columns of dtype category are its categories."""
    model = lightgbm.LGBMClassifier(
        learning_rate=LEARNING_RATE,
        n_estimators=task.max_iter,
        num_leaves=MAX_LEAF_NODES,
        min_child_samples=task.min_samples_leaf,
        max_bin=MAX_BINS,
        n_jobs=N_THREADS,
        verbose=-1,
    )
    if task.validation is None:
        return model.fit(*task.train), task.max_iter
    stop = lightgbm.early_stopping(N_ITER_NO_CHANGE, verbose=False)
    model.fit(*task.train, eval_X=task.validation.X, eval_y=task.validation.y, callbacks=[stop])
    return model, model.best_iteration_


def fit_xgboost(task: Task) -> tuple[Any, int]:
    """Fit XGBoost with leaf-wise growth; it has no minimum number of rows in a leaf."""
    model = xgboost.XGBClassifier(
        learning_rate=LEARNING_RATE,
        n_estimators=task.max_iter,
        grow_policy="lossguide",
        max_leaves=MAX_LEAF_NODES,
        max_depth=0,
        tree_method="hist",
        max_bin=MAX_BINS,
        enable_categorical=True,
        n_jobs=N_THREADS,
    )
    if task.validation is None:
        return model.fit(*task.train), task.max_iter
    model.set_params(early_stopping_rounds=N_ITER_NO_CHANGE)
    model.fit(*task.train, eval_set=[task.validation], verbose=False)
    return model, model.best_iteration + 1


def fit_catboost(task: Task) -> tuple[Any, int]:
    """Fit CatBoost with symmetric trees of depth 6; it has no minimum number of rows in a leaf."""
    model = catboost.CatBoostClassifier(
        loss_function="MultiClass",
        learning_rate=LEARNING_RATE,
        iterations=task.max_iter,
        border_count=MAX_BINS - 1,
        cat_features=_categorical(task.train.X),
        thread_count=N_THREADS,
        random_seed=0,
        allow_writing_files=False,
        verbose=False,
    )
    if task.validation is None:
        model.fit(*task.train)
    else:
        model.fit(*task.train, eval_set=task.validation, early_stopping_rounds=N_ITER_NO_CHANGE)
    return model, model.tree_count_


def fit_hist_gradient_boosting(task: Task) -> tuple[Any, int]:
    """Fit scikit-learn's; after early stopping it keeps the iterations after the best one."""
    model = HistGradientBoostingClassifier(
        learning_rate=LEARNING_RATE,
        max_iter=task.max_iter,
        max_leaf_nodes=MAX_LEAF_NODES,
        min_samples_leaf=task.min_samples_leaf,
        max_bins=MAX_BINS,
        early_stopping=task.validation is not None,
        n_iter_no_change=N_ITER_NO_CHANGE,
        random_state=0,
    )
    if task.validation is None:
        return model.fit(*task.train), model.n_iter_
    model.fit(*task.train, X_val=task.validation.X, y_val=task.validation.y)
    return model, model.n_iter_


def _categorical(X: pd.DataFrame) -> list[str]:
    return list(X.select_dtypes("category").columns)


def missing_as_level(X: pd.DataFrame) -> pd.DataFrame:
    """Replace missing values by the category "?", because CatBoost refuses them in categorical columns."""
    levels = {name: X[name].cat.add_categories("?").fillna("?") for name in _categorical(X)}
    return X.assign(**levels)


SYSTEMS = {
    "LightGBM": System("lightgbm", fit_lightgbm),
    "CatBoost": System("catboost", fit_catboost, missing_as_level),
    "XGBoost": System("xgboost", fit_xgboost),
    "HistGradientBoosting": System("scikit-learn", fit_hist_gradient_boosting),
    **{
        algorithm: System("abcgbm", partial(fit_ours, algorithm))
        for algorithm in ("mart", "abc-mart", "logitboost", "abc-logitboost")
    },
}


def measure(name: str, system: str, setting: str) -> dict[str, Any]:
    """Fit one system on one data set; only the fit is timed."""
    of = SYSTEMS[system]
    train, test = load_rows(name, of.as_table)
    task = make_task(train, setting, MIN_SAMPLES_LEAF.get(name, 10))
    with threadpool_limits(N_THREADS):  # HistGradientBoosting has no such parameter
        wall, cpu = time.perf_counter(), time.process_time()
        model, n_iter = of.fit(task)
        seconds = {
            "seconds": round(time.perf_counter() - wall, 2),
            "cpu_seconds": round(time.process_time() - cpu, 2),
        }
        proba = model.predict_proba(test.X)
    return {
        "dataset": name,
        "system": system,
        "version": version(of.package),
        "setting": setting,
        "steps": int(n_iter),
        "errors": int(np.count_nonzero(proba.argmax(axis=1) != test.y)),
        "n_test": len(test.y),
        "n_unknown": int(np.count_nonzero(test.y < 0)),
        "log_loss": round(log_loss(proba, test.y), 5),
        "threads": N_THREADS,
        **seconds,
    }


def load_rows(name: str, as_table: Callable[[pd.DataFrame], pd.DataFrame]) -> tuple[Rows, Rows]:
    """Return the training part and the test part, labels numbered by the former."""
    data = datasets.load_table(name)
    classes = pd.Index(np.unique(data.y_train))
    return (
        Rows(as_table(data.X_train), classes.get_indexer(data.y_train)),
        Rows(as_table(data.X_test), classes.get_indexer(data.y_test)),
    )


def make_task(train: Rows, setting: str, min_samples_leaf: int) -> Task:
    """Return all rows, or nine tenths of each class and a validation tenth."""
    if setting == "100 steps":
        return Task(train, None, MAX_ITER[setting], min_samples_leaf)
    is_held_out = tenth_of_each_class(train.y)
    return Task(
        train.take(~is_held_out), train.take(is_held_out), MAX_ITER[setting], min_samples_leaf
    )


def tenth_of_each_class(y: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark every tenth row of each class in a fixed random order; classes with fewer rows have none."""
    order = np.random.default_rng(0).permutation(len(y))
    rank = pd.Series(y[order]).groupby(y[order]).cumcount().to_numpy()
    is_held_out = np.zeros(len(y), dtype=bool)
    is_held_out[order[rank % 10 == 9]] = True
    return is_held_out


def log_loss(proba: NDArray[np.floating[Any]], y: NDArray[np.int64]) -> float:
    """Return the mean log loss of rows with a known label, with probabilities of at least SMALLEST_PROBA."""
    known = np.flatnonzero(y >= 0)
    of_label = proba[known, y[known]].astype(np.float64)
    return float(-np.log(np.clip(of_label, SMALLEST_PROBA, 1)).mean())


def run(names: list[str], systems: list[str]) -> None:
    """Measure every missing cell; each result is saved at once."""
    RESULTS.parent.mkdir(exist_ok=True)
    cells = [
        (name, system, setting) for name in names for setting in MAX_ITER for system in systems
    ]
    for cell in cells:
        if cell in _results():
            continue
        line = json.dumps(measure(*cell))
        with RESULTS.open("a") as file:
            file.write(line + "\n")
        print(line, flush=True)


def _results() -> dict[tuple[str, str, str], dict[str, Any]]:
    if not RESULTS.exists():
        return {}
    cells = map(json.loads, RESULTS.read_text().splitlines())
    return {(cell["dataset"], cell["system"], cell["setting"]): cell for cell in cells}


def report() -> None:
    """Write the tables into the page, and print them."""
    tables = [line for setting in MAX_ITER for line in _table(setting)]
    write_between(PAGE, MARKER, tables)
    print(*tables, sep="\n")


def _table(setting: str) -> list[str]:
    """Return a table with a row for each system and a column for each data set."""
    found = {key[:2]: cell for key, cell in _results().items() if key[2] == setting}
    names = [name for name in datasets.TABLES if any(name == of for of, _ in found)]
    rows = [[system, *(_cell(name, system, found) for name in names)] for system in SYSTEMS]
    title = setting.replace("steps", "iterations").capitalize()
    head = "errors / log loss / iterations / CPU s"
    return [f"### {title}\n", *markdown([head, *names], rows)]


def _cell(name: str, system: str, found: dict[tuple[str, str], dict[str, Any]]) -> str:
    cell = found.get((name, system))
    if cell is None:
        return ""
    shown = []
    for key, text in (("errors", f"{cell['errors']:,}"), ("log_loss", f"{cell['log_loss']:.4f}")):
        is_best = cell[key] == min(other[key] for (of, _), other in found.items() if of == name)
        shown.append(f"**{text}**" if is_best else text)
    return " / ".join([*shown, f"{cell['steps']:,}", f"{cell['cpu_seconds']:.1f}"])


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["run", "report"])
    parser.add_argument("names", nargs="*", default=list(datasets.TABLES), metavar="data set")
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments.names, arguments.systems)
    else:
        report()


if __name__ == "__main__":
    main()
