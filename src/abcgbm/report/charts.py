"""Curves as drawings: places and texts, which the templates put into SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.columns import Floats
from abcgbm.evaluation.calibration import Calibration
from abcgbm.evaluation.staged import spaced
from abcgbm.report.scales import Scale

# Margins have room for letters twice as large, which small screens get.
_WIDTH, _HEIGHT = 680, 310
_LEFT, _RIGHT, _TOP, _GROUND = 80, 656, 14, 254
_MOST_POINTS = 400
_MISSING = 5  # the colour after those of five fifths


class Series(NamedTuple):
    """A curve: its steps, what is drawn, and what is said of a point."""

    name: str
    step: NDArray[np.int64]
    drawn: Floats
    said: Floats


@dataclass(frozen=True)
class Chart:
    """Lines over steps."""

    title: str
    text: str
    y_name: str
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    lines: list[dict[str, Any]]
    x_name: str = "boosting step"
    width: int = _WIDTH
    height: int = _HEIGHT
    left: int = _LEFT
    right: int = _RIGHT
    top: int = _TOP
    ground: int = _GROUND


def curves(title: str, text: str, y_name: str, series: Sequence[Series], *, is_log: bool) -> Chart:
    """Draw curves over steps; of long ones some points, both ends among them."""
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
    at = spaced(len(series.step) - 1, _MOST_POINTS)
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
