"""Curves of boosting runs, drawn with matplotlib (the extra `plot`)."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curves = Mapping[str, ArrayLike]  # name of a run -> its values, one a step


def plot_train_loss(ax: Axes, losses: Curves) -> None:
    """Draw training losses (`train_loss_`: before and after each step) on a log scale."""
    for name, loss in losses.items():
        values = np.asarray(loss, dtype=np.float64)
        ax.plot(np.arange(values.size), np.where(values > 0.0, values, np.nan), label=name)
    ax.set_yscale("log")
    _finish(ax, "Training loss (sum over rows)")


def plot_test_errors(ax: Axes, errors: Curves) -> None:
    """Draw test errors after each step; a dot marks the first lowest point of each curve."""
    for name, curve in errors.items():
        values = np.asarray(curve)
        steps = np.arange(1, values.size + 1)
        ax.plot(steps, values, label=name, marker="o", markevery=[int(values.argmin())])
    _finish(ax, "Test errors (dot: lowest point)")


def plot_runs(losses: Curves, errors: Curves) -> Figure:
    """Training losses and test errors of the same runs side by side.

    The figure belongs to no window and no pyplot state: show it in a notebook or `savefig` it.
    """
    figure = _new_figure()
    left, right = figure.subplots(1, 2)
    plot_train_loss(left, losses)
    plot_test_errors(right, errors)
    return figure


def save_runs(path: str | PathLike[str], losses: Curves, errors: Curves) -> None:
    """Write the picture of `plot_runs` to a file; its ending says the format."""
    plot_runs(losses, errors).savefig(path, dpi=150)


def _new_figure() -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('plots need matplotlib: pip install "abcgbm[plot]"') from error
    return Figure(figsize=(10.0, 4.0), layout="constrained")


def _finish(ax: Axes, title: str) -> None:
    ax.set_title(title)
    ax.set_xlabel("Boosting step")
    ax.grid(alpha=0.3)
    ax.legend()
