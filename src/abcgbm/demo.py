"""The default model and the comparison of the paper on a small table, with its statistics."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.datasets import load_digits

from abcgbm import ABCBoostClassifier, plotting
from abcgbm.data.files.atomic import written_whole
from abcgbm.training.progress import ProgressOutput


class StagedClassifier(Protocol):
    """A fitted classifier that can tell its answers after each iteration."""

    classes_: NDArray[Any]

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield the labels after each iteration."""
        ...

    def staged_predict_proba(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yield the class probabilities after each iteration."""
        ...


def relative_improvement(errors_mart: int, errors_abc: int) -> float:
    """R_err of the paper in percent; NaN where there is no error to improve on."""
    if errors_mart == 0:
        return math.nan
    return 100.0 * (errors_mart - errors_abc) / errors_mart


def p_value(errors_a: int, errors_b: int, n_test: int) -> float:
    """One-sided P-value of the hypothesis that b errs no less often than a, each on `n_test` rows.

    The difference of two binomial rates, taken as normal with the sum of their variances. (The
    pooled variance gives the same digits in all six rows of the paper's summary table.)
    """
    rate_a, rate_b = _rate(errors_a, n_test), _rate(errors_b, n_test)
    if rate_a == rate_b:  # also where both variances are 0
        return 0.5
    variance = (rate_a * (1.0 - rate_a) + rate_b * (1.0 - rate_b)) / n_test
    if variance == 0.0:  # every row wrong against none
        return 0.0 if rate_a > rate_b else 1.0
    return 0.5 * math.erfc((rate_a - rate_b) / math.sqrt(2.0 * variance))


def _rate(errors: int, n_test: int) -> float:
    if not 0 <= errors <= n_test or n_test < 1:
        raise ValueError(f"errors={errors}, n_test={n_test}; expected 0 <= errors <= n_test >= 1")
    return errors / n_test


def error_curve(model: StagedClassifier, X: Any, y: ArrayLike) -> NDArray[np.int64]:
    """Number of wrong answers after each iteration: element m - 1 belongs to iteration m."""
    labels = np.asarray(y)
    wrong = (np.count_nonzero(answer != labels) for answer in model.staged_predict(X))
    return np.fromiter(wrong, dtype=np.int64)


def loss_curve(model: StagedClassifier, X: Any, y: ArrayLike) -> NDArray[np.float64]:
    """Summed loss `- log p_y` after each step; every label must be one the model has seen."""
    labels = np.asarray(y)
    unseen = np.setdiff1d(labels, model.classes_)
    if unseen.size:
        raise ValueError(f"label {unseen[0]!r}; expected one of {model.classes_.tolist()}")
    column = np.searchsorted(model.classes_, labels)[:, None]
    stages = model.staged_predict_proba(X)
    losses = (_log_loss(np.take_along_axis(proba, column, axis=1)) for proba in stages)
    return np.fromiter(losses, dtype=np.float64)


def _log_loss(proba_of_label: NDArray[np.float64]) -> float:
    # A probability that underflowed to 0 costs as much as the smallest one there is, not infinity.
    return -float(np.log(np.maximum(proba_of_label, np.finfo(np.float64).tiny)).sum())


@dataclass(frozen=True)
class Reading:
    """The test errors of one model at one step."""

    step: int
    errors: int


@dataclass(frozen=True)
class Readings:
    """One test curve read in three ways; only `lowest` looks at the test rows to choose its step."""

    lowest: Reading
    last: Reading
    validated: Reading

    @classmethod
    def from_curves(cls, test_errors: ArrayLike, validation_loss: ArrayLike) -> Readings:
        """Read `test_errors`; `validation_loss` belongs to a fit that has not seen those rows."""
        errors, loss = np.asarray(test_errors), np.asarray(validation_loss)
        if errors.size == 0 or loss.size == 0:
            raise ValueError("a curve without steps; expected a model of at least one step")

        def read(step: int) -> Reading:
            return Reading(step, int(errors[step - 1]))

        # Either fit may have stopped before the other, at machine accuracy.
        validated = min(int(loss.argmin()) + 1, errors.size)
        return cls(read(int(errors.argmin()) + 1), read(errors.size), read(validated))


# The middle of the paper's grid of J, and the largest of its nu.
LEAVES, LEARNING_RATE = 10, 0.1


@dataclass(frozen=True)
class _Run:
    """One algorithm's model, and what is read from its curve."""

    model: ABCBoostClassifier
    readings: Readings


def run(output: Path, max_iter: int) -> None:
    """Print the errors of the default model and the comparison of the paper; draw the curves."""
    train, test = _digits()
    print(
        f"scikit-learn's digits in their own order: first half ({len(train[1])} rows) to train, "
        f"second half ({len(test[1])}) to test.\n",
        flush=True,
    )
    default = _fitted(ABCBoostClassifier(verbose=1), "ABCBoostClassifier()", *train)
    print(_of_default(default, *test), flush=True)
    print(
        f"\nThe comparison of the paper: J = {LEAVES} leaves, nu = {LEARNING_RATE}, at most {max_iter} "
        "iterations.",
        flush=True,
    )
    mart = _run("mart", train, test, max_iter)
    abc = _run("abc-mart", train, test, max_iter)
    print("\n" + summary_table(mart.readings, abc.readings, len(test[1])))
    models = {"default": default, "MART": mart.model, "ABC-MART": abc.model}
    _save_picture(output, models, test)


_Rows = tuple[NDArray[Any], NDArray[Any]]


def _digits() -> tuple[_Rows, _Rows]:
    # Halves in the order of the file: no seed to choose, the same rows with every release.
    X, y = load_digits(return_X_y=True)
    half = len(y) // 2
    return (X[:half], y[:half]), (X[half:], y[half:])


def _run(algorithm: str, train: _Rows, test: _Rows, max_iter: int) -> _Run:
    """Fit twice: on nine tenths to choose an iteration by the last tenth, and on all to be tested."""
    X, y = train
    kept = len(y) - len(y) // 10
    chooser = _fit(algorithm, X[:kept], y[:kept], max_iter)
    model = _fit(algorithm, X, y, max_iter)
    errors = error_curve(model, *test)
    readings = Readings.from_curves(errors, loss_curve(chooser, X[kept:], y[kept:]))
    return _Run(model, readings)


def _of_default(model: ABCBoostClassifier, X: NDArray[Any], y: NDArray[Any]) -> str:
    """Return the test errors of the default model as a line."""
    n_wrong = int(np.count_nonzero(model.predict(X) != y))
    return (
        f"ABCBoostClassifier(): {n_wrong} errors on {len(y)} test rows "
        f"({100 * n_wrong / len(y):.1f} %), {model.n_iter_} iterations of one tree for all classes."
    )


def _fitted(
    model: ABCBoostClassifier, name: str, X: NDArray[Any], y: NDArray[Any]
) -> ABCBoostClassifier:
    ProgressOutput().write(f"{name} on {len(y)} rows\n")
    return model.fit(X, y)


def _fit(algorithm: str, X: NDArray[Any], y: NDArray[Any], max_iter: int) -> ABCBoostClassifier:
    model = ABCBoostClassifier.paper(
        algorithm,
        learning_rate=LEARNING_RATE,
        max_iter=max_iter,
        max_leaf_nodes=LEAVES,
        verbose=1,
    )
    return _fitted(model, algorithm, X, y)


NOTES = """\
(1) As in the paper: the iteration is chosen on the test rows themselves, which flatters both.
(2) The iteration of lowest loss on the last tenth of the training rows, found by a fit on the other
    nine tenths; the errors are those of the fit on all training rows there."""


def summary_table(mart: Readings, abc: Readings, n_test: int) -> str:
    """The paper's summary table for one test set, a line for each way to read a curve."""
    head = f"{f'Errors on {n_test} test rows':<42}{'MART':>15}{'ABC-MART':>15}"
    lines = [
        f"{head}{'R_err (%)':>11}{'P-value':>9}",
        _line("lowest point of the test curve (1)", mart.lowest, abc.lowest, n_test),
        _line("after the last iteration", mart.last, abc.last, n_test),
        _line("at an iteration chosen by validation (2)", mart.validated, abc.validated, n_test),
    ]
    return "\n".join([*lines, NOTES])


def _line(name: str, mart: Reading, abc: Reading, n_test: int) -> str:
    cells = "".join(f"{f'{r.errors} (iter. {r.step})':>15}" for r in (mart, abc))
    improvement = relative_improvement(mart.errors, abc.errors)
    p = p_value(mart.errors, abc.errors, n_test)
    p_text = f"{p:.3f}" if round(p, 3) else f"{p:.1e}"  # 0.000 would say too little
    return f"{name:<42}{cells}{improvement:>11.1f}{p_text:>9}"


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
