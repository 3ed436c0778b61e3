"""Checks of numbers that a user gave."""

import math
from numbers import Integral, Real
from typing import Any


def is_integer(value: object) -> bool:
    """Whether it is an integer of any make; truth values are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_finite_real(value: Any) -> bool:
    """Whether it is a real number that a float can hold; truth values are none."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def check_integer(
    value: Any, low: int, high: int | None = None, *, given: str, note: str = ""
) -> int:
    """Return an integer within bounds, or raise TypeError or ValueError.

    Parameters
    ----------
    value : object
        What was given.
    low, high : int
        The bounds; None: there is no upper one.
    given : str
        What errors say was given, such as ``max_bins=0``.
    note : str
        What they say of the upper bound.
    """
    upper = "on" if high is None else f"to {high}{note}"
    message = f"{given}; expected an integer from {low} {upper}"
    if not is_integer(value):
        raise TypeError(message)
    if int(value) < low or (high is not None and int(value) > high):
        raise ValueError(message)
    return int(value)
