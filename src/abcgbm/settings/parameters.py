"""Checks of the estimator's parameters: what was given and what is allowed."""

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from abcgbm.data.binning import check_max_bins
from abcgbm.data.categories import check_handle_unknown
from abcgbm.settings.algorithm import Algorithm
from abcgbm.settings.checks import check_integer, is_finite_real, is_integer
from abcgbm.training.callbacks import as_callbacks
from abcgbm.training.validation import check_scoring

_INTEGERS = {
    "max_iter": (1, None),
    "max_leaf_nodes": (2, 32768),
    "max_depth": (1, None),
    "n_iter_no_change": (1, None),
    "verbose": (0, None),
}
_REALS: dict[str, tuple[str, Callable[[float], bool]]] = {
    "learning_rate": ("above 0 and at most 1", lambda x: 0 < x <= 1),
    "min_samples_leaf": ("above 0", lambda x: x > 0),
    "min_gain": ("from 0 on", lambda x: x >= 0),
    "l2_regularization": ("from 0 on", lambda x: x >= 0),
    "min_hessian_leaf": ("from 0 on", lambda x: x >= 0),
    "categorical_smoothing": ("from 0 on", lambda x: x >= 0),
    "subsample": ("above 0 and at most 1", lambda x: 0 < x <= 1),
    "validation_fraction": ("above 0 and below 1", lambda x: 0 < x < 1),
    "tol": ("from 0 on", lambda x: x >= 0),
    "max_time": ("of seconds above 0", lambda x: x > 0),
}
_MAY_BE_NONE = {"max_iter", "max_depth", "max_time"}
_TRUTH_VALUES = ("recenter", "warm_start")
_CHOICES: dict[str, tuple[Any, ...]] = {
    "refresh": ("step", "class"),
    "init": ("zero", "prior"),
    "early_stopping": ("auto", True, False),
    "on_interrupt": ("raise", "keep"),
}


def check(estimator: Any) -> None:
    """Raise TypeError or ValueError for the first parameter that is not allowed."""
    Algorithm.from_name(estimator.algorithm)
    _check_numbers(estimator)
    for name in _TRUTH_VALUES:
        if not isinstance(getattr(estimator, name), bool | np.bool_):
            raise TypeError(f"{name}={getattr(estimator, name)!r}; expected True or False")
    for name, choices in _CHOICES.items():
        _check_choice(name, getattr(estimator, name), choices)
    if estimator.n_jobs is not None and not is_integer(estimator.n_jobs):
        raise TypeError(f"n_jobs={estimator.n_jobs!r}; expected None or an integer other than 0")
    check_max_bins(estimator.max_bins)
    check_handle_unknown(estimator.handle_unknown)
    _check_max_features(estimator.max_features)
    check_scoring(estimator.scoring)
    as_callbacks(estimator.callbacks)
    _check_what_goes_together(estimator)


def _check_numbers(estimator: Any) -> None:
    for name, (low, high) in _INTEGERS.items():
        if _is_given(estimator, name):
            value = getattr(estimator, name)
            check_integer(value, low, high, given=f"{name}={value!r}")
    for name, (allowed, is_allowed) in _REALS.items():
        if _is_given(estimator, name):
            _check_real(name, getattr(estimator, name), allowed, is_allowed)


def _is_given(estimator: Any, name: str) -> bool:
    """Whether there is a number to check: None and, for verbose, truth values are fine too."""
    value = getattr(estimator, name)
    is_fine = value is None and name in _MAY_BE_NONE
    return not (is_fine or (name == "verbose" and isinstance(value, bool)))


def generator(random_state: object) -> np.random.Generator:
    """Return the generator for a ``random_state``; None means 0."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng(0)
    if not is_integer(random_state) or int(random_state) < 0:  # type: ignore[call-overload]
        raise ValueError(
            f"random_state={random_state!r}; expected None, an integer from 0 on, "
            "a numpy RandomState or a numpy Generator"
        )
    return np.random.default_rng(int(random_state))  # type: ignore[call-overload]


def _check_what_goes_together(estimator: Any) -> None:
    algorithm = Algorithm.from_name(estimator.algorithm)
    is_plain = not algorithm.base_derivatives and estimator.base_class is None
    if estimator.refresh == "class" and not is_plain:
        raise ValueError(
            f"refresh='class' with algorithm={estimator.algorithm!r}, "
            f"base_class={estimator.base_class!r}; expected a plain algorithm without a base class"
        )
    if estimator.min_hessian_leaf > 0 and not algorithm.hessian_split:
        raise ValueError(
            f"min_hessian_leaf={estimator.min_hessian_leaf!r} with "
            f"algorithm={estimator.algorithm!r}; expected 0, or a logitboost algorithm"
        )
    if estimator.monotonic_cst is not None:
        raise ValueError(
            f"monotonic_cst={estimator.monotonic_cst!r}; expected None: monotone constraints are "
            "not supported. With three or more classes scores compete, so that a score that rises "
            "with a feature does not make its probability rise"
        )


def check_that_training_ends(estimator: Any, *, stops_early: bool) -> None:
    """Raise ValueError if nothing bounds the number of steps."""
    if estimator.max_iter is None and estimator.max_time is None and not stops_early:
        raise ValueError(
            "max_iter=None without early stopping or max_time; expected an integer from 1 on, "
            "or one of early_stopping=True, X_val, max_time"
        )


def _check_max_features(value: Any) -> None:
    allowed = "expected None, 'sqrt', an integer from 1 on, or a share above 0 and at most 1.0"
    if value is None or (isinstance(value, str) and value == "sqrt"):
        return
    if isinstance(value, str | bool) or not isinstance(value, Real):
        raise TypeError(f"max_features={value!r}; {allowed}")
    is_allowed = float(value) >= 1 if is_integer(value) else 0 < float(value) <= 1
    if not is_allowed:
        raise ValueError(f"max_features={value!r}; {allowed}")


def _check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    is_truth_value = isinstance(value, bool | np.bool_)
    matching = [c for c in choices if isinstance(c, bool) == is_truth_value]
    if not isinstance(value, str | bool | np.bool_) or value not in matching:
        allowed = " or ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name}={value!r}; expected {allowed}")


def _check_real(name: str, value: Any, allowed: str, is_allowed: Callable[[float], bool]) -> None:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r}; expected a number {allowed}")
    if not (is_finite_real(value) and is_allowed(float(value))):
        raise ValueError(f"{name}={value!r}; expected a number {allowed}")
