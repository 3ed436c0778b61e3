"""`abcgbm convert`: a model file to ONNX, treelite, C, JSON or text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from abcgbm import ABCBoostClassifier
from abcgbm.cli.failure import Misuse, tell
from abcgbm.cli.options import ModelFile, OutputOptions
from abcgbm.model.file.atomic import write_whole
from abcgbm.settings.free_memory import shown_bytes

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
    tell(f"{target}: {form}, {shown_bytes(len(content))}")
