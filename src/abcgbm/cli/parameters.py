"""Parameters of the estimator in the shell: one option each, `--set` and `--params`."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Iterable
from dataclasses import field, make_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from abcgbm import (
    ABCBoostClassifier,
    AdaptiveBaseClass,
    Categorical,
    Checkpoint,
    KeepOnInterrupt,
    MultiOutputTrees,
    TimeLimit,
    TreePerClass,
)
from abcgbm.cli.console import Misuse
from abcgbm.parameters.hints import hint

# These have options of another kind, or no meaning in one run.
_NO_OPTION = ("n_jobs", "verbose", "warm_start", "callbacks")
_OBJECTS = {
    of.__name__: of for of in (MultiOutputTrees, TreePerClass, AdaptiveBaseClass, Categorical)
}
_PYTHON = {"None": None, "True": True, "False": False}
# Options that say what callbacks do in Python, by names that may be given to --set.
_CALLBACK_OPTIONS = {
    "time_limit": "--time-limit",
    "max_time": "--time-limit",
    "checkpoint": "--checkpoint",
    "checkpoint_every": "--checkpoint-every",
    "on_interrupt": "--keep-on-interrupt",
    "callbacks": "--time-limit, --checkpoint or --keep-on-interrupt",
}


def _first_sentence(name: str) -> str:
    """Return what the docstring of the estimator says of a parameter."""
    doc = inspect.getdoc(ABCBoostClassifier) or ""
    found = re.search(rf"^{name} : .*\n((?:    .*\n)+)", doc, re.MULTILINE)
    text = " ".join(found[1].split()) if found else ""
    return re.split(r"(?<=[.:]) (?=[A-Z\"])", text.replace("``", ""))[0].rstrip(":")


_NAMES = [name for name in ABCBoostClassifier._get_param_names() if name not in _NO_OPTION]
ParameterOptions: Any = make_dataclass(
    "ParameterOptions",
    [
        (
            name,
            Annotated[
                str | None,
                typer.Option(
                    f"--{name.replace('_', '-')}", metavar="VALUE", help=_first_sentence(name)
                ),
            ],
            field(default=None),
        )
        for name in sorted(_NAMES, key=[*inspect.signature(ABCBoostClassifier).parameters].index)
    ],
    frozen=True,
    namespace={"__doc__": "An option for each parameter of the estimator."},
)


def given_parameters(
    options: Any, params: Path | None, assigned: Iterable[str] | None
) -> dict[str, Any]:
    """Return the parameters that were given: an option wins over --set, which wins over --params."""
    found = {} if params is None else _from_toml(params)
    for text in assigned or ():
        name, value = _assignment(text)
        found[name] = value
    _check_known(found)
    texts = {name: getattr(options, name) for name in _NAMES}
    own = {name: value_of(text) for name, text in texts.items() if text is not None}
    if type(own.get("early_stopping")) is int:
        raise Misuse(
            f"--early-stopping {own['early_stopping']}; expected true, false or auto; did you mean "
            f"--n-iter-no-change {own['early_stopping']}?"
        )
    if "n_iter_no_change" in own:
        found.setdefault("early_stopping", True)
    return found | own


def callbacks_of(
    time_limit: float | None,
    checkpoint: Path | None,
    every: int | None,
    keep_on_interrupt: bool,
) -> list[Any] | None:
    """Return the callbacks that options ask for."""
    if every is not None and checkpoint is None:
        raise Misuse("--checkpoint-every is given without --checkpoint")
    found: list[Any] = [] if time_limit is None else [TimeLimit(time_limit)]
    found += [] if checkpoint is None else [Checkpoint(checkpoint, every)]
    return (found + ([KeepOnInterrupt()] if keep_on_interrupt else [])) or None


def value_of(text: str) -> Any:
    """Return a value as TOML or an object has it; any other text is a string without quotes."""
    if text in _PYTHON:
        return _PYTHON[text]
    try:
        return with_object(tomllib.loads(f"value = {text}")["value"])
    except tomllib.TOMLDecodeError:
        return with_object(text)


def with_object(value: Any) -> Any:
    """Return the object that a text such as "AdaptiveBaseClass('mart', gap=5)" stands for.

    The text is parsed, never evaluated; arguments are literals. Any other value comes back.
    """
    called = re.match(r"\s*(\w+)\s*\(", value) if isinstance(value, str) else None
    if called is None or called[1] not in _OBJECTS:
        return value
    expected = f"{value!r}; expected a call such as AdaptiveBaseClass('mart', gap=5), of literals"
    try:
        call = ast.parse(value.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or any(word.arg is None for word in call.keywords):
            raise ValueError(expected)
        arguments = [ast.literal_eval(argument) for argument in call.args]
        named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(expected) from error
    return _OBJECTS[called[1]](*arguments, **named)


def _from_toml(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a TOML file: {error}") from error
    return {name: with_object(value) for name, value in found.items()}


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Misuse(f"--set {text}; expected NAME=VALUE")
    return name, value_of(value)


def _check_known(given: Iterable[str]) -> None:
    """Refuse names that are not parameters, and say which ones may be meant."""
    known = ABCBoostClassifier._get_param_names()
    for name in given:
        own = name.partition("__")[0]
        if own in _CALLBACK_OPTIONS:
            raise ValueError(f"no parameter {name!r}; expected {_CALLBACK_OPTIONS[own]}")
        if own in known:
            continue
        said = hint(name, known, known)
        if not said:
            near = get_close_matches(name, known, 3, 0.5) or known
            said = f"; expected one of {', '.join(near)}"
        raise ValueError(f"no parameter {name!r}{said}")
