"""How our errors compare with the paper's: numbers, and what they say in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from abcgbm.evaluation import relative_improvement
from experiments.cells import Cell, Table
from experiments.store import Line

TOLERANCE = 0.03  # means that differ by less agree
MOST_DEVIATIONS = 3.0  # in square roots of the paper's count
PAIR = ("mart", "abc-mart")
TITLES = {"mart": "MART", "abc-mart": "ABC-MART"}


@dataclass(frozen=True)
class Means:
    """One algorithm on one data set, over the cells that are done."""

    n_done: int
    ours: float
    paper: float
    far_above: tuple[Cell, ...]

    @property
    def difference(self) -> float:
        """Ours beside the paper's: 0.02 is 2 % more errors."""
        return self.ours / self.paper - 1 if self.n_done else math.nan

    @property
    def verdict(self) -> str:
        """Whether we make as many errors, more or fewer."""
        if not self.n_done:
            return "open"
        if abs(self.difference) <= TOLERANCE:
            return "agrees"
        return "fewer errors" if self.difference < 0 else "more errors"


@dataclass(frozen=True)
class Agreement:
    """Both algorithms on one data set."""

    table: Table
    means: Mapping[str, Means]
    pairs: tuple[tuple[int, int], ...]  # lowest errors of MART and ABC-MART, where both are done
    paper_pairs: tuple[tuple[int, int], ...]  # the paper's, of the same cells

    @classmethod
    def of(cls, table: Table, done: Mapping[Cell, Line]) -> "Agreement":
        """Compare what is done."""
        ours = {cell: done[cell]["lowest_errors"] for cell in table.cells if cell in done}
        means = {algorithm: _means(algorithm, ours, table.paper) for algorithm in PAIR}
        both = [
            (mart, abc)
            for mart in ours
            if mart.algorithm == "mart"
            and (abc := table.cell("abc-mart", mart.max_leaf_nodes, mart.learning_rate)) in ours
        ]
        return cls(
            table,
            means,
            tuple((ours[mart], ours[abc]) for mart, abc in both),
            tuple((table.paper[mart], table.paper[abc]) for mart, abc in both),
        )

    @property
    def n_done(self) -> int:
        """Number of cells that are done."""
        return sum(means.n_done for means in self.means.values())

    @property
    def far_above(self) -> tuple[Cell, ...]:
        """Cells with far more errors than the paper's."""
        return tuple(cell for means in self.means.values() for cell in means.far_above)

    @property
    def meets_the_bar(self) -> bool:
        """All cells done, means not more than 3 % above the paper's, no cell far above."""
        is_near = all(means.difference <= TOLERANCE for means in self.means.values())
        return self.n_done == len(self.table.cells) and is_near and not self.far_above


def _means(algorithm: str, ours: Mapping[Cell, int], paper: Mapping[Cell, int]) -> Means:
    cells = [cell for cell in ours if cell.algorithm == algorithm]
    far = (c for c in cells if ours[c] - paper[c] > MOST_DEVIATIONS * math.sqrt(paper[c]))
    n = len(cells)
    return Means(
        n,
        sum(ours[cell] for cell in cells) / n if n else math.nan,
        sum(paper[cell] for cell in cells) / n if n else math.nan,
        tuple(far),
    )


def improvement_of_means(pairs: tuple[tuple[int, int], ...]) -> float:
    """R_err of the mean errors over a grid; NaN without any."""
    if not pairs:
        return math.nan
    return relative_improvement(sum(mart for mart, _ in pairs), sum(abc for _, abc in pairs))


def overall(agreements: Sequence[Agreement]) -> str:
    """Say in plain words how all data sets compare."""
    whole = [a for a in agreements if a.n_done == len(a.table.cells)]
    paired = [a for a in agreements if a.pairs]
    if not paired:
        return "Nothing can be said yet."
    below = [a for a in paired if improvement_of_means(a.pairs) > 0]
    met = [a for a in whole if a.meets_the_bar]
    bar = (
        f" On {len(met)} of these the mean errors of both algorithms are at most 3 % above the paper's "
        "and no cell is more than three standard deviations above."
    )
    return (
        f"Of {len(agreements)} data sets {len(whole) or 'none'} have been run completely."
        f"{bar if whole else ''} ABC-MART makes fewer errors than MART on average on {len(below)} of "
        f"the {len(paired)} data sets with runs of both."
    )


def sentences(agreement: Agreement) -> str:
    """Say in plain words how one data set compares."""
    table = agreement.table
    name = f"**{table.dataset.capitalize()}**"
    if not agreement.n_done:
        return f"{name}: nothing has been run yet."
    parts = [f"{name}, {agreement.n_done} of {len(table.cells)} cells run."]
    parts += [
        _of_algorithm(TITLES[algorithm], means)
        for algorithm, means in agreement.means.items()
        if means.n_done
    ]
    return " ".join([*parts, _of_cells(agreement), _of_pairs(agreement)]).strip()


def _of_algorithm(title: str, means: Means) -> str:
    words = {
        "agrees": "agrees with the paper",
        "fewer errors": "makes fewer errors than the paper's",
        "more errors": "makes more errors than the paper's",
    }[means.verdict]
    return (
        f"{title} {words}: on average {means.ours:,.1f} errors, the paper {means.paper:,.1f} "
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
    n_better = sum(abc < mart for mart, abc in pairs)
    ours, paper = map(improvement_of_means, (pairs, agreement.paper_pairs))
    result = (
        f"makes {ours:.1f} % fewer errors than" if ours > 0 else "does not make fewer errors than"
    )
    return (
        f"ABC-MART {result} MART on average (the paper: {paper:.1f} %), and fewer in {n_better} of "
        f"{len(pairs)} pairs of cells."
    )
