"""How the paper compares two classifiers: test errors, R_err and the P-value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


class StagedClassifier(Protocol):
    """A fitted classifier that can tell its answers after each boosting step."""

    classes_: NDArray[Any]

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield the labels after each step."""
        ...

    def staged_predict_proba(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yield the class probabilities after each step."""
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
    """Number of wrong answers after each step: element m - 1 belongs to step m."""
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
