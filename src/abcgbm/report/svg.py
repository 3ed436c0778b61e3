"""Charts and matrices of the report, as numbers of an SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.arrays import Floats
from abcgbm.data.labels import short_label, shown_label
from abcgbm.evaluation.class_metrics import Calibration, Confusion
from abcgbm.evaluation.curves import spaced
from abcgbm.evaluation.predictions import Answers
from abcgbm.report.formats import count, number, percent

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


# Margins have room for letters twice as large, which small screens get.
_WIDTH, _HEIGHT = 680, 310
_LEFT, _RIGHT, _TOP, _GROUND = 80, 656, 14, 254
_MAX_POINTS = 400
_MISSING = 5  # the colour after those of five fifths


class Series(NamedTuple):
    """A curve: its steps, what is drawn, and what is said of a point."""

    name: str
    step: NDArray[np.int64]
    drawn: Floats
    said: Floats


@dataclass(frozen=True)
class Chart:
    """Lines over iterations."""

    title: str
    text: str
    y_name: str
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    lines: list[dict[str, Any]]
    x_name: str = "iteration"
    width: int = _WIDTH
    height: int = _HEIGHT
    left: int = _LEFT
    right: int = _RIGHT
    top: int = _TOP
    ground: int = _GROUND


def curves(title: str, text: str, y_name: str, series: Sequence[Series], *, is_log: bool) -> Chart:
    """Draw curves over iterations; of long ones some points, both ends among them."""
    drawn = np.concatenate([s.drawn for s in series])
    drawn = drawn[drawn > 0] if is_log else drawn
    low = float(drawn.min()) if is_log and len(drawn) else 0.0
    high = float(drawn.max()) if len(drawn) else 1.0
    is_log = is_log and 0.0 < low < high
    last = max(1, *(int(s.step[-1]) for s in series))
    x = Scale(0, last, _LEFT, _RIGHT)
    y = Scale(low if is_log else 0.0, high or 1.0, _GROUND, _TOP, is_log)
    lines = [_line(s, x, y) for s in series]
    return Chart(title, text, y_name, x.ticks(6), y.ticks(), lines)


def _line(series: Series, x: Scale, y: Scale) -> dict[str, Any]:
    at = spaced(len(series.step) - 1, _MAX_POINTS)
    at = at[series.drawn[at] > 0] if y.is_log else at
    places = zip(
        x(series.step[at].astype(np.float64)).tolist(), y(series.drawn[at]).tolist(), strict=True
    )
    points = [(round(a, 1), round(b, 1)) for a, b in places]
    said = [float(f"{value:.5g}") for value in series.said[at].tolist()]
    data = {"step": series.step[at].tolist(), "said": said, "at": points}
    return {"name": series.name, "points": points, "data": data}


def reliability(found: Calibration) -> dict[str, Any]:
    """Draw a reliability curve: what was said against what was true, and how many rows."""
    size, margin = 320, 44
    x, y = Scale(0, 1, margin, size - 10), Scale(0, 1, size - margin, 10)
    most = float(found.weight.max())
    bins = [
        {
            "x": round(float(x(said)), 1),
            "y": round(float(y(true)), 1),
            "radius": round(2.5 + 8.0 * (weight / most) ** 0.5, 1),
            "said": said,
            "true": true,
            "weight": weight,
            "low": low,
            "high": high,
        }
        for said, true, weight, low, high in zip(
            *(found.said.tolist(), found.true.tolist(), found.weight.tolist()),
            *(found.edges[:-1].tolist(), found.edges[1:].tolist()),
            strict=True,
        )
        if weight > 0
    ]
    return {
        "size": size,
        "margin": margin,
        "ticks_x": x.ticks(),
        "ticks_y": y.ticks(),
        "bins": bins,
    }


def swarm(values: Floats, data: Floats, features: Sequence[int]) -> dict[str, Any]:
    """Draw what features add to predictions, a dot for each row, coloured by its value."""
    height, edge = 38, 14
    drawn = values[:, list(features)]
    x = Scale(float(drawn.min(initial=0.0)), float(drawn.max(initial=0.0)), edge, _WIDTH - edge)
    rows = [_dots(x(values[:, f]), _colours(data[:, f]), height) for f in features]
    return {
        "width": _WIDTH,
        "height": height,
        "rows": rows,
        "zero": round(float(x(0.0)), 1),
        "ticks": x.ticks(6),
        "has_missing": any(row[_MISSING] for row in rows),
    }


def _colours(column: Floats) -> NDArray[np.intp]:
    """Return the fifth of a column's values that each is in, from 0; then that of a missing one."""
    present = column[~np.isnan(column)]
    if not len(present):
        return np.full(len(column), _MISSING, dtype=np.intp)
    edges = np.quantile(present, (0.2, 0.4, 0.6, 0.8))
    return np.where(np.isnan(column), _MISSING, np.searchsorted(edges, column)).astype(np.intp)


def _dots(places: Floats, colours: NDArray[np.intp], height: int) -> list[str]:
    """Return a path of dots for each colour; dots that would lie on each other are stacked."""
    seen: dict[int, int] = {}
    paths: list[list[str]] = [[] for _ in range(_MISSING + 1)]
    for place, colour in zip(places.tolist(), colours.tolist(), strict=True):
        column = round(place / 4.0)
        rank = seen.get(column, 0)
        seen[column] = rank + 1
        side = (rank + 1) // 2 * (1 if rank % 2 else -1)
        offset = max(-height / 2 + 3, min(height / 2 - 3, side * 3.0))
        paths[colour].append(f"M{place:.1f} {height / 2 + offset:.1f}h0")
    return ["".join(path) for path in paths]


_SMALL, _LARGE, _WIDE = 14, 40, 620  # of a square, and of all columns together
_MAX_WITH_NUMBERS = 12  # columns
_CHARACTER = 6.6  # its width in labels


def matrix(
    key: str, rows: Sequence[str], columns: Sequence[str], cells: list[dict[str, Any]]
) -> dict[str, Any]:
    """Place squares; a cell has row `r`, column `c`, strength `s`, text `t` and `k`, its kind."""
    size = int(min(_LARGE, max(_SMALL, _WIDE / max(1, len(columns)))))
    left = int(max(len(short_label(name)) for name in rows) * _CHARACTER) + 14
    top = int(max(len(short_label(name)) for name in columns) * _CHARACTER * 0.82) + 18
    return {
        "key": key,
        "size": size,
        "left": left,
        "top": top,
        "width": left + size * len(columns) + top // 2 + 8,
        "height": top + size * len(rows) + 6,
        "rows": [short_label(name) for name in rows],
        "columns": [short_label(name) for name in columns],
        "cells": cells,
        "has_numbers": len(columns) <= _MAX_WITH_NUMBERS,
        "data": {"rows": [*rows], "columns": [*columns], "cells": cells, "orders": {}},
    }


def confusion_matrix(found: Confusion, answers: Answers) -> dict[str, Any]:
    """Draw which classes are taken for which; only squares that hold rows are there."""
    columns = [shown_label(label) for label in found.labels]
    rows = [*columns, "not in the model"] if found.has_unseen else columns
    shares, totals = found.row_shares, found.counts.sum(axis=1)
    strength = _strength(shares)
    cells = [
        {
            "r": r,
            "c": c,
            "k": "right" if r == c else "wrong",
            "s": round(float(strength[r, c]), 3),
            "n": count(found.counts[r, c]),
            "t": f"{count(found.counts[r, c])} of {count(totals[r])} rows "
            f"({percent(float(shares[r, c]))})",
        }
        for r, c in np.argwhere(found.counts > 0).tolist()
    ]
    drawn = matrix("confusion", rows, columns, cells)
    wrong = found.support - found.right
    drawn["data"]["orders"] = {
        "name": list(range(answers.n_classes)),
        "errors": np.argsort(-wrong, kind="stable").tolist(),
        "size": np.argsort(-found.support, kind="stable").tolist(),
    }
    return drawn


def _strength(shares: Floats) -> Floats:
    """Return how strong squares are; errors have a scale of their own, as they are small."""
    strength = shares.copy()
    np.fill_diagonal(strength, 0.0)
    strength /= max(float(strength.max()), np.finfo(np.float64).tiny)
    np.fill_diagonal(strength, shares.diagonal())
    return 0.12 + 0.88 * np.sqrt(strength)


def heat_map(key: str, features: Sequence[str], labels: Sequence[Any], values: Floats) -> Any:
    """Draw values of shape (n_features, n_classes), each as a part of the largest."""
    largest = float(values.max()) if values.size else 0.0
    cells = [
        {
            "r": r,
            "c": c,
            "k": "right",
            "s": round(float(values[r, c] / largest) ** 0.7, 3),
            "n": number(float(values[r, c]), 2),
            "t": number(float(values[r, c])),
        }
        for r, c in np.argwhere(values > 0).tolist()
    ]
    return matrix(key, features, [shown_label(label) for label in labels], cells)
