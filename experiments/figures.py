"""Figures of the paper."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from experiments.agreement import PAIR, TITLES
from experiments.cells import Cell, Table
from experiments.curves import Curves

COLOURS = {"mart": "tab:blue", "abc-mart": "tab:red", "Mb": "tab:green", "b1": "tab:orange"}
COLOURS |= {"b7": "tab:purple"}
DPI = 90
PANEL = (2.9, 2.2)  # inches
MARGIN = 0.6  # inches around the panels; automatic layout takes a minute for a figure

AllCurves = Mapping[Cell, Curves]
Runs = dict[str, Curves]
Draw = Callable[[Axes, Runs], None]
Limits = Callable[[Sequence[Runs]], tuple[float, float]]


@dataclass(frozen=True)
class Kind:
    """One kind of figure with a panel for each J and nu."""

    name: str
    what: str
    draw: Draw
    limits: Limits | None = None  # of the panels of a row
    legend: tuple[str, ...] = PAIR


def draw_losses(ax: Axes, runs: Runs) -> None:
    """Draw training losses on a log scale."""
    for algorithm, curves in runs.items():
        steps = np.arange(curves.train_loss.size)
        ax.plot(steps, curves.train_loss, color=COLOURS[algorithm], lw=1.0)
    ax.set_yscale("log")


def draw_errors(ax: Axes, runs: Runs) -> None:
    """Draw test errors; a dot marks the first lowest point."""
    for algorithm, curves in runs.items():
        errors, colour = curves.test_errors, COLOURS[algorithm]
        lowest = int(errors.argmin())
        ax.plot(np.arange(1, errors.size + 1), errors, color=colour, lw=0.8)
        ax.plot(lowest + 1, errors[lowest], "o", color=colour, ms=3.5)


def error_limits(row: Sequence[Runs]) -> tuple[float, float]:
    """Limit the axis to the second half of each run; errors of the first iterations are much larger."""
    errors = [run.test_errors for runs in row for run in runs.values()]
    low, high = min(e.min() for e in errors), max(e[e.size // 2] for e in errors)
    return low - 0.1 * (high - low) - 0.03 * low, high + 0.2 * (high - low) + 0.1 * low


def improvement(runs: Runs) -> NDArray[np.float64]:
    """Return R_err of ABC-MART over MART in percent after each common iteration."""
    mart, abc = runs["mart"].test_errors, runs["abc-mart"].test_errors
    n_iter = min(mart.size, abc.size)
    return 100.0 * (1.0 - abc[:n_iter] / np.maximum(mart[:n_iter], 1))


def draw_improvement(ax: Axes, runs: Runs) -> None:
    """Draw R_err of ABC-MART over MART after the same number of iterations."""
    if len(runs) < len(PAIR):
        return
    shown = improvement(runs)
    ax.plot(np.arange(1, shown.size + 1), shown, color="black", lw=0.8)
    ax.axhline(0.0, color="grey", lw=0.5)


def improvement_limits(row: Sequence[Runs]) -> tuple[float, float]:
    """Limit the axis without the very first iterations, where R_err is far below zero."""
    highest = [improvement(runs).max() for runs in row if len(runs) == len(PAIR)]
    return -10.0, 5.0 + max(highest, default=0.0)


LOSS = Kind("loss", "training loss (summed)", draw_losses)
ERRORS = Kind("errors", "test errors (dot: lowest)", draw_errors, error_limits)
IMPROVEMENT = Kind(
    "improvement",
    "R_err of ABC-MART over MART (%; first iterations cut off)",
    draw_improvement,
    improvement_limits,
    (),
)


def grid_figure(table: Table, curves: AllCurves, kind: Kind) -> Figure:
    """Return a panel for each J (rows) and nu (columns); missing cells are empty."""
    shape = len(table.max_leaf_nodes), len(table.learning_rate)
    figure = Figure((PANEL[0] * shape[1], PANEL[1] * shape[0] + MARGIN))
    panels = figure.subplots(*shape, sharey="row", squeeze=False)
    for row, leaves in zip(panels, table.max_leaf_nodes, strict=True):
        all_runs = [runs_of(table, curves, leaves, rate) for rate in table.learning_rate]
        for ax, rate, runs in zip(row, table.learning_rate, all_runs, strict=True):
            _panel(ax, kind.draw, runs)
            ax.set_title(f"J = {leaves}, nu = {rate}", fontsize=9)
        if kind.limits and any(all_runs):
            row[0].set_ylim(*kind.limits(all_runs))
    _finish(figure, f"{table.dataset.capitalize()}: {kind.what}", kind.legend)
    return figure


def runs_of(table: Table, curves: AllCurves, leaves: int, rate: float) -> Runs:
    """Return the available curves of MART and ABC-MART at one J and nu."""
    cells = {name: table.cell(name, leaves, rate) for name in PAIR}
    return {name: curves[cell] for name, cell in cells.items() if cell in curves}


def _panel(ax: Axes, draw: Draw, runs: Runs) -> None:
    if runs:
        draw(ax, runs)
        ax.xaxis.set_major_locator(MaxNLocator(4, prune="upper"))
    else:
        ax.text(0.5, 0.5, "not run yet", transform=ax.transAxes, ha="center", color="grey")
        ax.set_xticks([])
    ax.tick_params(labelsize=8)
    ax.grid(alpha=0.3)


def alternatives_figure(cells: list[Cell], curves: AllCurves) -> Figure:
    """Return training loss and test errors of the paper's alternatives and the two algorithms."""
    runs = {cell.algorithm: curves[cell] for cell in cells if cell in curves}
    figure = Figure((10.0, 4.2))
    left, right = figure.subplots(1, 2)
    _panel(left, draw_losses, runs)
    _panel(right, draw_errors, runs)
    left.set_title(LOSS.what.capitalize(), fontsize=10)
    right.set_title(ERRORS.what.capitalize(), fontsize=10)
    right.set_ylim(*error_limits([runs]))
    some = cells[0]
    title = f"{some.dataset.capitalize()}, J = {some.max_leaf_nodes}, nu = {some.learning_rate}"
    _finish(figure, title, runs)
    return figure


def _finish(figure: Figure, title: str, algorithms: Iterable[str]) -> None:
    width, height = figure.get_size_inches()
    figure.subplots_adjust(
        left=MARGIN / width,
        right=1 - 0.25 / width,
        bottom=MARGIN / height,
        top=1 - MARGIN / height,
        wspace=0.12 if len(figure.axes) > 2 else 0.15,
        hspace=0.4,
    )
    handles = [
        figure.axes[0].plot([], [], color=COLOURS[name], label=TITLES.get(name, name))[0]
        for name in algorithms
    ]
    figure.suptitle(title, fontsize=11, x=MARGIN / width, y=1 - 0.1 / height, ha="left")
    figure.supxlabel("Boosting iterations", fontsize=9, y=0.1 / height)
    if handles:
        figure.legend(
            handles=handles, loc="upper right", ncols=len(handles), fontsize=9, frameon=False
        )


def save(figure: Figure, path: Path) -> None:
    """Write a picture; the same figure gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
