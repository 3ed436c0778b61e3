"""Data, small models and comparison of models, for the tests of the estimator."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
from sklearn.base import clone

from abcgbm import (
    ABCBoostClassifier,
    AdaptiveBaseClass,
    Categorical,
    MultiOutputTrees,
    TimeLimit,
    TreePerClass,
)
from abcgbm.parameters.defaults import paper_algorithm
from strategies import random_problem

HANGS_AFTER = 300  # seconds after which a process is considered stuck
# Parameters for all kinds of training.
KINDS_OF_FIT = {
    "mart": {"algorithm": "mart"},
    "mart class by class": {"algorithm": TreePerClass("mart", sequential_residuals=True)},
    "Mb": {"algorithm": AdaptiveBaseClass(base_derivatives=False)},
    "abc-mart": {"algorithm": "abc-mart"},
    "fixed base": {"algorithm": AdaptiveBaseClass(base_label=2)},
    "search with a gap": {"algorithm": AdaptiveBaseClass(n_candidates=3, gap=2)},
    "search with a warm-up": {"algorithm": AdaptiveBaseClass(n_candidates=2, gap=1, warmup=3)},
    "exhaustive": {"algorithm": AdaptiveBaseClass(n_candidates=None)},
    "logitboost": {"algorithm": "logitboost"},
    "abc-logitboost": {"algorithm": "abc-logitboost"},
    "prior": {"algorithm": AdaptiveBaseClass(baseline="prior")},
    "drawn rows and features": {"subsample": 0.6, "max_features": 2, "random_state": 3},
    "shared": {"algorithm": "multi-output"},
    "shared, drawn": {
        "algorithm": MultiOutputTrees(n_projections=2, baseline="zero"),
        "subsample": 0.6,
    },
}

# Fields of `Ensemble`, and their names in the golden digests. The table is written out here: renaming a field
# changes a key, never a value.
STORED_NAMES = {
    "feature": "feature",
    "threshold": "threshold",
    "left": "left",
    "missing_left": "missing_left",
    "value": "value",
    "gain": "gain",
    "weight": "weight",
    "left_set_size": "left_set_size",
    "left_set": "left_set",
    "leaf_value": "leaf_value",
    "gain_feature": "gain_feature",
    "class_gain": "class_gain",
    "gain_start": "gain_start",
    "tree_start": "tree_start",
    "tree_class": "tree_class",
    "tree_base": "tree_base",
    "tree_base_scale": "tree_base_scale",
    "iteration_start": "step_start",
    "init": "init",
    "n_features": "n_features",
    "n_classes": "n_classes",
}


def noisy_data(
    n_rows: int = 400, n_features: int = 4, n_classes: int = 4, seed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return classes that are noisy functions of the features, with a few missing values."""
    problem = random_problem(seed, n_rows, n_features, n_classes)
    return problem.X, problem.y


def small(algorithm: Any = "abc-mart", **parameters: Any) -> ABCBoostClassifier:
    """Return a small classifier with the paper's parameters as defaults."""
    return ABCBoostClassifier.paper(
        algorithm, **({"max_iter": 8, "max_leaf_nodes": 6} | parameters)
    )


def with_fields(parameters: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the parameters with changed fields of their algorithm; names become the paper's objects."""
    given = parameters.get("algorithm", "abc-mart")
    algorithm = clone(paper_algorithm(given) if isinstance(given, str) else given)
    return parameters | {"algorithm": algorithm.set_params(**fields)}


FIELDS = {
    "n_projections": MultiOutputTrees,
    "sequential_residuals": TreePerClass,
    "recenter": TreePerClass,
    "n_candidates": AdaptiveBaseClass,
    "gap": AdaptiveBaseClass,
    "warmup": AdaptiveBaseClass,
    "base_label": AdaptiveBaseClass,
    "base_derivatives": AdaptiveBaseClass,
    "line_search": AdaptiveBaseClass,
    "min_gain": TreePerClass,
    "min_hessian_leaf": TreePerClass,
    "baseline": TreePerClass,
    "criterion": TreePerClass,
}


def parameter(name: str, value: Any) -> dict[str, Any]:
    """Return the parameter of this name, or the one whose object has a field of this name."""
    if name in FIELDS:
        return {"algorithm": FIELDS[name](**{name: value})}
    if name in ("smoothing", "penalty", "handle_unknown"):
        return {"categorical_features": Categorical(**{name: value})}
    if name == "seconds":
        return {"callbacks": [TimeLimit(value)]}
    return {name: value}


def base_labels(model: ABCBoostClassifier) -> list[Any]:
    """Return the label of the base class of each iteration; None without one."""
    labels = model.model_.labels
    return [None if k < 0 else labels[k] for k in model.history_.base_classes]


def ensemble_arrays(model: ABCBoostClassifier) -> dict[str, np.ndarray]:
    """Return the fields of a model's ensemble by their stored names."""
    return {
        stored: np.asarray(getattr(model.model_.ensemble, field))
        for field, stored in STORED_NAMES.items()
    }


def model_bytes(model: ABCBoostClassifier) -> bytes:
    """Return the trees and the history of a model as bytes."""
    history = (model.history_.train_loss, model.history_.class_losses)
    return b"".join(a.tobytes() for a in (*ensemble_arrays(model).values(), *history))


def assert_same_model(one: ABCBoostClassifier, other: ABCBoostClassifier) -> None:
    """Compare two models byte for byte, array by array first for a readable message."""
    others = ensemble_arrays(other)
    for name, array in ensemble_arrays(one).items():
        np.testing.assert_array_equal(array, others[name], err_msg=name, strict=True)
    assert model_bytes(one) == model_bytes(other)
    assert (one.n_iter_, one.stop_reason_) == (other.n_iter_, other.stop_reason_)


def end_of(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return the remaining output of a process; kill it if it does not end."""
    try:
        return process.communicate(timeout=HANGS_AFTER)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


def run_python(code: str, **environment: str) -> str:
    """Run code in a new process, and return what it prints."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=True,
    ).stdout
