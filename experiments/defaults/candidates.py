"""Our candidates by name, with the parameters of ``ABCBoostClassifier`` that differ from its defaults.

Values are those of JSON. ``algorithm`` may be ``{"criterion": "logitboost", "n_candidates": 2}``, the
parameters of an ``AdaptiveBaseClass``. A string that starts with ``=`` is evaluated for each table with ``rows``,
``features`` and ``classes``: ``"max_leaf_nodes": "=max(8, rows // 300)"``. ``--candidates FILE`` adds those of
a JSON file with the same structure.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Parameters = dict[str, Any]

SEARCH = {"criterion": "logitboost", "n_candidates": 2, "gap": 5}
WARM_SEARCH = {**SEARCH, "warmup": 10}
CANDIDATES: dict[str, Parameters] = {
    "default": {},
    "mart": {"algorithm": "mart"},
    "logitboost": {"algorithm": "logitboost"},
    "abc-logitboost": {"algorithm": "abc-logitboost"},
    "abc-logitboost-search": {"algorithm": SEARCH},
    "abc-logitboost-warm-l2": {
        "algorithm": WARM_SEARCH,
        "l2_regularization": 1.0,
    },
    "shared": {"algorithm": "multi-output"},
    "sampled": {
        "algorithm": {**WARM_SEARCH, "baseline": "prior"},
        "l2_regularization": 1.0,
        "subsample": 0.8,
        "max_features": 0.7,
    },
}


def candidates(file: Path | None = None) -> dict[str, Parameters]:
    """Return the candidates, with those of a file."""
    return {**CANDIDATES, **(json.loads(file.read_text()) if file else {})}


def settled(parameters: Parameters, sizes: Mapping[str, int]) -> Parameters:
    """Evaluate the parameters that depend on the table."""
    return {name: _computed(value, sizes) for name, value in parameters.items()}


def _computed(value: Any, sizes: Mapping[str, int]) -> Any:
    if not (isinstance(value, str) and value.startswith("=")):
        return value
    known = {**sizes, "min": min, "max": max, "round": round, "int": int}
    return eval(value[1:], {"__builtins__": {}}, known)
