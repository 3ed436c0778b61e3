"""The nodes of a tree in the user's words: names of features, levels and labels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from abcgbm.model.model import Model
from abcgbm.model.trees import Tree

_MOST_LEVELS = 6  # in a condition


class Node(NamedTuple):
    """A node of a tree; of a leaf only numbers, depth, weight and values say something.

    Attributes
    ----------
    number, depth : int
        Its place in the tree: the root is 0, and at depth 0.
    gain, weight : float
        The gain of the split, and the sum of the sample weights.
    feature : str or None
        The feature that it is split on; None for a leaf.
    threshold : float
        Values at most this go left; NaN if levels do, or for a leaf.
    levels : list or None
        The levels that go left, if the feature is a category.
    missing_left : bool
        Whether missing values, and levels that were not seen in fit, go left.
    left, right : int
        The numbers of its children; -1 for a leaf.
    value : float
        What a leaf adds to the tree's class; NaN for a split, and in shared trees.
    class_values : list of float, or None
        What a leaf of a shared tree adds to each class; None for all other nodes.
    """

    number: int
    depth: int
    gain: float
    weight: float
    feature: str | None = None
    threshold: float = math.nan
    levels: list[Any] | None = None
    missing_left: bool = False
    left: int = -1
    right: int = -1
    value: float = math.nan
    class_values: list[float] | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether it has no children."""
        return self.feature is None

    @property
    def condition(self) -> str:
        """What is true of the rows that go left."""
        if self.levels is not None:
            shown = ", ".join(str(level) for level in self.levels[:_MOST_LEVELS])
            more = len(self.levels) - _MOST_LEVELS
            rule = f"{self.feature} in {{{shown}{f', {more} more' if more > 0 else ''}}}"
        elif math.isinf(self.threshold) and self.threshold > 0 and not self.missing_left:
            return f"{self.feature} is not missing"
        else:
            rule = f"{self.feature} <= {self.threshold:.6g}"
        return rule + (" or missing" if self.missing_left else "")


def nodes_of(model: Model, tree: Tree) -> Iterator[Node]:
    """Yield the nodes of a tree in the order of their numbers, parents first."""
    depth = [0] * len(tree.feature)
    leaf_values = iter(tree.values.tolist())
    numbers = (tree.feature, tree.threshold, tree.left, tree.missing_left, tree.gain, tree.weight)
    columns = enumerate(zip(*(column.tolist() for column in numbers), strict=True))
    for number, (feature, threshold, left, missing_left, gain, weight) in columns:
        place = (number, depth[number], gain, weight)
        if feature < 0:
            values = next(leaf_values)
            if tree.is_shared:
                yield Node(*place, class_values=values)
            else:
                yield Node(*place, value=values[0])
            continue
        depth[left] = depth[left + 1] = depth[number] + 1
        is_set = number in tree.left_codes
        yield Node(
            *place,
            feature=model.feature_labels[feature],
            threshold=math.nan if is_set else threshold,
            levels=_left_levels(model, tree, number) if is_set else None,
            missing_left=bool(missing_left),
            left=left,
            right=left + 1,
        )


def _left_levels(model: Model, tree: Tree, number: int) -> list[Any]:
    levels = model.levels_by_code[int(tree.feature[number])]
    return [level for code in tree.left_codes[number].tolist() for level in levels[code]]
