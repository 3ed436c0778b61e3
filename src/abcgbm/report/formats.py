"""Formatting of numbers and values."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from abcgbm.data.arrays import is_missing

_MAX_CHARACTERS = 160  # of a value
NONE = "–"  # noqa: RUF001


def count(value: float) -> str:
    """Format a number of rows, with two decimals if it is not an integer, because of weights."""
    rounded = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
    return rounded.replace(",", "\u202f")


def number(value: float, digits: int = 4) -> str:
    """Format a number with significant digits."""
    return NONE if math.isnan(value) else f"{value:.{digits}g}"


def percent(value: float) -> str:
    """Format a fraction in percent."""
    return NONE if math.isnan(value) else f"{100.0 * value:.2f} %"


def fraction(value: float) -> str:
    """Format a fraction with three decimals."""
    return NONE if math.isnan(value) else f"{value:.3f}"


def literal(value: Any) -> str:
    """Return Python code that makes a value, or the name of a callable."""
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__name__))
    plain = value.item() if isinstance(value, np.generic) else value
    return re.sub(r" at 0x[0-9a-f]+", "", repr(plain))


def cell(value: Any) -> str:
    """Format a value of a table."""
    return "missing" if is_missing(value) else shown(value)


def shown(value: Any) -> str:
    """Format any value, without addresses, so that the text is the same in every process."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = literal(value)
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"
