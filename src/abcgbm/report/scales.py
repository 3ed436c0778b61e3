"""Values to places in a drawing, and the ticks of its axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from abcgbm.data.columns import Floats

_NICE = (1.0, 2.0, 5.0, 10.0)
_DECADES = 1.2  # of a range that is worth a logarithmic scale with ticks at powers of ten


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic way from values to places.

    Attributes
    ----------
    low, high : float
        The values at both ends.
    start, end : float
        Their places.
    is_log : bool
        Whether logarithms are evenly spaced.
    """

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, values: Floats | float) -> Floats:
        """Return the places of values."""
        low, high, at = (self._even(v) for v in (self.low, self.high, values))
        share = (at - low) / max(float(high - low), 1e-300)
        places: Floats = self.start + share * (self.end - self.start)
        return places

    def _even(self, values: Floats | float) -> Floats:
        given = np.asarray(values, dtype=np.float64)
        return np.log10(given) if self.is_log else given

    def ticks(self, about: int = 5) -> list[tuple[float, str]]:
        """Return places and texts of about so many ticks."""
        values = (
            self._log_ticks(about) if self.is_log else _linear_ticks(self.low, self.high, about)
        )
        return [(round(float(self(value)), 1), f"{value:g}") for value in values]

    def _log_ticks(self, about: int) -> Sequence[float]:
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        if last - first < _DECADES:
            return [v for v in _between_decades(first - 1, last + 1) if self.low <= v <= self.high]
        every = max(1, math.ceil((last - first) / about))
        return [10.0**power for power in range(first, last + 1, every)]


def _between_decades(first: int, last: int) -> list[float]:
    return [digit * 10.0**power for power in range(first, last + 1) for digit in (1, 2, 5)]


def _linear_ticks(low: float, high: float, about: int) -> list[float]:
    if high <= low:
        return [low]
    rough = (high - low) / about
    unit = 10.0 ** math.floor(math.log10(rough))
    width = unit * next(nice for nice in _NICE if nice * unit >= rough)
    first, last = math.ceil(low / width - 1e-9), math.floor(high / width + 1e-9)
    return [round(i * width, 12) for i in range(first, last + 1)]
