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
    capitalized,
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
    "gain": "fraction of the total gain",
    "split": "fraction of all splits",
    "cover": "fraction of the weight that is split",
    "permutation": "increase of the mean loss when permuted",
}
_CLASS_NAMES = {
    "gain": "fraction of the gain of the class",
    "split": "fraction of the splits of the class",
    "cover": "fraction of the weight that is split for the class",
    "permutation": "increase of the mean loss of the class when permuted",
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
    """Plot the importances of the most important features as bars.

    Parameters
    ----------
    model : ABCBoostClassifier
        A fitted model.
    kind : {"gain", "split", "cover", "permutation"}, default="gain"
        As for ``model.feature_importances``.
    X, y : table and array-like, optional
        Rows and labels, for "permutation".
    max_features : int, default=20
        Maximum number of features; those of zero importance are left out.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure.

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
    """Plot feature importances by class as a heat map, with one row per feature.

    Parameters
    ----------
    model : ABCBoostClassifier
        A fitted model.
    kind : {"gain", "split", "cover", "permutation"}, default="gain"
        As for ``model.feature_importances``.
    X, y : table and array-like, optional
        Rows and labels, for "permutation".
    max_features : int, default=20
        Maximum number of features, those of largest mean importance over the classes.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    ax : Axes
        Features are sorted by their mean importance over the classes.
    """
    values = checked(model).feature_importances(kind, per_class=True, X=X, y=y)
    features = _most_important(model, np.nan_to_num(values).mean(axis=0), max_features)
    labels, names = model.model_.labels, [model.model_.feature_labels[f] for f in features]
    width = 1.0 + wide_enough(names) + long_enough(len(labels), 3.5, 12.0)
    ax = axes_of(ax, width, wide_enough(labels) + long_enough(len(features), 2.0, 9.0))
    # By chance, a permutation can decrease the loss; negative importances are shown as 0.
    image = ax.imshow(values.T[features], cmap="Blues", vmin=0.0, **_AS_IT_IS)
    ax.figure.colorbar(image, ax=ax, label=capitalized(_CLASS_NAMES[kind]))
    name_ticks(ax, "x", labels)
    name_ticks(ax, "y", names)
    return finish(ax, "Importances by class", "class", "")


def _most_important(model: ABCBoostClassifier, values: Floats, max_features: int) -> list[int]:
    """Return the features of largest importance; raise ValueError if there are none."""
    features = largest(values, check_integer("max_features", max_features, 1))
    if not features:
        raise ValueError(
            f"no feature of the model has any importance ({model.model_.n_iter} iterations, "
            f"{model.n_features_in_} features); expected a model with splits"
        )
    return features


_MAX_CHARACTERS, _MAX_LINES = 24, 4  # of the text in a node
_LARGEST, _SMALLEST = 8.0, 1.5  # font sizes, in points
_LETTER, _LINE = 0.6, 1.3  # width of a letter and height of a line, relative to the font size
_MARGIN = 0.9  # inches for the title
_NODE, _LEAF = "#DCEBF5", "#FBE9D6"

_CENTRED = {"ha": "center", "va": "center"}

_Positions = dict[int, tuple[float, float]]


def plot_tree(
    model: ABCBoostClassifier, iteration: int = 0, class_: Any = None, *, ax: Axes | None = None
) -> Axes:
    """Plot one tree, with the conditions of its splits and the values of its leaves.

    Parameters
    ----------
    model : ABCBoostClassifier
        A fitted model.
    iteration : int, default=0
        Iteration that grew the tree, from 0.
    class_ : label, optional
        Class of the tree. Optional if an iteration has one tree; for a multi-output tree, the leaves
        then show the values of this class only.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure, as large as the tree needs. In smaller
        axes the font size is reduced.

    Returns
    -------
    ax : Axes
        The upper branch of a node is for rows that satisfy its condition.
    """
    tree = checked(model).tree(iteration, class_)
    positions = _positions(tree)
    depth = max(x for x, _ in positions.values())
    n_leaves = len(tree.leaf_values)
    texts = {node.number: _wrapped(tree, node) for node in tree.nodes}
    node_width, node_height = _text_extent(texts.values())
    inches = _LARGEST / POINTS_PER_INCH
    is_new = ax is None
    ax = axes_of(ax, node_width * inches * (depth + 1), node_height * inches * n_leaves + _MARGIN)
    ax.set_axis_off()
    ax.set_xlim(-0.5, depth + 0.5)
    ax.set_ylim(n_leaves - 0.3, -0.7)
    fitting = (
        points_of(ax, "x") / (depth + 1) / node_width,
        points_of(ax, "y") / n_leaves / node_height,
    )
    size = _LARGEST if is_new else max(_SMALLEST, min(_LARGEST, *fitting))
    for node in tree.nodes:
        if not node.is_leaf:
            _draw_branch(ax, positions[node.number], positions[node.left], "yes", size)
            _draw_branch(ax, positions[node.number], positions[node.right], "no", size)
        fill = {"facecolor": _LEAF if node.is_leaf else _NODE, "lw": 0.6, "boxstyle": "round"}
        style: dict[str, Any] = {"fontsize": size, "zorder": 3, "bbox": fill} | _CENTRED
        ax.text(*positions[node.number], texts[node.number], **style)
    ax.set_title(tree.title.replace("$", r"\$"), fontsize="medium")
    return ax


def _positions(tree: TreeView) -> _Positions:
    """Return depth and height of each node; a parent is in the middle of its children."""
    order, stack = [], [0]
    while stack:  # a loop instead of recursion, as trees can be deep
        node = tree.nodes[stack.pop()]
        order.append(node)
        stack += [] if node.is_leaf else [node.right, node.left]
    leaves = [node.number for node in order if node.is_leaf]
    height = {number: float(row) for row, number in enumerate(leaves)}
    for node in reversed(order):
        if not node.is_leaf:
            height[node.number] = (height[node.left] + height[node.right]) / 2
    return {node.number: (float(node.depth), height[node.number]) for node in order}


def _wrapped(tree: TreeView, node: Node) -> str:
    """Return the text of a node in a few short lines."""
    if node.is_leaf:
        return "\n".join(map(_leaf_line, tree.describe(node)))
    lines = textwrap.wrap(node.condition, _MAX_CHARACTERS)
    shown = lines if len(lines) <= _MAX_LINES else [*lines[: _MAX_LINES - 1], "…"]
    return "\n".join(shown).replace("$", r"\$")


def _leaf_line(line: str) -> str:
    """Shorten the label in a line of a leaf, but not the value."""
    label, _, value = line.rpartition(" ")
    return f"{text(label)} {value}".strip()


def _text_extent(texts: Iterable[str]) -> tuple[float, float]:
    """Return the width and height that nodes need, in multiples of the font size."""
    lines = [of_node.split("\n") for of_node in texts]
    longest = max(len(line) for of_node in lines for line in of_node)
    return (longest + 6) * _LETTER, (max(map(len, lines)) + 1.2) * _LINE


def _draw_branch(
    ax: Axes, parent: tuple[float, float], child: tuple[float, float], label: str, size: float
) -> None:
    middle = (parent[0] + child[0]) / 2
    xs, ys = (parent[0], middle, middle, child[0]), (parent[1], parent[1], child[1], child[1])
    ax.plot(xs, ys, color="grey", lw=0.8, zorder=1)
    style: dict[str, Any] = {"fontsize": 0.85 * size, "color": "dimgrey"} | _CENTRED
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    ax.text(middle, (parent[1] + child[1]) / 2, label, zorder=2, bbox=ground, **style)
