"""All trees of a model as a data frame, a row for each node."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np

from abcgbm.model.model import Model
from abcgbm.model.tree_nodes import Node
from abcgbm.model.tree_view import TreeView, views_of
from abcgbm.settings.checks import check_choice

Cell = Callable[[TreeView, Node], Any]


def trees_to_frame(model: Model, backend: Any) -> Any:
    """Return a data frame of pandas or polars."""
    check_choice("backend", backend, ("pandas", "polars"))
    try:
        import_module(backend)
    except ImportError as error:
        other = "polars" if backend == "pandas" else "pandas"
        raise ImportError(
            f"{backend} is not installed; expected it, or backend={other!r}"
        ) from error
    rows = [(tree, node) for tree in views_of(model) for node in tree.nodes]
    columns = {
        name: _column([cell(*row) for row in rows], dtype, backend)
        for name, (cell, dtype) in (_CELLS | _cells_of_classes(model)).items()
    }
    return nw.from_dict(columns, backend=backend).to_native()


def _column(values: list[Any], dtype: type | None, backend: str) -> Any:
    """Numbers become an array; labels, text and lists stay what they are, None among them."""
    if dtype is not None:
        return np.array(values, dtype=dtype)
    if backend == "polars":
        return _for_polars(values)
    column = np.empty(len(values), dtype=object)  # or pandas makes floats of integers beside None
    column[:] = values
    return column


def _for_polars(values: list[Any]) -> Any:
    """Labels that are NumPy's dates become an array: one by one, polars takes them for others."""
    date = next((v for v in values if isinstance(v, np.datetime64 | np.timedelta64)), None)
    if date is None:
        return values
    unit = "ns" if np.datetime_data(date.dtype)[0] == "ns" else "us"
    return np.array(values, dtype=f"{date.dtype.kind}8[{unit}]")


def _decision(_tree: TreeView, node: Node) -> str | None:
    return None if node.is_leaf else "<=" if node.levels is None else "in"


def _missing(_tree: TreeView, node: Node) -> str | None:
    return None if node.is_leaf else "left" if node.missing_left else "right"


def _levels(_tree: TreeView, node: Node) -> list[str] | None:
    return None if node.levels is None else [str(level) for level in node.levels]


_CELLS: dict[str, tuple[Cell, type | None]] = {
    "tree": (lambda tree, node: tree.number, np.int64),
    "step": (lambda tree, node: tree.step, np.int64),
    "class": (lambda tree, node: tree.class_, None),
    "base_class": (lambda tree, node: tree.base_class, None),
    "base_scale": (lambda tree, node: tree.base_scale, np.float64),
    "node": (lambda tree, node: node.number, np.int64),
    "depth": (lambda tree, node: node.depth, np.int64),
    "feature": (lambda tree, node: node.feature, None),
    "decision": (_decision, None),
    "threshold": (lambda tree, node: node.threshold, np.float64),
    "levels": (_levels, None),
    "missing": (_missing, None),
    "left": (lambda tree, node: node.left, np.int64),
    "right": (lambda tree, node: node.right, np.int64),
    "gain": (lambda tree, node: node.gain, np.float64),
    "weight": (lambda tree, node: node.weight, np.float64),
    "value": (lambda tree, node: node.value, np.float64),
}


def _cells_of_classes(model: Model) -> dict[str, tuple[Cell, type | None]]:
    """A column for each class, if leaves of shared trees have values for all of them."""
    if not len(model.ensemble.leaf_value):
        return {}

    def of_class(k: int) -> Cell:
        return lambda _, node: np.nan if node.class_values is None else node.class_values[k]

    return {f"value_{label}": (of_class(k), np.float64) for k, label in enumerate(model.labels)}
