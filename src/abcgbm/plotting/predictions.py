"""What a model answers to rows whose labels are known: which classes it mixes up, and how sure it is."""

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
from abcgbm.evaluation.predictions import Answers, answers_of
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
_DARK = 0.4  # brightness of a colour up to which letters on it are white
_OF_RED_GREEN_BLUE = (0.299, 0.587, 0.114)  # parts of the brightness of a colour


def plot_confusion(
    model: ABCBoostClassifier,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw which classes are taken for which, as a map: a row for each class, a column for each answer.

    Parameters
    ----------
    model : ABCBoostClassifier
        A fitted model.
    X : table of shape (n_rows, n_features)
        Rows, best such that it has not seen.
    y : array-like of shape (n_rows,)
        Their labels; those that the model does not know are a row of their own.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    ax : Axes
        Colours are shares of the rows of a class: right answers blue, wrong ones orange, on a scale
        of their own, as they are few. With up to twelve classes the numbers of rows are written.
    """
    found = Confusion.from_answers(answers_of(checked(model), X, y, sample_weight))
    n_rows = len(found.counts) if found.has_unseen else len(found.labels)
    counts, shares = found.counts[:n_rows], found.row_shares[:n_rows]
    names = [*found.labels, *(["not in the model"] if found.has_unseen else [])]
    side = long_enough(len(found.labels), 3.0, 11.0)
    ax = axes_of(ax, side + wide_enough(names) + 1.2, side + wide_enough(found.labels))
    is_right = np.eye(*shares.shape, dtype=np.bool_)
    of_wrong = np.where(is_right | (counts == 0), np.nan, shares)
    most = float(np.nanmax(of_wrong, initial=0.0))
    right = _draw_shares(ax, np.where(is_right & (counts > 0), shares, np.nan), "Blues", 1.0)
    wrong = _draw_shares(ax, of_wrong, "Oranges", most or 1.0)
    if most:
        ax.figure.colorbar(wrong, ax=ax, label="wrong answers: share of the class", shrink=0.8)
    if len(found.labels) <= _MAX_WITH_NUMBERS:
        _write_counts(ax, counts, shares, right, wrong)
    name_ticks(ax, "x", found.labels)
    name_ticks(ax, "y", names)
    return finish(ax, "Confusion", "answer of the model", "class of the row")


def plot_calibration(
    models: Models,
    X: Any,
    y: ArrayLike,
    *,
    class_: Any = None,
    n_bins: int = N_BINS,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often what was said with a probability was true.

    Parameters
    ----------
    models : ABCBoostClassifier, or dict of str to ABCBoostClassifier
        A fitted model, or several with names.
    X : table of shape (n_rows, n_features)
        Rows that they have not seen.
    y : array-like of shape (n_rows,)
        Their labels.
    class_ : label, optional
        Judge the probability of this class, over all rows; by default that of the class that is
        predicted.
    n_bins : int, default=10
        Number of bins of equal width that the probabilities are sorted into.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    ax : Axes
        A point for each bin that has rows, the larger the more rows; on the diagonal what was said
        is true, below it the model is too sure. The legend has the expected calibration error.
    """
    answers = {name: answers_of(model, X, y) for name, model in named_models(models).items()}
    ax = axes_of(ax, 5.5, 5.5)
    ax.plot([0, 1], [0, 1], color=GREY, ls="--", lw=1.0)
    for number, (name, answer) in enumerate(answers.items()):
        _draw_calibration(ax, _calibration(answer, class_, n_bins), name, colour(number))
    ax.set_aspect("equal")
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small", loc="upper left")
    of = "of the answer" if class_ is None else f"of class {text(class_)}"
    share = "right answers" if class_ is None else f"rows of class {text(class_)}"
    return finish(ax, "Calibration", f"probability {of}, mean of a bin", f"share of {share}")


# -------------------------------------------------------------------------------------------- parts


def _draw_shares(ax: Axes, shares: Floats, colours: str, most: float) -> AxesImage:
    """Draw squares, and none where there is no number."""
    return ax.imshow(shares, cmap=colours, vmin=0.0, vmax=most, interpolation="nearest")


def _write_counts(
    ax: Axes, counts: Floats, shares: Floats, right: AxesImage, wrong: AxesImage
) -> None:
    """Write numbers of rows into squares, in black or white as their colour needs it."""
    for r, c in np.argwhere(counts > 0).tolist():
        image = right if r == c else wrong
        red_green_blue = image.cmap(image.norm(shares[r, c]))[:3]
        is_dark = np.dot(red_green_blue, _OF_RED_GREEN_BLUE) < _DARK
        style: Any = {"ha": "center", "va": "center", "fontsize": "small"}
        ax.text(c, r, f"{counts[r, c]:.6g}", color="white" if is_dark else "black", **style)


def _calibration(answers: Answers, class_: Any, n_bins: int) -> Calibration:
    if class_ is None:
        return top_calibration(answers, n_bins)
    return class_calibration(answers, class_, n_bins)


def _draw_calibration(ax: Axes, found: Calibration, name: str, line_colour: str) -> None:
    has_rows = found.weight > 0
    said, true, weight = (v[has_rows] for v in (found.said, found.true, found.weight))
    label = f"{name} (ECE {found.expected_error:.3f})"
    ax.plot(said, true, color=line_colour, lw=1.2, marker="o", ms=2.0, label=label)
    ax.scatter(said, true, 15.0 + 120.0 * weight / weight.max(), color=line_colour, alpha=0.7, lw=0)
