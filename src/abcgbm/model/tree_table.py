"""All trees of a model as a data frame, a row for each node."""

from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np

from abcgbm.model.model import Model
from abcgbm.model.tree_nodes import Node, NodeReader, TreePlace
from abcgbm.settings.checks import check_choice

Cell = Callable[[TreePlace, Node], Any]


def trees_to_frame(model: Model, backend: Any) -> Any:
    """Return a data frame of pandas or polars."""
    check_choice("backend", backend, ("pandas", "polars"))
    reader = NodeReader(model)
    rows = [
        (place, node)
        for place in map(reader.place, range(len(model.ensemble.tree_class)))
        for node in reader.nodes(place.number)
    ]
    columns = {
        name: _column([cell(place, node) for place, node in rows], dtype, backend)
        for name, (cell, dtype) in (_CELLS | _cells_of_classes(model)).items()
    }
    return nw.from_dict(columns, backend=backend).to_native()


def _column(values: list[Any], dtype: type | None, backend: str) -> Any:
    """Numbers become an array; labels, text and lists stay what they are, None among them."""
    if dtype is not None:
        return np.array(values, dtype=dtype)
    if backend == "polars":
        return values
    column = np.empty(len(values), dtype=object)  # or pandas makes floats of integers beside None
    column[:] = values
    return column


def _decision(_place: TreePlace, node: Node) -> str | None:
    return None if node.is_leaf else "<=" if node.levels is None else "in"


def _missing(_place: TreePlace, node: Node) -> str | None:
    return None if node.is_leaf else "left" if node.missing_left else "right"


def _levels(_place: TreePlace, node: Node) -> list[str] | None:
    return None if node.levels is None else [str(level) for level in node.levels]


_CELLS: dict[str, tuple[Cell, type | None]] = {
    "tree": (lambda place, node: place.number, np.int64),
    "step": (lambda place, node: place.step, np.int64),
    "class": (lambda place, node: place.class_, None),
    "base_class": (lambda place, node: place.base_class, None),
    "node": (lambda place, node: node.number, np.int64),
    "depth": (lambda place, node: node.depth, np.int64),
    "feature": (lambda place, node: node.feature, None),
    "decision": (_decision, None),
    "threshold": (lambda place, node: node.threshold, np.float64),
    "levels": (_levels, None),
    "missing": (_missing, None),
    "left": (lambda place, node: node.left, np.int64),
    "right": (lambda place, node: node.right, np.int64),
    "gain": (lambda place, node: node.gain, np.float64),
    "weight": (lambda place, node: node.weight, np.float64),
    "value": (lambda place, node: node.value, np.float64),
}


def _cells_of_classes(model: Model) -> dict[str, tuple[Cell, type | None]]:
    """A column for each class, if leaves of shared trees have values for all of them."""
    if not len(model.ensemble.leaf_value):
        return {}

    def of_class(k: int) -> Cell:
        return lambda _, node: np.nan if node.class_values is None else node.class_values[k]

    return {
        f"value_{label}": (of_class(k), np.float64)
        for k, label in enumerate(model.classes.tolist())
    }
