"""A model as plain data, with names instead of numbers: what the JSON dump holds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from abcgbm.data.lazy import lazy
from abcgbm.model.ensemble import NO_BASE
from abcgbm.model.export.names import feature_names, levels_by_code, plain_labels
from abcgbm.model.export.trees import Tree, trees_of
from abcgbm.model.model import Model

Plain = dict[str, Any]


@dataclass(frozen=True)
class Dump:
    """A model in names, numbers, lists and dictionaries.

    Attributes
    ----------
    model : Model
        The model.
    """

    model: Model

    @lazy
    def labels(self) -> list[Any]:
        """The labels of the classes."""
        return plain_labels(self.model.classes)

    @lazy
    def names(self) -> list[str]:
        """The names of the features."""
        return feature_names(self.model)

    @lazy
    def levels(self) -> dict[int, list[list[Any]]]:
        """The levels of each code, by feature."""
        found = self.model.encoding.levels.items()
        return {
            feature: [[_finite(level) for level in of_code] for of_code in levels_by_code(levels)]
            for feature, levels in found
        }

    def whole(self) -> Plain:
        """Return all of it.

        ``classes``; ``start``, their scores before the first step; ``features``, a name each, and
        the levels of categories; ``trees``. Infinities are strings: JSON has none.
        """
        features: list[Plain] = [{"name": name} for name in self.names]
        for feature, levels in self.levels.items():
            features[feature]["levels"] = [level for of_code in levels for level in of_code]
        return {
            "classes": self.labels,
            "start": self.model.ensemble.init.tolist(),
            "features": features,
            "trees": list(self.trees()),
        }

    def trees(self) -> Iterator[Plain]:
        """Yield each tree: what it is about, and its ``nodes``, the root first."""
        for tree in trees_of(self.model):
            about: Plain = {"step": tree.step + 1}
            if not tree.is_shared:
                about["class"] = self.labels[tree.class_number]
            if tree.base != NO_BASE:
                about |= {"base": self.labels[tree.base], "base_scale": tree.base_scale}
            yield about | {"nodes": list(self._nodes(tree))}

    def _nodes(self, tree: Tree) -> Iterator[Plain]:
        gain, weight = tree.gain.tolist(), tree.weight.tolist()
        leaf_values = iter(tree.values.tolist())
        for node, feature in enumerate(tree.feature.tolist()):
            if feature < 0:
                values = next(leaf_values)
                what = {"values": values} if tree.is_shared else {"value": values[0]}
            else:
                what = self._split(tree, node, feature) | {"gain": gain[node]}
            yield what | {"weight": weight[node]}

    def _split(self, tree: Tree, node: int, feature: int) -> Plain:
        """Return a split: what is at most a number, or among some levels, goes left."""
        left = int(tree.left[node])
        if node in tree.left_codes:
            levels, codes = self.levels[feature], tree.left_codes[node].tolist()
            condition: Plain = {"among": [level for code in codes for level in levels[code]]}
        else:
            condition = {"at_most": _finite(float(tree.threshold[node]))}
        missing = "left" if tree.missing_left[node] else "right"
        way = {"missing": missing, "left": left, "right": left + 1}
        return {"feature": self.names[feature]} | condition | way


def _finite(value: Any) -> Any:
    """Return a number, or a level, as JSON can hold it."""
    is_infinite = isinstance(value, float) and math.isinf(value)
    return str(value) if is_infinite else value
