"""The trees of a model one by one, and their nodes with names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.arrays import Floats
from abcgbm.model.ensemble import ALL_CLASSES, NO_BASE
from abcgbm.model.model import Model


@dataclass(frozen=True)
class Tree:
    """A tree, and what its leaves add to the scores of some classes.

    Attributes
    ----------
    feature, threshold, left, missing_left, gain, weight : ndarray of shape (n_nodes,)
        Those of its nodes, as ``Ensemble`` has them.
    values : ndarray of float64 of shape (n_leaves, 1 or n_classes)
        The values of the leaves in the order of their nodes: one, or in a shared tree one for each
        class.
    number, step : int
        Its place among all trees of the model, and the step it belongs to; both count from 0.
    class_number, base : int
        The class it adds to (-1: all), and the one it takes from (-1: none).
    base_scale : float
        The part of the value that is taken.
    left_codes : dict of int to ndarray of int64
        For each split of a category the codes that go left, ascending; all others of the feature,
        but missing ones, go right.
    """

    feature: NDArray[np.int32]
    threshold: Floats
    left: NDArray[np.int32]
    missing_left: NDArray[np.uint8]
    gain: Floats
    weight: Floats
    values: Floats
    number: int = 0
    step: int = 0
    class_number: int = 0
    base: int = NO_BASE
    base_scale: float = 1.0
    left_codes: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    @property
    def is_shared(self) -> bool:
        """Whether it adds to all classes."""
        return self.class_number == ALL_CLASSES

    @property
    def leaves(self) -> NDArray[np.intp]:
        """The nodes that are leaves."""
        return np.flatnonzero(self.feature < 0)

    def added(self) -> tuple[NDArray[np.intp], Floats]:
        """Return the classes it adds to, and what each leaf adds to each of them."""
        if self.is_shared:
            return np.arange(self.values.shape[1]), self.values
        if self.base == NO_BASE:
            return np.array([self.class_number]), self.values
        taken = -(self.values * self.base_scale)
        return np.array([self.class_number, self.base]), np.hstack([self.values, taken])


def trees_of(model: Model) -> Iterator[Tree]:
    """Yield the trees of a model in order."""
    return (tree_of(model, number) for number in range(len(model.ensemble.tree_class)))


def tree_of(model: Model, number: int) -> Tree:
    """Return one of the trees of a model."""
    ensemble = model.ensemble
    nodes = slice(*ensemble.tree_start[number : number + 2].tolist())
    feature, class_number = ensemble.feature[nodes], int(ensemble.tree_class[number])
    if class_number == ALL_CLASSES:
        leaves = slice(*ensemble.shared_leaf_start[number : number + 2].tolist())
        values = ensemble.leaf_value[leaves].astype(np.float64)
    else:
        values = ensemble.value[nodes][feature < 0][:, None]
    return Tree(
        feature,
        ensemble.threshold[nodes],
        ensemble.left[nodes],
        ensemble.missing_left[nodes],
        ensemble.gain[nodes],
        ensemble.weight[nodes],
        values,
        number,
        int(np.searchsorted(ensemble.step_start, number, side="right")) - 1,
        class_number,
        int(ensemble.tree_base[number]),
        float(ensemble.tree_base_scale[number]),
        _left_codes(model, nodes),
    )


def trees_or_nothing(model: Model) -> Iterator[Tree]:
    """Yield the trees; of a model without any one that adds nothing, for formats that need one."""
    if len(model.ensemble.tree_class):
        return trees_of(model)
    leaf, zero, no_child = np.array([-1], np.int32), np.zeros(1), np.zeros(1, np.int32)
    no_way = np.zeros(1, np.uint8)
    return iter([Tree(leaf, zero, no_child, no_way, zero, zero, zero[:, None])])


def _left_codes(model: Model, nodes: slice) -> dict[int, NDArray[np.int64]]:
    """Return the codes that go left at each split of a category."""
    ensemble, found = model.ensemble, {}
    for node in np.flatnonzero(ensemble.left_set_size[nodes]).tolist():
        at = nodes.start + node
        words = ensemble.left_set[slice(*ensemble.left_set_start[at : at + 2])]
        goes_left = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
        n_codes = model.encoding.categories[int(ensemble.feature[at])].n_codes
        found[node] = np.flatnonzero(goes_left[:n_codes]).astype(np.int64)
    return found


_MAX_LEVELS = 6  # in a condition


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
            shown = ", ".join(str(level) for level in self.levels[:_MAX_LEVELS])
            more = len(self.levels) - _MAX_LEVELS
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
