"""Classes step by step: which was the base class when, and what each has lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.columns import Floats
from abcgbm.data.labels import known_label
from abcgbm.evaluation.base_classes import base_class_runs, history_of_model
from abcgbm.plotting.canvas import (
    COLOURS,
    GREY,
    algorithm_of,
    axes_of,
    checked,
    colour,
    finish,
    long_enough,
    name_ticks,
    scale_losses,
    text,
    wide_enough,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_THICK = 0.8  # part of a row that is filled


def plot_base_classes(model: ABCBoostClassifier, *, ax: Axes | None = None) -> Axes:
    """Draw which class was the base class of which step: a row for each class.

    Parameters
    ----------
    model : ABCBoostClassifier
        A fitted model with base classes.
    ax : Axes, optional
        Where to draw; by default in a new figure, the higher the more classes there are.

    Returns
    -------
    ax : Axes
        Steps are counted from 1, and so is the axis; a step without a base class is empty.
    """
    runs = base_class_runs(checked(model))
    if not runs:
        raise ValueError(
            f"no step of the model has a base class (algorithm={algorithm_of(model)!r}, "
            f"{len(model.classes_)} classes, {model.model_.n_steps} steps); expected a model of "
            "'abc-mart' or 'abc-logitboost', or with base_class=, and three or more classes"
        )
    labels, n_steps = model.model_.labels, model.model_.n_steps
    ax = axes_of(ax, 7.0 + wide_enough(labels), 1.0 + long_enough(len(labels), 2.0, 9.0))
    for k in range(len(labels)):
        # Edges keep a step visible that is narrower than a pixel.
        places = [(run.first - 0.5, run.n_steps) for run in runs if run.class_number == k]
        fill = colour(k % 2)
        ax.broken_barh(places, (k - _THICK / 2, _THICK), color=fill, lw=0.5)
    ax.set_xlim(0.5, n_steps + 0.5)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    name_ticks(ax, "y", labels)
    return finish(ax, "Base class of each step", "boosting step", "class")


def plot_class_losses(
    model: ABCBoostClassifier,
    *,
    classes: Sequence[Any] | None = None,
    shares: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the training loss of each class by step.

    Parameters
    ----------
    model : ABCBoostClassifier
        A fitted model.
    classes : sequence of labels, optional
        The classes to be told from each other, at most seven; all others are grey. By default those
        of largest loss after the last step.
    shares : bool, default=False
        Draw the share of each class in the loss of all, instead of the loss itself: the largest is the worst class, which "abc-mart" takes as its base.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    ax : Axes
        The losses of a class are sums over its rows, so that a large class has large ones. Their
        scale is logarithmic if they fall to less than a tenth.
    """
    losses = history_of_model(checked(model)).class_losses[: model.model_.n_steps + 1]
    labels = model.model_.labels
    told = _told_classes(losses[-1], labels, classes)
    drawn = losses / losses.sum(axis=1, keepdims=True) if shares else losses
    ax = axes_of(ax, 7.0 + wide_enough([labels[k] for k in told]))
    _draw_lines(ax, drawn if shares else np.where(losses > 0.0, losses, np.nan), told, labels)
    if not shares:
        scale_losses(ax)
    name = "share of the loss of all classes" if shares else "loss (sum over rows)"
    return finish(ax, "Training loss of each class", "boosting step", name)


def _draw_lines(ax: Axes, values: Floats, told: list[int], labels: list[Any]) -> None:
    """Draw a line for each class, in grey first those that are not told from each other."""
    others = [k for k in range(len(labels)) if k not in told]
    name = f"{len(others)} other {'class' if len(others) == 1 else 'classes'}"
    for number, k in enumerate(others):
        label = f"_{k}" if number else name
        ax.plot(values[:, k], color=GREY, lw=0.6, alpha=0.7, label=label)
    for number, k in enumerate(told):
        ax.plot(values[:, k], color=colour(number), label=text(labels[k]))
    ax.grid(alpha=0.3)
    _legend_told_first(ax, len(told))


def _legend_told_first(ax: Axes, n_told: int) -> None:
    """Put the legend beside the lines, which are anywhere; the grey ones were drawn first."""
    handles, names = ax.get_legend_handles_labels()
    order = [*range(len(handles) - n_told, len(handles)), *range(len(handles) - n_told)]
    ax.legend(
        [handles[i] for i in order],
        [names[i] for i in order],
        title="class",
        fontsize="small",
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
    )


def _told_classes(last: Floats, labels: list[Any], given: Sequence[Any] | None) -> list[int]:
    """Return the numbers of the classes that get a colour."""
    if given is None:
        worst = np.argsort(-last, kind="stable")[: len(COLOURS)].tolist()
        return sorted(worst) if len(labels) <= len(COLOURS) else worst
    if isinstance(given, str) or len(given) > len(COLOURS):
        raise ValueError(f"classes={given!r}; expected a list of at most {len(COLOURS)} labels")
    numbers = [labels.index(known_label(label, labels)) for label in given]
    return [*dict.fromkeys(numbers)]
