"""Names of other packages and earlier versions are answered with the current ones."""

import inspect

import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline

import abcgbm
import abcgbm.distributed
from abcgbm import ABCBoostClassifier, IterationReport
from abcgbm.parameters import hints
from models import noisy_data, small

X, Y = noisy_data()
PARAMETERS = set(ABCBoostClassifier().get_params())
FIT = set(inspect.signature(ABCBoostClassifier.fit).parameters) - {"self"}
PREDICT = set(inspect.signature(ABCBoostClassifier.predict).parameters) - {"self"}
# Constructor parameters of 0.2 that were removed.
OF_VERSION_0_2 = [
    "trees",
    "min_gain",
    "min_hessian_leaf",
    "categorical_smoothing",
    "categorical_penalty",
    "handle_unknown",
    "monotonic_cst",
    "base_class",
    "base_step",
    "refresh",
    "gain_directions",
    "init",
    "max_time",
    "checkpoint",
    "checkpoint_every",
    "on_interrupt",
    "recenter",
]
# Constructors, fit and predict of other packages, as of LightGBM 4.6, XGBoost 3.0, CatBoost 1.2.
LIGHTGBM = [
    "boosting_type",
    "num_leaves",
    "max_depth",
    "learning_rate",
    "n_estimators",
    "subsample_for_bin",
    "objective",
    "class_weight",
    "min_split_gain",
    "min_child_weight",
    "min_child_samples",
    "subsample",
    "subsample_freq",
    "colsample_bytree",
    "reg_alpha",
    "reg_lambda",
    "random_state",
    "n_jobs",
    "importance_type",
]
XGBOOST = [
    "max_depth",
    "max_leaves",
    "max_bin",
    "grow_policy",
    "learning_rate",
    "n_estimators",
    "verbosity",
    "objective",
    "booster",
    "tree_method",
    "n_jobs",
    "gamma",
    "min_child_weight",
    "max_delta_step",
    "subsample",
    "sampling_method",
    "colsample_bytree",
    "colsample_bylevel",
    "colsample_bynode",
    "reg_alpha",
    "reg_lambda",
    "scale_pos_weight",
    "base_score",
    "random_state",
    "missing",
    "num_parallel_tree",
    "monotone_constraints",
    "interaction_constraints",
    "importance_type",
    "device",
    "validate_parameters",
    "enable_categorical",
    "feature_types",
    "feature_weights",
    "max_cat_to_onehot",
    "max_cat_threshold",
    "multi_strategy",
    "eval_metric",
    "early_stopping_rounds",
    "callbacks",
]
CATBOOST = [
    "iterations",
    "learning_rate",
    "depth",
    "l2_leaf_reg",
    "model_size_reg",
    "rsm",
    "loss_function",
    "border_count",
    "feature_border_type",
    "per_float_feature_quantization",
    "input_borders",
    "output_borders",
    "fold_permutation_block",
    "od_pval",
    "od_wait",
    "od_type",
    "nan_mode",
    "counter_calc_method",
    "leaf_estimation_iterations",
    "leaf_estimation_method",
    "thread_count",
    "random_seed",
    "use_best_model",
    "best_model_min_trees",
    "verbose",
    "silent",
    "logging_level",
    "metric_period",
    "ctr_leaf_count_limit",
    "store_all_simple_ctr",
    "max_ctr_complexity",
    "has_time",
    "target_border",
    "classes_count",
    "class_weights",
    "auto_class_weights",
    "class_names",
    "one_hot_max_size",
    "random_strength",
    "name",
    "ignored_features",
    "train_dir",
    "custom_loss",
    "custom_metric",
    "eval_metric",
    "bagging_temperature",
    "save_snapshot",
    "snapshot_file",
    "snapshot_interval",
    "fold_len_multiplier",
    "used_ram_limit",
    "gpu_ram_part",
    "pinned_memory_size",
    "allow_writing_files",
    "final_ctr_computation_mode",
    "approx_on_full_history",
    "boosting_type",
    "simple_ctr",
    "combinations_ctr",
    "per_feature_ctr",
    "ctr_target_border_count",
    "task_type",
    "device_config",
    "devices",
    "bootstrap_type",
    "subsample",
    "mvs_reg",
    "sampling_unit",
    "sampling_frequency",
    "dev_efb_max_buckets",
    "sparse_features_conflict_fraction",
    "max_depth",
    "n_estimators",
    "num_boost_round",
    "num_trees",
    "colsample_bylevel",
    "random_state",
    "reg_lambda",
    "objective",
    "eta",
    "max_bin",
    "scale_pos_weight",
    "data_partition",
    "metadata",
    "early_stopping_rounds",
    "cat_features",
    "grow_policy",
    "min_data_in_leaf",
    "min_child_samples",
    "max_leaves",
    "num_leaves",
    "score_function",
    "leaf_estimation_backtracking",
    "monotone_constraints",
    "feature_weights",
    "penalties_coefficient",
    "first_feature_use_penalties",
    "model_shrink_rate",
    "model_shrink_mode",
    "langevin",
    "diffusion_temperature",
    "posterior_sampling",
    "boost_from_average",
    "text_features",
    "tokenizers",
    "dictionaries",
    "feature_calcers",
    "text_processing",
    "embedding_features",
    "callback",
    "eval_fraction",
]
FIT_ELSEWHERE = [
    "eval_set",
    "eval_names",
    "eval_sample_weight",
    "eval_class_weight",
    "eval_init_score",
    "eval_metric",
    "init_score",
    "feature_name",
    "categorical_feature",
    "callbacks",
    "init_model",
    "verbose",
    "base_margin",
    "early_stopping_rounds",
    "xgb_model",
    "sample_weight_eval_set",
    "base_margin_eval_set",
    "feature_weights",
    "cat_features",
    "use_best_model",
    "logging_level",
    "plot",
    "plot_file",
    "column_description",
    "verbose_eval",
    "metric_period",
    "silent",
    "save_snapshot",
    "snapshot_file",
    "log_cout",
    "log_cerr",
    "monitor",
    "share",
]
PREDICT_ELSEWHERE = [
    "n_steps",
    "num_iteration",
    "start_iteration",
    "raw_score",
    "pred_leaf",
    "pred_contrib",
    "validate_features",
    "output_margin",
    "base_margin",
    "iteration_range",
    "ntree_limit",
    "prediction_type",
    "ntree_start",
    "ntree_end",
    "thread_count",
    "verbose",
    "task_type",
]
ATTRIBUTES_OF_0_2 = [
    "best_iter_",
    "chosen_",
    "init_",
    "base_classes_",
    "search_losses_",
    "class_importances_",
    "predict_parts",
]
ATTRIBUTES_ELSEWHERE = [
    "best_iteration",
    "best_score",
    "booster_",
    "evals_result_",
    "feature_name_",
    "n_estimators_",
    "n_features_",
    "objective_",
    "n_classes_",
    "get_booster",
    "evals_result",
    "intercept_",
    "tree_count_",
    "get_best_iteration",
    "get_feature_importance",
    "calc_leaf_indexes",
    "train_score_",
    "estimators_",
    "feature_names_",
]


def names_in(table):
    return {name: said for said, names in table.items() for name in names.split()}


# ------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("n_estimators", "did you mean max_iter?"),
        ("num_leaves", "did you mean max_leaf_nodes?"),
        ("max_leaf_node", "did you mean max_leaf_nodes?"),
        ("eval_set", "did you mean X_val and y_val of fit?"),
        ("X_val", "did you mean X_val of fit?"),
        ("share", "did you mean communicator of fit?"),
        ("checkpoint", "did you mean callbacks=[Checkpoint(path)]?"),
        ("min_gain", "did you mean algorithm=MultiOutputTrees(min_gain=...)?"),
        ("gamma", "did you mean algorithm=MultiOutputTrees(min_gain=...)?"),
        ("handle_unknown", "did you mean categorical_features=Categorical(handle_unknown=...)?"),
        ("objective", "the loss is always the multinomial log loss (softmax)"),
        ("monotone_constraints", "monotone constraints are not supported"),
        ("monotonic_cst", "monotone constraints are not supported"),
    ],
)
def test_unknown_parameter_is_answered(name, said):
    unknown = f"unexpected keyword argument '{name}'; {said}"
    with pytest.raises(TypeError) as raised:
        ABCBoostClassifier(**{name: 7})
    assert unknown in str(raised.value)
    for model, key in ((small(), name), (make_pipeline(small()), f"abcboostclassifier__{name}")):
        with pytest.raises(ValueError, match=f"(?s)Invalid parameter '{name}' for ") as raised:
            model.set_params(**{key: 7})
        assert f"; {said}" in str(raised.value)


@pytest.mark.parametrize("name", sorted(names_in(hints.ELSEWHERE) | names_in(hints.NOT_HERE)))
def test_every_name_of_the_tables_is_answered_by_constructor_set_params_and_fit(name):
    table = names_in(hints.ELSEWHERE) | names_in(hints.NOT_HERE)
    with pytest.raises(TypeError) as of_constructor:
        ABCBoostClassifier(**{name: 7})
    with pytest.raises(ValueError, match="Invalid parameter") as of_set_params:
        ABCBoostClassifier().set_params(**{name: 7})
    with pytest.raises(TypeError) as of_fit:
        ABCBoostClassifier().fit(X, Y, **{name: 7})
    for raised in (of_constructor, of_set_params, of_fit):
        assert table[name] in str(raised.value)


@pytest.mark.parametrize("name", OF_VERSION_0_2)
def test_parameter_of_an_earlier_version_is_answered(name):
    assert name not in PARAMETERS
    assert hints.hint(name, PARAMETERS, PARAMETERS)


@pytest.mark.parametrize(
    ("package", "theirs"),
    [
        ("LightGBM", LIGHTGBM),
        ("XGBoost", XGBOOST),
        ("CatBoost", CATBOOST),
        ("HistGradientBoosting", [*HistGradientBoostingClassifier().get_params()]),
        ("GradientBoosting", [*GradientBoostingClassifier().get_params()]),
    ],
)
def test_every_parameter_of_other_packages_is_supported_or_answered(package, theirs):
    missing = [
        n for n in theirs if n not in PARAMETERS and not hints.hint(n, PARAMETERS, PARAMETERS)
    ]
    assert missing == [], package


def test_every_answer_names_a_parameter_of_ours():
    objects = {name for name in abcgbm.__all__ if name[0].isupper()}
    for ours in hints.ELSEWHERE:
        if "=" not in ours:
            assert set(ours.split(" and ")) <= PARAMETERS | FIT, ours
            continue
        parameter, _, value = ours.partition("=")
        assert parameter in PARAMETERS
        called = value.strip("[]").split("(")[0]
        assert called in objects
        of = getattr(abcgbm, called)
        fields = set(inspect.signature(of).parameters)
        named = {word.split("=")[0] for word in value.split("(")[1].split(", ") if "=" in word}
        assert named <= fields, ours


def test_hints_are_unique_and_no_own_names():
    tables = (hints.ELSEWHERE, hints.NOT_HERE)
    said = [name for table in tables for names in table.values() for name in names.split()]
    assert len(said) == len(set(said))
    assert not set(said) & (PARAMETERS | FIT)


def test_unknown_name_without_a_likely_meaning_gets_no_hint():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'zigzag'$"):
        ABCBoostClassifier(zigzag=1)
    with pytest.raises(ValueError, match=r"Valid parameters are: .*\]\.$"):
        small().set_params(zigzag=1)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("eval_set", "did you mean X_val and y_val?"),
        ("sample_weights", "did you mean sample_weight?"),
        ("early_stopping_rounds", "did you mean n_iter_no_change of the estimator itself?"),
        ("verbose", "did you mean verbose of the estimator itself?"),
        ("eval_sample_weight", "did you mean sample_weight_val?"),
        ("share", "did you mean communicator?"),
        ("snapshot_file", "did you mean callbacks=[Checkpoint(path)] of the estimator itself?"),
    ],
)
def test_unknown_argument_of_fit_is_answered(name, said):
    with pytest.raises(TypeError) as raised:
        small().fit(X, Y, **{name: 7})
    assert str(raised.value).endswith(f"fit() got an unexpected keyword argument '{name}'; {said}")


@pytest.mark.parametrize("name", FIT_ELSEWHERE)
def test_every_argument_of_fit_elsewhere_is_answered(name):
    assert hints.hint(name, FIT, PARAMETERS)


def test_signatures_are_the_declared_ones():
    """scikit-learn and editors inspect them."""
    assert len(PARAMETERS) == 25
    assert set(inspect.signature(ABCBoostClassifier).parameters) == PARAMETERS
    assert set(inspect.signature(ABCBoostClassifier.__init__).parameters) == PARAMETERS | {"self"}
    assert {"X_val", "y_val", "sample_weight"} < FIT
    with pytest.raises(TypeError, match="multiple values for argument 'algorithm'"):
        ABCBoostClassifier("mart", algorithm="mart")


# ------------------------------------------------------------------------------------- prediction


@pytest.mark.parametrize("name", [*PREDICT_ELSEWHERE, *names_in(hints.OF_PREDICTION)])
def test_every_argument_of_predict_elsewhere_is_answered(name):
    if name in PREDICT:
        return
    model = small(max_iter=1).fit(X, Y)
    methods = (model.predict, model.predict_proba, model.predict_log_proba, model.decision_function)
    for method in (*methods, model.apply):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'; ") as raised:
            method(X, **{name: 1})
        table = names_in(hints.OF_PREDICTION) | names_in(hints.NOT_IN_PREDICTION)
        assert table[name] in str(raised.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("num_iteration", "n_iter"),
        ("iteration_range", "n_iter"),
        ("raw_score", "decision_function(X)"),
        ("output_margin", "decision_function(X)"),
        ("pred_contrib", "explain(X)"),
        ("pred_leaf", "apply(X)"),
    ],
)
def test_argument_of_predict_elsewhere_is_answered_with_ours(name, said):
    with pytest.raises(TypeError) as raised:
        small(max_iter=1).fit(X, Y).predict(X, **{name: 1})
    assert str(raised.value).endswith(f"'{name}'; did you mean {said}?")


# ------------------------------------------------------------------------------------- attributes


@pytest.mark.parametrize("name", sorted(names_in(hints.ATTRIBUTES)))
def test_every_attribute_of_the_table_is_answered(name):
    said = names_in(hints.ATTRIBUTES)[name]
    for model in (small(), small(max_iter=1).fit(X, Y)):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError) as raised:
            getattr(model, name)
        assert f"has no attribute '{name}'" in str(raised.value)
        assert f"did you mean {said}?" in str(raised.value)


@pytest.mark.parametrize("name", [*ATTRIBUTES_OF_0_2, *ATTRIBUTES_ELSEWHERE])
def test_attribute_of_another_package_or_version_is_answered(name):
    assert name in names_in(hints.ATTRIBUTES)


def test_misspelled_attribute_is_answered_and_others_are_not():
    with pytest.raises(
        AttributeError, match=r"no attribute 'best_iteratio_'; did you mean best_ite"
    ):
        _ = small().best_iteratio_
    with pytest.raises(AttributeError, match=r"no attribute 'zigzag'$"):
        _ = small().zigzag


def test_errors_of_existing_attributes_are_unchanged():
    with pytest.raises(AttributeError, match="is not fitted yet"):
        _ = small().n_iter_
    with pytest.raises(AttributeError, match="X had no column names"):
        _ = small(max_iter=1).fit(X, Y).feature_names_in_


@pytest.mark.parametrize("name", sorted(names_in(hints.OF_REPORT)))
def test_attribute_of_a_report_is_answered(name):
    reports = []
    small(max_iter=1, callbacks=reports.append).fit(X, Y)
    (report,) = reports
    assert isinstance(report, IterationReport)
    with pytest.raises(AttributeError) as raised:
        getattr(report, name)
    assert f"did you mean {names_in(hints.OF_REPORT)[name]}?" in str(raised.value)


@pytest.mark.parametrize("name", sorted(names_in(hints.EXPORTS)))
def test_old_export_is_answered(name):
    with pytest.raises(ImportError) as raised:
        exec(f"from abcgbm import {name}")  # noqa: S102
    assert f"did you mean {names_in(hints.EXPORTS)[name]}?" in str(raised.value)
    with pytest.raises(AttributeError, match="has no attribute 'zigzag'"):
        _ = abcgbm.zigzag


def test_old_export_of_the_distributed_package_is_answered():
    with pytest.raises(ImportError, match=r"did you mean MPICommunicator, of abcgbm\.distributed"):
        exec("from abcgbm.distributed import MPIReducer")  # noqa: S102
    with pytest.raises(AttributeError, match="has no attribute 'zigzag'"):
        _ = abcgbm.distributed.zigzag


# -------------------------------------------------------------------------------------- the shell


@pytest.mark.parametrize(("ours", "theirs"), hints.OPTIONS.items())
def test_every_option_of_the_table_is_answered(ours, theirs, capsys):
    pytest.importorskip("typer")
    from abcgbm.cli.app import run  # noqa: PLC0415

    for option in theirs.split():
        assert run(["train", "t.csv", "-l", "y", "-m", "m.abcgbm", option, "3"]) == 2
        said = f"no such option: {option}; did you mean {ours}?"
        assert said in capsys.readouterr().err


# ----------------------------------------------------------------------------------------- values

VALUES = [
    (parameter, value, said)
    for tables in (hints.VALUES, hints.NOT_A_VALUE)
    for parameter, table in tables.items()
    for value, said in names_in(table).items()
]


@pytest.mark.parametrize(("parameter", "value", "said"), VALUES)
def test_every_value_of_the_tables_is_answered(parameter, value, said):
    given = {
        "handle_unknown": lambda: {
            "categorical_features": abcgbm.Categorical(handle_unknown=value)
        },
        "baseline": lambda: {"algorithm": abcgbm.MultiOutputTrees(baseline=value)},
        "criterion": lambda: {"algorithm": abcgbm.TreePerClass(criterion=value)},
    }.get(parameter, lambda: {parameter: value})()
    with pytest.raises((ValueError, TypeError)) as raised:
        small(**given).fit(X, Y)
    assert said in str(raised.value)
    assert f"{parameter}={value!r}" in str(raised.value)
