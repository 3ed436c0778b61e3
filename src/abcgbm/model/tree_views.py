"""Trees as text, Graphviz source and data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np

from abcgbm.data.labels import known_label
from abcgbm.errors import quoted_list
from abcgbm.model.ensemble import NO_BASE
from abcgbm.model.model import Model
from abcgbm.model.trees import Node, Tree, nodes_of, tree_of, trees_of
from abcgbm.parameters.validators import check_choice, check_integer

_MAX_VALUES = 3  # shown for a leaf: the largest by absolute value


@dataclass(frozen=True, eq=False, repr=False)
class TreeView:
    """One tree, with labels, feature names and categories.

    ``print(tree)`` shows it as text; notebooks draw it if ``graphviz`` is installed.

    Attributes
    ----------
    number, iteration : int
        Index among all trees of the model, and the iteration that grew it; both from 0.
    class_, base_class : label or None
        Class of the tree, None for all classes; and its base class, None without one.
    base_scale : float
        Factor of the values that are subtracted from the score of the base class.
    nodes : tuple of Node
        Nodes; ``left`` and ``right`` of a node are indices of this tuple.
    leaf_values : dict of int to dict
        Change of the scores in each leaf, by label.
    """

    number: int
    iteration: int
    class_: Any
    base_class: Any
    base_scale: float
    nodes: tuple[Node, ...]
    leaf_values: dict[int, dict[Any, float]]

    def __repr__(self) -> str:
        return f"TreeView({self.title})"

    def __str__(self) -> str:
        return self.to_text()

    @property
    def title(self) -> str:
        """Iteration, class and number of leaves."""
        of = "all classes" if self.class_ is None else f"class {self.class_!r}"
        base = "" if self.base_class is None else f" against {self.base_class!r}"
        return f"iteration {self.iteration}, {of}{base}, {len(self.leaf_values)} leaves"

    def to_text(self) -> str:
        """Return the tree as text, one line per node.

        Leaves show how they change the scores, at most the three largest changes.
        """
        return "\n".join([self.title, *self._lines()])

    def _lines(self) -> Iterator[str]:
        """Yield the lines of all nodes, depth first."""
        stack = [(0, "", "")]
        while stack:  # a loop instead of recursion, as trees can be deep
            number, indent, branch = stack.pop()
            node = self.nodes[number]
            yield f"{indent}{branch}{', '.join(self.describe(node))} ({_gain_and_weight(node)})"
            inner = indent + ("|   " if branch else "")
            if not node.is_leaf:
                stack += [(node.right, inner, "no: "), (node.left, inner, "yes: ")]

    def describe(self, node: Node) -> list[str]:
        """Return the condition of a split, or the largest values of a leaf."""
        if not node.is_leaf:
            return [node.condition]
        values = self.leaf_values[node.number]
        largest = sorted(values.items(), key=lambda item: -abs(item[1]))[:_MAX_VALUES]
        more = ["..."] if len(values) > _MAX_VALUES else []
        return [_format_value(*item) for item in largest] + more

    def to_dot(self) -> str:
        """Return the tree in the DOT language of Graphviz."""
        lines = [f'digraph "{_escaped(self.title)}" {{', '  node [fontname="Helvetica"];']
        lines.append('  edge [fontname="Helvetica"];')
        for node in self.nodes:
            shape = "box, style=filled, fillcolor=whitesmoke" if node.is_leaf else "ellipse"
            label = _escaped("\n".join([*self.describe(node), _gain_and_weight(node)]))
            lines.append(f'  {node.number} [shape={shape}, label="{label}"];')
            if not node.is_leaf:
                lines.append(f'  {node.number} -> {node.left} [label="yes"];')
                lines.append(f'  {node.number} -> {node.right} [label="no"];')
        return "\n".join([*lines, "}", ""])

    def to_graphviz(self) -> Any:
        """Return the tree as a ``graphviz.Source``; its ``render`` writes a file."""
        try:
            import graphviz
        except ImportError as error:
            raise ImportError(
                'to_graphviz requires the program dot and graphviz: pip install "abcgbm[graphviz]"'
            ) from error
        return graphviz.Source(self.to_dot())

    def _repr_svg_(self) -> str | None:
        """Return an SVG for notebooks, or None without Graphviz, so that the text is shown."""
        try:
            source = self.to_graphviz()
        except ImportError:
            return None
        from graphviz import ExecutableNotFound

        try:
            return str(source.pipe(format="svg", encoding="utf-8"))
        except ExecutableNotFound:
            return None


def _gain_and_weight(node: Node) -> str:
    gain = "" if node.is_leaf else f"gain {node.gain:.4g}, "
    return f"{gain}weight {node.weight:.6g}"


def _format_value(label: Any, value: float) -> str:
    return f"{label} {value:+.4g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# -------------------------------------------------------------------------------- trees of a model


def views_of(model: Model) -> Iterator[TreeView]:
    """Yield all trees of a model in order."""
    return (_view(model, tree) for tree in trees_of(model))


def text_of(model: Model) -> str:
    """Return the baseline and all trees as text."""
    baseline = zip(model.labels, model.ensemble.init.tolist(), strict=True)
    scores = ", ".join(_format_value(*score) for score in baseline)
    return "\n\n".join([f"baseline: {scores}", *map(str, views_of(model))]) + "\n"


def view_tree(model: Model, iteration: Any, class_: Any) -> TreeView:
    """Return the tree of an iteration and a class; ``class_=None`` is the only tree of an iteration."""
    if model.n_iter == 0:
        raise ValueError(f"iteration={iteration!r}; the model has no iterations, and so no trees")
    iteration = check_integer(
        "iteration", iteration, 0, model.n_iter - 1, note=" (those of the model)"
    )
    numbers = range(*model.ensemble.iteration_start[iteration : iteration + 2])
    k = None if class_ is None else model.labels.index(known_label(class_, model.labels))
    tree = _tree_for(iteration, k, [tree_of(model, number) for number in numbers], model.labels)
    return _view(model, tree, k)


def _view(model: Model, tree: Tree, k: int | None = None) -> TreeView:
    """Return a tree with names; of a multi-output tree all classes, or only class ``k``."""
    labels, (classes, added) = model.labels, tree.added()
    if tree.is_multi_output and k is not None:
        classes, added = classes[[k]], added[:, [k]]
    names = [labels[number] for number in classes.tolist()]
    values = (dict(zip(names, of_leaf, strict=True)) for of_leaf in added.tolist())
    return TreeView(
        tree.number,
        tree.iteration,
        None if tree.is_multi_output else labels[tree.class_number],
        None if tree.base == NO_BASE else labels[tree.base],
        tree.base_scale,
        tuple(nodes_of(model, tree)),
        dict(zip(tree.leaves.tolist(), values, strict=True)),
    )


def _tree_for(iteration: int, k: int | None, trees: list[Tree], labels: list[Any]) -> Tree:
    """Return the tree for a class among those of an iteration; a multi-output tree is for every class."""
    if k is None and len(trees) == 1:
        return trees[0]
    for tree in trees:
        if k is not None and (tree.is_multi_output or tree.class_number == k):
            return tree
    if not trees:
        raise ValueError(f"iteration={iteration}; the iteration has no trees")
    given = None if k is None else labels[k]
    base = ", its base class" if k in [tree.base for tree in trees] else ""
    with_tree = quoted_list([labels[tree.class_number] for tree in trees])
    raise ValueError(
        f"class_={given!r}{base}; the trees of iteration {iteration} are those of {with_tree}: "
        "expected one of them"
    )


Cell = Callable[[TreeView, Node], Any]


def trees_to_frame(model: Model, backend: Any) -> Any:
    """Return all nodes of all trees as a data frame of pandas or polars."""
    check_choice("backend", backend, ("pandas", "polars"))
    try:
        import_module(backend)
    except ImportError as error:
        other = "polars" if backend == "pandas" else "pandas"
        raise ImportError(
            f"backend={backend!r} is not installed; install it, or choose backend={other!r}"
        ) from error
    rows = [(tree, node) for tree in views_of(model) for node in tree.nodes]
    columns = {
        name: _column([cell(*row) for row in rows], dtype, backend)
        for name, (cell, dtype) in (_CELLS | _cells_of_classes(model)).items()
    }
    return nw.from_dict(columns, backend=backend).to_native()


def _column(values: list[Any], dtype: type | None, backend: str) -> Any:
    """Return numbers as an array, and labels, text and lists as objects that may be None."""
    if dtype is not None:
        return np.array(values, dtype=dtype)
    if backend == "polars":
        return _for_polars(values)
    column = np.empty(
        len(values), dtype=object
    )  # pandas would convert integers beside None to floats
    column[:] = values
    return column


def _for_polars(values: list[Any]) -> Any:
    """Return NumPy dates as an array: polars misreads single ones. Leave other labels as they are."""
    date = next((v for v in values if isinstance(v, np.datetime64 | np.timedelta64)), None)
    if date is None:
        return values
    unit = "ns" if np.datetime_data(date.dtype)[0] == "ns" else "us"
    return np.array(values, dtype=f"{date.dtype.kind}8[{unit}]")


def _decision(_tree: TreeView, node: Node) -> str | None:
    return None if node.is_leaf else "<=" if node.categories is None else "in"


def _missing(_tree: TreeView, node: Node) -> str | None:
    return None if node.is_leaf else "left" if node.missing_left else "right"


def _categories(_tree: TreeView, node: Node) -> list[str] | None:
    return None if node.categories is None else [str(category) for category in node.categories]


_CELLS: dict[str, tuple[Cell, type | None]] = {
    "tree": (lambda tree, node: tree.number, np.int64),
    "iteration": (lambda tree, node: tree.iteration, np.int64),
    "class": (lambda tree, node: tree.class_, None),
    "base_class": (lambda tree, node: tree.base_class, None),
    "base_scale": (lambda tree, node: tree.base_scale, np.float64),
    "node": (lambda tree, node: node.number, np.int64),
    "depth": (lambda tree, node: node.depth, np.int64),
    "feature": (lambda tree, node: node.feature, None),
    "decision": (_decision, None),
    "threshold": (lambda tree, node: node.threshold, np.float64),
    "levels": (_categories, None),
    "missing": (_missing, None),
    "left": (lambda tree, node: node.left, np.int64),
    "right": (lambda tree, node: node.right, np.int64),
    "gain": (lambda tree, node: node.gain, np.float64),
    "weight": (lambda tree, node: node.weight, np.float64),
    "value": (lambda tree, node: node.value, np.float64),
}


def _cells_of_classes(model: Model) -> dict[str, tuple[Cell, type | None]]:
    """Return a column of leaf values for each class, if there are multi-output trees."""
    if not len(model.ensemble.leaf_value):
        return {}

    def of_class(k: int) -> Cell:
        return lambda _, node: np.nan if node.class_values is None else node.class_values[k]

    return {f"value_{label}": (of_class(k), np.float64) for k, label in enumerate(model.labels)}
