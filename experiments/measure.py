"""Fit one cell and return its curves."""

import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm import ABCBoostClassifier, TreePerClass, __version__
from abcgbm.training.callbacks import IterationReport
from experiments import datasets
from experiments.cells import ALGORITHMS, Cell
from experiments.curves import Curves
from experiments.datasets import Split
from experiments.store import Line

ROOT = Path(__file__).parent.parent
# Iterations without improvement of the validation errors after which the fit stops.
PATIENCE = 500
LONGEST = 50.0  # maximum Newton step of a leaf, see docs/arithmetic.md

Report = Callable[[str], None]


def measure(cell: Cell, notify: Report) -> tuple[Line, Curves]:
    """Run a cell with progress reports; return its line of results and its curves."""
    data = datasets.load(cell.dataset)
    commit, began = present_commit(), time.process_time()
    model, n_scaled_back = _fit(cell, data, notify)
    seconds = time.process_time() - began
    errors = np.rint(-model.validation_score_ * len(data.y_test)).astype(np.int64)[1:]
    step = min(validated_step(cell, data, notify), model.n_iter_) if cell.is_validated else None
    lowest = int(errors.argmin())
    line = {
        "dataset": cell.dataset,
        "algorithm": cell.algorithm,
        "max_leaf_nodes": cell.max_leaf_nodes,
        "learning_rate": cell.learning_rate,
        "lowest_errors": int(errors[lowest]),
        "lowest_step": lowest + 1,
        "final_errors": int(errors[-1]),
        "validated_errors": None if step is None else int(errors[step - 1]),
        "stop_step": model.n_iter_,
        "stop_reason": model.stop_reason_,
        "seconds": round(seconds, 2),
        "commit": commit,
        "validated_step": step,
        "mended_steps": n_scaled_back,
        "bounded_leaves": _n_bounded(model),
        "n_leaves": int(np.count_nonzero(model.model_.ensemble.feature < 0)),
        "n_test": len(data.y_test),
        "version": __version__,
    }
    return line | cell.as_keys(), Curves(model.history_.train_loss, errors)


def _fit(cell: Cell, data: Split, notify: Report) -> tuple[ABCBoostClassifier, int]:
    """Fit all training rows; return the model, and the number of iterations that were scaled back.

    The test rows are watched while the model grows, which costs no more than predicting them afterwards.
    """
    scaled_back: list[int] = []

    def tell_errors(report: IterationReport) -> None:
        if report.was_scaled_back:
            scaled_back.append(report.iteration)
        notify(f"{_state(cell, report)}, {_errors(report, len(data.y_test))} test errors")

    model = _model(cell, early_stopping=False, scoring="error", callbacks=tell_errors)
    model.fit(data.X_train, data.y_train, X_val=data.X_test, y_val=data.y_test)
    return model, len(scaled_back)


def validated_step(cell: Cell, data: Split, notify: Report) -> int:
    """Return the iteration with the fewest errors on a held-out tenth of the training rows.

    Few rows make many equal counts: among these the step of lowest loss is taken. (The step of lowest
    loss alone comes far too early: errors still fall while the loss rises.)
    """
    out = datasets.validation_rows(cell.dataset, len(data.y_train))

    def tell_score(report: IterationReport) -> None:
        errors = f"{_errors(report, int(out.sum()))} of {out.sum()} rows held out are wrong"
        notify(f"choosing an iteration: {_state(cell, report)}, {errors}")

    model = _model(
        cell,
        early_stopping=True,
        scoring="error",
        n_iter_no_change=PATIENCE,
        tol=0.0,
        callbacks=tell_score,
    )
    model.fit(
        data.X_train[~out], data.y_train[~out], X_val=data.X_train[out], y_val=data.y_train[out]
    )
    return max(best_of(model.validation_score_, model.validation_loss_), 1)


def _n_bounded(model: ABCBoostClassifier) -> int:
    """Return the number of leaves with a Newton step of the maximum length, before scaling back."""
    return int(
        np.count_nonzero(np.abs(model.model_.ensemble.value) >= LONGEST * model.learning_rate)
    )


def best_of(scores: NDArray[np.float64], losses: NDArray[np.float64]) -> int:
    """Return the index of the largest score; ties go to the lowest loss."""
    return int(np.lexsort((losses, -scores))[0])


def _errors(report: IterationReport, n_rows: int) -> int:
    return round(-(report.validation_score or 0.0) * n_rows)


def _state(cell: Cell, report: IterationReport) -> str:
    return f"step {report.iteration} of at most {cell.max_iter}, loss {report.train_loss:.3g}"


def _model(cell: Cell, **others: Any) -> ABCBoostClassifier:
    settings = asdict(cell.settings)
    parameters = dict(ALGORITHMS[cell.algorithm])
    if settings.pop("refresh") == "class":  # of a plain algorithm, as Alg. 2 is printed
        parameters["algorithm"] = TreePerClass(cell.algorithm, sequential_residuals=True)
    return ABCBoostClassifier.paper(
        **parameters,
        max_leaf_nodes=cell.max_leaf_nodes,
        learning_rate=cell.learning_rate,
        max_iter=cell.max_iter,
        **settings,
        n_jobs=1,
        **others,
    )


def present_commit() -> str:
    """Return the commit of the sources, marked if they have changes."""
    commit = _git("rev-parse", "--short=12", "HEAD")
    is_changed = _git(
        "status", "--porcelain", "--", "src", "cpp", "CMakeLists.txt", ":(glob)experiments/*.py"
    )
    return (commit or "unknown") + ("-changed" if is_changed else "")


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # git is not installed
        return ""
    return done.stdout.strip()
