"""The validation score: what ``scoring`` may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

Scorer = Callable[..., float]


@dataclass(frozen=True)
class Scoring:
    """What the validation score is.

    Attributes
    ----------
    given : str or callable
        As the user said it.
    scorer : callable or None
        The scorer, as scikit-learn knows it; None for the two that need none: "loss" and "error".
    """

    given: str | Scorer
    scorer: Scorer | None = None


def _scorer_named(name: str) -> Scorer:
    # A third of the time of our own import, and seldom used.
    from sklearn.metrics import get_scorer

    scorer: Scorer = get_scorer(name)
    return scorer


def _check_is_for_classes(name: str, value: Any, scorer: Any) -> None:
    """Refuse the metrics of regression and clustering: they accept labels, and mislead."""
    metric = getattr(scorer, "_score_func", scorer)
    while isinstance(metric, partial):
        metric = metric.func
    module = str(getattr(metric, "__module__", ""))
    if module == "sklearn.metrics._regression":
        reason = "is a metric of continuous targets"
        instead = "'loss' or 'neg_brier_score' for probabilities, 'error' for labels"
    elif module.startswith("sklearn.metrics.cluster"):
        reason = "is a metric of clusterings, for which any renaming of the classes is as good"
        instead = "'error', 'balanced_accuracy' or 'matthews_corrcoef'"
    else:
        return
    raise ValueError(
        f"{name}={value!r} {reason}; expected a metric of classification, such as {instead}"
    )


def check_scoring(name: str, value: Any) -> Scoring:
    """Return what scores the validation rows."""
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
