"""Checks of the estimator's parameters: what was given and what is allowed."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from abcgbm.algorithm import Algorithm
from abcgbm.binning import MAX_BINS

_INTEGERS = {
    "max_iter": (1, None),
    "max_leaf_nodes": (2, 32768),
    "max_bins": MAX_BINS,
}


def check(estimator: Any) -> None:
    """Raise TypeError or ValueError for the first parameter that is not allowed."""
    algorithm = Algorithm.from_name(estimator.algorithm)
    for name, (low, high) in _INTEGERS.items():
        _check_integer(name, getattr(estimator, name), low, high)
    if not isinstance(estimator.verbose, bool):
        _check_integer("verbose", estimator.verbose, 0, None)
    if estimator.max_depth is not None:
        _check_integer("max_depth", estimator.max_depth, 1, None)
    if estimator.n_jobs is not None and not _is_integer(estimator.n_jobs):
        raise TypeError(f"n_jobs={estimator.n_jobs!r}; expected None or an integer other than 0")
    _check_real("learning_rate", estimator.learning_rate, "above 0 and at most 1", _is_rate)
    _check_real("min_samples_leaf", estimator.min_samples_leaf, "above 0", lambda x: x > 0)
    for name in ("min_gain", "l2_regularization", "min_hessian_leaf"):
        _check_real(name, getattr(estimator, name), "from 0 on", lambda x: x >= 0)
    if not isinstance(estimator.recenter, bool | np.bool_):
        raise TypeError(f"recenter={estimator.recenter!r}; expected True or False")
    _check_refresh(estimator)
    if estimator.min_hessian_leaf > 0 and not algorithm.hessian_split:
        raise ValueError(
            f"min_hessian_leaf={estimator.min_hessian_leaf!r} with "
            f"algorithm={estimator.algorithm!r}; expected 0, or a logitboost algorithm"
        )


def generator(random_state: object) -> np.random.Generator:
    """Return the generator for a ``random_state``; None means 0."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng(0)
    if not _is_integer(random_state) or int(random_state) < 0:  # type: ignore[call-overload]
        raise ValueError(
            f"random_state={random_state!r}; expected None, an integer from 0 on, "
            "a numpy RandomState or a numpy Generator"
        )
    return np.random.default_rng(int(random_state))  # type: ignore[call-overload]


def _check_refresh(estimator: Any) -> None:
    if estimator.refresh not in ("step", "class"):
        raise ValueError(f"refresh={estimator.refresh!r}; expected 'step' or 'class'")
    plain = not Algorithm.from_name(estimator.algorithm).base_derivatives
    if estimator.refresh == "class" and not (plain and estimator.base_class is None):
        raise ValueError(
            f"refresh='class' with algorithm={estimator.algorithm!r}, "
            f"base_class={estimator.base_class!r}; expected a plain algorithm without a base class"
        )


def _check_integer(name: str, value: Any, low: int, high: int | None) -> None:
    allowed = f"expected an integer from {low} " + ("on" if high is None else f"to {high}")
    if not _is_integer(value):
        raise TypeError(f"{name}={value!r}; {allowed}")
    if value < low or (high is not None and value > high):
        raise ValueError(f"{name}={value!r}; {allowed}")


def _check_real(name: str, value: Any, allowed: str, is_allowed: Any) -> None:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r}; expected a number {allowed}")
    if not (math.isfinite(value) and is_allowed(value)):
        raise ValueError(f"{name}={value!r}; expected a number {allowed}")


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_rate(value: float) -> bool:
    return 0 < value <= 1
