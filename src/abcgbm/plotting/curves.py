"""Plots by iteration: losses, errors and base classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.arrays import Floats
from abcgbm.data.labels import known_label
from abcgbm.evaluation.curves import (
    StagedScores,
    affordable_points,
    base_class_runs,
    history_of_model,
    staged_scores,
)
from abcgbm.evaluation.predictions import predictions_of
from abcgbm.plotting._axes import (
    COLOURS,
    GREY,
    Models,
    algorithm_of,
    axes_of,
    checked,
    colour,
    finish,
    long_enough,
    name_ticks,
    named_models,
    scale_losses,
    text,
    wide_enough,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_STYLES = {"training": "-", "refit": "-.", "validation": "--", "test": ":"}
_MAX_IN_A_COLUMN = 8  # of a legend
_NAMES = {
    "training": "mean training loss",
    "refit": "mean training loss of the refit",
    "validation": "mean validation loss",
    "test": "mean test loss",
}
_NEEDS = {
    "refit": "a model fitted with refit=True that was trained again",
    "validation": "a model fitted with X_val and y_val or early_stopping=True",
    "test": "X and y",
}


class _Curve(NamedTuple):
    """Losses of a model on some rows, and the best iteration if these rows chose it.

    Losses are sums over rows; ``weight`` is the total weight of the rows, None if it is not known.
    """

    kind: str
    iteration: NDArray[np.int64]
    loss: Floats
    weight: float | None
    best: int | None = None


def plot_losses(
    models: Models,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    kinds: Sequence[str] | None = None,
    sample_weight: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot mean losses by iteration; a dot marks the best iteration by validation.

    Parameters
    ----------
    models : ABCBoostClassifier, or dict of str to ABCBoostClassifier
        A fitted model, or several by name. Models differ in colour, kinds of loss in line style.
    X : table of shape (n_rows, n_features), optional
        Test rows, for the kind "test".
    y : array-like of shape (n_rows,), optional
        Labels of the test rows.
    kinds : sequence of {"training", "refit", "validation", "test"}, optional
        Losses to plot; by default all that are available. "refit" is the second training, on all rows.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the test rows.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    ax : Axes
        Losses are weighted means over rows, as ``verbose`` prints them. After a warm start on other
        rows, all training losses are divided by the weight of the last ones. The scale is
        logarithmic if losses fall to less than a tenth.
    """
    named, requested = named_models(models), _checked_kinds(kinds)
    staged = _staged(named, X, y, sample_weight) if X is not None or y is not None else {}
    curves = {name: [*_curves(model, staged.get(name))] for name, model in named.items()}
    drawn = {name: [*map(_mean, _selected(name, of, requested))] for name, of in curves.items()}
    n_kinds = len({curve.kind for found in drawn.values() for curve in found})
    is_named = isinstance(models, Mapping)
    has_kinds = n_kinds > 1 or not is_named
    ax = axes_of(ax)
    for number, (name, found) in enumerate(drawn.items()):
        for curve in found:
            label = _label(name if is_named else "", curve.kind if has_kinds else "")
            _draw(ax, curve, colour(number), label)
    scale_losses(ax)
    kind = next(iter(drawn.values()))[0].kind
    y_name = "mean loss" if n_kinds > 1 else _NAMES[kind]
    return _finish(ax, "Losses by iteration", y_name, n_lines=sum(map(len, drawn.values())))


def plot_errors(
    models: Models,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the error rate after each iteration; a dot marks the first lowest point of a curve.

    Parameters
    ----------
    models : ABCBoostClassifier, or dict of str to ABCBoostClassifier
        A fitted model, or several by name.
    X : table of shape (n_rows, n_features)
        Test rows.
    y : array-like of shape (n_rows,)
        Labels of the test rows. Labels that are not classes of a model count as errors.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    ax : Axes
        The lowest point of a test curve is an optimistic estimate of the error; use it to compare
        models only, as the paper does.
    """
    named = named_models(models)
    staged = _staged(named, X, y, sample_weight)
    ax = axes_of(ax)
    for number, (name, (scores, total)) in enumerate(staged.items()):
        # The error before the first iteration would dwarf all others.
        first = min(1, len(scores.iteration) - 1)
        rate = scores.errors[first:] / total
        iteration, lowest = scores.iteration[first:], int(rate.argmin())
        ax.plot(iteration, rate, label=name, color=colour(number), lw=1.3)
        _dot(ax, iteration[lowest], rate[lowest], colour(number))
    ax.yaxis.set_major_formatter(lambda rate, _: f"{100 * rate:.4g} %")
    return _finish(
        ax, "Error rate by iteration (dot: lowest point)", "error rate", n_lines=len(named)
    )


# ------------------------------------------------------------------------------------------- curves


def _staged(
    named: dict[str, ABCBoostClassifier], X: Any, y: Any, sample_weight: ArrayLike | None
) -> dict[str, tuple[StagedScores, float]]:
    """Return the test scores of each model by iteration, and the total weight of the rows."""
    if X is None or y is None:
        missing = "X" if X is None else "y"
        raise ValueError(f"{missing} is None; expected rows and their labels, X and y")
    predictions = {
        name: predictions_of(model, X, y, sample_weight) for name, model in named.items()
    }
    return {
        name: (staged_scores(of_model, affordable_points(of_model)), of_model.total)
        for name, of_model in predictions.items()
    }


def _curves(
    model: ABCBoostClassifier, staged: tuple[StagedScores, float] | None
) -> Iterator[_Curve]:
    """Yield all available curves of a model."""
    history, refitted = model.history_, model.refit_history_
    iterations = np.arange(history.n_iter + 1)
    yield _Curve("training", iterations, history.train_loss, history.train_weight)
    if refitted is not None:
        second = np.arange(refitted.n_iter + 1)
        yield _Curve("refit", second, refitted.train_loss, refitted.train_weight)
    if len(history.validation_loss):
        validation = (history.validation_loss, history.validation_weight, history.best_iteration)
        yield _Curve("validation", iterations, *validation)
    if staged is not None:
        yield _Curve("test", staged[0].iteration, staged[0].loss, weight=1.0)  # already a mean


def _mean(curve: _Curve) -> _Curve:
    """Return a curve of mean losses."""
    weight = _known_weight(curve.kind, curve.weight)
    return curve._replace(loss=curve.loss / weight, weight=1.0)


def _known_weight(kind: str, weight: float | None) -> float:
    """Return the total weight of the rows; raise ValueError if it is not known."""
    if weight is None:
        raise ValueError(
            f"the mean {kind} losses are not known, because the model was saved by an earlier "
            "version that did not store the weight of the rows; expected a model of this version, or "
            "kinds=['test']"
        )
    return weight


def _checked_kinds(kinds: Sequence[str] | None) -> list[str] | None:
    if kinds is None:
        return None
    given = [kinds] if isinstance(kinds, str) else list(kinds)
    if not given or not {*given} <= {*_STYLES}:
        allowed = ", ".join(map(repr, _STYLES))
        raise ValueError(f"kinds={kinds!r}; expected some of {allowed}")
    return given


def _selected(name: str, curves: list[_Curve], wanted: list[str] | None) -> list[_Curve]:
    """Return the curves of the kinds that are wanted; all if it was not said."""
    if wanted is None:
        return curves
    known = {curve.kind: curve for curve in curves}
    for kind in wanted:
        if kind not in known:
            raise ValueError(f"kinds has {kind!r}; of {name!r} expected {_NEEDS[kind]} for that")
    return [known[kind] for kind in wanted]


# ------------------------------------------------------------------------------------------ drawing


def _draw(ax: Axes, curve: _Curve, line_colour: str, label: str) -> None:
    # A logarithmic scale cannot show 0.
    values = np.where(curve.loss > 0.0, curve.loss, np.nan)
    ax.plot(curve.iteration, values, label=label, color=line_colour, ls=_STYLES[curve.kind])
    is_point = len(curve.iteration) == 1  # a model without iterations, for which no line is visible
    if is_point or curve.best is not None:
        at = 0 if curve.best is None else curve.best
        _dot(ax, curve.iteration[at], values[at], line_colour)


def _dot(ax: Axes, iteration: int, value: float, dot_colour: str) -> None:
    """Mark a point of a curve, without an entry in the legend."""
    ax.plot([iteration], [value], "o", color=dot_colour, label="_dot")


def _label(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _finish(ax: Axes, title: str, y_name: str, *, n_lines: int) -> Axes:
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small", ncols=1 if n_lines <= _MAX_IN_A_COLUMN else 2)
    return finish(ax, title, "boosting iterations", y_name)


_BAR_HEIGHT = 0.8  # of 1 for each class


def plot_base_classes(model: ABCBoostClassifier, *, ax: Axes | None = None) -> Axes:
    """Plot the base class of each iteration, with one row per class.

    Parameters
    ----------
    model : ABCBoostClassifier
        A fitted model with base classes.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure, whose height depends on the classes.

    Returns
    -------
    ax : Axes
        Iterations are counted from 1. Those without a base class are empty.
    """
    runs = base_class_runs(checked(model))
    if not runs:
        raise ValueError(
            f"no iteration of the model has a base class (algorithm={algorithm_of(model)!r}, "
            f"{len(model.classes_)} classes, {model.model_.n_iter} iterations); expected a model of "
            "'abc-mart' or 'abc-logitboost', or AdaptiveBaseClass(...), and three or more classes"
        )
    labels, n_iter = model.model_.labels, model.model_.n_iter
    ax = axes_of(ax, 7.0 + wide_enough(labels), 1.0 + long_enough(len(labels), 2.0, 9.0))
    for k in range(len(labels)):
        # Edges keep iterations visible that are narrower than a pixel.
        spans = [(run.first - 0.5, run.n_iter) for run in runs if run.class_number == k]
        fill = colour(k % 2)
        ax.broken_barh(spans, (k - _BAR_HEIGHT / 2, _BAR_HEIGHT), color=fill, lw=0.5)
    ax.set_xlim(0.5, n_iter + 0.5)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    name_ticks(ax, "y", labels)
    return finish(ax, "Base class by iteration", "boosting iterations", "class")


def plot_class_losses(
    model: ABCBoostClassifier,
    *,
    classes: Sequence[Any] | None = None,
    normalize: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Plot the training loss of each class by iteration.

    Parameters
    ----------
    model : ABCBoostClassifier
        A fitted model.
    classes : sequence of labels, optional
        Classes to show in colour, at most seven; all others are grey. By default those of largest
        loss after the last iteration.
    normalize : bool, default=False
        Plot the fraction of the total loss. The class of the largest fraction is the worst class,
        which "abc-mart" chooses as base class.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    ax : Axes
        The loss of a class is its part of the mean loss, so it grows with the size of the class. The
        scale is logarithmic if losses fall to less than a tenth.
    """
    history, labels = history_of_model(checked(model)), model.model_.labels
    losses = history.class_losses[: model.model_.n_iter + 1]
    coloured = _coloured_classes(losses[-1], labels, classes)
    ax = axes_of(ax, 7.0 + wide_enough([labels[k] for k in coloured]))
    if normalize:
        _draw_lines(ax, losses / losses.sum(axis=1, keepdims=True), coloured, labels)
    else:
        means = losses / _known_weight("training", history.train_weight)
        _draw_lines(ax, np.where(means > 0.0, means, np.nan), coloured, labels)
        scale_losses(ax)
    name = "fraction of the total loss" if normalize else "part of the mean loss"
    return finish(ax, "Training loss by class", "boosting iterations", name)


def _draw_lines(ax: Axes, values: Floats, coloured: list[int], labels: list[Any]) -> None:
    """Draw a line for each class, the grey ones first."""
    others = [k for k in range(len(labels)) if k not in coloured]
    name = f"{len(others)} other {'class' if len(others) == 1 else 'classes'}"
    for number, k in enumerate(others):
        label = f"_{k}" if number else name
        ax.plot(values[:, k], color=GREY, lw=0.6, alpha=0.7, label=label)
    for number, k in enumerate(coloured):
        ax.plot(values[:, k], color=colour(number), label=text(labels[k]))
    ax.grid(alpha=0.3)
    _legend_beside(ax, len(coloured))


def _legend_beside(ax: Axes, n_coloured: int) -> None:
    """Put the legend beside the axes, with the coloured lines first."""
    handles, names = ax.get_legend_handles_labels()
    n_grey = len(handles) - n_coloured
    order = [*range(n_grey, len(handles)), *range(n_grey)]
    ax.legend(
        [handles[i] for i in order],
        [names[i] for i in order],
        title="class",
        fontsize="small",
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
    )


def _coloured_classes(last: Floats, labels: list[Any], given: Sequence[Any] | None) -> list[int]:
    """Return the indices of the classes to show in colour."""
    if given is None:
        worst = np.argsort(-last, kind="stable")[: len(COLOURS)].tolist()
        return sorted(worst) if len(labels) <= len(COLOURS) else worst
    if isinstance(given, str) or len(given) > len(COLOURS):
        raise ValueError(f"classes={given!r}; expected a list of at most {len(COLOURS)} labels")
    numbers = [labels.index(known_label(label, labels)) for label in given]
    return [*dict.fromkeys(numbers)]
