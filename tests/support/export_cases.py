"""Models of all kinds, and rows on which their exports must agree with them."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from abcgbm import (
    ABCBoostClassifier,
    AdaptiveBaseClass,
    Categorical,
    MultiOutputTrees,
    TreePerClass,
)
from models import noisy_data, small

RNG = np.random.default_rng(5)
X, Y = noisy_data(n_rows=300, n_features=4)
X = X.astype(np.float32).astype(np.float64)
NAMES = np.array(["a b", "ä", 'c"\\?', "d%d"])
# More than 64 categories, so that sets take several words, numeric categories, and a constant column.
CODES = RNG.integers(0, 150, (300, 2))
FRAME = pd.DataFrame(
    {
        "size": X[:, 0],
        "of 150": [f"level {code}?" for code in CODES[:, 0]],
        "x/y": X[:, 1],
        "number": pd.Categorical(np.where(CODES[:, 1] < 40, np.nan, CODES[:, 1] % 7 / 4 - 0.75)),
        "unused": ["same"] * 300,
    }
)
# The class depends on the categories, else no tree would split on them.
FRAME_Y = (CODES[:, 0] % 3 + (FRAME["number"].astype(float) > 0) + (X[:, 0] > 0)).to_numpy() % 4
ARRAY = np.column_stack([X[:, :2], CODES[:, 0] / 8, CODES[:, 1] % 9 - 4.0])
INFINITE = np.where(X > 1, np.inf, np.where(X < -1, -np.inf, X))


class Case(NamedTuple):
    """A fitted model, and rows for it: an array of float32, or a frame."""

    model: ABCBoostClassifier
    rows: Any


def warm_started() -> ABCBoostClassifier:
    """Train one tree per class in the first iterations, and multi-output trees after them."""
    model = small("mart", warm_start=True, max_iter=3).fit(X, Y)
    return model.set_params(algorithm="multi-output", max_iter=7).fit(X, Y)


def first_iterations(n_iter: int, X: Any, y: Any, **parameters: Any) -> Any:
    """Return a function that fits a model and keeps only its first iterations."""

    def fit() -> ABCBoostClassifier:
        model = small(**parameters).fit(X, y)
        trees = model.model_.ensemble.first_iterations(n_iter)
        model.model_ = replace(model.model_, ensemble=trees)
        return model

    return fit


def of(X: Any, y: Any, *args: Any, **parameters: Any) -> Callable[[], ABCBoostClassifier]:
    return lambda: small(*args, **parameters).fit(X, y)


CASES: dict[str, Callable[[], ABCBoostClassifier]] = {
    "mart": of(X, Y, "mart"),
    "abc-mart": of(X, Y, AdaptiveBaseClass(), n_jobs=1),
    "small base steps": of(X, Y, AdaptiveBaseClass(), learning_rate=1.0),
    "logitboost": of(X, Y, "logitboost"),
    "abc-logitboost": of(X, Y, "abc-logitboost"),
    "shared": of(X, Y, "multi-output"),
    "shared mart": of(X, Y, MultiOutputTrees("mart", baseline="zero")),
    "by class": of(X, Y, TreePerClass("mart", sequential_residuals=True)),
    "two classes": of(X, Y % 2, "abc-mart"),
    "two classes, mart": of(X, Y % 2, "mart"),
    "two classes, shared": of(X, Y % 2, "multi-output"),
    "string classes": of(X, NAMES[Y], "abc-mart"),
    "truth values": of(X, Y > 1, "mart"),
    "whole floats": of(X, Y - 1.0, "mart"),
    "dates": of(X, np.datetime64("2026-01-01", "ns") + Y, "mart"),
    "prior": of(
        X, np.where(Y == 1, 0, Y), TreePerClass("mart", baseline="prior"), classes=[0, 1, 2, 3]
    ),
    "infinities": of(INFINITE, Y, "abc-mart"),
    "large trees": of(X, Y, "multi-output", max_leaf_nodes=60, min_samples_leaf=1),
    "warm start": warm_started,
    "truncated": first_iterations(3, X, Y, algorithm="abc-mart"),
    "no step": first_iterations(0, X, Y, algorithm="mart"),
    "no step, prior": first_iterations(0, X, NAMES[Y], algorithm=MultiOutputTrees()),
    "frame of numbers": of(FRAME[["size", "x/y"]], Y, "abc-mart"),
    "frame, mart": of(FRAME, FRAME_Y, "mart", categorical_features=Categorical(penalty=0.0)),
    "frame, abc-mart": of(
        FRAME, NAMES[FRAME_Y], "abc-mart", categorical_features=Categorical(penalty=0.0)
    ),
    "frame, shared": of(
        FRAME, FRAME_Y, "multi-output", categorical_features=Categorical(penalty=0.0)
    ),
    "frame, shared codes": of(
        FRAME,
        FRAME_Y,
        "multi-output",
        categorical_features=Categorical(penalty=0.0),
        max_bins=3,
    ),
    "frame, no step": first_iterations(0, FRAME, FRAME_Y, algorithm="mart"),
    "numbered": of(ARRAY, FRAME_Y, categorical_features=Categorical([2, 3], penalty=0.0)),
}


@cache
def case(name: str) -> Case:
    """Fit a model once, and sample rows for it."""
    model = CASES[name]()
    rng = np.random.default_rng(7)
    is_frame = name.startswith("frame")
    columns = FRAME[["size", "x/y"]] if name == "frame of numbers" else FRAME
    if not is_frame:
        return Case(model, number_rows(model, ARRAY if name == "numbered" else X, rng))
    drawn = {
        column: frame_column(model, feature, columns[column], rng)
        for feature, column in enumerate(columns)
    }
    return Case(model, pd.concat([columns, pd.DataFrame(drawn)], ignore_index=True))


def critical_values(model: ABCBoostClassifier, feature: int) -> np.ndarray:
    """Return thresholds as float32, their neighbours, infinities and missing values."""
    of_feature, threshold = model.model_.ensemble.splits()
    near = threshold[of_feature == feature].astype(np.float32)
    up, down = (np.nextafter(near, np.float32(end)) for end in (np.inf, -np.inf))
    return np.concatenate([near, up, down, np.float32([np.nan, np.inf, -np.inf, -0.0, 0.1])])


def number_rows(model: ABCBoostClassifier, table: np.ndarray, rng: Any) -> np.ndarray:
    drawn = [
        rng.choice(np.concatenate([critical_values(model, f), table[:, f].astype(np.float32)]), 700)
        for f in range(table.shape[1])
    ]
    return np.concatenate([table, np.column_stack(drawn)]).astype(np.float32)


def frame_column(model: ABCBoostClassifier, feature: int, column: Any, rng: Any) -> Any:
    """Sample values of a column, critical ones, and unseen or missing categories."""
    if column.dtype.kind == "f":
        values = np.concatenate([critical_values(model, feature), column.to_numpy(np.float32)])
        return rng.choice(values, 700).astype(np.float64)
    new = 0.123 if column.name == "number" else "unseen"
    return rng.choice(np.array([*column.unique(), new, None], dtype=object), 700)


def codes(model: ABCBoostClassifier, rows: Any) -> np.ndarray:
    """Return the encoded values that trees compare."""
    encoding = model.model_.encoding
    return encoding.matrix(encoding.read(rows, "tests"), range(model.n_features_in_))


def raw(model: ABCBoostClassifier, rows: Any) -> np.ndarray:
    """Return the raw scores."""
    return model.model_.ensemble.raw(codes(model, rows), 1)


LONG: dict[str, dict[str, Any]] = {
    name: {"algorithm": name} for name in ("mart", "abc-mart", "logitboost", "abc-logitboost")
} | {
    f"shared {name}": {"algorithm": MultiOutputTrees(name, baseline="zero")}
    for name in ("mart", "logitboost")
}


@cache
def long_case(name: str) -> Case:
    """Fit a model of a thousand iterations."""
    parameters = LONG[name] | {"max_iter": 1000, "learning_rate": 0.02, "l2_regularization": 1.0}
    model = small(**parameters).fit(X, Y)
    assert model.best_iteration_ == 1000
    return Case(model, number_rows(model, X, np.random.default_rng(8)))
