"""From the objects that parameters take to fields of their own, validated."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from abcgbm.parameters.algorithms import (
    ALGORITHM_NAMES,
    AdaptiveBaseClass,
    AlgorithmObject,
    Categorical,
    Checkpoint,
    DeclaredCallback,
    KeepOnInterrupt,
    MultiOutputTrees,
    ParameterGroup,
    TimeLimit,
    named_algorithm,
)
from abcgbm.parameters.hints import value_hint
from abcgbm.parameters.validators import (
    FROM_ZERO,
    Check,
    anything,
    check_boolean,
    choice,
    integer,
    is_integral,
    optional,
    real,
    with_value_hint,
)

HANDLE_UNKNOWN = choice("missing", "error")
_SECONDS = real("of seconds above 0", lambda x: x > 0)


@dataclass(frozen=True)
class Algorithm:
    """What distinguishes one algorithm from another.

    Attributes
    ----------
    base_derivatives : bool
        Residuals and hessians with respect to a base class (Alg. 3 of the paper), not plain (Alg. 2).
    hessian_split : bool
        Rows are weighted by their hessian in the split gain (robust LogitBoost), not by 1 (MART).
    multi_output : bool
        One tree per iteration whose leaves hold a value for each class, not one tree per class.
    """

    base_derivatives: bool
    hessian_split: bool
    multi_output: bool = False

    @property
    def name(self) -> str:
        """The name of the algorithm, as the paper has it."""
        return ("abc-" if self.base_derivatives else "") + self.criterion

    @property
    def criterion(self) -> str:
        """The split gain."""
        return "logitboost" if self.hessian_split else "mart"


@dataclass(frozen=True)
class BaseClassChoice:
    """How base classes are chosen, as ``AdaptiveBaseClass`` has it."""

    n_candidates: int | None = 1
    gap: int = 0
    warmup: int = 0
    base_label: Any = None


def _n_projections(name: str, value: Any) -> int | str:
    if isinstance(value, str) and value in ("auto", "all"):
        return str(value)
    allowed = "expected 'auto', 'all' or an integer from 1 on"
    if not is_integral(value) and not isinstance(value, str):
        raise TypeError(f"{name}={value!r}; {allowed}")
    if isinstance(value, str) or value < 1:
        raise ValueError(f"{name}={value!r}; {allowed}")
    return int(value)


def _categorical_columns(name: str, value: Any) -> Any:
    if isinstance(value, str) and value != "auto":
        raise TypeError(f"{name}={value!r}; expected 'auto', None, a list, or Categorical(...)")
    return value


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


_ALGORITHM_CHECKS: dict[str, Check] = {
    "criterion": with_value_hint("criterion", choice("logitboost", "mart")),
    "baseline": with_value_hint("baseline", choice("prior", "zero")),
    "min_gain": FROM_ZERO,
    "min_hessian_leaf": FROM_ZERO,
    "n_projections": _n_projections,
    "sequential_residuals": check_boolean,
    "recenter": check_boolean,
    "n_candidates": optional(integer(1)),
    "gap": integer(0),
    "warmup": integer(0),
    "base_label": anything,
    "base_derivatives": check_boolean,
    "line_search": check_boolean,
}


def of_algorithm(given: Any) -> dict[str, Any]:
    """Return the fields of an algorithm that is given by name or as an object."""
    found = _algorithm_object(given)
    checked = _checked_group(found, _ALGORITHM_CHECKS)
    _check_min_hessian_leaf(found, checked)
    base_class = _base_class(found, checked) if isinstance(found, AdaptiveBaseClass) else None
    algorithm = Algorithm(
        base_derivatives=base_class is not None and checked["base_derivatives"],
        hessian_split=checked["criterion"] == "logitboost",
        multi_output=isinstance(found, MultiOutputTrees),
    )
    return {
        "algorithm": algorithm,
        "baseline": "auto" if isinstance(given, str) else checked["baseline"],
        "min_gain": checked["min_gain"],
        "min_hessian_leaf": checked["min_hessian_leaf"],
        "n_projections": checked.get("n_projections", "auto"),
        "sequential_residuals": checked.get("sequential_residuals", False),
        "recenter": checked.get("recenter", False),
        "base_class": base_class,
        "line_search": checked.get("line_search", True),
    }


def _algorithm_object(given: Any) -> AlgorithmObject:
    if isinstance(given, AlgorithmObject):
        return given
    if isinstance(given, str) and given in ("auto", *ALGORITHM_NAMES):
        return named_algorithm(given)
    names = ", ".join(map(repr, ("auto", *ALGORITHM_NAMES)))
    objects = "MultiOutputTrees(), TreePerClass() or AdaptiveBaseClass()"
    expected = f"algorithm={given!r}; expected {names}, {objects}"
    if isinstance(given, str):
        said = value_hint("algorithm", given) or _nearest_name(given)
        raise ValueError(f"{expected}{said}")  # noqa: TRY004 (a name, but not one of these)
    if isinstance(given, type) and issubclass(given, ParameterGroup):
        raise TypeError(f"algorithm={given.__name__}; expected an object: {given.__name__}()")
    raise TypeError(expected)


def _nearest_name(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), ALGORITHM_NAMES, n=1, cutoff=0.75)
    return f"; did you mean {near[0]!r}?" if near else ""


def _checked_group(group: ParameterGroup, checks: Mapping[str, Check]) -> dict[str, Any]:
    """Validate the parameters of an object; errors name it."""
    owner = type(group).__name__
    given = group.get_params(deep=False)
    return {name: checks[name](f"{owner}: {name}", value) for name, value in given.items()}


def _base_class(given: AdaptiveBaseClass, checked: Mapping[str, Any]) -> BaseClassChoice:
    found = BaseClassChoice(
        **{name: checked[name] for name in ("n_candidates", "gap", "warmup", "base_label")}
    )
    owner = type(given).__name__
    if found.base_label is not None and found != BaseClassChoice(base_label=found.base_label):
        others = {name: checked[name] for name in ("n_candidates", "gap", "warmup")}
        changed = [f"{n}={v!r}" for n, v in others.items() if v != getattr(BaseClassChoice, n)]
        raise ValueError(
            f"{owner}: base_label={found.base_label!r} with {', '.join(changed)}; expected one of the "
            "two: a fixed base class is not chosen"
        )
    if not checked["base_derivatives"] and found.n_candidates != 1:
        raise ValueError(
            f"{owner}: base_derivatives=False with n_candidates={found.n_candidates!r}; expected "
            "n_candidates=1"
        )
    return found


def of_categorical(given: Any) -> dict[str, Any]:
    """Return the fields of ``categorical_features``."""
    found = given if isinstance(given, Categorical) else Categorical(given)
    columns = with_value_hint("categorical_features", _categorical_columns)
    columns("categorical_features", found.columns)
    checks = {
        "columns": anything,
        "smoothing": FROM_ZERO,
        "penalty": FROM_ZERO,
        "handle_unknown": with_value_hint("handle_unknown", HANDLE_UNKNOWN),
    }
    checked = _checked_group(found, checks)
    return {
        "categorical_features": checked["columns"],
        "categorical_smoothing": checked["smoothing"],
        "categorical_penalty": checked["penalty"],
        "handle_unknown": checked["handle_unknown"],
    }


def callback_list(given: Any) -> list[Any]:
    """Return the items of ``callbacks``, which may be one alone."""
    if given is None:
        return []
    is_one = callable(given) or isinstance(given, DeclaredCallback)
    return [given] if is_one or not isinstance(given, Iterable) else [*given]


def of_callbacks(given: Any) -> dict[str, Any]:
    """Return the functions among callbacks, and the fields of those that are declared."""
    items = callback_list(given)
    for item in items:
        if isinstance(item, type) and issubclass(item, ParameterGroup):
            raise TypeError(f"callbacks={given!r}; expected an object: {item.__name__}(...)")
        if not callable(item) and not isinstance(item, DeclaredCallback):
            raise TypeError(
                f"callbacks={given!r}; expected None, a callable, TimeLimit(...), Checkpoint(...), "
                "KeepOnInterrupt(), or a list of these"
            )
    limit, checkpoint = (_only(items, of) for of in (TimeLimit, Checkpoint))
    return {
        "callbacks": tuple(item for item in items if not isinstance(item, DeclaredCallback)),
        "time_limit": limit and _checked_group(limit, {"seconds": _SECONDS})["seconds"],
        **_of_checkpoint(checkpoint),
        "keep_on_interrupt": _only(items, KeepOnInterrupt) is not None,
    }


def _of_checkpoint(given: Checkpoint | None) -> dict[str, Any]:
    if given is None:
        return {"checkpoint": None, "checkpoint_every": None}
    checks = {"path": _path_to_write, "every": optional(integer(1))}
    checked = _checked_group(given, checks)
    return {"checkpoint": checked["path"], "checkpoint_every": checked["every"]}


def _only(items: list[Any], kind: type) -> Any:
    found = [item for item in items if isinstance(item, kind)]
    if len(found) > 1:
        raise ValueError(f"callbacks has {len(found)} of {kind.__name__}; expected at most one")
    return found[0] if found else None


def _check_min_hessian_leaf(given: AlgorithmObject, checked: Mapping[str, Any]) -> None:
    if checked["min_hessian_leaf"] > 0 and checked["criterion"] == "mart":
        raise ValueError(
            f"{type(given).__name__}: min_hessian_leaf={given.min_hessian_leaf!r} with "
            "criterion='mart'; expected 0, or criterion='logitboost'"
        )
