"""Comparison of our errors with the paper's, in numbers and in words."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from abcgbm.demo import relative_improvement
from experiments.cells import Cell, Table
from experiments.curves import Curves
from experiments.store import Line

TOLERANCE = 0.03  # means that differ by less agree
MAX_DEVIATIONS = 3.0  # in square roots of the paper's count
EARLY = 100  # iterations
PAIR = ("mart", "abc-mart")
TITLES = {"mart": "MART", "abc-mart": "ABC-MART"}
VERDICTS = {
    "agrees": "agrees with the paper",
    "fewer errors": "makes fewer errors than the paper's",
    "more errors": "makes more errors than the paper's",
}

T = TypeVar("T")
Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Means:
    """One algorithm on one data set, over the finished cells."""

    n_done: int
    ours: float
    paper: float
    far_above: tuple[Cell, ...]

    @property
    def difference(self) -> float:
        """Relative difference of our errors from the paper's: 0.02 is 2 % more errors."""
        return self.ours / self.paper - 1 if self.n_done else math.nan

    @property
    def verdict(self) -> str:
        """Whether we make more, fewer or equally many errors."""
        if not self.n_done:
            return "-"
        if abs(self.difference) <= TOLERANCE:
            return "agrees"
        return "fewer errors" if self.difference < 0 else "more errors"


@dataclass(frozen=True)
class BothLower:
    """Whether ABC-MART has lower training loss, and fewer errors, after each common iteration."""

    loss: NDArray[np.bool_]
    errors: NDArray[np.bool_]

    @classmethod
    def of(cls, mart: Curves, abc: Curves) -> "BothLower":
        """Compare two runs."""
        n_iter = min(mart.test_errors.size, abc.test_errors.size)
        steps = slice(1, n_iter + 1)  # losses start before the first iteration
        return cls(
            abc.train_loss[steps] < mart.train_loss[steps],
            abc.test_errors[:n_iter] < mart.test_errors[:n_iter],
        )


@dataclass(frozen=True)
class Agreement:
    """Both algorithms on one data set. Pairs are errors of MART and ABC-MART where both are finished."""

    table: Table
    means: Mapping[str, Means]
    pairs: Pairs  # lowest errors
    paper_pairs: Pairs  # of the paper in the same cells
    chosen_pairs: Pairs  # at the iterations chosen by validation, if any
    is_lower: tuple[BothLower, ...]  # of each pair: where ABC-MART's curves are below MART's

    @classmethod
    def of(
        cls, table: Table, done: Mapping[Cell, Line], curves: Mapping[Cell, Curves]
    ) -> "Agreement":
        """Compare the finished cells."""
        ours = {cell: done[cell]["lowest_errors"] for cell in table.cells if cell in done}
        chosen = {c: done[c]["validated_errors"] for c in ours if c.is_validated}
        return cls(
            table,
            {algorithm: _means(algorithm, ours, table.paper) for algorithm in PAIR},
            _pairs(table, ours),
            _pairs(table, {cell: table.paper[cell] for cell in ours}),
            _pairs(table, chosen),
            tuple(BothLower.of(*pair) for pair in _pairs(table, curves)),
        )

    @property
    def n_done(self) -> int:
        """Number of finished cells."""
        return sum(means.n_done for means in self.means.values())

    @property
    def is_whole(self) -> bool:
        """Whether all cells of the paper are finished."""
        return self.n_done == len(self.table.cells)

    @property
    def far_above(self) -> tuple[Cell, ...]:
        """Cells with far more errors than the paper's."""
        return tuple(cell for means in self.means.values() for cell in means.far_above)

    @property
    def n_lower_at_last(self) -> int:
        """Number of pairs in which ABC-MART has the lower loss after the last common iteration."""
        return sum(bool(pair.loss[-1]) for pair in self.is_lower)

    @property
    def meets_the_bar(self) -> bool:
        """Whether all cells are finished, means are at most 3 % above the paper's, and no cell is far above."""
        is_near = all(means.difference <= TOLERANCE for means in self.means.values())
        return self.is_whole and is_near and not self.far_above

    @property
    def name(self) -> str:
        """The display name of the data set."""
        return self.table.dataset.capitalize()


def _pairs(table: Table, values: Mapping[Cell, T]) -> tuple[tuple[T, T], ...]:
    return tuple(
        (value, values[abc])
        for mart, value in values.items()
        if mart.algorithm == "mart"
        and (abc := table.cell("abc-mart", mart.max_leaf_nodes, mart.learning_rate)) in values
    )


def _means(algorithm: str, ours: Mapping[Cell, int], paper: Mapping[Cell, int]) -> Means:
    cells = [cell for cell in ours if cell.algorithm == algorithm]
    far = (c for c in cells if ours[c] - paper[c] > MAX_DEVIATIONS * math.sqrt(paper[c]))
    n = len(cells)
    return Means(
        n,
        sum(ours[cell] for cell in cells) / n if n else math.nan,
        sum(paper[cell] for cell in cells) / n if n else math.nan,
        tuple(far),
    )


def improvement_of_means(pairs: Pairs) -> float:
    """R_err of the mean errors over a grid; NaN without any."""
    if not pairs:
        return math.nan
    return relative_improvement(sum(mart for mart, _ in pairs), sum(abc for _, abc in pairs))


def overall(agreements: Sequence[Agreement]) -> str:
    """Describe the comparison of all data sets, one sentence in each line."""
    whole = [a for a in agreements if a.is_whole]
    if not whole:
        return "No grid of the paper is complete yet."
    said = [f"All of the paper's cells have been run on {_names(whole)}."]
    for part in (_of_the_bar, _of_the_paper, _of_the_idea, _of_the_gain):
        said += part(whole)
    return "\n".join(f"- {sentence}" for sentence in said)


def _of_the_bar(whole: Sequence[Agreement]) -> list[str]:
    """Describe where all requirements hold, and where they do not."""
    met = [a for a in whole if a.meets_the_bar]
    missed = [a for a in whole if not a.meets_the_bar]
    said = []
    if met:
        said.append(
            f"On {_names(met)} the mean errors of both algorithms are at most 3 % above the paper's, "
            "and no cell is more than three standard deviations above."
        )
    return said + [f"On {a.name} {_of_means_above(a)}. {_of_cells(a)}" for a in missed]


def _of_means_above(agreement: Agreement) -> str:
    """Describe which means miss the tolerance, and by how much."""
    above = [
        f"{TITLES[name]}'s mean is {100 * means.difference:.1f} % above the paper's"
        for name, means in agreement.means.items()
        if means.difference > TOLERANCE
    ]
    return " and ".join(above) or "both means are at most 3 % above the paper's"


def _of_the_paper(whole: Sequence[Agreement]) -> list[str]:
    """Describe where each algorithm agrees with the paper's, is better or worse."""
    said = []
    for algorithm in PAIR:
        found = {v: [a for a in whole if a.means[algorithm].verdict == v] for v in VERDICTS}
        words = [f"{VERDICTS[v]} on {_names(found[v])}" for v in VERDICTS if found[v]]
        said.append(f"{TITLES[algorithm]} {'; it '.join(words)}.")
    return said


def _of_the_idea(whole: Sequence[Agreement]) -> list[str]:
    """Describe where a base class helps."""
    below = [a for a in whole if improvement_of_means(a.pairs) > 0]
    rest = [a for a in whole if a not in below]
    no_better = [a for a in whole if not _is_best_better(a.pairs)]
    worse = [a for a in whole if a.chosen_pairs and improvement_of_means(a.chosen_pairs) <= 0]
    said = []
    if below:
        said.append(
            f"ABC-MART makes fewer errors than MART, on average over the cells, on {_names(below)}."
        )
    if rest:
        said.append(f"ABC-MART does not make fewer errors than MART on {_names(rest)}.")
    if no_better:
        said.append(
            "The best cell of ABC-MART makes as many errors as the best of MART, or more, on "
            f"{_names(no_better)}."
        )
    if worse:
        said.append(
            "At iterations chosen by validation ABC-MART makes as many errors as MART, or "
            f"more, on {_names(worse)}."
        )
    slower = [a for a in whole if 2 * a.n_lower_at_last < len(a.is_lower)]
    if slower:
        said.append(
            f"MART ends with the lower training loss more often than ABC-MART on {_names(slower)}."
        )
    return said


def _is_best_better(pairs: Pairs) -> bool:
    return min(abc for _, abc in pairs) < min(mart for mart, _ in pairs)


def _of_the_gain(whole: Sequence[Agreement]) -> list[str]:
    """Describe where a base class helps less than in the paper."""
    less = [a for a in whole if improvement_of_means(a.pairs) < improvement_of_means(a.paper_pairs)]
    return [f"ABC-MART gains less over MART than in the paper on {_names(less)}."] if less else []


def _names(agreements: Sequence[Agreement]) -> str:
    *first, last = [agreement.name for agreement in agreements]
    return f"{', '.join(first)} and {last}" if first else last


def sentences(agreement: Agreement) -> str:
    """Describe the comparison of one data set."""
    name = f"**{agreement.name}**"
    if not agreement.n_done:
        return f"{name}: nothing has been run yet."
    parts = [f"{name}, {agreement.n_done} of the paper's {len(agreement.table.cells)} cells run."]
    parts += [
        _of_algorithm(TITLES[algorithm], means)
        for algorithm, means in agreement.means.items()
        if means.n_done
    ]
    parts += [
        _of_cells(agreement),
        _of_pairs(agreement),
        _of_chosen(agreement),
        _of_curves(agreement),
    ]
    return " ".join(part for part in parts if part)


def _of_algorithm(title: str, means: Means) -> str:
    return (
        f"{title} {VERDICTS[means.verdict]}: on average {means.ours:,.1f} errors, the paper {means.paper:,.1f} "
        f"({100 * means.difference:+.1f} %)."
    )


def _of_cells(agreement: Agreement) -> str:
    far = agreement.far_above
    if not far:
        return "No cell is more than three standard deviations above the paper's."
    shown = ", ".join(
        f"{TITLES[c.algorithm]} J={c.max_leaf_nodes} nu={c.learning_rate}" for c in far
    )
    verb = "cell is" if len(far) == 1 else "cells are"
    return f"{len(far)} {verb} more than three standard deviations above the paper's: {shown}."


def _of_pairs(agreement: Agreement) -> str:
    pairs = agreement.pairs
    if not pairs:
        return ""
    ours, paper = map(improvement_of_means, (pairs, agreement.paper_pairs))
    result = (
        f"makes {ours:.1f} % fewer errors than" if ours > 0 else "does not make fewer errors than"
    )
    return f"ABC-MART {result} MART on average (the paper: {paper:.1f} %): {_counts(pairs)}."


def _of_chosen(agreement: Agreement) -> str:
    pairs = agreement.chosen_pairs
    if not pairs:
        return ""
    mart, abc = (sum(errors) / len(pairs) for errors in zip(*pairs, strict=True))
    return (
        f"At iterations chosen by validation MART makes {mart:,.1f} errors on average and ABC-MART "
        f"{abc:,.1f}: {_counts(pairs)}."
    )


def _of_curves(agreement: Agreement) -> str:
    pairs = agreement.is_lower
    if not pairs:
        return ""
    losses, errors = [pair.loss for pair in pairs], [pair.errors for pair in pairs]
    return (
        f"Iteration by iteration, ABC-MART has the lower training loss in {_percent(losses, EARLY)} of the first "
        f"{EARLY} iterations and in {_percent(losses)} of all common ones (after the last of these in "
        f"{agreement.n_lower_at_last} of {len(pairs)} pairs), and fewer test errors in "
        f"{_percent(errors, EARLY)} and {_percent(errors)}."
    )


def _percent(curves: Iterable[NDArray[np.bool_]], n_first: int | None = None) -> str:
    return f"{100 * fmean(float(curve[:n_first].mean()) for curve in curves):.0f} %"


def _counts(pairs: Pairs) -> str:
    fewer, more = sum(abc < mart for mart, abc in pairs), sum(abc > mart for mart, abc in pairs)
    equal = len(pairs) - fewer - more
    return f"fewer in {fewer}, as many in {equal} and more in {more} of {len(pairs)} pairs of cells"
