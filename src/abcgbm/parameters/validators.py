"""Validators of single parameters."""

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from abcgbm.parameters.hints import value_hint

Check = Callable[[str, Any], Any]  # of a name and the value given for it


def is_integer(value: object) -> bool:
    """Whether it is a whole number by type; truth values are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_integral(value: object) -> bool:
    """Whether it is a whole number, also as a float: YAML files and Optuna give 100.0."""
    if is_integer(value):
        return True
    return is_finite_real(value) and float(value).is_integer()  # type: ignore[arg-type]


def is_auto(value: object) -> bool:
    """Whether it is left open."""
    return isinstance(value, str) and value == "auto"


def is_finite_real(value: Any) -> bool:
    """Whether it is a real number that a float can hold; truth values are none."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def check_integer(
    name: str, value: Any, low: int, high: int | None = None, *, note: str = ""
) -> int:
    """Return an integer from low to high; None: no upper bound. A note may say what that is."""
    allowed = f"expected an integer from {low} " + ("on" if high is None else f"to {high}{note}")
    if not is_integral(value):
        raise TypeError(f"{name}={value!r}; {allowed}")
    if value < low or (high is not None and value > high):
        raise ValueError(f"{name}={value!r}; {allowed}")
    return int(value)


def check_real(name: str, value: Any, allowed: str, is_allowed: Callable[[float], bool]) -> float:
    """Return a finite number of which ``is_allowed`` is true; ``allowed`` says which those are."""
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
    """Return one of some strings and truth values; 1 is not True."""
    for choice in choices:
        if isinstance(choice, bool) == isinstance(value, bool | np.bool_) and (
            isinstance(value, str | bool | np.bool_) and value == choice
        ):
            return choice
    is_alike = isinstance(value, tuple({type(choice) for choice in choices}))
    error = ValueError if is_alike else TypeError
    raise error(f"{name}={value!r}; expected {' or '.join(map(repr, choices))}")


# ------------------------------------------------------------------------- the same, made beforehand


def integer(low: int, high: int | None = None) -> Check:
    """Make a check for integers."""
    return lambda name, value: check_integer(name, value, low, high)


def real(allowed: str, is_allowed: Callable[[float], bool]) -> Check:
    """Make a check for numbers."""
    return lambda name, value: check_real(name, value, allowed, is_allowed)


def choice(*choices: Any) -> Check:
    """Make a check for a choice."""
    return lambda name, value: check_choice(name, value, choices)


def optional(check: Check) -> Check:
    """Make a check that lets None pass, and says so."""
    return _also(check, None)


def or_auto(check: Check) -> Check:
    """Make a check that lets "auto" pass, and says so."""
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


def anything(name: str, value: Any) -> Any:
    """Return what can be checked only later, when the table and its classes are known."""
    return value


def with_value_hint(parameter: str, check: Check) -> Check:
    """Let the error of a check say which value was probably meant."""

    def check_given(name: str, value: Any) -> Any:
        try:
            return check(name, value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error}{value_hint(parameter, value)}") from error.__cause__

    return check_given


FROM_ZERO = real("from 0 on", lambda x: x >= 0)
