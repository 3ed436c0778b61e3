"""About ninety small models whose digests detect unintended changes of trees.

Run as a script, it writes the digests to `tests/stored/golden.json`, only for an intended change of the trees,
with its reason in the same commit. Data come from the generator below, and every parameter is given, so
that neither NumPy nor a new default changes a model.
"""

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from abcgbm import (
    ABCBoostClassifier,
    AdaptiveBaseClass,
    BinMapper,
    Categorical,
    MultiOutputTrees,
    TreePerClass,
)
from abcgbm.parameters.algorithms import AlgorithmObject
from models import ensemble_arrays

FILE = Path(__file__).parents[1] / "stored" / "golden.json"
LABELS = np.array(["ash", "birch", "cedar", "elm", "fir", "larch", "oak", "pine", "yew"])
PARAMETERS: dict[str, Any] = {
    "learning_rate": 0.1,
    "max_iter": 6,
    "max_leaf_nodes": 7,
    "max_depth": None,
    "min_samples_leaf": 5,
    "l2_regularization": 0.0,
    "max_bins": 255,
    "categorical_features": Categorical(
        "auto", smoothing=10.0, penalty=1.0, handle_unknown="missing"
    ),
    "max_features": None,
    "interaction_cst": None,
    "subsample": 1.0,
    "classes": None,
    "class_weight": None,
    "early_stopping": "auto",
    "validation_fraction": 0.1,
    "n_iter_no_change": 10,
    "tol": 1e-7,
    "scoring": "loss",
    "refit": False,
    "warm_start": False,
    "callbacks": None,
    "n_jobs": 2,
    "random_state": 5,
    "verbose": 0,
}
# Defaults of the algorithms' parameters in these models.
OF_TREES: dict[str, Any] = {"min_gain": 0.0, "min_hessian_leaf": 0.0, "baseline": "zero"}
OF_PLAIN = {"sequential_residuals": False, "recenter": False} | OF_TREES
OF_ABC = {
    "n_candidates": 1,
    "gap": 0,
    "warmup": 0,
    "base_label": None,
    "base_derivatives": True,
    "line_search": False,
} | OF_TREES
NAMES = {of for group in (OF_PLAIN, OF_ABC, {"n_projections": "all"}) for of in group}


# ---------------------------------------------------------------------------------------------- data


def uniform(seed: int, *shape: int) -> np.ndarray:
    """Return multiples of 2^-16 in [0, 1): splitmix64 of their indices."""
    with np.errstate(over="ignore"):
        x = np.arange(np.prod(shape), dtype=np.uint64) + np.uint64(seed << 32)
        x = x * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return (x >> np.uint64(48)).astype(np.float64).reshape(shape) / 2**16


class Rows(NamedTuple):
    """A table and its labels."""

    X: Any
    y: np.ndarray

    def some(self, first: int, last: int) -> "Rows":
        rows = slice(first, last)
        return Rows(self.X[rows], self.y[rows])


def numbers(n_classes: int, n_rows: int = 300, seed: int = 1) -> Rows:
    """Return classes that are noisy step functions of four features, with some missing values."""
    X = uniform(seed, n_rows, 4)
    place = X[:, 0] + 0.5 * X[:, 1] + 0.25 * (X[:, 2] > 0.5) + 0.5 * uniform(seed + 1, n_rows)
    y = np.minimum((place / 2.25 * n_classes).astype(int), n_classes - 1)
    X[uniform(seed + 2, n_rows, 4) < 0.05] = np.nan
    return Rows(X, LABELS[y] if n_classes <= len(LABELS) else y)


def frame(n_classes: int = 4) -> Rows:
    """Return numbers and columns with few and many categories, with missing values."""
    X, y = numbers(n_classes)
    few = np.array(["clay", "loam", "peat", "sand", None], object)
    columns = {
        "soil": few[(uniform(11, len(y)) * 5).astype(int)],
        "slope": X[:, 0],
        "site": np.array([f"s{int(u * 60):02}" for u in uniform(12, len(y)) + (y == y[0]) * 0.2]),
        "north": X[:, 1] > 0.5,
    }
    return Rows(pd.DataFrame(columns), y)


def mostly_zero(n_classes: int = 4) -> Rows:
    """Return sparse columns; six are mutually exclusive, so that they are bundled."""
    X, y = numbers(n_classes)
    category = (np.nan_to_num(X[:, 0]) * 8).astype(int)
    one_hot = (category[:, None] == np.arange(6)).astype(float)
    few = np.where(uniform(13, len(y), 3) < 0.1, X[:, 1:], 0.0)
    return Rows(sparse.csr_array(np.column_stack([one_hot, few])), y)


def weights(n_rows: int = 300) -> np.ndarray:
    """Return integer weights from 0 to 4."""
    return np.floor(uniform(14, n_rows) * 5)


# -------------------------------------------------------------------------------------------- models


def algorithm_of(name: str, changed: dict[str, Any]) -> AlgorithmObject:
    """Return the algorithm object for a name of the paper, or for "shared ..." of multi-output trees."""
    if name.startswith("shared "):
        of_trees = OF_TREES | {"n_projections": "all"} | changed
        return MultiOutputTrees(name.removeprefix("shared "), **of_trees)
    if name.startswith("abc-"):
        return AdaptiveBaseClass(name.removeprefix("abc-"), **OF_ABC | changed)
    return TreePerClass(name, **OF_PLAIN | changed)


def fit(data: Rows, *, model: dict[str, Any], **given: Any) -> ABCBoostClassifier:
    """Fit a model; parameters of its algorithm are given among those of the constructor."""
    changed = {name: value for name, value in model.items() if name in NAMES}
    others = {name: value for name, value in model.items() if name not in (*NAMES, "algorithm")}
    algorithm = algorithm_of(model.get("algorithm", "abc-mart"), changed)
    return ABCBoostClassifier(algorithm, **PARAMETERS | others).fit(data.X, data.y, **given)


def case(
    algorithm: str, data: Rows, given: dict[str, Any] | None = None, **changed: Any
) -> Callable[[], ABCBoostClassifier]:
    return partial(fit, data, model={"algorithm": algorithm} | changed, **(given or {}))


def shared(
    algorithm: str, data: Rows, given: dict[str, Any] | None = None, **changed: Any
) -> Callable[[], ABCBoostClassifier]:
    """Return a case of multi-output trees; splits use all classes unless projections are given."""
    return case(f"shared {algorithm}", data, given, **{"l2_regularization": 0.01} | changed)


def warm_started(data: Rows, **changed: Any) -> ABCBoostClassifier:
    """Fit three iterations, then three more."""
    first = fit(data, model={"max_iter": 3, "warm_start": True} | changed)
    return first.set_params(max_iter=6).fit(data.X, data.y)


def changed_trees(data: Rows, first: str, then: str) -> ABCBoostClassifier:
    """Fit three iterations with trees of one kind, then three with the other."""
    model = fit(
        data,
        model={"algorithm": first, "max_iter": 3, "warm_start": True},
    )
    later = algorithm_of(then, {})
    return model.set_params(algorithm=later, max_iter=6).fit(data.X, data.y)


def binned(data: Rows, **changed: Any) -> ABCBoostClassifier:
    table = BinMapper(max_bins=16, n_jobs=2).fit(data.X).transform(data.X)
    return fit(Rows(table, data.y), model=changed)


def validated(data: Rows) -> dict[str, Any]:
    held_out = data.some(200, 300)
    return {"X_val": held_out.X, "y_val": held_out.y}


ALGORITHMS = ("mart", "abc-mart", "logitboost", "abc-logitboost")
PLAIN = ("mart", "logitboost")
SEARCH: dict[str, Any] = {"n_candidates": 2, "gap": 2, "warmup": 1}
TWO, THREE, FIVE, NINE = (numbers(k) for k in (2, 3, 5, 9))
MANY = numbers(40, 600)  # steps are scaled back
FRAME, SPARSE = frame(), mostly_zero()
TRAIN = FIVE.some(0, 200)
BALANCED = {"class_weight": "balanced"}
WEIGHTS = {"sample_weight": weights()}
# Arrays of multi-output trees; digests of other models do not include them.
MULTI_OUTPUT_ARRAYS = ("leaf_value", "gain_feature", "class_gain", "gain_start")

MODELS: dict[str, Callable[[], ABCBoostClassifier]] = {
    **{f"{name}, two classes": case(name, TWO) for name in ALGORITHMS},
    **{f"{name}, three classes": case(name, THREE) for name in ALGORITHMS},
    **{f"{name}, nine classes": case(name, NINE) for name in ALGORITHMS},
    **{f"{name}, forty classes": case(name, MANY) for name in ALGORITHMS},
    **{f"{name}, categories": case(name, FRAME) for name in ALGORITHMS},
    **{f"{name}, sparse": case(name, SPARSE) for name in ALGORITHMS},
    **{f"{name}, weights": case(name, FIVE, {"sample_weight": weights()}) for name in ALGORITHMS},
    **{f"{name}, balanced": case(name, FIVE, **BALANCED) for name in ALGORITHMS},
    "Mb": case("abc-mart", FIVE, base_derivatives=False),
    "mart, refresh class": case("mart", FIVE, sequential_residuals=True),
    "logitboost, refresh class": case("logitboost", FIVE, sequential_residuals=True),
    "abc-mart, fixed": case("abc-mart", FIVE, base_label="cedar"),
    "abc-mart, FixedBase": case("abc-mart", FIVE, base_label="elm"),  # word: key in golden.json
    "abc-mart, exhaustive": case("abc-mart", FIVE, n_candidates=None),
    "abc-logitboost, exhaustive": case("abc-logitboost", FIVE, n_candidates=None),
    "abc-mart, search": case("abc-mart", NINE, **SEARCH),
    "abc-logitboost, search": case("abc-logitboost", NINE, **SEARCH),
    "abc-mart, search, forty classes": case("abc-mart", MANY, **SEARCH, max_iter=4),
    "abc-mart, fractional weights": case("abc-mart", FIVE, {"sample_weight": weights() / 7}),
    "abc-mart, class weights": case("abc-mart", FIVE, class_weight={"ash": 2.5, "fir": 0.5}),
    "abc-mart, prior": case("abc-mart", FIVE, baseline="prior"),
    "mart, prior, recentred": case("mart", FIVE, baseline="prior", recenter=True),
    "mart, subsample": case("mart", FIVE, subsample=0.5),
    "abc-logitboost, subsample and weights": case(
        "abc-logitboost", FIVE, {"sample_weight": weights()}, subsample=0.7
    ),
    "abc-mart, max_features": case("abc-mart", FIVE, max_features=2),
    "abc-mart, groups": case("abc-mart", FIVE, interaction_cst=[[0, 1], [2, 3]]),
    "mart, pairwise": case("mart", FIVE, interaction_cst="pairwise"),
    "logitboost, bounds": case(
        "logitboost", FIVE, l2_regularization=0.5, min_hessian_leaf=1.0, min_gain=0.01, max_depth=3
    ),
    "mart, l2": case("mart", FIVE, l2_regularization=2.0),
    "abc-mart, few bins": case("abc-mart", FIVE, max_bins=4),
    "abc-mart, many bins": case("abc-mart", numbers(3, 1500), max_bins=1000, max_leaf_nodes=20),
    "abc-mart, few levels": case(
        "abc-mart", FRAME, max_bins=20, categorical_features=Categorical(smoothing=0.0)
    ),
    "abc-mart, numbers as levels": case(
        "abc-mart", Rows(np.floor(8 * FIVE.X), FIVE.y), categorical_features=[0, 3]
    ),
    "abc-mart, absent class": case(
        "abc-mart", FIVE, classes=[*LABELS[:5], "yew"], baseline="prior"
    ),
    "abc-mart, validation rows": case("abc-mart", TRAIN, validated(FIVE), n_iter_no_change=1),
    "mart, held out": case("mart", FIVE, early_stopping=True, n_iter_no_change=2, max_iter=30),
    "mart, held out, error": case(
        "mart", FIVE, early_stopping=True, scoring="error", n_iter_no_change=2, max_iter=30
    ),
    "abc-mart, warm start": partial(warm_started, FIVE),
    "abc-logitboost, warm start, search": partial(
        warm_started, NINE, algorithm="abc-logitboost", **SEARCH, subsample=0.8
    ),
    "abc-mart, binned before": partial(binned, FIVE),
    **{f"shared {name}, two classes": shared(name, TWO) for name in PLAIN},
    **{f"shared {name}, five classes": shared(name, FIVE) for name in PLAIN},
    **{f"shared {name}, nine classes": shared(name, NINE) for name in PLAIN},
    **{f"shared {name}, forty classes": shared(name, MANY) for name in PLAIN},
    **{f"shared {name}, drawn": shared(name, NINE, n_projections=3) for name in PLAIN},
    **{f"shared {name}, categories": shared(name, FRAME) for name in PLAIN},
    **{f"shared {name}, sparse": shared(name, SPARSE) for name in PLAIN},
    **{f"shared {name}, weights": shared(name, FIVE, WEIGHTS) for name in PLAIN},
    "shared logitboost, auto": shared("logitboost", MANY, n_projections="auto"),
    "shared logitboost, drawn, categories": shared("logitboost", FRAME, n_projections=2),
    "shared logitboost, no ridge": shared("logitboost", FIVE, l2_regularization=0.0),
    "shared logitboost, bounds": shared(
        "logitboost", FIVE, min_hessian_leaf=2.0, min_gain=0.01, max_depth=3
    ),
    "shared logitboost, balanced": shared("logitboost", FIVE, **BALANCED),
    "shared logitboost, prior": shared("logitboost", FIVE, baseline="prior"),
    "shared logitboost, full steps": shared("logitboost", NINE, learning_rate=1.0),
    "shared logitboost, subsample": shared("logitboost", FIVE, subsample=0.5),
    "shared mart, subsample and weights": shared("mart", FIVE, WEIGHTS, subsample=0.7),
    "shared logitboost, max_features": shared("logitboost", FIVE, max_features=2),
    "shared mart, groups": shared("mart", FIVE, interaction_cst=[[0, 1], [2, 3]]),
    "shared logitboost, validation rows": shared(
        "logitboost", TRAIN, validated(FIVE), n_iter_no_change=1
    ),
    "shared logitboost, warm start": partial(
        warm_started, NINE, algorithm="shared logitboost", n_projections=3, l2_regularization=0.0
    ),
    "shared, then per class": partial(changed_trees, FIVE, "shared logitboost", "abc-mart"),
    "per class, then shared": partial(changed_trees, FIVE, "abc-mart", "shared logitboost"),
}


def digest(model: ABCBoostClassifier) -> str:
    """Return a digest of the ensemble's arrays: names, dtypes, shapes and bytes."""
    sha = hashlib.sha256()
    arrays = ensemble_arrays(model)
    left_out = () if len(arrays["leaf_value"]) else MULTI_OUTPUT_ARRAYS
    for name, array in sorted(arrays.items()):
        if name in left_out:
            continue
        little = array.astype(array.dtype.newbyteorder("<"))
        sha.update(f"{name} {little.dtype.str} {little.shape} ".encode())
        sha.update(little.tobytes())
    return sha.hexdigest()[:32]


def main() -> None:
    digests = {name: digest(make()) for name, make in MODELS.items()}
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(digests, indent=2) + "\n")


if __name__ == "__main__":
    main()
