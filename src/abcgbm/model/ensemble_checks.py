"""Validation of trees from pickles and model files.

The core checks what prediction relies on when it packs the trees: children in range and after their
parent, each node reached once, features and classes in range, finite values. All else is checked here.
"""

import numpy as np
from numpy.typing import NDArray

from abcgbm.model.array_checks import check_array, check_finite, check_range, check_starts
from abcgbm.model.ensemble import ALL_CLASSES, NO_BASE, Ensemble

# Values of a leaf in the arrays of splits.
LEAF = {"threshold": 0, "left": -1, "missing_left": 0, "gain": 0, "left_set_size": 0}


def set_words(n_codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of 64-bit words in a bit set of each feature's codes."""
    return (n_codes + 63) // 64


def check_ensemble(ensemble: Ensemble, n_codes: NDArray[np.int64]) -> None:
    """Raise ValueError unless the trees are valid, so that every use of them is safe.

    ``n_codes`` is the number of codes of each feature: 0 for numeric ones.
    """
    _check_arrays(ensemble)
    _check_starts(ensemble)
    _check_numbers(ensemble)
    _check_leaves(ensemble)
    _check_sets(ensemble, n_codes)
    ensemble.pack()


def _check_arrays(ensemble: Ensemble) -> None:
    """Check types and shapes; three arrays give the numbers of nodes, trees and iterations."""
    (n_nodes,) = check_array("feature", ensemble.feature, np.int32, (None,))
    (n_trees,) = check_array("tree_class", ensemble.tree_class, np.int32, (None,))
    (n_starts,) = check_array("iteration_start", ensemble.iteration_start, np.int64, (None,))
    (n_gains,) = check_array("gain_feature", ensemble.gain_feature, np.int32, (None,))
    n_classes = ensemble.n_classes
    for name, dtype, shape in (
        ("threshold", np.float64, (n_nodes,)),
        ("left", np.int32, (n_nodes,)),
        ("missing_left", np.uint8, (n_nodes,)),
        ("value", np.float64, (n_nodes,)),
        ("gain", np.float64, (n_nodes,)),
        ("weight", np.float64, (n_nodes,)),
        ("left_set_size", np.int32, (n_nodes,)),
        ("left_set", np.uint64, (None,)),
        ("leaf_value", np.float32, (None, n_classes)),
        ("class_gain", np.float64, (n_gains, n_classes)),
        ("gain_start", np.int64, (n_starts,)),
        ("tree_start", np.int64, (n_trees + 1,)),
        ("tree_base", np.int32, (n_trees,)),
        ("tree_base_scale", np.float64, (n_trees,)),
        ("init", np.float64, (n_classes,)),
    ):
        check_array(name, getattr(ensemble, name), dtype, shape)


def _check_starts(ensemble: Ensemble) -> None:
    check_starts("tree_start", ensemble.tree_start, len(ensemble.feature))
    check_starts("iteration_start", ensemble.iteration_start, len(ensemble.tree_class))
    check_starts("gain_start", ensemble.gain_start, len(ensemble.gain_feature))


def _check_numbers(ensemble: Ensemble) -> None:
    for name in ("init", "gain", "weight", "class_gain"):
        check_finite(name, getattr(ensemble, name))
    check_range("weight", ensemble.weight, 0, np.inf)
    check_range("feature", ensemble.feature, -1, ensemble.n_features)
    check_range("gain_feature", ensemble.gain_feature, 0, ensemble.n_features)
    check_range("missing_left", ensemble.missing_left, 0, 2)
    check_range("tree_base_scale", ensemble.tree_base_scale, 0, np.nextafter(1, 2))
    own_base = ensemble.tree_base == ensemble.tree_class
    if (own_base & (ensemble.tree_class != NO_BASE)).any():
        raise ValueError("tree_base is the class of the tree itself; expected another class")


def _check_leaves(ensemble: Ensemble) -> None:
    """Check that leaves have no split, and that only leaves of single-output trees have a value."""
    is_leaf = ensemble.feature < 0
    for name, nothing in LEAF.items():
        if (getattr(ensemble, name)[is_leaf] != nothing).any():
            raise ValueError(f"{name} of a leaf is not {nothing}")
    if ensemble.value[~leaves_with_value(ensemble)].any():
        raise ValueError("value of a split, or of a leaf of a multi-output tree, is not 0")


def leaves_with_value(ensemble: Ensemble) -> NDArray[np.bool_]:
    """Return which nodes are leaves of single-output trees."""
    node_class = np.repeat(ensemble.tree_class, np.diff(ensemble.tree_start))
    has_value: NDArray[np.bool_] = (ensemble.feature < 0) & (node_class != ALL_CLASSES)
    return has_value


def _check_sets(ensemble: Ensemble, n_codes: NDArray[np.int64]) -> None:
    """Check that exactly the categorical splits have a bit set, of the right size.

    This also bounds the memory that the core allocates for the sets.
    """
    is_split = ensemble.feature >= 0
    n_words = set_words(n_codes)[ensemble.feature[is_split]]
    if (ensemble.left_set_size[is_split] != n_words).any():
        raise ValueError("left_set_size does not fit the number of categories of the features")
