"""Data-dependent values of "auto", and the values of the paper's experiments."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from abcgbm.parameters.algorithms import (
    ALGORITHM_NAMES,
    AdaptiveBaseClass,
    AlgorithmObject,
    MultiOutputTrees,
    TreePerClass,
)
from abcgbm.parameters.parameters import Parameters
from abcgbm.parameters.validators import is_auto

# With at most this many classes, splits of multi-output trees use the gradients of all classes; with
# more, this many random projections of them.
MAX_PROJECTIONS = 7
_RATE, _RATE_OF_MANY_ROWS, _RATE_PER_CLASS = 0.04, 0.06, 0.1
_MIN_PRODUCT = 3  # of max_iter and learning rate: below it models underfit clearly
_ITERATIONS, _ITERATIONS_OF_MANY_ROWS, _ITERATIONS_PER_CLASS = 300, 200, 100
_MIN_LEAVES = 12
_MAX_LEAVES = 1024
_MANY_ROWS = 50_000  # from here on iterations are slow, so fewer are made, with a larger rate

# Parameters common to all experiments of the paper.
PAPER: dict[str, Any] = {
    "learning_rate": 0.1,
    "max_iter": 1000,
    "max_leaf_nodes": 20,
    "l2_regularization": 0.0,
    "max_features": None,
}


def paper_algorithm(name: str) -> str | AlgorithmObject:
    """Return the algorithm of a name as in the paper.

    Raw scores start at zero. There is one candidate for the base class and no line search.
    """
    if name not in ALGORITHM_NAMES:
        return name  # fit raises an error that lists the names
    if name.startswith("abc-"):
        return AdaptiveBaseClass(name.removeprefix("abc-"), line_search=False)
    return MultiOutputTrees(baseline="zero") if name == "multi-output" else TreePerClass(name)


class Size(NamedTuple):
    """Size of a training table: rows with a weight above 0, and classes."""

    n_rows: int
    n_classes: int


def _leaves(rows_per_leaf: int) -> Callable[[Size], int]:
    """Return the rule for ``max_leaf_nodes``: one leaf per ``rows_per_leaf`` rows.

    There are at most as many leaves as rows in each (the square root of the rows), since more leaves
    are worse on smooth tables.
    """

    def leaves(size: Size) -> int:
        n = min(size.n_rows // rows_per_leaf, math.isqrt(size.n_rows))
        return max(_MIN_LEAVES, min(_MAX_LEAVES, n))

    return leaves


def _l2_of_rows(n: float) -> Callable[[Size], float]:
    """Return the rule for an L2 penalty of the hessians of n rows with equal class probabilities."""
    return lambda size: n * (size.n_classes - 1) / size.n_classes**2


_MULTI_OUTPUT: dict[str, Callable[[Size], Any]] = {
    "max_leaf_nodes": _leaves(100),
    "l2_regularization": _l2_of_rows(4),
    "max_features": lambda _: 0.5,
    "baseline": lambda _: "prior",
    "n_projections": lambda size: min(size.n_classes, MAX_PROJECTIONS),
}
_PER_CLASS: dict[str, Callable[[Size], Any]] = {
    "max_leaf_nodes": _leaves(300),
    "l2_regularization": lambda _: 0.0,
    "max_features": lambda _: None,
    "baseline": lambda _: "zero",
}


def resolve_defaults(settings: Parameters, size: Size, *, has_validation: bool) -> Parameters:
    """Replace "auto" by values that depend on the data and on whether there are validation rows."""
    rules = _MULTI_OUTPUT if settings.algorithm.multi_output else _PER_CLASS
    chosen = {name: rule(size) for name, rule in rules.items() if is_auto(getattr(settings, name))}
    if is_auto(settings.early_stopping):
        chosen["early_stopping"] = has_validation
    if is_auto(settings.max_iter):
        stops_early = chosen.get("early_stopping", settings.early_stopping)
        chosen["max_iter"] = None if stops_early else _max_iter(settings, size)
    if is_auto(settings.learning_rate):
        chosen["learning_rate"] = _learning_rate(settings, size)
    return replace(settings, **chosen)


def too_few_iterations(given: Parameters, rate: float) -> str | None:
    """Return a warning if ``max_iter`` is too small for the default learning rate, else None.

    The default rate does not depend on ``max_iter``: otherwise a refit with the best number of
    iterations would be another training. A warm start may add iterations later.
    """
    n_iter = given.max_iter
    if not isinstance(n_iter, int) or not is_auto(given.learning_rate) or given.warm_start:
        return None
    if n_iter * rate >= _MIN_PRODUCT:
        return None
    return (
        f"max_iter={n_iter} with the default learning rate of {rate:g} ends training early: their "
        f"product is {n_iter * rate:.3g}, below {_MIN_PRODUCT}. Give max_iter={math.ceil(_MIN_PRODUCT / rate)} or "
        "more, or set learning_rate"
    )


def _learning_rate(settings: Parameters, size: Size) -> float:
    """Return the default learning rate."""
    if not settings.algorithm.multi_output:
        return _RATE_PER_CLASS
    return _RATE if size.n_rows < _MANY_ROWS else _RATE_OF_MANY_ROWS


def _max_iter(settings: Parameters, size: Size) -> int:
    """Return the default number of iterations without early stopping."""
    if not settings.algorithm.multi_output:
        return _ITERATIONS_PER_CLASS
    return _ITERATIONS if size.n_rows < _MANY_ROWS else _ITERATIONS_OF_MANY_ROWS
