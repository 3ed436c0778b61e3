"""MART and ABC-MART on scikit-learn's digits, as the paper compares them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from sklearn.datasets import load_digits

from abcgbm import ABCBoostClassifier, plotting
from abcgbm.demo.statistics import (
    Reading,
    Readings,
    error_curve,
    loss_curve,
    p_value,
    relative_improvement,
)
from abcgbm.model.file.atomic import written_whole
from abcgbm.training.progress import ProgressOutput

# The middle of the paper's grid of J, and the largest of its nu.
LEAVES, LEARNING_RATE = 10, 0.1


@dataclass(frozen=True)
class _Run:
    """One algorithm's model, and what is read from its curve."""

    model: ABCBoostClassifier
    readings: Readings


def run(output: Path, max_iter: int) -> None:
    """Print the comparison, and draw its curves into a file."""
    train, test = _digits()
    print(
        f"scikit-learn's digits in their own order: first half ({len(train[1])} rows) to train, "
        f"second half ({len(test[1])}) to test.\n"
        f"J = {LEAVES} leaves, nu = {LEARNING_RATE}, at most {max_iter} steps.",
        flush=True,
    )
    mart = _run("mart", train, test, max_iter)
    abc = _run("abc-mart", train, test, max_iter)
    print("\n" + summary_table(mart.readings, abc.readings, len(test[1])))
    _save_picture(output, {"MART": mart.model, "ABC-MART": abc.model}, test)


_Rows = tuple[NDArray[Any], NDArray[Any]]


def _digits() -> tuple[_Rows, _Rows]:
    # Halves in the order of the file: no seed to choose, the same rows with every release.
    X, y = load_digits(return_X_y=True)
    half = len(y) // 2
    return (X[:half], y[:half]), (X[half:], y[half:])


def _run(algorithm: str, train: _Rows, test: _Rows, max_iter: int) -> _Run:
    """Fit twice: on nine tenths to choose a step by the last tenth, and on all to be tested."""
    X, y = train
    kept = len(y) - len(y) // 10
    chooser = _fit(algorithm, X[:kept], y[:kept], max_iter)
    model = _fit(algorithm, X, y, max_iter)
    errors = error_curve(model, *test)
    readings = Readings.from_curves(errors, loss_curve(chooser, X[kept:], y[kept:]))
    return _Run(model, readings)


def _fit(algorithm: str, X: NDArray[Any], y: NDArray[Any], max_iter: int) -> ABCBoostClassifier:
    ProgressOutput().write(f"{algorithm} on {len(y)} rows\n")
    model = ABCBoostClassifier.paper(
        algorithm,
        learning_rate=LEARNING_RATE,
        max_iter=max_iter,
        max_leaf_nodes=LEAVES,
        verbose=1,
    )
    return model.fit(X, y)


NOTES = """\
(1) As in the paper: the step is chosen on the test rows themselves, which flatters both.
(2) The step of lowest loss on the last tenth of the training rows, found by a fit on the other
    nine tenths; the errors are those of the fit on all training rows at that step."""


def summary_table(mart: Readings, abc: Readings, n_test: int) -> str:
    """The paper's summary table for one test set, a line for each way to read a curve."""
    head = f"{f'Errors on {n_test} test rows':<40}{'MART':>15}{'ABC-MART':>15}"
    lines = [
        f"{head}{'R_err (%)':>11}{'P-value':>9}",
        _line("lowest point of the test curve (1)", mart.lowest, abc.lowest, n_test),
        _line("after the last step", mart.last, abc.last, n_test),
        _line("at a step chosen by validation (2)", mart.validated, abc.validated, n_test),
    ]
    return "\n".join([*lines, NOTES])


def _line(name: str, mart: Reading, abc: Reading, n_test: int) -> str:
    cells = "".join(f"{f'{r.errors} (step {r.step})':>15}" for r in (mart, abc))
    improvement = relative_improvement(mart.errors, abc.errors)
    p = p_value(mart.errors, abc.errors, n_test)
    p_text = f"{p:.3f}" if round(p, 3) else f"{p:.1e}"  # 0.000 would say too little
    return f"{name:<40}{cells}{improvement:>11.1f}{p_text:>9}"


def _save_picture(output: Path, models: dict[str, ABCBoostClassifier], test: _Rows) -> None:
    try:
        figure = plotting.new_figure(10.0, 4.0)
        left, right = figure.subplots(1, 2)
        plotting.plot_losses(models, ax=left)
        plotting.plot_errors(models, *test, ax=right)
        with written_whole(output) as file:
            figure.savefig(file, format=output.suffix[1:].lower(), dpi=150)
    except ImportError as error:
        ProgressOutput().write(f"\nno picture: {error}\n")
    else:
        print(f"\ncurves written to {output}")
