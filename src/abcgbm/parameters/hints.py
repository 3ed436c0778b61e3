"""Suggestions for unknown names: those of other packages and of earlier versions of this one.

Each table maps our name, or a reason, to the space-separated names for which it is suggested.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])
Table = Mapping[str, str]
_VALIDATION_ROWS = "X_val and y_val"
OF_FIT = ("X_val", "y_val", "sample_weight_val", "resume_from", "communicator", _VALIDATION_ROWS)

# Parameters of XGBoost, LightGBM, CatBoost, HistGradientBoosting and GradientBoosting that have a
# counterpart in our constructor or in fit.
ELSEWHERE: Table = {
    "algorithm": "boosting boosting_type boost booster multi_strategy",
    "learning_rate": "eta shrinkage shrinkage_rate",
    "max_iter": "n_estimators num_iteration num_iterations n_iter num_tree num_trees num_round "
    "num_rounds nrounds num_boost_round iterations",
    "max_leaf_nodes": "num_leaves num_leaf max_leaves max_leaf",
    "max_depth": "depth",
    "min_samples_leaf": "min_child_samples min_data_in_leaf min_data min_data_per_leaf "
    "min_weight_fraction_leaf",
    "l2_regularization": "reg_lambda lambda lambda_l2 l2_leaf_reg l2_reg",
    "max_bins": "max_bin border_count",
    "categorical_features": "categorical_feature cat_feature cat_features categorical_column "
    "cat_column enable_categorical feature_types",
    "subsample": "bagging_fraction bagging sub_row",
    "max_features": "colsample_bytree colsample_bylevel colsample_bynode colsample rsm "
    "feature_fraction feature_fraction_bynode sub_feature sub_feature_bynode",
    "interaction_cst": "interaction_constraints",
    "classes": "class_names",
    "class_weight": "class_weights auto_class_weights scale_pos_weight is_unbalance unbalance "
    "unbalanced_sets eval_class_weight",
    "early_stopping": "use_best_model od_type",
    "validation_fraction": "eval_fraction",
    "scoring": "eval_metric custom_metric custom_loss metric metrics metric_types",
    "n_iter_no_change": "early_stopping_rounds early_stopping_round od_wait",
    "tol": "early_stopping_min_delta",
    "warm_start": "init_model xgb_model input_model model_input model_in",
    "random_state": "seed random_seed data_random_seed feature_fraction_seed bagging_seed extra_seed "
    "drop_seed objective_seed",
    "n_jobs": "nthread nthreads num_thread num_threads n_threads thread_count",
    "verbose": "verbosity verbose_eval logging_level silent metric_period metric_freq output_freq",
    "callbacks": "callback monitor",
    _VALIDATION_ROWS: "eval_set eval_sets valid_sets evals eval_X eval_y valid validation_data",
    "sample_weight_val": "sample_weight_eval_set eval_sample_weight",
    "communicator": "reducer share machines num_machines num_machine tree_learner",
    # In an object that is the value of a parameter.
    "algorithm=MultiOutputTrees(min_gain=...)": "min_gain gamma min_split_loss min_split_gain "
    "min_gain_to_split min_impurity_decrease",
    "algorithm=MultiOutputTrees(min_hessian_leaf=...)": "min_hessian_leaf min_child_weight "
    "min_sum_hessian_in_leaf min_sum_hessian_per_leaf min_sum_hessian min_hessian",
    "algorithm=MultiOutputTrees(baseline=...)": "init baseline base_score boost_from_average",
    "algorithm=MultiOutputTrees(n_projections=...)": "gain_directions n_projections",
    "algorithm=MultiOutputTrees(), or TreePerClass()": "trees",
    "algorithm=MultiOutputTrees(criterion=...)": "criterion",
    "algorithm=TreePerClass('mart', sequential_residuals=True)": "refresh sequential_residuals",
    "algorithm=TreePerClass(recenter=True)": "recenter",
    "algorithm=AdaptiveBaseClass(n_candidates=..., base_label=...)": "base_class n_candidates "
    "base_label",
    "algorithm=AdaptiveBaseClass(gap=..., warmup=...)": "gap warmup",
    "algorithm=AdaptiveBaseClass(line_search=...)": "base_step line_search",
    "algorithm=AdaptiveBaseClass(base_derivatives=False)": "base_derivatives",
    "categorical_features=Categorical(smoothing=...)": "categorical_smoothing smoothing cat_smooth",
    "categorical_features=Categorical(penalty=...)": "categorical_penalty penalty",
    "categorical_features=Categorical(handle_unknown=...)": "handle_unknown",
    "callbacks=[TimeLimit(seconds)]": "max_time time_limit",
    "callbacks=[Checkpoint(path)]": "checkpoint snapshot_file save_snapshot",
    "callbacks=[Checkpoint(path, every=...)]": "checkpoint_every snapshot_interval snapshot_freq "
    "save_period",
    "callbacks=[KeepOnInterrupt()]": "on_interrupt",
}

# Parameters without a counterpart, by the reason.
NOT_HERE: Table = {
    "the loss is always the multinomial log loss (softmax); class_weight and sample_weight "
    "weight its terms": "objective objective_type app application loss loss_function sigmoid "
    "disable_default_eval_metric target_border",
    "the classes are those of y; classes= adds others": "num_class num_classes classes_count",
    "monotone constraints are not supported: with three or more classes a rising score does not "
    "imply a rising probability; interaction_cst restricts which features interact": "monotonic_cst "
    "monotone_constraints monotone_constraint mc monotone_constraints_method monotone_penalty",
    "dropout (DART) is not supported; learning_rate and subsample regularize": "rate_drop drop_rate "
    "max_drop skip_drop uniform_drop one_drop normalize_type sample_type xgboost_dart_mode",
    "there is no L1 penalty; l2_regularization penalizes leaf values": "reg_alpha alpha lambda_l1 "
    "l1_regularization",
    "a line search bounds the steps; reduce learning_rate for smaller ones": "max_delta_step "
    "max_tree_output max_leaf_output",
    "trees are always grown leaf by leaf on binned features; max_depth and max_leaf_nodes bound them": "tree_method grow_policy updater process_type refresh_leaf score_function "
    "splitter force_col_wise force_row_wise",
    "training runs on CPUs only; n_jobs is the number of threads": "device device_type task_type devices "
    "device_config gpu_id gpu_ram_part pinned_memory_size gpu_platform_id gpu_device_id num_gpu "
    "predictor gpu_use_dp",
    "rows are sampled for every iteration: subsample": "subsample_freq bagging_freq sampling_frequency "
    "bootstrap_type sampling_method sampling_unit bagging_temperature mvs_reg data_sample_strategy "
    "top_rate other_rate pos_bagging_fraction neg_bagging_fraction",
    "bins come from all rows: max_bins": "subsample_for_bin bin_construct_sample_cnt min_data_in_bin "
    "max_bin_by_feature feature_border_type input_borders output_borders "
    "per_float_feature_quantization",
    "NaN and null are missing values; replace other values by NaN": "missing nan_mode "
    "use_missing zero_as_missing",
    "categories are split into sets automatically; categorical_features=Categorical(...) has the "
    "parameters": "max_cat_to_onehot max_cat_threshold cat_l2 one_hot_max_size min_data_per_group "
    "simple_ctr combinations_ctr per_feature_ctr max_ctr_complexity counter_calc_method "
    "ctr_leaf_count_limit store_all_simple_ctr final_ctr_computation_mode ctr_target_border_count",
    "text and embeddings are not supported; expected a table of numbers and categories": "text_features "
    "tokenizers dictionaries feature_calcers text_processing embedding_features graph",
    "linear leaves are not supported": "linear_tree linear_trees linear_lambda",
    "there is one tree per iteration, or one per class: algorithm": "num_parallel_tree",
    "importances are feature_importances_, feature_importances_by_class_ and explain()": "importance_type saved_feature_importance_type",
    "features cannot be weighted; max_features samples them, and X need not contain all columns": "feature_weights feature_contri feature_contrib ignored_features ignore_column "
    "first_feature_use_penalties penalties_coefficient",
    "split gains are not randomized; subsample and max_features sample rows and features": "random_strength random_score_type extra_trees extra_tree langevin diffusion_temperature "
    "posterior_sampling",
    "leaf values are one Newton step with a line search": "leaf_estimation_iterations "
    "leaf_estimation_method leaf_estimation_backtracking path_smooth",
    "rows cannot have initial scores; warm_start=True continues from a model": "init_score base_margin "
    "eval_init_score base_margin_eval_set",
    "ranking is not supported": "group qid eval_group eval_qid eval_at group_column query",
    "columns are found by their names, and labels may be of any type": "feature_name feature_names "
    "eval_names use_label_encoder validate_parameters validate_features column_description",
    "plots are in abcgbm.plotting": "plot plot_file",
    "max_leaf_nodes, max_depth and min_samples_leaf bound the trees": "min_samples_split ccp_alpha",
    "the same data, parameters and random_state always give the same model": "deterministic",
    "the memory of a fit is estimated automatically; LargeTable(memory=...) bounds it": "used_ram_limit histogram_pool_size hist_pool_size two_round two_round_loading",
    "nothing is written during training, except callbacks=[Checkpoint(path)]": "train_dir "
    "allow_writing_files output_model name metadata log_cout log_cerr",
    "sparse columns are bundled automatically": "enable_bundle is_enable_bundle bundle is_enable_sparse "
    "is_sparse enable_sparse sparse sparse_features_conflict_fraction dev_efb_max_buckets",
    "boosting is always plain, never ordered": "fold_permutation_block fold_len_multiplier "
    "approx_on_full_history has_time data_partition",
    "early stopping keeps the best iteration: n_iter_no_change and tol": "od_pval best_model_min_trees "
    "first_metric_only",
    "models are not shrunk during training; see learning_rate": "model_shrink_rate model_shrink_mode "
    "model_size_reg",
}

# Arguments of predict, predict_proba, decision_function, apply, truncate and the like.
OF_PREDICTION: Table = {
    "n_iter": "n_steps num_iteration ntree_end ntree_limit iteration_range best_ntree_limit "
    "start_iteration ntree_start num_iterations n_estimators",
    "decision_function(X)": "raw_score output_margin",
    "predict_proba(X), decision_function(X) or explain(X)": "prediction_type type",
    "explain(X)": "pred_contrib pred_contribs pred_interactions approx_contribs",
    "apply(X)": "pred_leaf",
    "n_jobs of the estimator": "n_jobs thread_count num_threads nthread n_threads",
    "verbose of the estimator": "verbose",
    "predict_batches(X)": "predict_parts",
    "ABCBoostClassifier(...).fit(X, ..., communicator=...)": "share communicator",
}
NOT_IN_PREDICTION: Table = {
    "columns of X are always checked": "validate_features predict_disable_shape_check "
    "validate_input strict_shape",
    "rows cannot have initial scores": "base_margin init_score",
    "prediction runs on CPUs only": "task_type predictor device",
    "staged_predict yields every iteration; predict(X, n_iter=...) is one of them": "eval_period",
}

# Attributes and methods of fitted estimators.
ATTRIBUTES: Table = {
    "best_iteration_": "best_iter_ best_iteration best_ntree_limit get_best_iteration",
    "best_score_": "best_score get_best_score",
    "n_iter_": "n_estimators_ tree_count_ n_trees num_trees num_boosted_rounds current_iteration "
    "get_num_boosting_rounds n_steps_",
    "model_, tree() and trees_to_dataframe()": "booster_ get_booster booster estimators_ _Booster",
    "feature_names_in_": "feature_name_ feature_names_ feature_names feature_name",
    "n_features_in_": "n_features_ num_feature num_features",
    "validation_score_ and validation_loss_": "evals_result_ evals_result get_evals_result "
    "oob_improvement_ oob_scores_ get_test_eval",
    "train_loss_": "train_score_",
    "len(classes_)": "n_classes_",
    "resolved_params_": "chosen_ get_all_params get_xgb_params learning_rate_ random_seed_ max_features_ "
    "do_early_stopping_",
    "baseline_": "init_ intercept_ base_score_",
    "feature_importances_by_class_": "class_importances_",
    "feature_importances_": "feature_importance get_feature_importance get_score get_fscore "
    "feature_importance_",
    "history_.base_classes": "base_classes_",
    "history_.candidate_losses": "search_losses_",
    "predict_batches": "predict_parts",
    "explain()": "shap_values get_shap_values",
    "apply()": "calc_leaf_indexes predict_leaf_index",
    "to_json(), to_text() and trees_to_dataframe()": "dump_model get_dump model_to_string",
    "truncate()": "shrink rollback_one_iter",
    "model_.encoding": "is_categorical_ get_cat_feature_indices",
    "plotting.plot_tree": "plot_tree",
    "the loss is always the multinomial log loss": "objective_ loss_ _loss",
    "trees_to_dataframe()": "get_leaf_values get_leaf_output get_leaf_weights",
}

# Attributes of the reports that callbacks receive.
OF_REPORT: Table = {
    "iteration": "step env_iteration",
    "was_scaled_back": "is_mended",
    "validation_score": "evaluation_result_list metrics",
}

# Values of parameters.
VALUES: Mapping[str, Table] = {
    "scoring": {
        "'loss'": "logloss log_loss mlogloss multi_logloss multilogloss cross_entropy crossentropy "
        "CrossEntropy Logloss MultiClass MultiClassOneVsAll multiclass softmax softprob "
        "multi:softprob multi:softmax deviance nll",
        "'error'": "merror multi_error error_rate zero_one zero_one_loss ZeroOneLoss error_count",
        "'accuracy', or 'error'": "Accuracy acc",
        "'roc_auc_ovr'": "auc AUC auc_mu mlogauc roc",
        "'f1_macro'": "TotalF1 macro_f1 F1 f1_score",
        "'matthews_corrcoef'": "MCC mcc",
        "'balanced_accuracy'": "BalancedAccuracy bal_acc",
        "'neg_brier_score'": "BrierScore brier mse rmse",
    },
    "algorithm": {
        "'multi-output'": "shared multi_output_tree multi_output multioutput",
        "'multi-output' or 'mart'": "gbdt gbrt gbtree gbm Plain plain gradient_boosting hist",
        "'mart', or TreePerClass()": "per-class per_class one_output_per_tree",
        "'abc-mart', or AdaptiveBaseClass()": "abc worst adaptive",
        "'abc-logitboost', or AdaptiveBaseClass()": "abc-robust-logitboost",
        "'logitboost'": "robust-logitboost robustlogitboost",
        "AdaptiveBaseClass(n_candidates=None)": "exhaustive",
    },
    "categorical_features": {"'auto'": "from_dtype dtype name:"},
    "handle_unknown": {"'missing'": "ignore use_encoded_value infrequent_if_exist nan"},
    "class_weight": {"'balanced'": "Balanced SqrtBalanced balanced_subsample auto"},
    "baseline": {"'prior'": "mean average boost_from_average log_prior", "'zero'": "0 none None"},
    "criterion": {
        "'logitboost'": "newton second_order hessian Newton NewtonL2 friedman",
        "'mart'": "first_order gradient Cosine L2 friedman_mse squared_error",
    },
}
NOT_A_VALUE: Mapping[str, Table] = {
    "algorithm": {
        "dropout (DART) is not supported": "dart",
        "sampling by gradients (GOSS) is not supported; subsample samples rows": "goss",
        "random forests are not supported": "rf random_forest",
        "linear models are not supported": "gblinear",
        "ordered boosting is not supported": "Ordered ordered",
    },
}

# Options of the command.
OPTIONS: Table = {
    "--max-iter": "--steps --iterations --n-estimators --num-iterations --num-boost-round --num-trees",
    "--max-leaf-nodes": "--leaves --num-leaves --max-leaves",
    "--random-state": "--seed --random-seed",
    "--n-jobs": "--threads --num-threads --nthread --thread-count",
    "--time-limit": "--max-time",
    "--n-iter-no-change": "--early-stopping-rounds --early-stopping-round --od-wait",
    "--algorithm": "--trees --boosting --boosting-type --booster --base-class",
    "--learning-rate": "--eta --shrinkage-rate",
    "--max-depth": "--depth",
    "--l2-regularization": "--reg-lambda --lambda-l2 --l2-leaf-reg",
    "--max-features": "--colsample-bytree --colsample-bynode --feature-fraction --rsm",
    "--subsample": "--bagging-fraction",
    "--max-bins": "--max-bin --border-count",
    "--scoring": "--metric --eval-metric",
    "--categorical": "--cat-features --categorical-feature",
    "--valid": "--X-val --eval-set --test-set --valid-data",
    "--label": "--target --label-column --y",
    "--model": "--save-model --output-model --model-file",
    "--quiet": "--silent --verbose",
    "--checkpoint": "--snapshot-file",
    "--checkpoint-every": "--snapshot-interval --snapshot-freq",
    "--resume": "--resume-from --input-model",
    "--keep-on-interrupt": "--on-interrupt",
}

# Exports of earlier versions.
EXPORTS: Table = {
    "AdaptiveBaseClass(n_candidates=2, gap=5)": "BaseClassSearch",
    "AdaptiveBaseClass(base_label=...)": "FixedBase",
    "IterationReport": "StepReport",
    "MPICommunicator, of abcgbm.distributed": "MPIReducer Reducer",
}


def _by_name(*tables: Table) -> dict[str, str]:
    """Invert tables: map each name to its suggestion."""
    return {
        name: suggestion
        for table in tables
        for suggestion, names in table.items()
        for name in names.split()
    }


OURS = _by_name(ELSEWHERE)
_REASONS = _by_name(NOT_HERE)


def hint(name: str, here: Collection[str], parameters: Collection[str]) -> str:
    """Return a suggestion for an unknown parameter, or the reason why there is none; may be empty.

    Parameters
    ----------
    name : str
        The unknown name.
    here : collection of str
        The parameters of the called method.
    parameters : collection of str
        The parameters of the estimator.
    """
    if name in _REASONS:
        return f"; {_REASONS[name]}"
    ours = OURS.get(name, name if name in parameters or name in OF_FIT else None)
    if ours is None:
        ours = _nearest(name, here)
    if ours is None:
        return ""
    if ours in here or "=" in ours or (ours == _VALIDATION_ROWS and "X_val" in here):
        home = "" if "=" not in ours or "callbacks" in here else " of the estimator itself"
    else:
        home = " of fit" if ours in OF_FIT else " of the estimator itself"
    return f"; did you mean {ours}{home}?"


def _nearest(name: str, known: Collection[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.75)), None)


def prediction_hint(name: str, here: Collection[str]) -> str:
    """Return a suggestion for an unknown argument of a prediction method."""
    reasons = _by_name(NOT_IN_PREDICTION)
    if name in reasons:
        return f"; {reasons[name]}"
    ours = _by_name(OF_PREDICTION).get(name) or _nearest(name, here)
    if ours is None or (ours == "n_iter" and "n_iter" not in here):
        return ""
    return f"; did you mean {ours}?"


def attribute_hint(name: str, known: Collection[str], table: Table = ATTRIBUTES) -> str:
    """Return a suggestion for an unknown attribute."""
    ours = _by_name(table).get(name) or _nearest(name, known)
    return "" if ours is None else f"; did you mean {ours}?"


def option_hint(option: str) -> str:
    """Return a suggestion for an unknown option of the command."""
    ours = _by_name(OPTIONS).get(option)
    return "" if ours is None else f"; did you mean {ours}?"


def export_hint(name: str) -> str:
    """Return the replacement for an export of an earlier version."""
    ours = _by_name(EXPORTS).get(name)
    return "" if ours is None else f"; did you mean {ours}?"


def value_hint(parameter: str, value: Any) -> str:
    """Return a suggestion for an invalid value of a parameter."""
    if not isinstance(value, str):
        return ""
    reasons = _by_name(NOT_A_VALUE.get(parameter, {}))
    if value in reasons:
        return f"; {reasons[value]}"
    ours = _by_name(VALUES.get(parameter, {}))
    lower = {name.lower(): our_value for name, our_value in ours.items()}
    meant = ours.get(value) or lower.get(value.lower())
    return "" if meant is None else f"; did you mean {meant}?"


def with_hints(method: Method) -> Method:
    """Add suggestions to the error of a constructor or ``fit`` for an unknown parameter."""
    return _hinting(method, lambda self, name, here: hint(name, here, _parameters_of(self)))


def with_prediction_hints(method: Method) -> Method:
    """Add suggestions to the error of a prediction method for an unknown argument."""
    return _hinting(method, lambda _, name, here: prediction_hint(name, here))


def _parameters_of(estimator: Any) -> Collection[str]:
    return cast(Collection[str], type(estimator)._get_param_names())


def _hinting(method: Method, hint_for: Callable[[Any, str, Collection[str]], str]) -> Method:
    names = inspect.signature(method).parameters

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **given: Any) -> Any:
        for name in given:
            if name not in names:
                raise TypeError(
                    f"{type(self).__name__}.{method.__name__}() got an unexpected keyword argument "
                    f"{name!r}{hint_for(self, name, names)}"
                )
        return method(self, *args, **given)

    return cast(Method, checked)
