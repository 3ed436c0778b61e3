"""What all pictures share: axes to draw on, models with names, colours, labels that fit."""

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

# Okabe and Ito's, which the colour-blind can tell, without the yellow, which is faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
GREY = "#999999"
_LABEL, _LETTER = 10.0, 6.0  # of a tick label: points that it needs, and that a letter is wide
_LARGEST, _SMALLEST, _LINE = 8.0, 6.0, 1.25  # of its letters: sizes in points, and their distance
POINTS_PER_INCH, _DECADE = 72.0, 10.0


# -------------------------------------------------------------------------------------------- axes


def new_figure(width: float = 7.0, height: float = 4.5) -> Figure:
    """Return an empty figure that belongs to no window and to no pyplot state.

    Parameters
    ----------
    width, height : float
        Its size in inches.

    Returns
    -------
    figure : Figure
        ``figure.subplots`` makes axes for the functions of this module; nothing in it overlaps.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('plots need matplotlib: pip install "abcgbm[plot]"') from error
    return Figure(figsize=(width, height), layout="constrained")


def axes_of(ax: Axes | None, width: float = 7.0, height: float = 4.5) -> Axes:
    """Return the axes that were given, or those of a new figure of this size."""
    if ax is None:
        return new_figure(width, height).add_subplot()
    if not hasattr(ax, "get_figure") or not hasattr(ax, "set_xlabel"):
        raise TypeError(f"ax={ax!r}; expected one Axes of matplotlib, or None for a new figure")
    return ax


# ------------------------------------------------------------------------------------------ models


def checked(model: Any) -> ABCBoostClassifier:
    """Return a model if it is one of ours, and fitted."""
    if not isinstance(model, ABCBoostClassifier):
        raise TypeError(f"model={model!r}; expected a fitted ABCBoostClassifier")
    check_is_fitted(model)
    return model


def named_models(models: Any) -> dict[str, ABCBoostClassifier]:
    """Return models by name; a single one is called "model"."""
    if isinstance(models, ABCBoostClassifier):
        return {"model": checked(models)}
    if not isinstance(models, Mapping) or not models:
        raise TypeError(
            f"models={models!r}; expected a fitted ABCBoostClassifier, or a dict of names and such"
        )
    named = {_plain(name): checked(model) for name, model in models.items()}
    if len(named) < len(models):
        raise ValueError(f"models has the names {[*models]!r}; expected names that differ as text")
    return named


def algorithm_of(model: ABCBoostClassifier) -> str:
    """Return the algorithm that a model was made by."""
    return algorithm_name(model.resolved_params_.get("algorithm", model.algorithm))


# ------------------------------------------------------------------------------------------- texts


def text(label: Any) -> str:
    """Return a label that is not too long for a drawing."""
    return _plain(short_label(label))


def _plain(name: Any) -> str:
    """Return a name as it is, for a drawing: no dollar starts a formula, no line is broken."""
    line = " ".join(str(name).split())
    # A legend leaves out what starts with an underscore.
    return (" " + line if line.startswith("_") else line).replace("$", r"\$")


def colour(number: int) -> str:
    """Return the colour of a line."""
    return COLOURS[number % len(COLOURS)]


def name_ticks(ax: Axes, which: Literal["x", "y"], labels: Sequence[Any]) -> None:
    """Label the places 0, 1, ... of an axis; where there is no room for all, every so many."""
    axis: Axis = ax.xaxis if which == "x" else ax.yaxis
    room = points_of(ax, which)
    every = math.ceil(len(labels) / max(2, int(room / (_SMALLEST * _LINE))))
    names = [text(label) for label in labels[::every]]
    for_each = room / len(names)
    is_upright = which == "x" and _longest(names) * _LETTER > for_each
    axis.set_ticks(range(0, len(labels), every), names)
    axis.set_tick_params(
        length=0 if every == 1 else 3,
        labelsize=min(_LARGEST, max(_SMALLEST, for_each / _LINE)),
        labelrotation=90 if is_upright else 0,
    )


def points_of(ax: Axes, which: Literal["x", "y"]) -> float:
    """Return the length of an axis in points."""
    extent = ax.get_window_extent()
    pixels = extent.width if which == "x" else extent.height
    return float(pixels) / ax.figure.dpi * POINTS_PER_INCH


def long_enough(n_labels: int, least: float, most: float) -> float:
    """Return inches for so many labels in a column."""
    return min(most, max(least, n_labels * _LABEL * 1.25 / POINTS_PER_INCH))


def wide_enough(labels: Sequence[Any]) -> float:
    """Return inches for the longest label, and for title and name of an axis."""
    return 0.9 + _longest([text(label) for label in labels]) * _LETTER / POINTS_PER_INCH


def _longest(names: Sequence[str]) -> int:
    return max(map(len, names), default=0)


def scale_losses(ax: Axes) -> None:
    """Make the scale of losses logarithmic, if they fall to less than a tenth."""
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=np.float64) for line in ax.lines])
    if np.nanmax(values) > _DECADE * np.nanmin(values):
        ax.set_yscale("log")


def finish(ax: Axes, title: str, x_name: str, y_name: str) -> Axes:
    """Write title and names of the axes."""
    ax.set_title(title)
    ax.set_xlabel(x_name)
    ax.set_ylabel(y_name)
    return ax
