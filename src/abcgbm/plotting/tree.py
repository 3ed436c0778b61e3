"""One tree, from its root on the left to its leaves on the right."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.model.tree_view import TreeView
from abcgbm.plotting.canvas import axes_of, checked, points_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDE, _MOST_LINES = 24, 4  # of the words of a node: characters, lines
_COLUMN, _ROW = 2.1, 0.5  # inches of a level and of a leaf
_LARGEST, _SMALLEST = 9.0, 3.5  # letters, in points
_LETTER, _LINE = 0.62, 1.45  # width and height of a letter, of its size
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
    ax = axes_of(ax, _COLUMN * (depth + 1), _ROW * n_leaves + 0.8)
    ax.set_axis_off()
    ax.set_xlim(-0.5, depth + 0.5)
    ax.set_ylim(n_leaves - 0.3, -0.7)
    words = {node.number: _wrapped(tree.words_of(node)) for node in tree.nodes}
    size = _size_of_letters(ax, words, depth + 1, n_leaves)
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


def _wrapped(words: list[str]) -> str:
    lines = [line for word in words for line in textwrap.wrap(word, _WIDE)]
    cut = lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], "…"]
    return "\n".join(cut).replace("$", r"\$")


def _size_of_letters(ax: Axes, words: dict[int, str], n_columns: float, n_rows: int) -> float:
    """Return a size that keeps the words of neighbours apart."""
    longest = max(len(line) for text in words.values() for line in text.split("\n"))
    most_lines = max(text.count("\n") + 1 for text in words.values())
    wide = points_of(ax, "x") / n_columns / ((longest + 4) * _LETTER)
    high = points_of(ax, "y") / n_rows / ((most_lines + 0.8) * _LINE)
    return max(_SMALLEST, min(_LARGEST, wide, high))


def _draw_branch(
    ax: Axes, parent: tuple[float, float], child: tuple[float, float], answer: str, size: float
) -> None:
    middle = (parent[0] + child[0]) / 2
    xs, ys = (parent[0], middle, middle, child[0]), (parent[1], parent[1], child[1], child[1])
    ax.plot(xs, ys, color="grey", lw=0.8, zorder=1)
    style: dict[str, Any] = {"fontsize": 0.85 * size, "color": "dimgrey"} | _CENTRED
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    ax.text(middle, (parent[1] + child[1]) / 2, answer, zorder=2, bbox=ground, **style)
