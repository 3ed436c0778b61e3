"""The systems: ours and the peers, each with its own defaults, one thread and a fixed random state.

Packages are imported lazily, because peers may run in a Python without our package.
"""

import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.defaults.candidates import Parameters, settled
from experiments.defaults.frames import (
    AnyTable,
    AsTable,
    few_levels,
    missing_as_level,
    with_categories,
)

MAX_STEPS = 1000  # with early stopping
PATIENCE = 20

Labels = NDArray[np.int64]


class Task(NamedTuple):
    """The data of a fit; with validation rows it uses early stopping."""

    X: AnyTable
    y: Labels
    validation: tuple[AnyTable, Labels] | None
    categories: list[str]
    parameters: Parameters  # of a candidate


class Fitted(NamedTuple):
    """A model, and its number of iterations in prediction."""

    model: Any
    n_iter: int


class System(NamedTuple):
    """A package and its fit with a number of iterations, None for its default."""

    package: str
    fit: Callable[[Task, int | None], Fitted]
    as_table: AsTable = with_categories
    default_steps: int = 100


def fit_ours(task: Task, steps: int | None) -> Fitted:
    """Fit a candidate; validation rows turn on early stopping."""
    package = import_module("abcgbm")
    rows, features = task.X.shape
    sizes = {"rows": rows, "features": features, "classes": int(task.y.max()) + 1}
    given = settled(task.parameters, sizes)
    if isinstance(given.get("algorithm"), dict):
        given["algorithm"] = package.AdaptiveBaseClass(**given["algorithm"])
    given |= {} if steps is None else {"max_iter": steps}
    model = package.ABCBoostClassifier(n_jobs=1, **{"n_iter_no_change": PATIENCE, **given})
    rows = () if task.validation is None else task.validation
    with warnings.catch_warnings():  # short fits measure the cost of an iteration
        warnings.filterwarnings("ignore", ".*with the default learning rate", UserWarning)
        model.fit(task.X, task.y, **dict(zip(("X_val", "y_val"), rows, strict=False)))
    return Fitted(model, model.best_iteration_)


def fit_lightgbm(task: Task, steps: int | None) -> Fitted:
    """Fit LightGBM: columns of dtype category are its categories."""
    lightgbm = import_module("lightgbm")
    given = {} if steps is None else {"n_estimators": steps}
    model = lightgbm.LGBMClassifier(n_jobs=1, verbose=-1, random_state=0, **given)
    if task.validation is None:
        model.fit(task.X, task.y)
        return Fitted(model, model.n_estimators_)
    X_val, y_val = task.validation
    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    model.fit(task.X, task.y, eval_X=X_val, eval_y=y_val, callbacks=[stop])
    return Fitted(model, model.best_iteration_)


def fit_xgboost(strategy: str, task: Task, steps: int | None) -> Fitted:
    """Fit XGBoost with one tree per class or with vector leaves."""
    xgboost = import_module("xgboost")
    given = {} if steps is None else {"n_estimators": steps}
    model = xgboost.XGBClassifier(
        multi_strategy=strategy, enable_categorical=True, n_jobs=1, random_state=0, **given
    )
    if task.validation is None:
        model.fit(task.X, task.y)
        return Fitted(model, model.get_booster().num_boosted_rounds())
    model.set_params(early_stopping_rounds=PATIENCE)
    model.fit(task.X, task.y, eval_set=[task.validation], verbose=False)
    return Fitted(model, model.best_iteration + 1)


def fit_catboost(task: Task, steps: int | None) -> Fitted:
    """Fit CatBoost, whose default is 1,000 iterations."""
    catboost = import_module("catboost")
    model = catboost.CatBoostClassifier(
        iterations=steps,
        loss_function="MultiClass",
        cat_features=task.categories,
        thread_count=1,
        random_seed=0,
        allow_writing_files=False,
        verbose=False,
    )
    if task.validation is None:
        model.fit(task.X, task.y)
    else:
        model.fit(task.X, task.y, eval_set=task.validation, early_stopping_rounds=PATIENCE)
    return Fitted(model, model.tree_count_)


def fit_hist_gradient_boosting(task: Task, steps: int | None) -> Fitted:
    """Fit scikit-learn's, with early stopping by default above 10,000 rows; it keeps later iterations."""
    ensemble = import_module("sklearn.ensemble")
    given = {} if steps is None else {"max_iter": steps}
    model = ensemble.HistGradientBoostingClassifier(random_state=0, **given)
    if task.validation is None:
        model.fit(task.X, task.y)
    else:
        model.set_params(early_stopping=True, n_iter_no_change=PATIENCE)
        X_val, y_val = task.validation
        model.fit(task.X, task.y, X_val=X_val, y_val=y_val)
    return Fitted(model, model.n_iter_)


OURS = System("abcgbm", fit_ours)
PEERS = {
    "LightGBM": System("lightgbm", fit_lightgbm),
    "XGBoost": System("xgboost", partial(fit_xgboost, "one_output_per_tree")),
    "XGBoost-vector": System("xgboost", partial(fit_xgboost, "multi_output_tree")),
    "HistGradientBoosting": System("scikit-learn", fit_hist_gradient_boosting, few_levels),
    "CatBoost": System("catboost", fit_catboost, missing_as_level, default_steps=1000),
}


def system(name: str) -> System:
    """Return a peer, or ours."""
    return PEERS.get(name, OURS)
