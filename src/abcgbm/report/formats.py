"""Numbers and values as text."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from abcgbm.data.arrays import is_missing

_LONG = 160  # characters of a value that are shown
NONE = "–"  # noqa: RUF001


def count(value: float) -> str:
    """Return a number of rows: whole, or with two digits if weights are not."""
    rounded = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
    return rounded.replace(",", "\u202f")


def number(value: float, digits: int = 4) -> str:
    """Return a number with so many significant digits."""
    return NONE if math.isnan(value) else f"{value:.{digits}g}"


def percent(value: float) -> str:
    """Return a share in percent."""
    return NONE if math.isnan(value) else f"{100.0 * value:.2f} %"


def share(value: float) -> str:
    """Return a share with three digits."""
    return NONE if math.isnan(value) else f"{value:.3f}"


def literal(value: Any) -> str:
    """Return a value as code that makes it, all of it; of a callable its name."""
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__name__))
    plain = value.item() if isinstance(value, np.generic) else value
    return re.sub(r" at 0x[0-9a-f]+", "", repr(plain))


def cell(value: Any) -> str:
    """Return a value of a table as text."""
    return "missing" if is_missing(value) else shown(value)


def shown(value: Any) -> str:
    """Return any value as text that is the same in every process."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = literal(value)
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"
