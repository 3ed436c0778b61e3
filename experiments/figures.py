"""The paper's figures."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from experiments.agreement import PAIR, TITLES
from experiments.cells import Cell, Table
from experiments.curves import Curves

COLOURS = {"mart": "tab:blue", "abc-mart": "tab:red", "Mb": "tab:green", "b1": "tab:orange"}
COLOURS |= {"b7": "tab:purple"}
DPI = 90
PANEL = (2.9, 2.2)  # inches
MARGIN = 0.6  # inches around the panels; laying them out automatically takes a minute a figure

AllCurves = Mapping[Cell, Curves]
Draw = Callable[[Axes, dict[str, Curves]], None]


def draw_losses(ax: Axes, runs: dict[str, Curves]) -> None:
    """Draw training losses on a log scale."""
    for algorithm, curves in runs.items():
        steps = np.arange(curves.train_loss.size)
        ax.plot(steps, curves.train_loss, color=COLOURS[algorithm], lw=1.0)
    ax.set_yscale("log")


def draw_errors(ax: Axes, runs: dict[str, Curves]) -> None:
    """Draw test errors; a dot marks the first lowest point."""
    for algorithm, curves in runs.items():
        errors, colour = curves.test_errors, COLOURS[algorithm]
        lowest = int(errors.argmin())
        ax.plot(np.arange(1, errors.size + 1), errors, color=colour, lw=0.8)
        ax.plot(lowest + 1, errors[lowest], "o", color=colour, ms=3.5)


def draw_improvement(ax: Axes, runs: dict[str, Curves]) -> None:
    """Draw R_err of ABC-MART over MART after the same number of steps.

    The first steps, where it is far below zero for a while, would hide the rest.
    """
    mart, abc = runs["mart"].test_errors, runs["abc-mart"].test_errors
    n_steps = min(mart.size, abc.size)
    shown = slice(n_steps // 20, n_steps)
    improvement = 100.0 * (1.0 - abc[shown] / np.maximum(mart[shown], 1))
    ax.plot(np.arange(1, n_steps + 1)[shown], improvement, color="black", lw=0.8)
    ax.axhline(0.0, color="grey", lw=0.5)


def grid_figure(table: Table, curves: AllCurves, draw: Draw, what: str) -> Figure:
    """Return a panel for each J (down) and nu (across); open cells are empty."""
    shape = len(table.max_leaf_nodes), len(table.learning_rate)
    figure = Figure((PANEL[0] * shape[1], PANEL[1] * shape[0] + MARGIN))
    panels = figure.subplots(*shape, sharey=True, squeeze=False)
    for row, leaves in zip(panels, table.max_leaf_nodes, strict=True):
        for ax, rate in zip(row, table.learning_rate, strict=True):
            runs = _runs(table, curves, leaves, rate)
            _panel(ax, draw, {} if draw is draw_improvement and len(runs) < len(PAIR) else runs)
            ax.set_title(f"J = {leaves}, nu = {rate}", fontsize=9)
    if draw is draw_errors:
        panels[0, 0].set_ylim(*_error_limits(table, curves))
    shown = () if draw is draw_improvement else PAIR
    _finish(figure, f"{table.dataset.capitalize()}: {what}", shown)
    return figure


def _runs(table: Table, curves: AllCurves, leaves: int, rate: float) -> dict[str, Curves]:
    cells = {name: table.cell(name, leaves, rate) for name in PAIR}
    return {name: curves[cell] for name, cell in cells.items() if cell and cell in curves}


def _panel(ax: Axes, draw: Draw, runs: dict[str, Curves]) -> None:
    if runs:
        draw(ax, runs)
        ax.xaxis.set_major_locator(MaxNLocator(4, prune="upper"))
    else:
        ax.text(0.5, 0.5, "not run yet", transform=ax.transAxes, ha="center", color="grey")
        ax.set_xticks([])
    ax.tick_params(labelsize=8)
    ax.grid(alpha=0.3)


def _error_limits(table: Table, curves: AllCurves) -> tuple[float, float]:
    """Show at least the second half of each run; the errors of the first steps would hide all others."""
    errors = [curves[cell].test_errors for cell in table.cells if cell in curves]
    low, high = min(e.min() for e in errors), max(e[e.size // 2] for e in errors)
    return low - 0.1 * (high - low) - 0.03 * low, high + 0.2 * (high - low) + 0.1 * low


def alternatives_figure(cells: list[Cell], curves: AllCurves) -> Figure:
    """Return training loss and test errors of the paper's alternatives beside the two algorithms."""
    runs = {cell.algorithm: curves[cell] for cell in cells if cell in curves}
    figure = Figure((10.0, 4.2))
    left, right = figure.subplots(1, 2)
    _panel(left, draw_losses, runs)
    _panel(right, draw_errors, runs)
    left.set_title("Training loss", fontsize=10)
    right.set_title("Test errors", fontsize=10)
    lowest = [run.test_errors.min() for run in runs.values()]
    right.set_ylim(0.9 * min(lowest), 1.4 * max(lowest))
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
    figure.suptitle(title, fontsize=11, y=1 - 0.1 / height)
    figure.text(MARGIN / width, 0.1 / height, "Boosting steps", fontsize=9)
    if handles:
        figure.legend(
            handles=handles, loc="lower right", ncols=len(handles), fontsize=9, frameon=False
        )


def save(figure: Figure, path: Path) -> None:
    """Write a picture; the same figure gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
