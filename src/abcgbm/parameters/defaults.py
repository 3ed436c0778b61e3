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

# The classes up to which the cuts of shared trees are measured in all of them, and the directions that
# are drawn where there are more.
MAX_PROJECTIONS = 7
_RATE, _RATE_OF_MANY_ROWS, _RATE_PER_CLASS = 0.04, 0.06, 0.1
_MIN_WAY = 3  # steps times their rate, below which a model is far from what the data allow
_STEPS, _STEPS_OF_MANY_ROWS, _STEPS_PER_CLASS = 300, 200, 100
_MIN_LEAVES = 12
_MAX_LEAVES = 1024
_MANY_ROWS = 50_000  # from which on a step takes so long that fewer are taken

# What the paper's experiments have in common.
PAPER: dict[str, Any] = {
    "learning_rate": 0.1,
    "max_iter": 1000,
    "max_leaf_nodes": 20,
    "l2_regularization": 0.0,
    "max_features": None,
}


def paper_algorithm(name: str) -> str | AlgorithmObject:
    """Return the algorithm of a name as the paper has it.

    The raw scores start at zero, one base class is tried, and it moves as Alg. 3 is printed.
    """
    if name not in ALGORITHM_NAMES:
        return name  # fit says which there are
    if name.startswith("abc-"):
        return AdaptiveBaseClass(name.removeprefix("abc-"), line_search=False)
    return MultiOutputTrees(baseline="zero") if name == "multi-output" else TreePerClass(name)


class Size(NamedTuple):
    """Of a table to learn from: rows that count, which have a weight above 0, and classes."""

    n_rows: int
    n_classes: int


def _leaves(rows_per_leaf: int) -> Callable[[Size], int]:
    """So many rows to a leaf, and no more leaves than rows in each of them: smooth tables lose by it."""

    def leaves(size: Size) -> int:
        n = min(size.n_rows // rows_per_leaf, math.isqrt(size.n_rows))
        return max(_MIN_LEAVES, min(_MAX_LEAVES, n))

    return leaves


def _ridge_of_rows(n: float) -> Callable[[Size], float]:
    """As much as the hessians of so many rows of which nothing is known."""
    return lambda size: n * (size.n_classes - 1) / size.n_classes**2


_SHARED: dict[str, Callable[[Size], Any]] = {
    "max_leaf_nodes": _leaves(100),
    "l2_regularization": _ridge_of_rows(4),
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


def settled(settings: Parameters, size: Size, *, has_validation: bool) -> Parameters:
    """Return the settings with what the data decide, and whether there are rows to validate on."""
    rules = _SHARED if settings.algorithm.multi_output else _PER_CLASS
    chosen = {name: rule(size) for name, rule in rules.items() if is_auto(getattr(settings, name))}
    if is_auto(settings.early_stopping):
        chosen["early_stopping"] = has_validation
    if is_auto(settings.max_iter):
        stops_early = chosen.get("early_stopping", settings.early_stopping)
        chosen["max_iter"] = None if stops_early else _steps(settings, size)
    if is_auto(settings.learning_rate):
        chosen["learning_rate"] = _learning_rate(settings, size)
    return replace(settings, **chosen)


def too_few_iterations(given: Parameters, rate: float) -> str | None:
    """Return what to change if ``max_iter`` is too small for the default learning rate, else None.

    The rate does not follow ``max_iter``: a second fit with the steps that validation chose would
    then be another training. A warm start may add steps later.
    """
    n_iter = given.max_iter
    if not isinstance(n_iter, int) or not is_auto(given.learning_rate) or given.warm_start:
        return None
    if n_iter * rate >= _MIN_WAY:
        return None
    return (
        f"max_iter={n_iter} with the default learning rate of {rate:g} ends training early: their "
        f"product is {n_iter * rate:.3g}, below {_MIN_WAY}. Give max_iter={math.ceil(_MIN_WAY / rate)} or "
        "more, or set learning_rate"
    )


def _learning_rate(settings: Parameters, size: Size) -> float:
    """Return the rate; it does not depend on ``max_iter``."""
    if not settings.algorithm.multi_output:
        return _RATE_PER_CLASS
    return _RATE if size.n_rows < _MANY_ROWS else _RATE_OF_MANY_ROWS


def _steps(settings: Parameters, size: Size) -> int:
    """Return the number of steps where neither a number is given nor validation chooses one."""
    if not settings.algorithm.multi_output:
        return _STEPS_PER_CLASS
    return _STEPS if size.n_rows < _MANY_ROWS else _STEPS_OF_MANY_ROWS
