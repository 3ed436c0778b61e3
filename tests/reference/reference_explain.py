"""Reference implementation of Shapley values from their definition: every tree, every set of features."""

import itertools
import math
from typing import Any

import numpy as np

import reference

Tree = dict[str, Any]


def fractions(tree: Tree) -> np.ndarray:
    """Return for each node its fraction of the parent's weight; 1/2 where the children have weight zero."""
    fraction, weight = np.ones(len(tree["weight"])), np.asarray(tree["weight"])
    for left in (left for left in tree["left"] if left >= 0):
        both = slice(left, left + 2)
        fraction[both] = weight[both] / weight[both].sum() if weight[both].any() else 0.5
    return fraction


def expectation(tree: Tree, row: list[float], known: tuple[int, ...]) -> np.ndarray:
    """Return the mean of a tree's values if only some features of a row are known.

    At a split on an unknown feature, both children count by their fractions of weight.
    """

    def below(node: int) -> np.ndarray:
        feature, left = tree["feature"][node], tree["left"][node]
        if feature < 0:
            return tree["values"][node]
        if feature in known:
            return below(left if reference.goes_left(tree, node, row) else left + 1)
        return tree["fraction"][left] * below(left) + tree["fraction"][left + 1] * below(left + 1)

    return below(0)


def shapley_values(tree: Tree, row: list[float]) -> dict[int, np.ndarray]:
    """Return the mean effect of revealing each feature, over all orders of revealing them."""
    features = sorted({f for f in tree["feature"] if f >= 0})
    n = len(features)
    sets = [s for size in range(n + 1) for s in itertools.combinations(features, size)]
    worth = {known: expectation(tree, row, known) for known in sets}
    n_orders = [math.factorial(size) * math.factorial(n - size - 1) for size in range(n)]
    return {
        f: sum(
            n_orders[len(s)] * (worth[tuple(sorted((*s, f)))] - worth[s])
            for s in sets
            if f not in s
        )
        / math.factorial(n)
        for f in features
    }


def trees_with_values(arrays: Tree, n_classes: int) -> list[Tree]:
    """Return each tree as lists, with the class values of its nodes and their fractions of weight."""
    trees, n_leaves, n_words = [], 0, 0
    names = ("feature", "threshold", "left", "missing_left", "left_set_size", "weight")
    for t, (start, end) in enumerate(itertools.pairwise(arrays["tree_start"].tolist())):
        tree = {name: arrays[name][start:end].tolist() for name in names}
        tree["left_set"] = arrays["left_set"][n_words:].tolist()
        n_words += sum(tree["left_set_size"])
        k, b = arrays["tree_class"][t], arrays["tree_base"][t]
        values = np.zeros((end - start, n_classes))
        if k < 0:
            is_leaf = np.array(tree["feature"]) < 0
            values[is_leaf] = arrays["leaf_value"][n_leaves : n_leaves + is_leaf.sum()]
            n_leaves += is_leaf.sum()
        else:
            values[:, k] += arrays["value"][start:end]
            if b >= 0:
                values[:, b] -= arrays["value"][start:end] * arrays["tree_base_scale"][t]
        trees.append(tree | {"values": values, "fraction": fractions(tree)})
    return trees


def explained(arrays: Tree, X: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Shapley values of shape (n_rows, n_features, n_classes), and the mean scores."""
    return explained_trees(trees_with_values(arrays, n_classes), X, n_classes)


def explained_trees(
    trees: list[Tree], X: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    values = np.zeros((*X.shape, n_classes))
    for i, row in enumerate(X.tolist()):
        for tree in trees:
            for feature, of_feature in shapley_values(tree, row).items():
                values[i, feature] += of_feature
    means = [expectation(tree, [], ()) for tree in trees]
    return values, np.sum([np.zeros(n_classes), *means], axis=0)
