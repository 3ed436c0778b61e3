"""Conversion of the parameters in model files of format 1.

Versions 0.1 and 0.2 had 42 parameters; 17 of them are now fields of the objects for ``algorithm``,
``categorical_features`` and ``callbacks``. Arrays have the same names in both formats.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from abcgbm.data.arrays import Floats
from abcgbm.parameters.algorithms import (
    ALGORITHM_NAMES,
    AdaptiveBaseClass,
    AlgorithmObject,
    Categorical,
    KeepOnInterrupt,
    MultiOutputTrees,
    TimeLimit,
    TreePerClass,
    named_algorithm,
)

# Defaults of the parameters that no longer exist or have another meaning.
_DEFAULTS: dict[str, Any] = {
    "algorithm": "auto",
    "trees": "auto",
    "base_class": "auto",
    "base_step": "search",
    "refresh": "step",
    "gain_directions": "auto",
    "init": "auto",
    "min_gain": 0.0,
    "min_hessian_leaf": 0.0,
    "recenter": False,
    "monotonic_cst": None,
    "categorical_features": "auto",
    "categorical_smoothing": 10.0,
    "categorical_penalty": 1.0,
    "handle_unknown": "missing",
    "max_time": None,
    "on_interrupt": "raise",
    "checkpoint": None,  # a file of format 1 never sets these two
    "checkpoint_every": None,
}


@dataclass(frozen=True)
class BaseClassSearch:
    """Value of ``base_class``: search among candidates, and keep the best one for ``gap`` iterations."""

    n_candidates: Any = 2
    gap: Any = 5
    warmup: Any = 0


@dataclass(frozen=True)
class FixedBase:
    """Value of ``base_class``: a label that is spelled like a policy."""

    label: Any


def parameters_from_format_1(old: Mapping[str, Any]) -> dict[str, Any]:
    """Convert parameters of format 1 to those of today's constructor.

    A parameter without counterpart keeps its old name unless it has its default.
    """
    given = _DEFAULTS | {**old}
    new = {name: value for name, value in old.items() if name not in _DEFAULTS}
    new["algorithm"] = _name_or_object(given)
    new["categorical_features"] = _categorical_features(given)
    new["callbacks"] = _callbacks(given) or None
    is_recentered = isinstance(new["algorithm"], TreePerClass) or not given["recenter"]
    if not is_recentered:
        new["recenter"] = given["recenter"]
    if given["monotonic_cst"] is not None:
        new["monotonic_cst"] = given["monotonic_cst"]
    return new


def resolved_from_format_1(chosen: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the resolved parameters in a history of format 1.

    Parameters
    ----------
    chosen : mapping
        Resolved parameters in the history.
    old : mapping
        Parameters in the file.
    """
    given = _DEFAULTS | {**old} | {**chosen}
    same = {name: value for name, value in chosen.items() if name not in _DEFAULTS}
    return {"algorithm": algorithm_from_format_1(given)} | same


def algorithm_from_format_1(given: Mapping[str, Any]) -> Any:
    """Return the algorithm object for parameters of format 1.

    Combinations that could never be trained are returned such that they are still refused.
    """
    if not (isinstance(given["trees"], str) and given["trees"] in ("auto", "per-class", "shared")):
        return given["trees"]
    if not isinstance(given["algorithm"], str):
        return given["algorithm"]
    name = given["algorithm"]
    if _is_multi_output(given):
        name = "logitboost" if name == "auto" else name
        return MultiOutputTrees(
            name, n_projections=given["gain_directions"], **_of_trees(given, "prior")
        )
    if name == "auto":
        name = "mart" if given["refresh"] == "class" else "abc-mart"
    if name not in ALGORITHM_NAMES:
        return name
    criterion, has_derivatives = name.removeprefix("abc-"), name.startswith("abc-")
    if not has_derivatives and _has_no_base(given):
        return TreePerClass(
            criterion,
            sequential_residuals=given["refresh"] == "class",
            recenter=given["recenter"],
            **_of_trees(given, "zero"),
        )
    return AdaptiveBaseClass(
        criterion,
        **_base_class(given["base_class"], name),
        base_derivatives=has_derivatives,
        line_search=given["base_step"] != "full",
        **_of_trees(given, "zero"),
    )


def weight_from_format_1(losses: Floats, baseline: Floats) -> float | None:
    """Return the total weight of the training rows, which version 0.1 did not store.

    Parameters
    ----------
    losses : ndarray of shape (n_classes,)
        Loss of each class before the first iteration.
    baseline : ndarray of shape (n_classes,)
        Raw scores before the first iteration.
    """
    surprise = np.logaddexp.reduce(baseline) - baseline
    is_there = losses > 0
    weight = float((losses[is_there] / surprise[is_there]).sum())
    return weight if 0 < weight < math.inf else None


def _name_or_object(given: Mapping[str, Any]) -> Any:
    """Return the name of an algorithm if it is equivalent to the object, else the object."""
    found = algorithm_from_format_1(given)
    if not isinstance(found, AlgorithmObject):
        return found
    name = given["algorithm"]
    if isinstance(found, MultiOutputTrees):
        name = "auto" if given["trees"] == "auto" else "multi-output"
    elif name == "auto":
        name = "mart" if isinstance(found, TreePerClass) else "abc-mart"
    return name if found == named_algorithm(name) else found


def _is_multi_output(given: Mapping[str, Any]) -> bool:
    if given["trees"] != "auto":
        return bool(given["trees"] == "shared")
    return given["algorithm"] == "auto" and _has_no_base(given) and given["refresh"] != "class"


def _has_no_base(given: Mapping[str, Any]) -> bool:
    base = given["base_class"]
    return base is None or (isinstance(base, str) and base == "auto")


def _of_trees(given: Mapping[str, Any], baseline: str) -> dict[str, Any]:
    init = given["init"]
    return {
        "min_gain": given["min_gain"],
        "min_hessian_leaf": given["min_hessian_leaf"],
        "baseline": baseline if isinstance(init, str) and init == "auto" else init,
    }


def _base_class(given: Any, algorithm: str) -> dict[str, Any]:
    if isinstance(given, BaseClassSearch):
        return {"n_candidates": given.n_candidates, "gap": given.gap, "warmup": given.warmup}
    if isinstance(given, FixedBase):
        return {"base_label": given.label}
    if given is None or (isinstance(given, str) and given == "worst"):
        return {}
    if isinstance(given, str) and given == "auto":
        return {"n_candidates": 2, "gap": 5} if algorithm == "abc-logitboost" else {}
    if isinstance(given, str) and given == "exhaustive":
        return {"n_candidates": None}
    return {"base_label": given}


def _categorical_features(given: Mapping[str, Any]) -> Any:
    columns = given["categorical_features"]
    found = Categorical(
        columns,
        smoothing=given["categorical_smoothing"],
        penalty=given["categorical_penalty"],
        handle_unknown=given["handle_unknown"],
    )
    return columns if found == Categorical(columns) else found


def _callbacks(given: Mapping[str, Any]) -> list[Any]:
    limit = [] if given["max_time"] is None else [TimeLimit(given["max_time"])]
    return limit + ([] if given["on_interrupt"] == "raise" else [KeepOnInterrupt()])
