"""`abcgbm inspect` and `abcgbm convert`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from abcgbm import ABCBoostClassifier
from abcgbm.cli.console import Misuse, screen, tell
from abcgbm.cli.options import ModelFile, OutputOptions
from abcgbm.data.files.atomic import write_whole
from abcgbm.errors import format_bytes
from abcgbm.fitted import FittedAttributes

_FORMS: dict[str, Callable[[ABCBoostClassifier], Any]] = {
    "onnx": lambda model: model.to_onnx().SerializeToString(),
    "treelite": lambda model: bytes(model.to_treelite().serialize_bytes()),
    "c": lambda model: model.to_c(),
    "json": lambda model: model.to_json(),
    "text": lambda model: model.to_text(),
}
_ENDINGS = {".onnx": "onnx", ".treelite": "treelite", ".c": "c", ".json": "json", ".txt": "text"}


def convert(
    model: ModelFile,
    output: OutputOptions,
    to: Annotated[
        str | None,
        typer.Option("--to", help=f"{', '.join(_FORMS)}; by default as the output's name ends."),
    ] = None,
) -> None:
    """Convert a model file for other programs: ONNX, treelite, C source, JSON, or text for people."""
    target = output.needed(", ".join(f"model{ending}" for ending in _ENDINGS), model)
    form = to or _ENDINGS.get(target.suffix.lower())
    if form not in _FORMS:
        given = f"--to {to}" if to else f"a name that ends in {target.suffix!r}, without --to"
        raise Misuse(f"{given}; expected one of {', '.join(_FORMS)}")
    made = _FORMS[form](ABCBoostClassifier.load_model(model))
    content = made.encode() if isinstance(made, str) else made
    write_whole(target, content)
    tell(f"{target}: {form}, {format_bytes(len(content))}")


def inspect(
    model: ModelFile,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
    tree: Annotated[
        int | None, typer.Option("--tree", help="Show a tree of this iteration, counted from 0.")
    ] = None,
    class_: Annotated[
        str | None, typer.Option("--class", help="The class whose tree it is.")
    ] = None,
    features: Annotated[
        int, typer.Option("--features", min=0, help="Features to show, the most important first.")
    ] = 10,
) -> None:
    """Show what is in a model file: classes, features, iterations, parameters, or one of its trees."""
    estimator = ABCBoostClassifier.load_model(model)
    if tree is not None:
        print(estimator.tree(tree, None if class_ is None else label_of(estimator, class_)))
    elif as_json:
        print(json.dumps(_facts(estimator, model, features), ensure_ascii=False, default=str))
    else:
        _show(_facts(estimator, model, features))


def label_of(estimator: FittedAttributes, text: str) -> Any:
    """Return the label that is spelled so."""
    labels = estimator.model_.labels
    found = [label for label in labels if str(label) == text]
    if not found:
        raise ValueError(f"--class {text}; expected one of {', '.join(map(str, labels))}")
    return found[0]


def _facts(estimator: ABCBoostClassifier, path: Path, n_shown: int) -> dict[str, Any]:
    model = estimator.model_
    importances = estimator.feature_importances_
    order = np.argsort(-importances, kind="stable")[:n_shown].tolist()
    names = model.feature_labels
    changed = _changed_parameters(estimator)
    return {
        "file": f"{path} ({format_bytes(path.stat().st_size)})",
        "classes": [str(label) for label in model.labels],
        "features": model.ensemble.n_features,
        "categories": int(np.count_nonzero(model.encoding.schema.is_categorical)),
        "iterations": model.n_iter,
        "trees": len(model.ensemble.tree_class),
        "training_loss": [float(estimator.train_loss_[0]), float(estimator.train_loss_[-1])],
        "stop_reason": estimator.stop_reason_,
        "parameters": changed,
        "resolved_params": estimator.resolved_params_,
        "importances": {names[f]: float(importances[f]) for f in order},
    }


def _changed_parameters(estimator: ABCBoostClassifier) -> dict[str, Any]:
    """Return the parameters that are not the defaults."""
    defaults = ABCBoostClassifier().get_params()
    given = estimator.get_params(deep=False)
    return {n: value for n, value in given.items() if repr(value) != repr(defaults.get(n))}


def _show(facts: dict[str, Any]) -> None:
    console, table = screen(), Table(box=None, show_header=False)
    first, last = facts["training_loss"]
    shown = facts | {
        "classes": f"{len(facts['classes'])}: {', '.join(facts['classes'])}",
        "features": f"{facts['features']}, of which {facts['categories']} are categories",
        "training_loss": f"{first:.6g} to {last:.6g} (mean)",
        "parameters": _listed(facts["parameters"]),
        "resolved_params": _listed(facts["resolved_params"]),
        "importances": "\n".join(f"{v:.4f}  {name}" for name, v in facts["importances"].items()),
    }
    del shown["categories"]
    for name, value in shown.items():
        table.add_row(name.replace("_", " "), str(value))
    console.print(table)


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items()) or "all by default"
