"""Validation of ``scoring``: the scores of the package, and scorers of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

Scorer = Callable[..., float]


@dataclass(frozen=True)
class Scoring:
    """A validated ``scoring``.

    Attributes
    ----------
    given : str or callable
        The value of the parameter.
    scorer : callable or None
        A scorer of scikit-learn; None for "loss" and "error", which need none.
    """

    given: str | Scorer
    scorer: Scorer | None = None


def _scorer_named(name: str) -> Scorer:
    # Rarely used, and a third of the import time of the package.
    from sklearn.metrics import get_scorer

    scorer: Scorer = get_scorer(name)
    return scorer


def _check_is_for_classes(name: str, value: Any, scorer: Any) -> None:
    """Raise an error for metrics of regression and clustering: they accept labels, but mislead."""
    metric = getattr(scorer, "_score_func", scorer)
    while isinstance(metric, partial):
        metric = metric.func
    module = str(getattr(metric, "__module__", ""))
    if module == "sklearn.metrics._regression":
        reason = "is a metric of continuous targets"
        instead = "'loss' or 'neg_brier_score' for probabilities, 'error' for labels"
    elif module.startswith("sklearn.metrics.cluster"):
        reason = "is a metric of clusterings, which does not change if classes are swapped"
        instead = "'error', 'balanced_accuracy' or 'matthews_corrcoef'"
    else:
        return
    raise ValueError(
        f"{name}={value!r} {reason}; expected a metric of classification, such as {instead}"
    )


def check_scoring(name: str, value: Any) -> Scoring:
    """Return the scorer of a name, or a callable that is not a metric of another task."""
    allowed = (
        "expected 'loss', 'error', a name in sklearn.metrics.get_scorer_names(), or a callable "
        "with the arguments (estimator, X, y)"
    )
    if isinstance(value, str) and value in ("loss", "error"):
        return Scoring(value)
    if not callable(value) and not isinstance(value, str):
        raise TypeError(f"{name}={value!r}; {allowed}")
    try:
        scorer = value if callable(value) else _scorer_named(value)
    except ValueError as error:
        raise ValueError(f"{name}={value!r}; {allowed}") from error
    _check_is_for_classes(name, value, scorer)
    return Scoring(value, scorer)
