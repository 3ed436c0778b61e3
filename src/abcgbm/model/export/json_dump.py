"""Content of the JSON dump: a model as lists and dictionaries, with names."""

from __future__ import annotations

import math
from typing import Any

from abcgbm.model.model import Model
from abcgbm.model.tree_views import TreeView, views_of
from abcgbm.model.trees import Node

Plain = dict[str, Any]


def plain_model(model: Model) -> Plain:
    """Return a model as values that JSON can hold.

    Keys are ``classes``; ``start``, the baseline; ``features``, with ``levels`` for categorical ones;
    and ``trees``. Infinities and dates are strings.
    """
    features: list[Plain] = [{"name": name} for name in model.feature_labels]
    for feature, by_code in model.categories_by_code.items():
        features[feature]["levels"] = [_plain(c) for categories in by_code for c in categories]
    return {
        "classes": [_plain(label) for label in model.labels],
        "start": model.ensemble.init.tolist(),
        "features": features,
        "trees": [_plain_tree(tree) for tree in views_of(model)],
    }


def _plain_tree(tree: TreeView) -> Plain:
    """Return iteration (from 0), class, base class and nodes of a tree, the root first."""
    plain: Plain = {"iteration": tree.iteration}
    if tree.class_ is not None:
        plain["class"] = _plain(tree.class_)
    if tree.base_class is not None:
        plain |= {"base": _plain(tree.base_class), "base_scale": tree.base_scale}
    return plain | {"nodes": [_plain_node(node) for node in tree.nodes]}


def _plain_node(node: Node) -> Plain:
    """Return a node; at a split, values ``at_most`` a threshold or ``among`` categories go left."""
    if node.class_values is not None:
        return {"values": node.class_values, "weight": node.weight}
    if node.is_leaf:
        return {"value": node.value, "weight": node.weight}
    if node.categories is None:
        condition: Plain = {"at_most": _plain(node.threshold)}
    else:
        condition = {"among": [_plain(category) for category in node.categories]}
    missing = "left" if node.missing_left else "right"
    children = {"missing": missing, "left": node.left, "right": node.right}
    return (
        {"feature": node.feature}
        | condition
        | children
        | {"gain": node.gain, "weight": node.weight}
    )


def _plain(value: Any) -> Any:
    """Return a number, category or label as JSON can hold it: anything else becomes a string."""
    is_plain = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else str(value)
