"""A model as text for people: every tree with its conditions, indented."""

from collections.abc import Iterator
from typing import Any

from abcgbm.model.export.dump import Dump, Plain
from abcgbm.model.model import Model

_INDENT = "  "


def text_lines(model: Model) -> Iterator[str]:
    """Yield the lines of the text."""
    dump = Dump(model)
    start = zip(dump.labels, model.ensemble.init.tolist(), strict=True)
    yield f"classes: {', '.join(map(repr, dump.labels))}"
    yield f"features: {', '.join(dump.names)}"
    yield f"start: {', '.join(f'{label!r} {score!r}' for label, score in start)}"
    for tree in dump.trees():
        yield ""
        yield _heading(tree)
        yield from _tree_lines(tree["nodes"], dump.labels)


def _heading(tree: Plain) -> str:
    heading = f"step {tree['step']}, " + (
        f"class {tree['class']!r}" if "class" in tree else "all classes"
    )
    if "base" not in tree:
        return heading
    scale = "" if tree["base_scale"] == 1 else f" times {tree['base_scale']!r}"
    return f"{heading}, against base class {tree['base']!r}{scale}"


def _tree_lines(nodes: list[Plain], labels: list[Any]) -> Iterator[str]:
    """Yield the lines of a tree, from nodes and lines still to come: a tree may be too deep to recur."""
    to_come: list[tuple[int, int | str]] = [(1, 0)]
    while to_come:
        depth, item = to_come.pop()
        if isinstance(item, str):
            yield _INDENT * depth + item
        elif "left" in nodes[item]:
            node = nodes[item]
            yield f"{_INDENT * depth}{_condition(node)}:"
            to_come += [(depth + 1, node["right"]), (depth, "else:"), (depth + 1, node["left"])]
        else:
            yield _INDENT * depth + _leaf(nodes[item], labels)


def _condition(node: Plain) -> str:
    if "among" in node:
        condition = f"in {{{', '.join(map(repr, node['among']))}}}"
    else:
        condition = f"<= {node['at_most']}"
    return f"{node['feature']} {condition}" + (" or missing" if node["missing"] == "left" else "")


def _leaf(node: Plain, labels: list[Any]) -> str:
    if "value" in node:
        return f"{node['value']:+}"
    of_classes = zip(labels, node["values"], strict=True)
    return ", ".join(f"{label!r} {value:+}" for label, value in of_classes)
