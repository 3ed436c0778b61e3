"""A model as plain data, with names instead of numbers: what the JSON dump holds."""

from __future__ import annotations

import math
from typing import Any

from abcgbm.model.model import Model
from abcgbm.model.tree_views import TreeView, views_of
from abcgbm.model.trees import Node

Plain = dict[str, Any]


def plain_model(model: Model) -> Plain:
    """Return all of a model in names, numbers, lists and dictionaries.

    ``classes``; ``start``, their scores before the first step; ``features``, a name each, and the
    levels of categories; ``trees``. Infinities and dates are strings: JSON has none.
    """
    features: list[Plain] = [{"name": name} for name in model.feature_labels]
    for feature, by_code in model.levels_by_code.items():
        features[feature]["levels"] = [_plain(level) for levels in by_code for level in levels]
    return {
        "classes": [_plain(label) for label in model.labels],
        "start": model.ensemble.init.tolist(),
        "features": features,
        "trees": [_plain_tree(tree) for tree in views_of(model)],
    }


def _plain_tree(tree: TreeView) -> Plain:
    """Return what a tree is about, and its nodes, the root first. Steps count from 0."""
    about: Plain = {"iteration": tree.iteration}
    if tree.class_ is not None:
        about["class"] = _plain(tree.class_)
    if tree.base_class is not None:
        about |= {"base": _plain(tree.base_class), "base_scale": tree.base_scale}
    return about | {"nodes": [_plain_node(node) for node in tree.nodes]}


def _plain_node(node: Node) -> Plain:
    """Return a leaf, or a split: what is at most a number, or among some levels, goes left."""
    if node.class_values is not None:
        return {"values": node.class_values, "weight": node.weight}
    if node.is_leaf:
        return {"value": node.value, "weight": node.weight}
    if node.levels is None:
        condition: Plain = {"at_most": _plain(node.threshold)}
    else:
        condition = {"among": [_plain(level) for level in node.levels]}
    missing = "left" if node.missing_left else "right"
    way = {"missing": missing, "left": node.left, "right": node.right}
    size = {"gain": node.gain, "weight": node.weight}
    return {"feature": node.feature} | condition | way | size


def _plain(value: Any) -> Any:
    """Return a number, a level or a label as JSON can hold it: all else is a string."""
    is_plain = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else str(value)
