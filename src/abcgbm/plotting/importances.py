"""Plots of feature importances and trees."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.data.arrays import Floats
from abcgbm.evaluation.predictions import largest
from abcgbm.model.tree_views import TreeView
from abcgbm.model.trees import Node
from abcgbm.parameters.validators import check_integer
from abcgbm.plotting._axes import (
    POINTS_PER_INCH,
    axes_of,
    checked,
    colour,
    finish,
    long_enough,
    name_ticks,
    points_of,
    text,
    wide_enough,
)

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
    max_features: int = 20,
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
    max_features : int, default=20
        How many to draw; those that do not matter at all are left out.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    ax : Axes
        The most important feature is on top.
    """
    values = checked(model).feature_importances(kind, X=X, y=y)
    features = _most_important(model, values, max_features)
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
    max_features: int = 20,
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
    max_features : int, default=20
        How many to draw: those that matter most to any class.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    ax : Axes
        Features are sorted by their mean over the classes. The bar of colours is beside it.
    """
    values = checked(model).feature_importances(kind, per_class=True, X=X, y=y)
    features = _most_important(model, np.nan_to_num(values).mean(axis=0), max_features)
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
            f"no feature of the model has any importance ({model.model_.n_iter} steps, "
            f"{model.n_features_in_} features); expected a model with splits that matter"
        )
    return features


_WIDE, _MAX_LINES = 24, 4  # of the words of a node: characters, lines
_LARGEST, _SMALLEST = 8.0, 1.5  # letters, in points
_LETTER, _LINE = 0.6, 1.3  # width and height of a letter, of its size
_MARGIN = 0.9  # inches for the title
_NODE, _LEAF = "#DCEBF5", "#FBE9D6"

_CENTRED = {"ha": "center", "va": "center"}

_Places = dict[int, tuple[float, float]]


def plot_tree(
    model: ABCBoostClassifier, step: int = 0, class_: Any = None, *, ax: Axes | None = None
) -> Axes:
    """Draw one tree: conditions, and what its leaves add to the scores.

    Parameters
    ----------
    model : ABCBoostClassifier
        A fitted model.
    step : int, default=0
        The step that the tree was made in, from 0.
    class_ : label, optional
        The class whose tree it is. Not needed where a step has one tree alone; with it, the leaves
        of a tree for all classes show the values of this class alone.
    ax : Axes, optional
        Where to draw; by default in a new figure, as large as the tree needs. Letters are made small
        enough for axes that are smaller.

    Returns
    -------
    ax : Axes
        From a node the branch above is for rows of which its condition is true.
    """
    tree = checked(model).tree(step, class_)
    places = _places(tree)
    depth, n_leaves = max(x for x, _ in places.values()), len(tree.leaf_values)
    words = {node.number: _wrapped(tree, node) for node in tree.nodes}
    column, row = _room(words.values())
    inches, is_new = _LARGEST / POINTS_PER_INCH, ax is None
    ax = axes_of(ax, column * inches * (depth + 1), row * inches * n_leaves + _MARGIN)
    ax.set_axis_off()
    ax.set_xlim(-0.5, depth + 0.5)
    ax.set_ylim(n_leaves - 0.3, -0.7)
    fitting = (points_of(ax, "x") / (depth + 1) / column, points_of(ax, "y") / n_leaves / row)
    size = _LARGEST if is_new else max(_SMALLEST, min(_LARGEST, *fitting))
    for node in tree.nodes:
        if not node.is_leaf:
            _draw_branch(ax, places[node.number], places[node.left], "yes", size)
            _draw_branch(ax, places[node.number], places[node.right], "no", size)
        fill = {"facecolor": _LEAF if node.is_leaf else _NODE, "lw": 0.6, "boxstyle": "round"}
        style: dict[str, Any] = {"fontsize": size, "zorder": 3, "bbox": fill} | _CENTRED
        ax.text(*places[node.number], words[node.number], **style)
    ax.set_title(tree.title.replace("$", r"\$"), fontsize="medium")
    return ax


def _places(tree: TreeView) -> _Places:
    """Return depth and height of each node; a parent is in the middle of its children."""
    order, waiting = [], [0]
    while waiting:  # a loop: trees may be deep
        node = tree.nodes[waiting.pop()]
        order.append(node)
        waiting += [] if node.is_leaf else [node.right, node.left]
    leaves = [node.number for node in order if node.is_leaf]
    height = {number: float(row) for row, number in enumerate(leaves)}
    for node in reversed(order):
        if not node.is_leaf:
            height[node.number] = (height[node.left] + height[node.right]) / 2
    return {node.number: (float(node.depth), height[node.number]) for node in order}


def _wrapped(tree: TreeView, node: Node) -> str:
    """Return the words of a node in few short lines."""
    if node.is_leaf:
        return "\n".join(_leaf_line(words) for words in tree.words_of(node))
    lines = textwrap.wrap(node.condition, _WIDE)
    cut = lines if len(lines) <= _MAX_LINES else [*lines[: _MAX_LINES - 1], "…"]
    return "\n".join(cut).replace("$", r"\$")


def _leaf_line(words: str) -> str:
    """Return a label, which may be shortened, and its value, which may not."""
    label, _, value = words.rpartition(" ")
    return f"{text(label)} {value}".strip()


def _room(words: Iterable[str]) -> tuple[float, float]:
    """Return width and height that keep the words of nodes apart, in sizes of a letter."""
    lines = [of_node.split("\n") for of_node in words]
    longest = max(len(line) for of_node in lines for line in of_node)
    return (longest + 6) * _LETTER, (max(map(len, lines)) + 1.2) * _LINE


def _draw_branch(
    ax: Axes, parent: tuple[float, float], child: tuple[float, float], answer: str, size: float
) -> None:
    middle = (parent[0] + child[0]) / 2
    xs, ys = (parent[0], middle, middle, child[0]), (parent[1], parent[1], child[1], child[1])
    ax.plot(xs, ys, color="grey", lw=0.8, zorder=1)
    style: dict[str, Any] = {"fontsize": 0.85 * size, "color": "dimgrey"} | _CENTRED
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    ax.text(middle, (parent[1] + child[1]) / 2, answer, zorder=2, bbox=ground, **style)
