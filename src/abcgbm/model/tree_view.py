"""A tree of a model, to be read and to be drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from abcgbm.data.labels import known_label, listed
from abcgbm.model.model import Model
from abcgbm.model.tree_nodes import Node, NodeReader, TreePlace
from abcgbm.settings.checks import check_integer

_MOST_VALUES = 3  # of a leaf that are shown: the largest


@dataclass(frozen=True, eq=False, repr=False)
class TreeView:
    """One tree, with names in place of numbers.

    ``print(tree)`` shows it as text; a notebook draws it where ``graphviz`` is installed.

    Attributes
    ----------
    place : TreePlace
        Which tree of the model it is: ``step``, ``class_`` (None: it is for all), ``base_class``.
    nodes : tuple of Node
        Its nodes; children are the numbers ``left`` and ``right``.
    classes : list
        The labels whose values are shown.
    leaf_values : dict of int to dict
        For each leaf what it adds to the score of each of these classes.
    """

    place: TreePlace
    nodes: tuple[Node, ...]
    classes: list[Any]
    leaf_values: dict[int, dict[Any, float]]

    def __repr__(self) -> str:
        return f"TreeView({self.title})"

    def __str__(self) -> str:
        return self.to_text()

    @property
    def title(self) -> str:
        """Which tree it is, in words."""
        place, n_leaves = self.place, len(self.leaf_values)
        of = "all classes" if place.class_ is None else f"class {place.class_!r}"
        base = "" if place.base_class is None else f" against {place.base_class!r}"
        return f"step {place.step}, {of}{base}, {n_leaves} leaves"

    def to_text(self) -> str:
        """Return the tree as text, a line for each node.

        A leaf shows what it adds to the scores, the three largest of them.
        """
        return "\n".join([self.title, *self._lines()])

    def _lines(self) -> Iterator[str]:
        """A node's own line, then those of its children. A loop: trees may be deep."""
        waiting = [(0, "", "")]
        while waiting:
            at, indent, answer = waiting.pop()
            node = self.nodes[at]
            yield f"{indent}{answer}{self._words(node)}"
            inner = indent + ("|   " if answer else "")
            if not node.is_leaf:
                waiting += [(node.right, inner, "no: "), (node.left, inner, "yes: ")]

    def _words(self, node: Node) -> str:
        first = ", ".join(self._shown_values(node)) if node.is_leaf else node.condition
        return f"{first} ({_size(node)})"

    def _shown_values(self, node: Node) -> list[str]:
        values = self.leaf_values[node.number]
        largest = sorted(values.items(), key=lambda item: -abs(item[1]))[:_MOST_VALUES]
        more = ["..."] if len(values) > _MOST_VALUES else []
        return [f"{label} {value:+.4g}" for label, value in largest] + more

    def to_dot(self) -> str:
        """Return the tree in the DOT language of Graphviz."""
        lines = [f'digraph "{_escaped(self.title)}" {{', '  node [fontname="Helvetica"];']
        lines.append('  edge [fontname="Helvetica"];')
        for node in self.nodes:
            shape = "box, style=filled, fillcolor=whitesmoke" if node.is_leaf else "ellipse"
            words = self._shown_values(node) if node.is_leaf else [node.condition]
            label = _escaped("\n".join([*words, _size(node)]))
            lines.append(f'  {node.number} [shape={shape}, label="{label}"];')
            if not node.is_leaf:
                lines.append(f'  {node.number} -> {node.left} [label="yes"];')
                lines.append(f'  {node.number} -> {node.right} [label="no"];')
        return "\n".join([*lines, "}", ""])

    def to_graphviz(self) -> Any:
        """Return a ``graphviz.Source``, which draws the tree; its ``render`` writes a file."""
        try:
            import graphviz
        except ImportError as error:
            raise ImportError(
                'drawings need graphviz: pip install "abcgbm[graphviz]", and the program dot'
            ) from error
        return graphviz.Source(self.to_dot())

    def _repr_svg_(self) -> str | None:
        """Draw the tree in a notebook; None, so that it is shown as text, where nothing can draw."""
        try:
            source = self.to_graphviz()
        except ImportError:
            return None
        from graphviz import ExecutableNotFound

        try:
            return str(source.pipe(format="svg", encoding="utf-8"))
        except ExecutableNotFound:
            return None


def _size(node: Node) -> str:
    gain = "" if node.is_leaf else f"gain {node.gain:.4g}, "
    return f"{gain}weight {node.weight:.6g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# ------------------------------------------------------------------------------------ finding a tree


def view_tree(model: Model, step: Any, class_: Any) -> TreeView:
    """Return the tree of a step and a class; None: the only one of the step."""
    if model.n_steps == 0:
        raise ValueError(f"step={step!r}; the model has no steps, and so no trees")
    step = check_integer("step", step, 0, model.n_steps - 1, note=" (those of the model)")
    reader = NodeReader(model)
    places = [reader.place(tree) for tree in range(*model.ensemble.step_start[step : step + 2])]
    labels = model.classes.tolist()
    label = None if class_ is None else known_label(class_, labels)
    place = _place_for(places, label)
    nodes = tuple(reader.nodes(place.number))
    shown = [label] if place.class_ is None and label is not None else labels
    values = {node.number: _values(node, place, labels, shown) for node in nodes if node.is_leaf}
    return TreeView(place, nodes, shown, values)


def _place_for(places: list[TreePlace], label: Any) -> TreePlace:
    """Return the tree for a label among those of a step; a shared tree is for every label."""
    if label is None and len(places) == 1:
        return places[0]
    fitting = [p for p in places if label is not None and p.class_ in (None, label)]
    if fitting:
        return fitting[0]
    with_tree = listed([place.class_ for place in places])
    base = "" if places[0].base_class != label or label is None else ", its base class"
    raise ValueError(
        f"class_={label!r}{base}; the trees of step {places[0].step} are those of {with_tree}: "
        "expected one of them"
    )


def _values(node: Node, place: TreePlace, labels: list[Any], shown: list[Any]) -> dict[Any, float]:
    """Return what a leaf adds to the classes that are shown, those alone that it moves."""
    if node.class_values is not None:
        by_label = dict(zip(labels, node.class_values.tolist(), strict=True))
        return {label: by_label[label] for label in shown}
    values = {place.class_: node.value}
    if place.base_class is not None:
        values[place.base_class] = -place.base_scale * node.value
    return values
