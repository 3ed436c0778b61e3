"""Plots of predictions on labelled rows: confusion matrix and calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.arrays import Floats
from abcgbm.evaluation.class_metrics import (
    N_BINS,
    Calibration,
    Confusion,
    class_calibration,
    top_calibration,
)
from abcgbm.evaluation.predictions import Predictions, predictions_of
from abcgbm.plotting._axes import (
    GREY,
    Models,
    axes_of,
    checked,
    colour,
    finish,
    long_enough,
    name_ticks,
    named_models,
    text,
    wide_enough,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage


_MAX_WITH_NUMBERS = 12  # classes
_DARK = 0.4  # brightness below which text is white
_LUMA = (0.299, 0.587, 0.114)  # weights of red, green and blue in the brightness


def plot_confusion(
    model: ABCBoostClassifier,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the confusion matrix, with one row per true class and one column per predicted class.

    Parameters
    ----------
    model : ABCBoostClassifier
        A fitted model.
    X : table of shape (n_rows, n_features)
        Test rows.
    y : array-like of shape (n_rows,)
        Labels of the test rows. Labels that are not classes of the model form an additional row.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    ax : Axes
        Colours are fractions of the rows of a class: correct predictions blue; errors orange, on a
        separate scale because they are few. With up to twelve classes cells show numbers of rows.
    """
    found = Confusion.from_predictions(predictions_of(checked(model), X, y, sample_weight))
    n_rows = len(found.counts) if found.has_unseen else len(found.labels)
    counts, fractions = found.counts[:n_rows], found.row_fractions[:n_rows]
    names = [*found.labels, *(["not in the model"] if found.has_unseen else [])]
    side = long_enough(len(found.labels), 3.0, 11.0)
    ax = axes_of(ax, side + wide_enough(names) + 1.2, side + wide_enough(found.labels))
    is_correct = np.eye(*fractions.shape, dtype=np.bool_)
    errors = np.where(is_correct | (counts == 0), np.nan, fractions)
    largest_error = float(np.nanmax(errors, initial=0.0))
    correct = np.where(is_correct & (counts > 0), fractions, np.nan)
    blue = _draw_cells(ax, correct, "Blues", 1.0)
    orange = _draw_cells(ax, errors, "Oranges", largest_error or 1.0)
    if largest_error:
        ax.figure.colorbar(orange, ax=ax, label="Errors: fraction of the class", shrink=0.8)
    if len(found.labels) <= _MAX_WITH_NUMBERS:
        _write_counts(ax, counts, fractions, blue, orange)
    name_ticks(ax, "x", found.labels)
    name_ticks(ax, "y", names)
    return finish(ax, "Confusion matrix", "predicted class", "true class")


def plot_calibration(
    models: Models,
    X: Any,
    y: ArrayLike,
    *,
    class_: Any = None,
    n_bins: int = N_BINS,
    ax: Axes | None = None,
) -> Axes:
    """Plot a calibration curve: observed frequencies by predicted probability.

    Parameters
    ----------
    models : ABCBoostClassifier, or dict of str to ABCBoostClassifier
        A fitted model, or several by name.
    X : table of shape (n_rows, n_features)
        Test rows.
    y : array-like of shape (n_rows,)
        Labels of the test rows.
    class_ : label, optional
        Calibration of the probability of this class over all rows; by default of the probability of
        the predicted class.
    n_bins : int, default=10
        Number of bins of equal width.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    ax : Axes
        One point per bin with rows, sized by their weight. Below the diagonal the model is
        overconfident. The legend shows the expected calibration error (ECE).
    """
    predictions = {
        name: predictions_of(model, X, y) for name, model in named_models(models).items()
    }
    ax = axes_of(ax, 5.5, 5.5)
    ax.plot([0, 1], [0, 1], color=GREY, ls="--", lw=1.0)
    for number, (name, of_model) in enumerate(predictions.items()):
        _draw_calibration(ax, _calibration(of_model, class_, n_bins), name, colour(number))
    ax.set_aspect("equal")
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small", loc="upper left")
    name = "correct predictions" if class_ is None else f"rows of class {text(class_)}"
    return finish(ax, "Calibration", "mean predicted probability", f"fraction of {name}")


# -------------------------------------------------------------------------------------------- parts


def _draw_cells(ax: Axes, fractions: Floats, colours: str, vmax: float) -> AxesImage:
    """Draw coloured cells, except where the fraction is NaN."""
    return ax.imshow(fractions, cmap=colours, vmin=0.0, vmax=vmax, interpolation="nearest")


def _write_counts(
    ax: Axes, counts: Floats, fractions: Floats, correct: AxesImage, errors: AxesImage
) -> None:
    """Write numbers of rows into cells, in white on dark colours."""
    for r, c in np.argwhere(counts > 0).tolist():
        image = correct if r == c else errors
        red_green_blue = image.cmap(image.norm(fractions[r, c]))[:3]
        is_dark = np.dot(red_green_blue, _LUMA) < _DARK
        style: Any = {"ha": "center", "va": "center", "fontsize": "small"}
        ax.text(c, r, f"{counts[r, c]:.6g}", color="white" if is_dark else "black", **style)


def _calibration(predictions: Predictions, class_: Any, n_bins: int) -> Calibration:
    if class_ is None:
        return top_calibration(predictions, n_bins)
    return class_calibration(predictions, class_, n_bins)


def _draw_calibration(ax: Axes, found: Calibration, name: str, line_colour: str) -> None:
    has_rows = found.weight > 0
    curve = (found.prob_pred, found.prob_true, found.weight)
    prob_pred, prob_true, weight = (values[has_rows] for values in curve)
    label = f"{name} (ECE {found.expected_error:.3f})"
    ax.plot(prob_pred, prob_true, color=line_colour, lw=1.2, marker="o", ms=2.0, label=label)
    sizes = 15.0 + 120.0 * weight / weight.max()
    ax.scatter(prob_pred, prob_true, sizes, color=line_colour, alpha=0.7, lw=0)
