"""Helpers of all plots: axes, named models, colours and labels that fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.labels import short_label
from abcgbm.parameters.algorithms import algorithm_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


Models = ABCBoostClassifier | Mapping[str, ABCBoostClassifier]

# Okabe and Ito's colours, distinct for colour-blind people, without yellow, which is faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
GREY = "#999999"
_LABEL, _LETTER = 10.0, 6.0  # height of a tick label and width of a letter, in points
_LARGEST, _SMALLEST, _LINE = 8.0, 6.0, 1.25  # font sizes in points, and line height as a multiple
POINTS_PER_INCH, _DECADE = 72.0, 10.0


# -------------------------------------------------------------------------------------------- axes


def new_figure(width: float = 7.0, height: float = 4.5) -> Figure:
    """Return an empty figure without a window and independent of pyplot.

    Parameters
    ----------
    width, height : float
        Size in inches.

    Returns
    -------
    figure : Figure
        A figure with constrained layout; ``figure.subplots`` returns axes for the plots.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('plots require matplotlib: pip install "abcgbm[plot]"') from error
    return Figure(figsize=(width, height), layout="constrained")


def axes_of(ax: Axes | None, width: float = 7.0, height: float = 4.5) -> Axes:
    """Return the given axes, or those of a new figure of this size."""
    if ax is None:
        return new_figure(width, height).add_subplot()
    if not hasattr(ax, "get_figure") or not hasattr(ax, "set_xlabel"):
        raise TypeError(f"ax={ax!r}; expected an Axes of matplotlib, or None for a new figure")
    return ax


# ------------------------------------------------------------------------------------------ models


def checked(model: Any) -> ABCBoostClassifier:
    """Return a model after checking that it is a fitted ABCBoostClassifier."""
    if not isinstance(model, ABCBoostClassifier):
        raise TypeError(f"model={model!r}; expected a fitted ABCBoostClassifier")
    check_is_fitted(model)
    return model


def named_models(models: Any) -> dict[str, ABCBoostClassifier]:
    """Return models by name; a single model is called "model"."""
    if isinstance(models, ABCBoostClassifier):
        return {"model": checked(models)}
    if not isinstance(models, Mapping) or not models:
        raise TypeError(
            f"models={models!r}; expected a fitted ABCBoostClassifier, or a dict from names to them"
        )
    named = {_plain(name): checked(model) for name, model in models.items()}
    if len(named) < len(models):
        raise ValueError(f"models has the names {[*models]!r}; expected names that differ as text")
    return named


def algorithm_of(model: ABCBoostClassifier) -> str:
    """Return the name of a model's algorithm."""
    return algorithm_name(model.resolved_params_.get("algorithm", model.algorithm))


# ------------------------------------------------------------------------------------------- texts


def text(label: Any) -> str:
    """Return a label as text, shortened for a plot."""
    return _plain(short_label(label))


def _plain(name: Any) -> str:
    """Return a name on one line, with dollars escaped, which would start a formula."""
    line = " ".join(str(name).split())
    # Legends omit names that start with an underscore.
    return (" " + line if line.startswith("_") else line).replace("$", r"\$")


def colour(number: int) -> str:
    """Return the colour of a line."""
    return COLOURS[number % len(COLOURS)]


def name_ticks(ax: Axes, which: Literal["x", "y"], labels: Sequence[Any]) -> None:
    """Label the positions 0, 1, ... of an axis, or evenly spaced ones if there is no space for all."""
    axis: Axis = ax.xaxis if which == "x" else ax.yaxis
    length = points_of(ax, which)
    every = math.ceil(len(labels) / max(2, int(length / (_SMALLEST * _LINE))))
    names = [text(label) for label in labels[::every]]
    space = length / len(names)
    is_vertical = which == "x" and _longest(names) * _LETTER > space
    axis.set_ticks(range(0, len(labels), every), names)
    axis.set_tick_params(
        length=0 if every == 1 else 3,
        labelsize=min(_LARGEST, max(_SMALLEST, space / _LINE)),
        labelrotation=90 if is_vertical else 0,
    )


def points_of(ax: Axes, which: Literal["x", "y"]) -> float:
    """Return the length of an axis in points."""
    extent = ax.get_window_extent()
    pixels = extent.width if which == "x" else extent.height
    return float(pixels) / ax.figure.dpi * POINTS_PER_INCH


def long_enough(n_labels: int, min_inches: float, max_inches: float) -> float:
    """Return the inches that a column of labels needs, within bounds."""
    return min(max_inches, max(min_inches, n_labels * _LABEL * 1.25 / POINTS_PER_INCH))


def wide_enough(labels: Sequence[Any]) -> float:
    """Return the inches that the longest label and the name of an axis need."""
    return 0.9 + _longest([text(label) for label in labels]) * _LETTER / POINTS_PER_INCH


def _longest(names: Sequence[str]) -> int:
    return max(map(len, names), default=0)


def scale_losses(ax: Axes) -> None:
    """Use a logarithmic scale if losses fall to less than a tenth."""
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=np.float64) for line in ax.lines])
    if np.nanmax(values) > _DECADE * np.nanmin(values):
        ax.set_yscale("log")


def finish(ax: Axes, title: str, x_name: str, y_name: str) -> Axes:
    """Set title and names of the axes."""
    ax.set_title(title)
    ax.set_xlabel(capitalized(x_name))
    ax.set_ylabel(capitalized(y_name))
    return ax


def capitalized(name: str) -> str:
    """Return a name with its first letter in upper case."""
    return name[:1].upper() + name[1:]
