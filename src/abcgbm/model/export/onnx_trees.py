"""Trees as attributes of the ONNX operator TreeEnsembleRegressor.

The operator sums in double precision if its input is double, but returns float32. So each leaf value
is split in two, with an output for each part: a multiple of a power of two, coarse enough that the sum
over all trees is exact in float32, and the remainder, whose rounding error is negligible.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.arrays import Floats
from abcgbm.data.categories import CategoryMap
from abcgbm.model.trees import Tree

_FLOAT_BITS = 24  # significand of float32
_BRANCH = "BRANCH_LEQ"

Arrays = dict[str, NDArray[Any]]


def tree_attributes(
    trees: Iterable[Tree], place: NDArray[np.intp], n_codes: dict[int, int], n_classes: int
) -> dict[str, Any]:
    """Return the attributes of the operator: tensors as arrays, all others as lists.

    Parameters
    ----------
    trees : iterable of Tree
        At least one.
    place : ndarray of int of shape (n_features,)
        Column of each feature in the operator's input. Categories are codes, and the code
        ``n_codes`` is a missing value.
    n_codes : dict of int to int
        Number of codes of each categorical feature, without missing values.
    n_classes : int
        Number of classes. The operator has twice as many outputs: coarse parts, then remainders.
    """
    trees = list(trees)
    nodes = [_nodes(tree, place, n_codes) for tree in trees]
    grid = _grid(trees, n_classes)
    leaves = [_leaves(tree, grid, n_classes) for tree in trees]
    joined = _joined("nodes", nodes) | _joined("target", leaves)
    doubles = {f"{name}_as_tensor": joined.pop(name) for name in ("nodes_values", "target_weights")}
    lists = {name: values.tolist() for name, values in joined.items()}
    return lists | doubles | {"n_targets": 2 * n_classes}


def _joined(prefix: str, parts: Sequence[Arrays]) -> Arrays:
    """Concatenate the arrays of all trees, and add the tree of each entry."""
    sizes = [len(next(iter(part.values()))) for part in parts]
    joined = {f"{prefix}_treeids": np.repeat(np.arange(len(parts)), sizes)}
    for name in parts[0]:
        joined[f"{prefix}_{name}"] = np.concatenate([part[name] for part in parts])
    return joined


def _nodes(tree: Tree, place: NDArray[np.intp], n_codes: dict[int, int]) -> Arrays:
    is_leaf = tree.feature < 0
    left = np.where(is_leaf, 0, tree.left)
    nodes = {
        "nodeids": np.arange(len(left)),
        "featureids": np.where(is_leaf, 0, place[tree.feature]),
        "values": np.where(is_leaf, 0.0, tree.threshold),
        "truenodeids": left,
        "falsenodeids": np.where(is_leaf, 0, tree.left + 1),
        "missing_value_tracks_true": tree.missing_left.astype(np.int64),
        "modes": np.where(is_leaf, "LEAF", _BRANCH),
    }
    for node in tree.left_codes:
        nodes = _with_chain(nodes, tree, node, n_codes[int(tree.feature[node])])
    return nodes


def _with_chain(nodes: Arrays, tree: Tree, node: int, n_codes: int) -> Arrays:
    """Replace a categorical split by a chain of comparisons with thresholds.

    Consecutive codes that go to the same child form a run; each link of the chain tests for one run.
    The missing value is the code after all others. Several links share a child, which runtimes allow
    for the child of the true branch.
    """
    goes_left = np.zeros(n_codes + 1, dtype=bool)
    goes_left[tree.left_codes[node]] = True
    goes_left[n_codes] = tree.missing_left[node]
    ends = np.flatnonzero(goes_left[1:] != goes_left[:-1])
    if not len(ends):  # all codes go to the same child
        ends = np.array([n_codes])
    children = np.where(goes_left, tree.left[node], tree.left[node] + 1)
    n_nodes, n_links = len(nodes["nodeids"]), len(ends)
    links = np.concatenate([[node], np.arange(n_nodes, n_nodes + n_links - 1)])
    last = children[min(int(ends[-1]) + 1, n_codes)]
    chain = {
        "nodeids": links,
        "featureids": np.full(n_links, nodes["featureids"][node]),
        "values": ends + 0.5,
        "truenodeids": children[ends],
        "falsenodeids": np.append(links[1:], last),
        "missing_value_tracks_true": np.zeros(n_links, np.int64),
        "modes": np.full(n_links, _BRANCH),
    }
    for name, values in chain.items():
        nodes[name] = np.concatenate([nodes[name], values[1:]])
        nodes[name][node] = values[0]
    return nodes


def _grid(trees: Sequence[Tree], n_classes: int) -> float:
    """Return a power of two such that sums of its multiples are exact in float32."""
    largest = np.zeros(n_classes)
    for tree in trees:
        classes, values = tree.added()
        largest[classes] += np.abs(values).max(axis=0)
    bound = largest.max()
    return float(2.0 ** (np.ceil(np.log2(bound)) + 1 - _FLOAT_BITS)) if bound else 1.0


def _leaves(tree: Tree, grid: float, n_classes: int) -> Arrays:
    classes, values = tree.added()
    coarse = np.rint(values / grid) * grid
    weights: Floats = np.hstack([coarse, values - coarse])
    outputs = np.concatenate([classes, classes + n_classes])
    return {
        "nodeids": np.repeat(tree.leaves, len(outputs)),
        "ids": np.tile(outputs, len(weights)),
        "weights": weights.ravel(),
    }


def search_tree(categories: CategoryMap) -> Tree:
    """Return a tree that maps numbers to codes; unknown numbers get code ``n_codes``."""
    bounds, codes = _bounds(categories)
    nodes = [(0, len(bounds))]  # each node searches a range of bounds
    left = []
    for first, last in nodes:  # the loop appends nodes
        left.append(len(nodes))
        if first < last:
            middle = (first + last) // 2
            nodes += [(first, middle), (middle + 1, last)]
    is_leaf = np.array([first == last for first, last in nodes])
    threshold = [0.0 if first == last else bounds[(first + last) // 2] for first, last in nodes]
    values = [codes[first] for first, last in nodes if first == last]
    nothing = np.zeros(len(nodes))
    return Tree(
        np.where(is_leaf, -1, 0).astype(np.int32),
        np.array(threshold),
        np.array(left, dtype=np.int32),
        nothing.astype(np.uint8),  # missing values go right: unknown
        nothing,
        nothing,
        np.array(values, dtype=np.float64)[:, None],
    )


def _bounds(categories: CategoryMap) -> tuple[list[float], list[int]]:
    """Return ascending bounds, the code of numbers up to each, and the code of all larger ones."""
    bounds: list[float] = []
    codes: list[int] = []
    for category, code in sorted(categories.code_of.items()):
        if category > -math.inf:  # numbers up to the next smaller float are unknown
            bounds.append(math.nextafter(category, -math.inf))
            codes.append(categories.n_codes)
        bounds.append(category)
        codes.append(code)
    return bounds, [*codes, categories.n_codes]
