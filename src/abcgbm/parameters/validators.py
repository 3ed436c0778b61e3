"""Validators of single parameters."""

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from abcgbm.parameters.hints import value_hint

Check = Callable[[str, Any], Any]  # takes a name and a value; returns the validated value


def is_integer(value: object) -> bool:
    """Whether the value is an integer by type; a boolean is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_integral(value: object) -> bool:
    """Whether the value is an integer or a whole-number float, as YAML files and Optuna give."""
    if is_integer(value):
        return True
    return is_finite_real(value) and float(value).is_integer()  # type: ignore[arg-type]


def is_auto(value: object) -> bool:
    """Whether the value is "auto"."""
    return isinstance(value, str) and value == "auto"


def is_finite_real(value: Any) -> bool:
    """Whether the value is a real number in the range of floats; a boolean is not."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the range of floats
        return False


def check_integer(
    name: str, value: Any, low: int, high: int | None = None, *, note: str = ""
) -> int:
    """Return an integer between low and high; None: no upper bound. ``note`` explains the bound."""
    bounds = f"of at least {low}" if high is None else f"from {low} to {high}{note}"
    allowed = f"expected an integer {bounds}"
    if not is_integral(value):
        raise TypeError(f"{name}={value!r}; {allowed}")
    if value < low or (high is not None and value > high):
        raise ValueError(f"{name}={value!r}; {allowed}")
    return int(value)


def check_real(name: str, value: Any, allowed: str, is_allowed: Callable[[float], bool]) -> float:
    """Return a finite number for which ``is_allowed`` is true; ``allowed`` describes these."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r}; expected a number {allowed}")
    if not (is_finite_real(value) and is_allowed(float(value))):
        raise ValueError(f"{name}={value!r}; expected a number {allowed}")
    return float(value)


def check_boolean(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r}; expected True or False")
    return bool(value)


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """Return one of some strings and booleans; 1 is not True."""
    for choice in choices:
        if isinstance(choice, bool) == isinstance(value, bool | np.bool_) and (
            isinstance(value, str | bool | np.bool_) and value == choice
        ):
            return choice
    is_of_type = isinstance(value, tuple({type(choice) for choice in choices}))
    error = ValueError if is_of_type else TypeError
    raise error(f"{name}={value!r}; expected {' or '.join(map(repr, choices))}")


# ---------------------------------------------------------------------------------- factories of checks


def integer(low: int, high: int | None = None) -> Check:
    """Make a check for integers."""
    return lambda name, value: check_integer(name, value, low, high)


def real(allowed: str, is_allowed: Callable[[float], bool]) -> Check:
    """Make a check for numbers."""
    return lambda name, value: check_real(name, value, allowed, is_allowed)


def choice(*choices: Any) -> Check:
    """Make a check for one of some choices."""
    return lambda name, value: check_choice(name, value, choices)


def optional(check: Check) -> Check:
    """Make a check that also allows None, and says so in its errors."""
    return _also(check, None)


def or_auto(check: Check) -> Check:
    """Make a check that also allows "auto", and says so in its errors."""
    return _also(check, "auto")


def _also(check: Check, word: str | None) -> Check:
    def check_given(name: str, value: Any) -> Any:
        if value is word or (isinstance(value, str) and value == word):
            return word
        try:
            return check(name, value)
        except (TypeError, ValueError) as error:
            is_other_word = isinstance(value, str) and word is not None
            kind = ValueError if is_other_word else type(error)
            raise kind(str(error).replace("expected ", f"expected {word!r} or ", 1)) from None

    return check_given


def with_value_hint(parameter: str, check: Check) -> Check:
    """Add to the errors of a check the value that was probably meant."""

    def check_given(name: str, value: Any) -> Any:
        try:
            return check(name, value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error}{value_hint(parameter, value)}") from error.__cause__

    return check_given


def anything(name: str, value: Any) -> Any:
    """Accept any value: it is validated when the table and its classes are known."""
    return value


NOT_NEGATIVE = real("of at least 0", lambda x: x >= 0)
