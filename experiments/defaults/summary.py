"""Summarize the results: scores by table and system, ranks, times, and the acceptance bar.

A table counts if each shown system is measured on all of its parts, or has a reason for a failure. A system
that failed has the last rank; means are over the tables that all systems have.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import mean
from typing import NamedTuple

from scipy.stats import rankdata

from experiments.defaults import pool
from experiments.defaults.cells import Cell, parts_of_table
from experiments.defaults.measure import Line

MEASURED_AGAINST = "LightGBM"  # in time
BAR_PEERS = ("LightGBM", "XGBoost", "HistGradientBoosting")
BAR_FACTOR = 1.1


class Score(NamedTuple):
    """The score of all parts of a table; the time of a fit is their mean."""

    errors: int
    n: int
    log_loss: float
    cpu: float
    steps: float

    @property
    def rate(self) -> float:
        return self.errors / self.n


Scores = dict[str, dict[str, Score | None]]  # table -> system -> score; None if it failed


class Worst(NamedTuple):
    """The table with a system's worst score relative to the bar."""

    table: str
    share: float  # multiple of the bar; above 1 it is missed
    n_missed: int


class Overview(NamedTuple):
    """A system over all tables that count."""

    n_tables: int
    rank_of_errors: float
    rank_of_log_loss: float
    rate: float
    log_loss: float
    time: float | None  # geometric mean of multiples
    longest: tuple[str, float] | None
    worst: Worst | None


def scores(
    lines: Iterable[Line], mode: str, kind: str, systems: Sequence[str] | None = None
) -> Scores:
    """Return the tables that count, small ones first, with all systems or those that are named."""
    found: dict[tuple[str, str], dict[str, Line]] = defaultdict(dict)
    for line in lines:
        cell = Cell.of_line(line)
        if (cell.mode, cell.kind) == (mode, kind) and _is_wanted(cell, systems):
            found[cell.table, cell.label][cell.part] = line
    labels = sorted({label for _, label in found}, key=lambda label: _place(label, systems))
    tables = sorted({table for table, _ in found}, key=lambda name: pool.shapes()[name].work)
    return {
        table: {label: _score(found[table, label]) for label in labels}
        for table in tables
        if all(_is_whole(found[table, label], table, mode, kind) for label in labels)
    }


def _is_wanted(cell: Cell, systems: Sequence[str] | None) -> bool:
    return systems is None or cell.label in systems or cell.system in systems


def _place(label: str, systems: Sequence[str] | None) -> tuple[int, bool, str]:
    """Sort systems in the given order; by default ours first."""
    names = [name for name in (label, label.partition("@")[0]) if name in (systems or [])]
    return [*(systems or [])].index(names[0]) if names else 0, "@" not in label, label


def _is_whole(lines: dict[str, Line], table: str, mode: str, kind: str) -> bool:
    has_reason = any("reason" in line for line in lines.values())
    return has_reason or {*lines} >= {*parts_of_table(table, mode, kind)}


def _score(lines: dict[str, Line]) -> Score | None:
    of = list(lines.values())
    if any("reason" in line for line in of):
        return None
    n = sum(line["n"] for line in of)
    loss = sum(line["n"] * line["log_loss"] for line in of) / n
    errors = sum(line["errors"] for line in of)
    return Score(errors, n, loss, mean(x["cpu"] for x in of), mean(x["steps"] for x in of))


def overviews(of: Scores) -> dict[str, Overview]:
    """Return an overview of each system."""
    labels = list(next(iter(of.values()), {}))
    by_errors, by_loss = ranks(of, "errors"), ranks(of, "log_loss")
    common = [table for table, row in of.items() if None not in row.values()]
    return {
        label: Overview(
            sum(row[label] is not None for row in of.values()),
            by_errors[label],
            by_loss[label],
            _mean([of[table][label].rate for table in common]),  # type: ignore[union-attr]
            _mean([of[table][label].log_loss for table in common]),  # type: ignore[union-attr]
            *times(of, label),
            worst(of, label),
        )
        for label in labels
    }


def ranks(of: Scores, field: str) -> dict[str, float]:
    """Return the mean rank of each system, 1 for the lowest; ties share their ranks."""
    labels = list(next(iter(of.values()), {}))
    rows = [
        rankdata([math.inf if score is None else getattr(score, field) for score in row.values()])
        for row in of.values()
    ]
    return {label: _mean([row[i] for row in rows]) for i, label in enumerate(labels)}


def times(of: Scores, label: str) -> tuple[float | None, tuple[str, float] | None]:
    """Return the geometric mean of the multiples of LightGBM's time, and the largest."""
    multiples = {
        table: score.cpu / other.cpu
        for table, row in of.items()
        if (score := row[label]) and (other := row.get(MEASURED_AGAINST))
    }
    if not multiples:
        return None, None
    longest = max(multiples.items(), key=lambda item: item[1])
    return math.exp(mean(map(math.log, multiples.values()))), longest


def worst(of: Scores, label: str) -> Worst | None:
    """Compare a system with the bar."""
    shares = {
        table: score.rate / bar
        for table, row in of.items()
        if (score := row[label]) and (bar := bar_of(row)) is not None
    }
    if not shares:
        return None
    table = max(shares, key=lambda name: shares[name])
    return Worst(table, shares[table], sum(share > 1 for share in shares.values()))


def bar_of(row: dict[str, Score | None]) -> float | None:
    """Return 1.1 times the best peer's error rate plus its standard error, by half an error at least."""
    peers = [score for name in BAR_PEERS if (score := row.get(name))]
    if not peers:
        return None
    best = min(peers, key=lambda score: score.rate)
    rate = max(best.errors, 0.5) / best.n
    return BAR_FACTOR * best.rate + math.sqrt(rate * (1 - rate) / best.n)


def _mean(values: Sequence[float]) -> float:
    return mean(values) if values else math.nan


def reasons(lines: Iterable[Line]) -> list[tuple[str, str, str, str]]:
    """Return mode, table, system and reason of failed cells, without duplicates."""
    found = [
        (line["mode"], line["table"], Cell.of_line(line).label, line["reason"])
        for line in lines
        if "reason" in line
    ]
    return list(dict.fromkeys(found))


def clashes(lines: Iterable[Line], cells: Iterable[Cell]) -> list[str]:
    """Return the labels of cells that were measured with different parameters."""
    known = {(of := Cell.of_line(line)).label: json.dumps(of.parameters) for line in lines}
    return [
        label
        for label, given in {cell.label: json.dumps(cell.parameters) for cell in cells}.items()
        if known.get(label, given) != given
    ]
