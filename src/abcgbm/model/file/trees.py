"""The trees of a model as arrays of a model file: what follows from the others is left out."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from abcgbm.model.checks import Shape, check_range, check_starts
from abcgbm.model.ensemble import ALL_CLASSES, Ensemble
from abcgbm.model.ensemble_check import LEAF, leaves_with_value, set_words

Arrays = dict[str, NDArray[Any]]
ReadArray = Callable[[str, DTypeLike, Shape], NDArray[Any]]

# The field of an `Ensemble`, and the name of its array in a model file. The names on the right are part
# of the format: where a field is renamed, only the left side follows. `left_set_size` and the shape
# follow from other arrays and are not stored.
STORED_NAMES = {
    "feature": "feature",
    "weight": "weight",
    "left_set": "left_set",
    "leaf_value": "leaf_value",
    "gain_feature": "gain_feature",
    "class_gain": "class_gain",
    "gain_start": "gain_start",
    "tree_start": "tree_start",
    "tree_class": "tree_class",
    "tree_base": "tree_base",
    "tree_base_scale": "tree_base_scale",
    "step_start": "step_start",
    "init": "init",
    "threshold": "threshold",
    "left": "left",
    "missing_left": "missing_left",
    "gain": "gain",
    "value": "value",
}
_OF_SPLITS = {
    "threshold": np.float64,
    "left": np.int32,
    "missing_left": np.uint8,
    "gain": np.float64,
}


def arrays_of_trees(ensemble: Ensemble) -> Arrays:
    """Return what is stored: of splits what only they have, of leaves their values."""
    arrays = {field: getattr(ensemble, field) for field in STORED_NAMES}
    is_split = ensemble.feature >= 0
    arrays |= {field: arrays[field][is_split] for field in _OF_SPLITS}
    arrays["value"] = ensemble.value[leaves_with_value(ensemble)]
    return {stored: arrays[field] for field, stored in STORED_NAMES.items()}


def trees_of_arrays(read_stored: ReadArray, n_codes: NDArray[np.int64], n_classes: int) -> Ensemble:
    """Return the trees; ``read_stored(name, dtype, shape)`` gives an array of just these.

    ``n_codes`` are the codes of each feature: 0 for numbers.
    """

    def read(field: str, dtype: DTypeLike, shape: Shape) -> NDArray[Any]:
        return read_stored(STORED_NAMES[field], dtype, shape)

    feature = read("feature", np.int32, (None,))
    check_range("feature", feature, -1, len(n_codes))
    by_node = _split_arrays(read, feature) | _set_arrays(read, feature, n_codes)
    by_node["weight"] = read("weight", np.float64, (len(feature),))
    by_tree = _tree_arrays(read, len(feature))
    shared = np.repeat(by_tree["tree_class"] == ALL_CLASSES, np.diff(by_tree["tree_start"]))
    return Ensemble(
        feature=feature,
        **by_node,
        **by_tree,
        **_leaf_arrays(read, feature < 0, shared, n_classes),
        **_step_arrays(read, n_classes),
        init=read("init", np.float64, (n_classes,)),
        n_features=len(n_codes),
        n_classes=n_classes,
    )


def _split_arrays(read: ReadArray, feature: NDArray[np.int32]) -> Arrays:
    is_split = feature >= 0
    n_splits = int(is_split.sum())
    arrays: Arrays = {}
    for name, dtype in _OF_SPLITS.items():
        arrays[name] = np.full(len(feature), LEAF[name], dtype=dtype)
        arrays[name][is_split] = read(name, dtype, (n_splits,))
    return arrays


def _set_arrays(read: ReadArray, feature: NDArray[np.int32], n_codes: NDArray[np.int64]) -> Arrays:
    n_words = np.append(set_words(n_codes), 0)[feature].astype(np.int32)  # the last is a leaf's: -1
    return {
        "left_set_size": n_words,
        "left_set": read("left_set", np.uint64, (int(n_words.sum(dtype=np.int64)),)),
    }


def _tree_arrays(read: ReadArray, n_nodes: int) -> Arrays:
    tree_start = read("tree_start", np.int64, (None,))
    check_starts("tree_start", tree_start, n_nodes)
    n_trees = len(tree_start) - 1
    return {
        "tree_start": tree_start,
        "tree_class": read("tree_class", np.int32, (n_trees,)),
        "tree_base": read("tree_base", np.int32, (n_trees,)),
        "tree_base_scale": read("tree_base_scale", np.float64, (n_trees,)),
    }


def _leaf_arrays(
    read: ReadArray, is_leaf: NDArray[np.bool_], shared: NDArray[np.bool_], n_classes: int
) -> Arrays:
    has_value = is_leaf & ~shared
    value = np.zeros(len(is_leaf))
    value[has_value] = read("value", np.float64, (int(has_value.sum()),))
    n_shared = int((is_leaf & shared).sum())
    return {"value": value, "leaf_value": read("leaf_value", np.float32, (n_shared, n_classes))}


def _step_arrays(read: ReadArray, n_classes: int) -> Arrays:
    step_start = read("step_start", np.int64, (None,))
    gain_feature = read("gain_feature", np.int32, (None,))
    return {
        "step_start": step_start,
        "gain_feature": gain_feature,
        "class_gain": read("class_gain", np.float64, (len(gain_feature), n_classes)),
        "gain_start": read("gain_start", np.int64, (len(step_start),)),
    }
