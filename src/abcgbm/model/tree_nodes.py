"""The nodes of a tree in the user's words: names of features, levels and labels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.columns import Floats
from abcgbm.model.ensemble import ALL_CLASSES, NO_BASE, Ensemble
from abcgbm.model.model import Model

_MOST_LEVELS = 6  # in a condition


@dataclass(frozen=True)
class Node:
    """A node of a tree; of a leaf only numbers, depth, weight and values say something.

    Attributes
    ----------
    number, depth : int
        Its place in the tree: the root is 0, and at depth 0.
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
    gain, weight : float
        The gain of the split, and the sum of the sample weights.
    value : float
        What a leaf adds to the tree's class; NaN for a split, and in shared trees.
    class_values : ndarray of shape (n_classes,), or None
        What a leaf of a shared tree adds to each class; None for all other nodes.
    """

    number: int
    depth: int
    feature: str | None
    threshold: float
    levels: list[Any] | None
    missing_left: bool
    left: int
    right: int
    gain: float
    weight: float
    value: float
    class_values: Floats | None

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


@dataclass(frozen=True)
class TreePlace:
    """Which tree of a model it is.

    Attributes
    ----------
    number, step : int
        Among all trees of the model, and the step that it was made in; both count from 0.
    class_, base_class : label or None
        The class that it adds to, None for all; and the one it takes from, None for none.
    base_scale : float
        The part of its values that it takes from there.
    """

    number: int
    step: int
    class_: Any
    base_class: Any
    base_scale: float


class NodeReader:
    """Reads the trees of a model."""

    def __init__(self, model: Model) -> None:
        self._ensemble = model.ensemble
        self._labels = model.classes.tolist()
        self._names = model.feature_labels
        self._levels = {f: levels.by_code() for f, levels in model.encoding.levels.items()}
        self._first_word = np.append(0, np.cumsum(self._ensemble.left_set_size))
        self._first_leaf = _first_shared_leaf(self._ensemble)

    def place(self, tree: int) -> TreePlace:
        """Tell which tree it is."""
        ensemble = self._ensemble
        k, base = int(ensemble.tree_class[tree]), int(ensemble.tree_base[tree])
        return TreePlace(
            tree,
            int(np.searchsorted(ensemble.step_start, tree, side="right")) - 1,
            None if k == ALL_CLASSES else self._labels[k],
            None if base == NO_BASE else self._labels[base],
            float(ensemble.tree_base_scale[tree]),
        )

    def nodes(self, tree: int) -> Iterator[Node]:
        """Yield the nodes of a tree in the order of their numbers, parents first."""
        ensemble = self._ensemble
        first, last = ensemble.tree_start[tree : tree + 2].tolist()
        is_shared = ensemble.tree_class[tree] == ALL_CLASSES
        leaf, depth = int(self._first_leaf[tree]), {0: 0}
        for at in range(first, last):
            node = self._node(at, at - first, depth[at - first])
            if not node.is_leaf:
                depth |= dict.fromkeys((node.left, node.right), node.depth + 1)
            elif is_shared:
                values = ensemble.leaf_value[leaf].astype(np.float64)
                node, leaf = replace(node, class_values=values, value=math.nan), leaf + 1
            yield node

    def _node(self, at: int, number: int, depth: int) -> Node:
        ensemble = self._ensemble
        feature, left = int(ensemble.feature[at]), int(ensemble.left[at])
        is_leaf, is_set = feature < 0, ensemble.left_set_size[at] > 0
        return Node(
            number=number,
            depth=depth,
            feature=None if is_leaf else self._names[feature],
            threshold=math.nan if is_leaf or is_set else float(ensemble.threshold[at]),
            levels=self._left_levels(at, feature) if is_set else None,
            missing_left=not is_leaf and bool(ensemble.missing_left[at]),
            left=-1 if is_leaf else left,
            right=-1 if is_leaf else left + 1,
            gain=float(ensemble.gain[at]),
            weight=float(ensemble.weight[at]),
            value=float(ensemble.value[at]) if is_leaf else math.nan,
            class_values=None,
        )

    def _left_levels(self, at: int, feature: int) -> list[Any]:
        """Return the levels whose codes are in the set of a split."""
        words = self._ensemble.left_set[self._first_word[at] : self._first_word[at + 1]]
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
        known = self._levels[feature]
        codes = [code for code in np.flatnonzero(bits).tolist() if code < len(known)]
        return [level for code in codes for level in known[code]]


def _first_shared_leaf(ensemble: Ensemble) -> NDArray[np.intp]:
    """Return for each tree how many leaves the shared ones before it have."""
    n_leaves = (np.diff(ensemble.tree_start) + 1) // 2
    n_shared = np.where(ensemble.tree_class == ALL_CLASSES, n_leaves, 0)
    return np.append(0, np.cumsum(n_shared)).astype(np.intp)
