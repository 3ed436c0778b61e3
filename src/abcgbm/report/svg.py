"""Charts and matrices of the report, in coordinates of an SVG."""

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
from abcgbm.evaluation.predictions import Predictions
from abcgbm.report.formats import count, number, percent

_NICE = (1.0, 2.0, 5.0, 10.0)
_DECADES = 1.2  # from this range on, ticks of a logarithmic scale are powers of ten only


@dataclass(frozen=True)
class Scale:
    """Linear or logarithmic map from values to coordinates.

    Attributes
    ----------
    low, high : float
        Values at both ends.
    start, end : float
        Coordinates of both ends.
    is_log : bool
        Whether the scale is logarithmic.
    """

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, values: Floats | float) -> Floats:
        """Return the coordinates of values."""
        low, high, at = (self._transformed(v) for v in (self.low, self.high, values))
        fraction = (at - low) / max(float(high - low), 1e-300)
        coordinates: Floats = self.start + fraction * (self.end - self.start)
        return coordinates

    def _transformed(self, values: Floats | float) -> Floats:
        given = np.asarray(values, dtype=np.float64)
        return np.log10(given) if self.is_log else given

    def ticks(self, about: int = 5) -> list[tuple[float, str]]:
        """Return coordinates and texts of about this number of ticks."""
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


# The margins fit letters twice as large, as on small screens.
_WIDTH, _HEIGHT = 680, 310
_LEFT, _RIGHT, _TOP, _GROUND = 80, 656, 14, 254
_MAX_POINTS = 400
_MISSING = 5  # colour of missing values, after those of the five quintiles


class Series(NamedTuple):
    """A curve: iterations, the values to draw, and the values to show in words."""

    name: str
    iteration: NDArray[np.int64]
    drawn: Floats
    shown: Floats


@dataclass(frozen=True)
class Chart:
    """Line chart by iteration."""

    title: str
    text: str
    y_name: str
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    lines: list[dict[str, Any]]
    x_name: str = "boosting iterations"
    width: int = _WIDTH
    height: int = _HEIGHT
    left: int = _LEFT
    right: int = _RIGHT
    top: int = _TOP
    ground: int = _GROUND


def curves(title: str, text: str, y_name: str, series: Sequence[Series], *, is_log: bool) -> Chart:
    """Return a line chart by iteration; long curves are thinned, but keep both ends."""
    drawn = np.concatenate([s.drawn for s in series])
    drawn = drawn[drawn > 0] if is_log else drawn
    low = float(drawn.min()) if is_log and len(drawn) else 0.0
    high = float(drawn.max()) if len(drawn) else 1.0
    is_log = is_log and 0.0 < low < high
    last = max(1, *(int(s.iteration[-1]) for s in series))
    x = Scale(0, last, _LEFT, _RIGHT)
    y = Scale(low if is_log else 0.0, high or 1.0, _GROUND, _TOP, is_log)
    lines = [_line(s, x, y) for s in series]
    return Chart(title, text, y_name, x.ticks(6), y.ticks(), lines)


def _line(series: Series, x: Scale, y: Scale) -> dict[str, Any]:
    at = spaced(len(series.iteration) - 1, _MAX_POINTS)
    at = at[series.drawn[at] > 0] if y.is_log else at
    iteration = series.iteration[at]
    coordinates = zip(
        x(iteration.astype(np.float64)).tolist(), y(series.drawn[at]).tolist(), strict=True
    )
    points = [(round(a, 1), round(b, 1)) for a, b in coordinates]
    values = [float(f"{value:.5g}") for value in series.shown[at].tolist()]
    data = {"iteration": iteration.tolist(), "value": values, "at": points}
    return {"name": series.name, "points": points, "data": data}


def reliability(calibration: Calibration) -> dict[str, Any]:
    """Return a reliability curve: observed frequency by predicted probability, with the weight of each bin."""
    size, margin = 320, 44
    x, y = Scale(0, 1, margin, size - 10), Scale(0, 1, size - margin, 10)
    max_weight = float(calibration.weight.max())
    bins = [
        {
            "x": round(float(x(prob_pred)), 1),
            "y": round(float(y(prob_true)), 1),
            "radius": round(2.5 + 8.0 * (weight / max_weight) ** 0.5, 1),
            "prob_pred": prob_pred,
            "prob_true": prob_true,
            "weight": weight,
            "low": low,
            "high": high,
        }
        for prob_pred, prob_true, weight, low, high in zip(
            calibration.prob_pred.tolist(),
            calibration.prob_true.tolist(),
            calibration.weight.tolist(),
            calibration.edges[:-1].tolist(),
            calibration.edges[1:].tolist(),
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
    """Return a beeswarm chart of Shapley values: a dot per row, coloured by the feature's value."""
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
    """Return the quintile of each value in its column, from 0; missing values have their own number."""
    present = column[~np.isnan(column)]
    if not len(present):
        return np.full(len(column), _MISSING, dtype=np.intp)
    edges = np.quantile(present, (0.2, 0.4, 0.6, 0.8))
    return np.where(np.isnan(column), _MISSING, np.searchsorted(edges, column)).astype(np.intp)


def _dots(coordinates: Floats, colours: NDArray[np.intp], height: int) -> list[str]:
    """Return an SVG path of dots for each colour; dots that would overlap are stacked."""
    seen: dict[int, int] = {}
    paths: list[list[str]] = [[] for _ in range(_MISSING + 1)]
    for x, colour in zip(coordinates.tolist(), colours.tolist(), strict=True):
        column = round(x / 4.0)
        rank = seen.get(column, 0)
        seen[column] = rank + 1
        side = (rank + 1) // 2 * (1 if rank % 2 else -1)
        offset = max(-height / 2 + 3, min(height / 2 - 3, side * 3.0))
        paths[colour].append(f"M{x:.1f} {height / 2 + offset:.1f}h0")
    return ["".join(path) for path in paths]


_SMALL, _LARGE, _WIDE = 14, 40, 620  # bounds of the size of a cell, and width of all columns
_MAX_WITH_NUMBERS = 12  # columns
_CHARACTER = 6.6  # width in labels


def matrix(
    key: str, rows: Sequence[str], columns: Sequence[str], cells: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a matrix of cells: row `r`, column `c`, opacity `s`, short text `n`, text `t`, class `k`."""
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


def confusion_matrix(found: Confusion, predictions: Predictions) -> dict[str, Any]:
    """Return the confusion matrix as a chart, without cells of no rows."""
    columns = [shown_label(label) for label in found.labels]
    rows = [*columns, "not in the model"] if found.has_unseen else columns
    fractions, totals = found.row_fractions, found.counts.sum(axis=1)
    opacity = _opacity(fractions)
    cells = [
        {
            "r": r,
            "c": c,
            "k": "correct" if r == c else "error",
            "s": round(float(opacity[r, c]), 3),
            "n": count(found.counts[r, c]),
            "t": f"{count(found.counts[r, c])} of {count(totals[r])} rows "
            f"({percent(float(fractions[r, c]))})",
        }
        for r, c in np.argwhere(found.counts > 0).tolist()
    ]
    drawn = matrix("confusion", rows, columns, cells)
    errors = found.support - found.correct
    drawn["data"]["orders"] = {
        "name": list(range(predictions.n_classes)),
        "errors": np.argsort(-errors, kind="stable").tolist(),
        "size": np.argsort(-found.support, kind="stable").tolist(),
    }
    return drawn


def _opacity(fractions: Floats) -> Floats:
    """Return the opacity of cells; errors have a separate scale, because they are few."""
    relative = fractions.copy()
    np.fill_diagonal(relative, 0.0)
    relative /= max(float(relative.max()), np.finfo(np.float64).tiny)
    np.fill_diagonal(relative, fractions.diagonal())
    return 0.12 + 0.88 * np.sqrt(relative)


def heat_map(key: str, features: Sequence[str], labels: Sequence[Any], values: Floats) -> Any:
    """Return values of shape (n_features, n_classes) as a heat map, relative to the largest."""
    largest = float(values.max()) if values.size else 0.0
    cells = [
        {
            "r": r,
            "c": c,
            "k": "correct",
            "s": round(float(values[r, c] / largest) ** 0.7, 3),
            "n": number(float(values[r, c]), 2),
            "t": number(float(values[r, c])),
        }
        for r, c in np.argwhere(values > 0).tolist()
    ]
    return matrix(key, features, [shown_label(label) for label in labels], cells)
