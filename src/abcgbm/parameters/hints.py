"""Suggestions for parameter names of other packages."""

import difflib
import functools
import inspect
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import Any, TypeVar, cast

from abcgbm.parameters.parameters import Parameters

Method = TypeVar("Method", bound=Callable[..., Any])
_FIT = ("X_val", "y_val", "sample_weight_val", "resume_from")
_VALIDATION_ROWS = "X_val and y_val"
_PARAMETERS = tuple(field.name for field in fields(Parameters))

# Of XGBoost, LightGBM, CatBoost, HistGradientBoosting and GradientBoosting.
_ELSEWHERE = {
    "algorithm": "boosting boosting_type",
    "trees": "multi_strategy",
    "learning_rate": "eta shrinkage shrinkage_rate",
    "max_iter": "n_estimators num_iteration num_iterations n_iter num_tree num_trees num_round "
    "num_rounds nrounds num_boost_round iterations",
    "max_leaf_nodes": "num_leaves num_leaf max_leaves max_leaf",
    "max_depth": "depth",
    "min_samples_leaf": "min_child_samples min_data_in_leaf min_data min_data_per_leaf "
    "min_weight_fraction_leaf",
    "min_gain": "gamma min_split_loss min_split_gain min_gain_to_split min_impurity_decrease",
    "l2_regularization": "reg_lambda lambda lambda_l2 l2_leaf_reg l2_reg",
    "min_hessian_leaf": "min_child_weight min_sum_hessian_in_leaf min_sum_hessian min_hessian",
    "max_bins": "max_bin border_count",
    "categorical_features": "categorical_feature cat_feature cat_features enable_categorical",
    "categorical_smoothing": "cat_smooth",
    "subsample": "bagging_fraction bagging sub_row",
    "max_features": "colsample_bytree colsample_bylevel colsample_bynode colsample rsm "
    "feature_fraction feature_fraction_bynode sub_feature",
    "interaction_cst": "interaction_constraints",
    "monotonic_cst": "monotone_constraints",
    "init": "base_score boost_from_average",
    "classes": "class_names",
    "class_weight": "class_weights auto_class_weights scale_pos_weight is_unbalance",
    "early_stopping": "use_best_model",
    "scoring": "eval_metric custom_metric metric metrics",
    "n_iter_no_change": "early_stopping_rounds early_stopping_round od_wait",
    "warm_start": "init_model xgb_model",
    "checkpoint": "snapshot_file save_snapshot",
    "checkpoint_every": "snapshot_interval snapshot_freq save_period",
    "random_state": "seed random_seed",
    "n_jobs": "nthread nthreads num_thread num_threads n_threads thread_count",
    "verbose": "verbosity verbose_eval logging_level",
    _VALIDATION_ROWS: "eval_set eval_sets valid_sets evals",
    "sample_weight_val": "sample_weight_eval_set eval_sample_weight",
}
_OURS = {name: ours for ours, names in _ELSEWHERE.items() for name in names.split()}


def hint(name: str, here: Collection[str]) -> str:
    """Return what was probably meant by a name that is not among those known here, or nothing."""
    ours = _OURS.get(name, name if name in (*_PARAMETERS, *_FIT) else None)
    if ours is None:
        ours = next(iter(difflib.get_close_matches(name, here, n=1, cutoff=0.75)), None)
    if ours is None:
        return ""
    home = "of fit" if ours in (*_FIT, _VALIDATION_ROWS) else "of the estimator itself"
    is_here = ours in here or (ours == _VALIDATION_ROWS and "X_val" in here)
    return f"; did you mean {ours}{'' if is_here else ' ' + home}?"


def with_hints(method: Method) -> Method:
    """Let a method that is given a name it does not know say which one was probably meant."""
    names = inspect.signature(method).parameters

    @functools.wraps(method)
    def hinting(self: Any, *args: Any, **given: Any) -> Any:
        for name in given:
            if name not in names:
                raise TypeError(
                    f"{type(self).__name__}.{method.__name__}() got an unexpected keyword argument "
                    f"{name!r}{hint(name, names)}"
                )
        return method(self, *args, **given)

    return cast(Method, hinting)
