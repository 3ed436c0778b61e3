"""The estimator's public behaviour."""

import copy
import inspect
import math
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from abcgbm import (
    ABCBoostClassifier,
    AdaptiveBaseClass,
    BinMapper,
    BinnedTable,
    MultiOutputTrees,
    TreePerClass,
)
from models import assert_same_model, base_labels, model_bytes, noisy_data, small

VARIANTS = {
    "mart": {"algorithm": "mart"},
    "mart class by class": {"algorithm": TreePerClass("mart", sequential_residuals=True)},
    "Mb": {"algorithm": AdaptiveBaseClass(base_derivatives=False)},
    "abc-mart": {"algorithm": "abc-mart"},
    "fixed base": {"algorithm": AdaptiveBaseClass(base_label=1)},
    "search": {"algorithm": AdaptiveBaseClass(n_candidates=2, gap=1)},
    "logitboost": {"algorithm": "logitboost"},
    "abc-logitboost": {"algorithm": "abc-logitboost"},
    "shared": {"algorithm": "multi-output"},
    "shared, drawn": {"algorithm": MultiOutputTrees("mart", n_projections=2, baseline="zero")},
}
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)


@pytest.fixture(scope="module")
def data():
    return noisy_data()


@pytest.fixture(scope="module")
def two_classes():
    return noisy_data(n_classes=2)


@pytest.mark.filterwarnings("ignore:no tree can be split")  # some checks have a dozen rows
@parametrize_with_checks(
    [
        ABCBoostClassifier(),
        ABCBoostClassifier(algorithm="mart"),
        ABCBoostClassifier(algorithm="abc-mart"),
        ABCBoostClassifier(algorithm="logitboost"),
        ABCBoostClassifier(algorithm="abc-logitboost"),
        ABCBoostClassifier(AdaptiveBaseClass(n_candidates=2, gap=1)),
        ABCBoostClassifier(MultiOutputTrees("mart")),
        ABCBoostClassifier(MultiOutputTrees(n_projections=1)),
    ]
)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def test_parameters_and_defaults_match_the_documentation():
    expected = {
        "algorithm": "auto",
        "learning_rate": "auto",
        "max_iter": "auto",
        "max_leaf_nodes": "auto",
        "max_depth": None,
        "min_samples_leaf": 10,
        "l2_regularization": "auto",
        "max_bins": 255,
        "subsample": 1.0,
        "max_features": "auto",
        "interaction_cst": None,
        "classes": None,
        "class_weight": None,
        "warm_start": False,
        "early_stopping": "auto",
        "scoring": "loss",
        "validation_fraction": 0.1,
        "n_iter_no_change": 20,
        "refit": False,
        "tol": 1e-7,
        "n_jobs": None,
        "random_state": None,
        "verbose": 0,
        "categorical_features": "auto",
        "callbacks": None,
    }
    given = inspect.signature(ABCBoostClassifier).parameters
    assert {name: p.default for name, p in given.items()} == expected
    assert [name for name, p in given.items() if p.kind != p.KEYWORD_ONLY] == ["algorithm"]


# ----------------------------------------------------------------------------- fitted attributes


@every_variant
def test_fit_sets_the_training_attributes(variant, data):
    model = small(**variant).fit(*data)
    assert model.n_iter_ == 8
    assert model.train_loss_.shape == (9,)
    assert model.class_losses_.shape == (9, 4)
    assert len(base_labels(model)) == 8
    assert model.history_.candidate_losses.shape == (8, 4)
    assert model.stop_reason_ == "max_iter"
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.n_features_in_ == 4
    assert not hasattr(model, "feature_names_in_")


@every_variant
def test_training_losses_match_the_predictions(variant, data):
    X, y = data
    model = small(**variant).fit(X, y)
    np.testing.assert_allclose(model.class_losses_.sum(axis=1), model.train_loss_, rtol=1e-12)
    np.testing.assert_allclose(model.train_loss_[0], math.log(4), rtol=1e-12)
    for losses, proba in zip(model.class_losses_[1:], model.staged_predict_proba(X), strict=True):
        of_rows = -np.log(proba[np.arange(len(y)), y])
        np.testing.assert_allclose(losses, np.bincount(y, of_rows) / len(y), rtol=1e-9)


@every_variant
@pytest.mark.parametrize("n_classes", [2, 3, 30])
def test_training_loss_never_increases(variant, n_classes):
    model = small(**variant, max_iter=15).fit(*noisy_data(n_classes=n_classes))
    assert (np.diff(model.train_loss_) <= 0).all()
    assert model.train_loss_[-1] < model.train_loss_[0]


def test_second_fit_replaces_the_first(data, two_classes):
    twice = small().fit(pd.DataFrame(data[0], columns=list("abcd")), data[1]).fit(*two_classes)
    assert_same_model(twice, small().fit(*two_classes))
    assert not hasattr(twice, "feature_names_in_")
    assert twice.classes_.tolist() == [0, 1]


def test_fit_changes_neither_parameters_nor_data(data):
    X, y = data[0].copy(), data[1].copy()
    weight = np.ones(len(y))
    model = small(AdaptiveBaseClass(base_label=2), random_state=3)
    before = copy.deepcopy(model.get_params())
    assert model.fit(X, y, weight) is model
    model.predict(X)
    assert model.get_params() == before
    np.testing.assert_array_equal(X, data[0])
    np.testing.assert_array_equal(y, data[1])
    assert (weight == 1).all()


def test_read_only_arrays_are_accepted(data):
    frozen = [a.copy() for a in data]
    for array in frozen:
        array.flags.writeable = False
    model = small().fit(*frozen)
    assert_same_model(model, small().fit(*data))
    np.testing.assert_array_equal(model.predict(frozen[0]), model.predict(data[0]))


def test_feature_names_are_stored(data):
    X = pd.DataFrame(data[0], columns=list("abcd"))
    model = small().fit(X, data[1])
    assert model.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(model.predict(X), small().fit(*data).predict(data[0]))


# ------------------------------------------------------------------------------------ prediction


@every_variant
@pytest.mark.parametrize("n_classes", [2, 3, 12])
def test_prediction_methods_are_consistent(variant, n_classes):
    X, y = noisy_data(n_classes=n_classes)
    model = small(**variant).fit(X, y)
    proba = model.predict_proba(X)
    assert proba.shape == (len(X), n_classes)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(proba), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
    assert model.score(X, y) == np.mean(model.predict(X) == y)


def test_scores_have_one_column_for_each_class(data):
    model = small().fit(*data)
    scores = model.decision_function(data[0])
    assert scores.shape == (len(data[0]), 4)
    e = np.exp(scores)
    np.testing.assert_allclose(
        e / e.sum(axis=1, keepdims=True), model.predict_proba(data[0]), rtol=1e-13
    )


@every_variant
def test_score_of_two_classes_is_the_log_odds_of_the_second(variant, two_classes):
    model = small(**variant).fit(*two_classes)
    scores = model.decision_function(two_classes[0])
    assert scores.shape == (len(two_classes[0]),)
    proba = model.predict_proba(two_classes[0])
    np.testing.assert_allclose(expit(scores), proba[:, 1], rtol=1e-14)
    np.testing.assert_array_equal(model.predict(two_classes[0]), (scores > 0).astype(int))


@pytest.mark.parametrize("n_classes", [3, 10, 60])
def test_scores_sum_to_zero_with_a_base_class(n_classes):
    X, y = noisy_data(n_rows=900, n_classes=n_classes)
    scores = small(max_iter=10).fit(X, y).decision_function(X)
    assert (scores != 0).any()
    np.testing.assert_allclose(scores.sum(axis=1), 0, atol=1e-12 * np.abs(scores).max())


@pytest.mark.parametrize("base_label", [None, 0, 1])
def test_with_two_classes_abc_mart_is_mart_bit_for_bit(base_label, two_classes):
    X, y = two_classes
    mart = small("mart").fit(X, y)
    abc = small(AdaptiveBaseClass(base_label=base_label)).fit(X, y)
    assert mart.decision_function(X).tobytes() == abc.decision_function(X).tobytes()
    assert mart.predict_proba(X).tobytes() == abc.predict_proba(X).tobytes()
    assert mart.train_loss_.tobytes() == abc.train_loss_.tobytes()
    assert mart.class_losses_.tobytes() == abc.class_losses_.tobytes()
    assert len(mart.model_.ensemble.tree_class) == mart.n_iter_  # one tree per iteration


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_centring_changes_scores_but_not_probabilities(sequential, n_classes):
    X, y = noisy_data(n_classes=n_classes)
    plain, centred = (
        small(TreePerClass("mart", sequential_residuals=sequential, recenter=r)).fit(X, y)
        for r in (False, True)
    )
    assert_same_model(plain, centred)
    assert plain.predict_proba(X).tobytes() == centred.predict_proba(X).tobytes()
    if n_classes > 2:
        scores = plain.decision_function(X)
        expected = scores - scores.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(centred.decision_function(X), expected, atol=1e-14)
    else:
        np.testing.assert_array_equal(centred.decision_function(X), plain.decision_function(X))


def test_centring_matters_for_mart(data):
    plain, centred = (small(TreePerClass("mart", recenter=r)).fit(*data) for r in (False, True))
    scores = plain.decision_function(data[0])
    assert np.abs(scores.sum(axis=1)).max() > 1e-3
    assert not np.array_equal(scores, centred.decision_function(data[0]))


@every_variant
@pytest.mark.parametrize("n_classes", [2, 4])
def test_last_stage_is_the_whole_model(variant, n_classes):
    X, y = noisy_data(n_classes=n_classes)
    model = small(**variant).fit(X, y)
    for method in ("predict", "predict_proba", "decision_function"):
        stages = list(getattr(model, f"staged_{method}")(X))
        assert len(stages) == model.n_iter_
        assert stages[-1].tobytes() == getattr(model, method)(X).tobytes()


@every_variant
def test_each_stage_is_the_model_of_a_shorter_fit(variant, data):
    X, y = data
    stages = [
        list(getattr(small(**variant).fit(X, y), f"staged_{method}")(X))
        for method in ("predict", "predict_proba", "decision_function")
    ]
    for n_iter in (1, 5):
        shorter = small(**variant, max_iter=n_iter).fit(X, y)
        expected = (shorter.predict(X), shorter.predict_proba(X), shorter.decision_function(X))
        for of_method, array in zip(stages, expected, strict=True):
            assert of_method[n_iter - 1].tobytes() == array.tobytes()


def test_prediction_is_the_same_for_any_batch(data):
    X, y = data
    model = small().fit(X, y)
    whole = model.predict_proba(X)
    for batch in (1, 7, 64):
        parts = [model.predict_proba(X[i : i + batch]) for i in range(0, len(X), batch)]
        assert np.concatenate(parts).tobytes() == whole.tobytes()


# --------------------------------------------------------------------------------- unusual tables


def test_missing_values_are_distinguished_from_values():
    X = np.array([0.0, 1.0, np.nan] * 40)[:, None]
    y = np.array(["low", "high", "missing"] * 40)
    model = small(learning_rate=1.0).fit(X, y)
    assert model.score(X, y) == 1
    assert model.predict([[np.nan]]) == "missing"


@pytest.mark.parametrize("side", [-np.inf, np.inf])
def test_infinities_are_ordered_like_extreme_values(side):
    finite = np.tile([0.0, 1.0, 2.0, 3.0], 30)[:, None]
    extreme = 3.0 if side > 0 else 0.0
    X = np.where(finite == extreme, side, finite)
    y = finite[:, 0].astype(int)
    model = small(learning_rate=1.0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    far = model.predict_proba([[np.copysign(1e308, side)], [side]])
    assert np.isfinite(far).all()
    np.testing.assert_array_equal(
        model.predict_proba(X), small(learning_rate=1.0).fit(finite, y).predict_proba(finite)
    )


@pytest.mark.parametrize("useless", [np.nan, 0.0, -np.inf, np.inf], ids=str)
def test_constant_column_changes_nothing(useless, data):
    X, y = data
    wider = np.column_stack([X, np.full(len(X), useless)])
    model, expected = small().fit(wider, y), small().fit(X, y)
    assert model.predict_proba(wider).tobytes() == expected.predict_proba(X).tobytes()
    assert model.feature_importances_[-1] == 0


NOTHING = "^no tree can be split, so every class has the same probability everywhere: "


@pytest.mark.parametrize("value", [np.nan, 3.0, np.inf], ids=str)
def test_constant_table_gives_equal_probabilities(value):
    X, y = np.full((40, 2), value), np.arange(40) % 4
    why = r"40 row\(s\) of total weight 40; no feature has two values$"
    with pytest.warns(UserWarning, match=NOTHING + why) as warned:
        model = small().fit(X, y)
    assert len(warned) == 1
    assert (model.n_iter_, model.stop_reason_) == (0, "no_progress")
    np.testing.assert_array_equal(model.predict_proba(X), 0.25)
    np.testing.assert_array_equal(model.predict(X), 0)
    np.testing.assert_allclose(model.train_loss_, [math.log(4)])
    np.testing.assert_array_equal(model.feature_importances_, [0, 0])
    assert list(model.staged_predict(X)) == []


def test_unseen_values_are_predicted(data):
    model = small().fit(*data)
    X = np.array([[np.nan] * 4, [np.inf] * 4, [-np.inf] * 4, [1e308] * 4, [5e-324] * 4])
    proba = model.predict_proba(X)
    assert np.isfinite(proba).all()
    np.testing.assert_array_equal(proba[1], proba[3])


def test_values_missing_only_in_prediction_go_to_the_heavier_child():
    X = np.array([0.0] * 20 + [1.0] * 40)[:, None]
    y = np.array(["few"] * 20 + ["many"] * 40)
    model = small().fit(X, y)
    np.testing.assert_array_equal(model.predict_proba([[np.nan]]), model.predict_proba([[1.0]]))


def test_one_feature_is_enough(data):
    X, y = data
    assert small().fit(X[:, :1], y).score(X[:, :1], y) > np.bincount(y).max() / len(y)


def test_too_few_rows_for_a_split_warn(data):
    X, y = data
    why = r"19 row\(s\) of total weight 19, less than twice min_samples_leaf=10;"
    with pytest.warns(UserWarning, match=NOTHING + why) as warned:
        model = small().fit(X[:19], y[:19])
    assert [Path(w.filename) for w in warned] == [Path(__file__)]
    assert (model.n_iter_, model.stop_reason_) == (0, "no_progress")


@pytest.mark.parametrize(
    ("forbidding", "smaller"),
    [
        (
            {"algorithm": AdaptiveBaseClass(min_gain=1e9)},
            "min_gain than 1e+09 or min_samples_leaf than 10",
        ),
        (
            {"algorithm": TreePerClass(min_hessian_leaf=1e9), "l2_regularization": 2},
            "min_hessian_leaf than 1e+09 or min_samples_leaf than 10 or l2_regularization than 2",
        ),
        (
            {"min_samples_leaf": 0.5, "subsample": 0.01},
            "min_samples_leaf than 0.5, a larger subsample than 0.01",
        ),
    ],
    ids=["min_gain", "min_hessian_leaf", "subsample"],
)
def test_parameter_that_forbids_every_split_is_named(forbidding, smaller, data):
    why = f"400 row(s) of total weight 400; a smaller {smaller} may help, if any feature separates the classes"
    with pytest.warns(UserWarning, match=NOTHING + re.escape(why)) as warned:
        model = small(**forbidding).fit(*data)
    assert [Path(w.filename) for w in warned] == [Path(__file__)]
    assert (model.n_iter_, model.stop_reason_) == (0, "no_progress")
    np.testing.assert_array_equal(model.predict_proba(data[0]), 0.25)


def test_zero_weight_rows_do_not_count_as_training_rows(data):
    X, y = data
    why = r"15 row\(s\) of total weight 7.5, less than twice min_samples_leaf=10;"
    with pytest.warns(UserWarning, match=NOTHING + why):
        small().fit(X, y, np.where(np.arange(len(y)) < 15, 0.5, 0))


def test_two_rows_can_be_fitted():
    model = small(min_samples_leaf=1, learning_rate=1.0).fit([[0.0], [1.0]], ["a", "b"])
    assert model.predict([[0.0], [1.0]]).tolist() == ["a", "b"]


def test_unusual_data_frames_are_accepted():
    frame = pd.DataFrame(
        {"int": pd.array([1, None, 3] * 20, dtype="Int64"), "bool": [True, False, True] * 20}
    )
    numbers = np.array([[1, 1], [np.nan, 0], [3, 1]] * 20)
    y = np.arange(60) % 3
    assert_same_model(small().fit(frame, y), small().fit(numbers, y))


# ------------------------------------------------------------------------------ growth parameters


def leaves_and_depths(model):
    """Return the leaves of each tree and the depth of each node."""
    e = model.model_.ensemble
    for start, end in zip(e.tree_start[:-1], e.tree_start[1:], strict=True):
        depth = np.zeros(end - start, int)
        for i in np.flatnonzero(e.feature[start:end] >= 0):  # parents come before their children
            depth[e.left[start + i]] = depth[e.left[start + i] + 1] = depth[i] + 1
        yield np.count_nonzero(e.feature[start:end] < 0), depth.max()


def test_trees_respect_their_limits(data):
    model = small(max_leaf_nodes=5).fit(*data)
    assert max(leaves for leaves, _ in leaves_and_depths(model)) == 5
    model = small(max_leaf_nodes=31, max_depth=2).fit(*data)
    assert max(depth for _, depth in leaves_and_depths(model)) == 2
    model = small(min_samples_leaf=33).fit(*data)
    is_leaf = model.model_.ensemble.feature < 0
    assert model.model_.ensemble.weight[is_leaf].min() >= 33


def test_split_must_gain_more_than_min_gain(data):
    gain = small(AdaptiveBaseClass(min_gain=2.0)).fit(*data).model_.ensemble.gain
    assert gain[gain > 0].min() > 2.0


def test_more_bins_than_values_change_nothing(data):
    X, y = np.round(data[0]), data[1]
    n_distinct = max(len(np.unique(x[~np.isnan(x)])) for x in X.T)
    models = [small(max_bins=b).fit(X, y) for b in (n_distinct, 255, 256, 65534)]
    for model in models[1:]:
        assert_same_model(model, models[0])
    assert model_bytes(small(max_bins=2).fit(X, y)) != model_bytes(models[0])


def test_learning_rate_scales_the_first_step(data):
    X, y = data
    full, tenth = (
        small("mart", max_iter=1, learning_rate=nu).fit(X, y).decision_function(X)
        for nu in (1.0, 0.1)
    )
    np.testing.assert_allclose(tenth, full / 10, atol=2**-32)


# ------------------------------------------------------------------------------------ importances


def test_importances_are_shares_of_the_gain(data):
    model = small().fit(*data)
    e = model.model_.ensemble
    total = [e.gain[e.feature == f].sum() for f in range(4)]
    np.testing.assert_allclose(model.feature_importances_, total / np.sum(total))
    assert model.feature_importances_.shape == (4,)


def test_only_informative_feature_has_all_importance():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), np.arange(300) % 3
    X[:, 1] = y
    shares = small().fit(X, y).feature_importances_
    np.testing.assert_allclose(shares, [0, 1, 0], atol=1e-25)


# ----------------------------------------------------------------------------------- scikit-learn


def test_pickle_and_copies_preserve_the_model(data):
    X, y = data
    model = small().fit(X, y)
    model.predict(X)  # copies must work with the caches of prediction
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert_same_model(copied, model)
        assert copied.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
        assert copied.get_params() == model.get_params()
        assert_same_model(copied.fit(X, y), model)


def test_pickle_does_not_depend_on_earlier_predictions(data):
    fresh = small().fit(*data)
    used = copy.deepcopy(fresh)
    used.predict(data[0])
    assert pickle.dumps(used) == pickle.dumps(copy.deepcopy(fresh))


def test_clone_keeps_only_parameters(data):
    model = small(AdaptiveBaseClass(base_label=3), learning_rate=0.3).fit(*data)
    cloned = clone(model)
    assert cloned.get_params() == model.get_params()
    assert not hasattr(cloned, "classes_")
    assert_same_model(cloned.fit(*data), model)


def test_pipeline_takes_the_classifier():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), small(learning_rate=0.5))
    assert pipeline.fit(X, y).score(X, y) > 0.97
    weighted = pipeline.fit(X, y, abcboostclassifier__sample_weight=np.ones(len(y)))
    assert weighted[-1].classes_.tolist() == [0, 1, 2]


def test_grid_search_finds_parameters():
    X, y = load_iris(return_X_y=True)
    grid = {"algorithm": ["mart", "abc-mart"], "max_leaf_nodes": np.array([2, 6])}
    search = GridSearchCV(small(), grid, cv=2, n_jobs=1, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.9
    assert_same_model(search.best_estimator_, small(**search.best_params_).fit(X, y))


def test_cross_validation_scores_probabilities():
    X, y = load_iris(return_X_y=True)
    losses = cross_val_score(small(max_iter=20), X, y, cv=2, scoring="neg_log_loss")
    assert (losses > -0.5).all()


def test_voting_averages_probabilities(data):
    X, y = data
    voters = [("mart", small("mart")), ("abc", small("abc-mart"))]
    vote = VotingClassifier(voters, voting="soft").fit(X, y)
    mean = np.mean([model.fit(X, y).predict_proba(X) for _, model in voters], axis=0)
    np.testing.assert_allclose(vote.predict_proba(X), mean)


@every_variant
def test_binned_table_gives_the_model_of_its_rows(variant, data):
    X, y = data
    table = BinMapper().fit(X).transform(X)
    expected = small(**variant).fit(X, y)
    for _ in range(2):  # a table can be used again
        model = small(**variant).fit(table, y)
        assert_same_model(model, expected)
        assert model.predict_proba(X).tobytes() == expected.predict_proba(X).tobytes()
    assert model.n_features_in_ == 4


def test_binned_table_with_weights_gives_the_model_of_its_rows(data):
    X, y = data
    weight = np.random.default_rng(0).uniform(0.1, 5, len(y))
    table = BinMapper(max_bins=20).fit(X, sample_weight=weight).transform(X)
    expected = small(max_bins=20).fit(X, y, weight)
    assert_same_model(small(max_bins=20).fit(table, y, weight), expected)


def test_rows_of_a_binned_table_share_its_bins(data):
    X, y = data
    table = BinMapper(max_bins=16).fit(X).transform(X)
    rows = np.arange(0, len(y), 3)
    weight = np.zeros(len(y))
    weight[rows] = 1
    by_rows = small().fit(table[rows], y[rows])
    assert_same_model(by_rows, small().fit(table, y, weight))
    np.testing.assert_array_equal(table[rows].binned.codes(), table.binned.codes()[rows])


ROWS = {
    "numbers": np.array([5, 0, 5]),
    "negative numbers": [-1, 3],
    "mask": np.arange(400) % 3 == 1,
    "mask as a list": [True, False] * 200,
    "slice": slice(10, 350),
    "slice with steps": slice(10, 350, 7),
    "slice backwards": slice(350, 10, -7),
    "nothing": [],
    "all": ...,
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_row_indexing_of_a_binned_table_follows_numpy(rows, data):
    table = BinMapper().fit(data[0]).transform(data[0])
    taken, expected = table[rows], table.binned.codes()[rows]
    assert isinstance(taken, BinnedTable)
    np.testing.assert_array_equal(taken.binned.codes(), expected)
    assert taken.shape == expected.shape == (len(taken), 4)


@pytest.mark.parametrize("row", [0, -1, np.int32(7)], ids=repr)
def test_single_number_takes_one_row_of_a_binned_table(row, data):
    table = BinMapper().fit(data[0]).transform(data[0])
    np.testing.assert_array_equal(table[row].binned.codes(), table.binned.codes()[[row]])
    assert table[row].shape == (1, 4)


def test_binned_table_keeps_feature_names(data):
    X, y = pd.DataFrame(data[0], columns=list("abcd")), data[1]
    mapper = BinMapper().fit(X)
    assert mapper.feature_names_in_.tolist() == list("abcd")
    table = mapper.transform(X)
    assert table.feature_names.tolist() == table[:50].feature_names.tolist() == list("abcd")
    model = small().fit(table, y)
    assert model.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(model.predict(X), small().fit(*data).predict(data[0]))
    np.testing.assert_array_equal(model.predict(X[list("dcba")]), model.predict(X))
    assert BinMapper().fit(data[0]).transform(data[0]).feature_names is None


def test_refit_of_the_mapper_leaves_earlier_tables_unchanged(data):
    X, y = data
    mapper = BinMapper(max_bins=16).fit(X)
    table, before = mapper.transform(X), small(max_bins=16).fit(X, y)
    mapper.set_params(max_bins=4).fit(X[:, :2] * 100)
    assert mapper.n_features_in_ == 2
    after = small().fit(table, y)
    assert_same_model(after, before)
    assert after.predict_proba(X).tobytes() == before.predict_proba(X).tobytes()


def test_mapper_is_an_estimator(data):
    mapper = BinMapper(max_bins=9, n_jobs=1).fit(*data)  # labels are ignored
    assert {"max_bins": 9, "n_jobs": 1}.items() <= mapper.get_params().items()
    assert mapper.n_features_in_ == 4
    cloned = clone(mapper)
    assert cloned.get_params() == mapper.get_params()
    assert not hasattr(cloned, "thresholds_")
    for one, other in zip(cloned.fit(data[0]).thresholds_, mapper.thresholds_, strict=True):
        np.testing.assert_array_equal(one, other)


def test_fit_with_an_unnamed_binned_table_removes_feature_names(data):
    X, y = data
    model = small().fit(pd.DataFrame(X, columns=list("abcd")), y)
    model.fit(BinMapper().fit(X).transform(X), y)
    assert not hasattr(model, "feature_names_in_")


def test_nothing_is_printed_by_default(data, capfd):
    small().fit(*data).predict(data[0])
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------------------------- real data

OPTDIGITS = Path(os.environ.get("ABCGBM_DATA", "")) / "optdigits" / "train.csv.gz"


@pytest.mark.skipif(
    not ("ABCGBM_DATA" in os.environ and OPTDIGITS.is_file()),
    reason="ABCGBM_DATA names no folder with optdigits/train.csv.gz",
)
@pytest.mark.parametrize("algorithm", ["mart", "abc-mart"])
@pytest.mark.slow
def test_training_loss_of_optdigits_falls_below_1e_10_without_stalling(algorithm):
    table = np.loadtxt(OPTDIGITS, delimiter=",")
    X, y = table[:, 1:], table[:, 0].astype(int)
    model = ABCBoostClassifier(algorithm, max_leaf_nodes=10, max_iter=800)
    loss = model.fit(X, y).train_loss_
    assert loss[-1] < 1e-10
    assert (np.diff(loss) < 0).all()
    assert (loss[20:] < 0.7 * loss[:-20]).all()


class Few(ABCBoostClassifier):
    def __init__(self, max_iter=3, name="x"):
        super().__init__("mart", max_iter=max_iter, learning_rate=0.1)
        self.name = name


def test_subclass_may_have_other_parameters():
    model = Few().fit(*noisy_data())
    assert model.n_iter_ == 3
    assert clone(model).get_params() == {"max_iter": 3, "name": "x"}
