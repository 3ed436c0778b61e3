"""Single trees of a model, and their nodes with feature names and categories."""

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
    """One tree, as slices of the arrays of an ensemble.

    Attributes
    ----------
    feature, threshold, left, missing_left, gain, weight : ndarray of shape (n_nodes,)
        As in ``Ensemble``.
    values : ndarray of float64 of shape (n_leaves, 1 or n_classes)
        Leaf values in the order of the nodes: one per leaf, or one per class in a multi-output tree.
    number, iteration : int
        Index among all trees of the model, and the iteration that grew it; both from 0.
    class_number, base : int
        Class of the tree (-1: all classes) and its base class (-1: none).
    base_scale : float
        Factor of the base class's part.
    left_codes : dict of int to ndarray of int64
        Codes that go left at each categorical split, ascending. All other codes go right; missing
        values follow ``missing_left``.
    """

    feature: NDArray[np.int32]
    threshold: Floats
    left: NDArray[np.int32]
    missing_left: NDArray[np.uint8]
    gain: Floats
    weight: Floats
    values: Floats
    number: int = 0
    iteration: int = 0
    class_number: int = 0
    base: int = NO_BASE
    base_scale: float = 1.0
    left_codes: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    @property
    def is_multi_output(self) -> bool:
        """Whether its leaves hold one value per class."""
        return self.class_number == ALL_CLASSES

    @property
    def leaves(self) -> NDArray[np.intp]:
        """Indices of the leaves."""
        return np.flatnonzero(self.feature < 0)

    def added(self) -> tuple[NDArray[np.intp], Floats]:
        """Return the classes whose scores it changes, and the change in each leaf."""
        if self.is_multi_output:
            return np.arange(self.values.shape[1]), self.values
        if self.base == NO_BASE:
            return np.array([self.class_number]), self.values
        base_values = -(self.values * self.base_scale)
        return np.array([self.class_number, self.base]), np.hstack([self.values, base_values])


def trees_of(model: Model) -> Iterator[Tree]:
    """Yield the trees of a model in order."""
    return (tree_of(model, number) for number in range(len(model.ensemble.tree_class)))


def tree_of(model: Model, number: int) -> Tree:
    """Return a tree of a model by its index."""
    ensemble = model.ensemble
    nodes = slice(*ensemble.tree_start[number : number + 2].tolist())
    feature, class_number = ensemble.feature[nodes], int(ensemble.tree_class[number])
    if class_number == ALL_CLASSES:
        leaves = slice(*ensemble.leaf_value_start[number : number + 2].tolist())
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
        int(np.searchsorted(ensemble.iteration_start, number, side="right")) - 1,
        class_number,
        int(ensemble.tree_base[number]),
        float(ensemble.tree_base_scale[number]),
        _left_codes(model, nodes),
    )


def trees_or_nothing(model: Model) -> Iterator[Tree]:
    """Yield the trees of a model, or one tree of value 0 if it has none: some formats need one."""
    if len(model.ensemble.tree_class):
        return trees_of(model)
    leaf, zero, left = np.array([-1], np.int32), np.zeros(1), np.zeros(1, np.int32)
    missing_left = np.zeros(1, np.uint8)
    return iter([Tree(leaf, zero, left, missing_left, zero, zero, zero[:, None])])


def _left_codes(model: Model, nodes: slice) -> dict[int, NDArray[np.int64]]:
    """Return the codes that go left at each categorical split."""
    ensemble, found = model.ensemble, {}
    for node in np.flatnonzero(ensemble.left_set_size[nodes]).tolist():
        at = nodes.start + node
        words = ensemble.left_set[slice(*ensemble.left_set_start[at : at + 2])]
        goes_left = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
        n_codes = model.encoding.categories[int(ensemble.feature[at])].n_codes
        found[node] = np.flatnonzero(goes_left[:n_codes]).astype(np.int64)
    return found


_MAX_CATEGORIES = 6  # in a condition


class Node(NamedTuple):
    """Node of a tree, with feature names and categories instead of numbers.

    Attributes
    ----------
    number, depth : int
        Index and depth in the tree; both 0 for the root.
    gain, weight : float
        Gain of the split (0 for a leaf) and sum of sample weights.
    feature : str or None
        Name of the split feature; None for a leaf.
    threshold : float
        Values less than or equal to it go left; NaN for a categorical split and for a leaf.
    categories : list or None
        Categories that go left at a categorical split; None otherwise.
    missing_left : bool
        Whether missing values and unknown categories go left.
    left, right : int
        Indices of the children; -1 for a leaf.
    value : float
        Leaf value; NaN for a split and in multi-output trees.
    class_values : list of float, or None
        Leaf values by class in multi-output trees; None otherwise.
    """

    number: int
    depth: int
    gain: float
    weight: float
    feature: str | None = None
    threshold: float = math.nan
    categories: list[Any] | None = None
    missing_left: bool = False
    left: int = -1
    right: int = -1
    value: float = math.nan
    class_values: list[float] | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether it is a leaf."""
        return self.feature is None

    @property
    def condition(self) -> str:
        """Condition under which rows go left."""
        if self.categories is not None:
            shown = ", ".join(map(str, self.categories[:_MAX_CATEGORIES]))
            n_more = len(self.categories) - _MAX_CATEGORIES
            rule = f"{self.feature} in {{{shown}{f', {n_more} more' if n_more > 0 else ''}}}"
        elif math.isinf(self.threshold) and self.threshold > 0 and not self.missing_left:
            return f"{self.feature} is not missing"
        else:
            rule = f"{self.feature} <= {self.threshold:.6g}"
        return rule + (" or missing" if self.missing_left else "")


def nodes_of(model: Model, tree: Tree) -> Iterator[Node]:
    """Yield the nodes of a tree by index; parents come before their children."""
    depth = [0] * len(tree.feature)
    leaf_values = iter(tree.values.tolist())
    numbers = (tree.feature, tree.threshold, tree.left, tree.missing_left, tree.gain, tree.weight)
    columns = enumerate(zip(*(column.tolist() for column in numbers), strict=True))
    for number, (feature, threshold, left, missing_left, gain, weight) in columns:
        place = (number, depth[number], gain, weight)
        if feature < 0:
            values = next(leaf_values)
            if tree.is_multi_output:
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
            categories=_left_categories(model, tree, number) if is_set else None,
            missing_left=bool(missing_left),
            left=left,
            right=left + 1,
        )


def _left_categories(model: Model, tree: Tree, number: int) -> list[Any]:
    by_code = model.categories_by_code[int(tree.feature[number])]
    return [category for code in tree.left_codes[number].tolist() for category in by_code[code]]
