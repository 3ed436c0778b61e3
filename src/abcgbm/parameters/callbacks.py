"""Validation of ``callbacks``: functions, and the callbacks that the package declares."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from abcgbm.parameters.algorithms import (
    Checkpoint,
    DeclaredCallback,
    KeepOnInterrupt,
    ParameterGroup,
    TimeLimit,
)
from abcgbm.parameters.validators import check_group, integer, optional, real

_SECONDS = real("of seconds above 0", lambda x: x > 0)


def callback_list(given: Any) -> list[Any]:
    """Return ``callbacks`` as a list: it may be None or a single callback."""
    if given is None:
        return []
    is_one = callable(given) or isinstance(given, DeclaredCallback)
    return [given] if is_one or not isinstance(given, Iterable) else [*given]


def callback_fields(given: Any) -> dict[str, Any]:
    """Return the fields of ``Parameters`` for ``callbacks``."""
    items = callback_list(given)
    for item in items:
        if isinstance(item, type) and issubclass(item, ParameterGroup):
            raise TypeError(f"callbacks={given!r}; expected an object: {item.__name__}(...)")
        if not callable(item) and not isinstance(item, DeclaredCallback):
            raise TypeError(
                f"callbacks={given!r}; expected None, a callable, TimeLimit(...), Checkpoint(...), "
                "KeepOnInterrupt(), or a list of these"
            )
    limit, checkpoint = (_at_most_one(items, kind) for kind in (TimeLimit, Checkpoint))
    return {
        "callbacks": tuple(item for item in items if not isinstance(item, DeclaredCallback)),
        "time_limit": limit and check_group(limit, {"seconds": _SECONDS})["seconds"],
        **_checkpoint_fields(checkpoint),
        "keep_on_interrupt": _at_most_one(items, KeepOnInterrupt) is not None,
    }


def _checkpoint_fields(given: Checkpoint | None) -> dict[str, Any]:
    if given is None:
        return {"checkpoint": None, "checkpoint_every": None}
    checks = {"path": _path_to_write, "every": optional(integer(1))}
    checked = check_group(given, checks)
    return {"checkpoint": checked["path"], "checkpoint_every": checked["every"]}


def _at_most_one(items: list[Any], kind: type) -> Any:
    found = [item for item in items if isinstance(item, kind)]
    if len(found) > 1:
        raise ValueError(
            f"callbacks has {len(found)} {kind.__name__} objects; expected at most one"
        )
    return found[0] if found else None


def _path_to_write(name: str, value: Any) -> Path:
    allowed = "expected a path in a folder that can be written to"
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name}={value!r}; {allowed}")
    path = Path(value)
    if path.is_dir():
        raise ValueError(f"{name}={str(value)!r} is a folder; {allowed}")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        folder = str(path.parent.absolute())
        cause = "cannot be written to" if path.parent.is_dir() else "does not exist"
        raise ValueError(f"{name}={str(value)!r}: the folder {folder!r} {cause}; {allowed}")
    return path
