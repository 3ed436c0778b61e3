"""Which features matter, and to which class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.columns import Floats
from abcgbm.evaluation.ranking import largest
from abcgbm.plotting.canvas import (
    axes_of,
    checked,
    colour,
    finish,
    long_enough,
    name_ticks,
    wide_enough,
)
from abcgbm.settings.checks import check_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMES = {
    "gain": "share of the gain of all splits",
    "split": "share of all splits",
    "cover": "share of the weight that splits cut",
    "permutation": "rise of the mean loss when shuffled",
}
_CLASS_NAMES = {
    "gain": "share of the gain of the class",
    "split": "share of the splits of the class",
    "cover": "share of the weight that splits of the class cut",
    "permutation": "rise of the mean loss of the class when shuffled",
}

_AS_IT_IS: Any = {"aspect": "auto", "interpolation": "nearest"}


def plot_importances(
    model: ABCBoostClassifier,
    kind: str = "gain",
    *,
    X: Any = None,
    y: ArrayLike | None = None,
    most_features: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Draw the features that matter most, as bars.

    Parameters
    ----------
    model : ABCBoostClassifier
        A fitted model.
    kind : {"gain", "split", "cover", "permutation"}, default="gain"
        As for ``model.feature_importances``.
    X, y : table and array-like, optional
        Rows and their labels, for "permutation".
    most_features : int, default=20
        How many to draw; those that do not matter at all are left out.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    ax : Axes
        The most important feature is on top.
    """
    values = checked(model).feature_importances(kind, X=X, y=y)
    features = _most_important(model, values, most_features)
    names = [model.model_.feature_labels[f] for f in features]
    ax = axes_of(ax, 5.0 + wide_enough(names), 1.0 + long_enough(len(features), 1.0, 9.0))
    ax.barh(range(len(features)), values[features], color=colour(0))
    ax.set_ylim(len(features) - 0.5, -0.5)
    ax.grid(axis="x", alpha=0.3)
    ax.set_axisbelow(True)
    name_ticks(ax, "y", names)
    return finish(ax, "Importances", _NAMES[kind], "")


def plot_class_importances(
    model: ABCBoostClassifier,
    kind: str = "gain",
    *,
    X: Any = None,
    y: ArrayLike | None = None,
    most_features: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Draw which features matter to which class, as a map: a row for each feature.

    Parameters
    ----------
    model : ABCBoostClassifier
        A fitted model.
    kind : {"gain", "split", "cover", "permutation"}, default="gain"
        As for ``model.feature_importances``.
    X, y : table and array-like, optional
        Rows and their labels, for "permutation".
    most_features : int, default=20
        How many to draw: those that matter most to any class.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    ax : Axes
        Features are sorted by their mean over the classes. The bar of colours is beside it.
    """
    values = checked(model).feature_importances(kind, per_class=True, X=X, y=y)
    features = _most_important(model, np.nan_to_num(values).mean(axis=0), most_features)
    labels, names = model.model_.labels, [model.model_.feature_labels[f] for f in features]
    width = 1.0 + wide_enough(names) + long_enough(len(labels), 3.5, 12.0)
    ax = axes_of(ax, width, wide_enough(labels) + long_enough(len(features), 2.0, 9.0))
    # Shuffling may help by chance; less than nothing is shown as nothing.
    image = ax.imshow(values.T[features], cmap="Blues", vmin=0.0, **_AS_IT_IS)
    ax.figure.colorbar(image, ax=ax, label=_CLASS_NAMES[kind])
    name_ticks(ax, "x", labels)
    name_ticks(ax, "y", names)
    return finish(ax, "Importances by class", "class", "")


def _most_important(model: ABCBoostClassifier, values: Floats, most: int) -> list[int]:
    """Return the features of largest importance; there must be some."""
    features = largest(values, check_integer("most_features", most, 1))
    if not features:
        raise ValueError(
            f"no feature of the model has any importance ({model.model_.n_steps} steps, "
            f"{model.n_features_in_} features); expected a model with splits that matter"
        )
    return features
