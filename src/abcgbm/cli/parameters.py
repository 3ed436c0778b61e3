"""Parameters of the estimator as options: one each, `--set` and `--params`."""

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

# These have options of another kind, or no meaning in a single run.
_NO_OPTION = ("n_jobs", "verbose", "warm_start", "callbacks")
_OBJECTS = {
    kind.__name__: kind for kind in (MultiOutputTrees, TreePerClass, AdaptiveBaseClass, Categorical)
}
_PYTHON = {"None": None, "True": True, "False": False}
# The options that take the place of callbacks, by the names that users may try in --set.
_CALLBACK_OPTIONS = {
    "time_limit": "--time-limit",
    "max_time": "--time-limit",
    "checkpoint": "--checkpoint",
    "checkpoint_every": "--checkpoint-every",
    "on_interrupt": "--keep-on-interrupt",
    "callbacks": "--time-limit, --checkpoint or --keep-on-interrupt",
}


def _first_sentence(name: str) -> str:
    """Return the first sentence on a parameter in the docstring of the estimator."""
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
    namespace={"__doc__": "One option for each parameter of the estimator."},
)


def given_parameters(
    options: Any, params: Path | None, assigned: Iterable[str] | None
) -> dict[str, Any]:
    """Collect the given parameters: an option overrides --set, which overrides --params."""
    shared = {} if params is None else _from_toml(params)
    for text in assigned or ():
        name, value = _assignment(text)
        shared[name] = value
    _check_known(shared)
    texts = {name: getattr(options, name) for name in _NAMES}
    options_given = {name: value_of(text) for name, text in texts.items() if text is not None}
    early_stopping = options_given.get("early_stopping")
    if type(early_stopping) is int:
        raise Misuse(
            f"--early-stopping {early_stopping}; expected true, false or auto; did you mean "
            f"--n-iter-no-change {early_stopping}?"
        )
    if "n_iter_no_change" in options_given:
        shared.setdefault("early_stopping", True)
    return shared | options_given


def callbacks_of(
    time_limit: float | None,
    checkpoint: Path | None,
    every: int | None,
    keep_on_interrupt: bool,
) -> list[Any] | None:
    """Return the callbacks for the options that take their place."""
    if every is not None and checkpoint is None:
        raise Misuse("--checkpoint-every without --checkpoint; expected both")
    callbacks: list[Any] = [] if time_limit is None else [TimeLimit(time_limit)]
    callbacks += [] if checkpoint is None else [Checkpoint(checkpoint, every)]
    callbacks += [KeepOnInterrupt()] if keep_on_interrupt else []
    return callbacks or None


def value_of(text: str) -> Any:
    """Parse a value as TOML or as an object; any other text is an unquoted string."""
    if text in _PYTHON:
        return _PYTHON[text]
    try:
        return with_object(tomllib.loads(f"value = {text}")["value"])
    except tomllib.TOMLDecodeError:
        return with_object(text)


def with_object(value: Any) -> Any:
    """Parse a text such as "AdaptiveBaseClass('mart', gap=5)"; return any other value unchanged.

    The text is never evaluated, and its arguments must be literals.
    """
    call_match = re.match(r"\s*(\w+)\s*\(", value) if isinstance(value, str) else None
    if call_match is None or call_match[1] not in _OBJECTS:
        return value
    expected = f"{value!r}; expected a call with literal arguments, such as AdaptiveBaseClass('mart', gap=5)"
    try:
        call = ast.parse(value.strip(), mode="eval").body
        is_call = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if not is_call or any(word.arg is None for word in call.keywords):
            raise ValueError(expected)
        arguments = [ast.literal_eval(argument) for argument in call.args]
        named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(expected) from error
    return _OBJECTS[call_match[1]](*arguments, **named)


def _from_toml(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a TOML file: {error}") from error
    return {name: with_object(value) for name, value in values.items()}


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Misuse(f"--set {text}; expected NAME=VALUE")
    return name, value_of(value)


def _check_known(given: Iterable[str]) -> None:
    """Raise an error for unknown names, with the parameters that were probably meant."""
    known = ABCBoostClassifier._get_param_names()
    for name in given:
        outer = name.partition("__")[0]
        if outer in _CALLBACK_OPTIONS:
            raise ValueError(f"no parameter {name!r}; expected {_CALLBACK_OPTIONS[outer]}")
        if outer in known:
            continue
        suggestion = hint(name, known, known)
        if not suggestion:
            near = get_close_matches(name, known, 3, 0.5) or known
            suggestion = f"; expected one of {', '.join(near)}"
        raise ValueError(f"no parameter {name!r}{suggestion}")
