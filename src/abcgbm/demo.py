"""Demo: the default model, and the paper's comparison of MART and ABC-MART, on a small data set."""

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
    """A fitted classifier with staged predictions."""

    classes_: NDArray[Any]

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield predicted labels after each iteration."""
        ...

    def staged_predict_proba(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yield the class probabilities after each iteration."""
        ...


def relative_improvement(errors_mart: int, errors_abc: int) -> float:
    """Return R_err of the paper in percent; NaN if ``errors_mart`` is 0."""
    if errors_mart == 0:
        return math.nan
    return 100.0 * (errors_mart - errors_abc) / errors_mart


def p_value(errors_a: int, errors_b: int, n_test: int) -> float:
    """Return the one-sided P-value of the hypothesis that b's error rate is not less than a's.

    The difference of the two binomial rates on ``n_test`` rows is taken as normal with the sum of their
    variances. (The pooled variance gives the same digits in all six rows of the paper's summary table.)
    """
    rate_a, rate_b = _rate(errors_a, n_test), _rate(errors_b, n_test)
    if rate_a == rate_b:  # also where both variances are 0
        return 0.5
    variance = (rate_a * (1.0 - rate_a) + rate_b * (1.0 - rate_b)) / n_test
    if variance == 0.0:  # all rows misclassified by one model and none by the other
        return 0.0 if rate_a > rate_b else 1.0
    return 0.5 * math.erfc((rate_a - rate_b) / math.sqrt(2.0 * variance))


def _rate(errors: int, n_test: int) -> float:
    if not 0 <= errors <= n_test or n_test < 1:
        raise ValueError(f"errors={errors}, n_test={n_test}; expected 0 <= errors <= n_test >= 1")
    return errors / n_test


def error_curve(model: StagedClassifier, X: Any, y: ArrayLike) -> NDArray[np.int64]:
    """Return the number of errors after each iteration: element m - 1 belongs to iteration m."""
    labels = np.asarray(y)
    errors = (np.count_nonzero(predicted != labels) for predicted in model.staged_predict(X))
    return np.fromiter(errors, dtype=np.int64)


def loss_curve(model: StagedClassifier, X: Any, y: ArrayLike) -> NDArray[np.float64]:
    """Return the total loss ``-log p_y`` after each iteration; the model must know all labels."""
    labels = np.asarray(y)
    unseen = np.setdiff1d(labels, model.classes_)
    if unseen.size:
        raise ValueError(f"label {unseen[0]!r}; expected one of {model.classes_.tolist()}")
    column = np.searchsorted(model.classes_, labels)[:, None]
    stages = model.staged_predict_proba(X)
    losses = (_log_loss(np.take_along_axis(proba, column, axis=1)) for proba in stages)
    return np.fromiter(losses, dtype=np.float64)


def _log_loss(proba_of_label: NDArray[np.float64]) -> float:
    # A probability that underflows to 0 counts as the smallest float, so that the loss stays finite.
    return -float(np.log(np.maximum(proba_of_label, np.finfo(np.float64).tiny)).sum())


@dataclass(frozen=True)
class Reading:
    """Test errors of one model at one iteration."""

    iteration: int
    errors: int


@dataclass(frozen=True)
class Readings:
    """A test curve read in three ways. ``lowest`` chooses its iteration on the test rows."""

    lowest: Reading
    last: Reading
    validated: Reading

    @classmethod
    def from_curves(cls, test_errors: ArrayLike, validation_loss: ArrayLike) -> Readings:
        """Read ``test_errors``; ``validation_loss`` chooses the iteration of ``validated``."""
        errors, loss = np.asarray(test_errors), np.asarray(validation_loss)
        if errors.size == 0 or loss.size == 0:
            raise ValueError("an empty curve; expected a model of at least one iteration")

        def read(iteration: int) -> Reading:
            return Reading(iteration, int(errors[iteration - 1]))

        # One of the two fits may have stopped earlier than the other, at machine precision.
        validated = min(int(loss.argmin()) + 1, errors.size)
        return cls(read(int(errors.argmin()) + 1), read(errors.size), read(validated))


# The middle of the paper's grid of J, and its largest nu.
LEAVES, LEARNING_RATE = 10, 0.1


@dataclass(frozen=True)
class _Run:
    """Model of one algorithm, and the readings of its test curve."""

    model: ABCBoostClassifier
    readings: Readings


def run(output: Path, max_iter: int) -> None:
    """Print errors of the default model and the paper's comparison; draw the curves."""
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
    # Halves in the order of the file: independent of a seed and of the release of scikit-learn.
    X, y = load_digits(return_X_y=True)
    half = len(y) // 2
    return (X[:half], y[:half]), (X[half:], y[half:])


def _run(algorithm: str, train: _Rows, test: _Rows, max_iter: int) -> _Run:
    """Fit on nine tenths, to choose an iteration by the last tenth, and on all rows, to be tested."""
    X, y = train
    n_train = len(y) - len(y) // 10
    chooser = _fit(algorithm, X[:n_train], y[:n_train], max_iter)
    model = _fit(algorithm, X, y, max_iter)
    errors = error_curve(model, *test)
    readings = Readings.from_curves(errors, loss_curve(chooser, X[n_train:], y[n_train:]))
    return _Run(model, readings)


def _of_default(model: ABCBoostClassifier, X: NDArray[Any], y: NDArray[Any]) -> str:
    """Return a line with the test errors of the default model."""
    n_errors = int(np.count_nonzero(model.predict(X) != y))
    return (
        f"ABCBoostClassifier(): {n_errors} errors on {len(y)} test rows "
        f"({100 * n_errors / len(y):.1f} %), {model.n_iter_} iterations of one multi-output tree."
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
(1) As in the paper, the iteration is chosen on the test rows, which makes both errors optimistic.
(2) The iteration of lowest loss on the last tenth of the training rows, in a fit on the other nine
    tenths; the errors are those of the fit on all training rows at that iteration."""


def summary_table(mart: Readings, abc: Readings, n_test: int) -> str:
    """Return the paper's summary table for one test set, with one line per way to read a curve."""
    head = f"{f'Errors on {n_test} test rows':<42}{'MART':>15}{'ABC-MART':>15}"
    lines = [
        f"{head}{'R_err (%)':>11}{'P-value':>9}",
        _line("lowest point of the test curve (1)", mart.lowest, abc.lowest, n_test),
        _line("after the last iteration", mart.last, abc.last, n_test),
        _line("at an iteration chosen by validation (2)", mart.validated, abc.validated, n_test),
    ]
    return "\n".join([*lines, NOTES])


def _line(name: str, mart: Reading, abc: Reading, n_test: int) -> str:
    cells = "".join(f"{f'{r.errors} (iter. {r.iteration})':>15}" for r in (mart, abc))
    improvement = relative_improvement(mart.errors, abc.errors)
    p = p_value(mart.errors, abc.errors, n_test)
    p_text = f"{p:.3f}" if round(p, 3) else f"{p:.1e}"  # not 0.000
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
