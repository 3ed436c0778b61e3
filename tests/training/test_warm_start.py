"""The baseline of training: zero, the class frequencies, or an earlier fit."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abcgbm import AdaptiveBaseClass, BinMapper
from abcgbm.data.samples import LabelledRows
from abcgbm.model.losses import log_frequencies
from abcgbm.training.warm_start import PreviousFit
from models import (
    KINDS_OF_FIT,
    assert_same_model,
    base_labels,
    ensemble_arrays,
    noisy_data,
    small,
    with_fields,
)

ROWS, LABELS = noisy_data(n_rows=500, n_classes=4)
X, Y = ROWS[:300], LABELS[:300]
X_VAL, Y_VAL = ROWS[300:], LABELS[300:]
VALIDATION = {"X_val": X_VAL, "y_val": Y_VAL}
every_variant = pytest.mark.parametrize("variant", KINDS_OF_FIT.values(), ids=KINDS_OF_FIT)


# ---------------------------------------------------------------------------------------- prior


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 1000))
def test_prior_is_the_rounded_log_of_the_class_frequencies(labels, most):
    y = np.array(labels, np.int32)
    weight = np.random.default_rng(0).integers(1, most + 1, len(y))
    rows = LabelledRows(None, slice(None), y, weight.astype(np.float64), np.ones(4))
    found = log_frequencies(rows)
    frequency = np.bincount(y, weight, minlength=4) / weight.sum()
    frequency[frequency == 0] = 0.5 / len(y)
    np.testing.assert_allclose(found, np.log(frequency), rtol=0, atol=2.0**-32)
    assert (found * 2**32 == np.rint(found * 2**32)).all()


def test_every_algorithm_starts_from_zero():
    for algorithm in ("mart", "abc-mart", "logitboost", "abc-logitboost"):
        model = small(algorithm).fit(X, Y)
        assert model.baseline_.tolist() == [0, 0, 0, 0]
        np.testing.assert_allclose(model.train_loss_[0], math.log(4), rtol=1e-12)


@pytest.mark.parametrize("algorithm", ["mart", "abc-mart", "logitboost", "abc-logitboost"])
def test_first_loss_with_the_prior_is_the_entropy_of_the_labels(algorithm):
    weight = np.random.default_rng(0).integers(1, 5, len(Y))
    model = small(**with_fields({"algorithm": algorithm}, baseline="prior")).fit(X, Y, weight)
    of_class = np.bincount(Y, weight)
    entropy = -(of_class * np.log(of_class / weight.sum())).sum() / weight.sum()
    np.testing.assert_allclose(model.train_loss_[0], entropy, rtol=1e-9)


@pytest.mark.parametrize("algorithm", ["mart", "abc-mart", "logitboost", "abc-logitboost"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_prior_of_balanced_classes_is_zero(algorithm, n_classes):
    x, y = noisy_data(n_rows=400, n_classes=n_classes)
    even = np.concatenate([np.flatnonzero(y == k)[:40] for k in range(n_classes)])
    zero, prior = (
        small(**with_fields({"algorithm": algorithm}, baseline=b)).fit(x[even], y[even])
        for b in ("zero", "prior")
    )
    others = ensemble_arrays(prior)
    for name, array in ensemble_arrays(zero).items():
        if name != "init":
            np.testing.assert_array_equal(array, others[name], err_msg=name)
    assert zero.predict_proba(x).tobytes() == prior.predict_proba(x).tobytes()


@every_variant
def test_reported_scores_with_the_prior_are_centred_and_give_the_probabilities(variant):
    model = small(**with_fields(variant, baseline="prior")).fit(X, Y)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores.sum(axis=1), 0, atol=1e-9)
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), proba, rtol=1e-9)


def test_stages_begin_with_the_prior():
    model = small(AdaptiveBaseClass(baseline="prior")).fit(X, Y)
    *_, last = model.staged_predict_proba(X)
    assert last.tobytes() == model.predict_proba(X).tobytes()
    losses = [-np.log(p[np.arange(len(Y)), Y]).mean() for p in model.staged_predict_proba(X)]
    np.testing.assert_allclose(model.train_loss_[1:], losses, rtol=1e-9)


def test_constant_table_gives_the_class_frequencies():
    y = np.repeat([0, 1, 2], [10, 20, 30])
    with pytest.warns(UserWarning, match="no tree can be split, so every row has the same prob"):
        model = small(AdaptiveBaseClass(baseline="prior")).fit(np.zeros((60, 1)), y)
    np.testing.assert_allclose(model.predict_proba([[0.0]]), [[1 / 6, 2 / 6, 3 / 6]], rtol=1e-9)


def test_prior_counts_a_class_without_rows_as_half_a_row():
    y = np.repeat([0, 1], [10, 30])
    with pytest.warns(UserWarning, match="no tree can be split"):
        model = small(AdaptiveBaseClass(baseline="prior"), classes=[0, 1, 2]).fit(
            np.zeros((40, 1)), y
        )
    expected = np.array([10, 30, 0.5]) / 40.5
    np.testing.assert_allclose(model.predict_proba([[0.0]])[0], expected, rtol=1e-9)


@pytest.mark.parametrize("bad", ["priors", None, 0], ids=repr)
def test_unknown_baseline_is_named(bad):
    error = ValueError if isinstance(bad, str) else TypeError
    with pytest.raises(error, match=f"baseline={bad!r}; expected 'prior' or 'zero'"):
        small(AdaptiveBaseClass(baseline=bad)).fit(X, Y)


# ----------------------------------------------------------------------------------- warm start


def assert_same_fit(one, other):
    assert_same_model(one, other)
    assert base_labels(one) == base_labels(other)
    for name in ("baseline_", "validation_loss_", "validation_score_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.history_.candidate_losses, other.history_.candidate_losses)
    assert one.best_iteration_ == other.best_iteration_
    assert one.predict_proba(X_VAL).tobytes() == other.predict_proba(X_VAL).tobytes()


@every_variant
@pytest.mark.parametrize("n_first", [1, 4, 5])
def test_warm_start_equals_a_single_fit(variant, n_first):
    twice = small(**variant, max_iter=n_first, warm_start=True).fit(X, Y)
    twice.set_params(max_iter=9).fit(X, Y)
    assert_same_fit(twice, small(**variant, max_iter=9).fit(X, Y))


@every_variant
def test_warm_start_with_validation_equals_a_single_fit(variant):
    watched = {**variant, "early_stopping": False, "scoring": "accuracy"}
    twice = small(**watched, max_iter=5, warm_start=True).fit(X, Y, **VALIDATION)
    twice.set_params(max_iter=9).fit(X, Y, **VALIDATION)
    assert_same_fit(twice, small(**watched, max_iter=9).fit(X, Y, **VALIDATION))


@pytest.mark.parametrize("validation", [VALIDATION, {}], ids=["given", "held out"])
@pytest.mark.parametrize("n_first", [3, 12, 60])
def test_warm_start_with_early_stopping_equals_a_single_fit(n_first, validation):
    eager = {"learning_rate": 0.5, "n_iter_no_change": 4, "early_stopping": True}
    twice = small(**eager, max_iter=n_first, warm_start=True).fit(X, Y, **validation)
    twice.set_params(max_iter=100).fit(X, Y, **validation)
    once = small(**eager, max_iter=100).fit(X, Y, **validation)
    assert once.stop_reason_ == "early_stopping"
    assert_same_fit(twice, once)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_warm_start_is_the_same_for_any_thread_count(n_jobs):
    twice = small(max_iter=4, warm_start=True, n_jobs=n_jobs).fit(X, Y)
    assert_same_fit(twice.set_params(max_iter=8).fit(X, Y), small().fit(X, Y))


def test_random_state_object_is_drawn_from_once():
    drawn = {"subsample": 0.5, "early_stopping": True, "n_iter_no_change": 100}
    states = [np.random.RandomState(3), np.random.default_rng(3)]
    for state in states:
        twice = small(**drawn, max_iter=4, warm_start=True, random_state=copy.deepcopy(state))
        twice.fit(X, Y).set_params(max_iter=8).fit(X, Y)
        assert_same_fit(twice, small(**drawn, max_iter=8, random_state=state).fit(X, Y))


def test_warm_start_accepts_a_binned_table():
    table = BinMapper().fit(X).transform(X)
    twice = small(max_iter=4, warm_start=True).fit(table, Y).set_params(max_iter=8).fit(table, Y)
    assert_same_fit(twice, small().fit(X, Y))


def test_warm_start_continues_a_pickled_model():
    first = small(max_iter=4, warm_start=True).fit(X, Y)
    restored = pickle.loads(pickle.dumps(first)).set_params(max_iter=8).fit(X, Y)
    assert_same_fit(restored, small().fit(X, Y))


def test_warm_start_accepts_any_weights_and_labels():
    names = np.array(["a", "b", "c", "d"])[Y]
    weight = np.random.default_rng(0).uniform(0, 3, len(Y)) * (np.arange(len(Y)) > 20)
    settings = {"algorithm": AdaptiveBaseClass(baseline="prior"), "class_weight": {"a": 2.5}}
    twice = small(**settings, max_iter=4, warm_start=True).fit(X, names, weight)
    twice.set_params(max_iter=8).fit(X, names, weight)
    assert_same_fit(twice, small(**settings).fit(X, names, weight))


def test_warm_start_without_more_iterations_changes_nothing():
    model = small(warm_start=True).fit(X, Y)
    before = copy.deepcopy(model)
    assert_same_fit(model.fit(X, Y), before)


def test_warm_start_of_a_new_estimator_is_an_ordinary_fit():
    assert_same_fit(small(warm_start=True).fit(X, Y), small().fit(X, Y))


def test_fit_without_warm_start_starts_over():
    model = small(warm_start=True, max_iter=4).fit(X, Y)
    assert_same_fit(model.set_params(warm_start=False, max_iter=8).fit(X, Y), small().fit(X, Y))


def test_class_missing_in_a_warm_start_keeps_its_column():
    model = small(max_iter=4, warm_start=True).fit(X, Y).set_params(max_iter=6)
    model.fit(X[Y != 2], Y[Y != 2])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.n_iter_ == 6


def of_first_row(estimator, rows, labels):
    return estimator.predict_log_proba(rows)[0, labels[0]]


# Incomparable scores: the first fit, and the changes of the second.
OTHERWISE = {
    "scoring": ({"scoring": "accuracy"}, {"scoring": "loss"}, VALIDATION),
    "rows": ({}, {}, {"X_val": X_VAL[:150], "y_val": Y_VAL[:150]}),
    "weights": ({}, {}, VALIDATION | {"sample_weight_val": 1.0 + (np.arange(200) % 2)}),
    "rows of the same score": (
        {"scoring": of_first_row},
        {},
        {"X_val": X_VAL[:150], "y_val": Y_VAL[:150]},
    ),
}


@pytest.mark.parametrize(
    ("first", "second", "validation"), OTHERWISE.values(), ids=OTHERWISE.keys()
)
def test_incomparable_validation_scores_are_discarded(first, second, validation):
    patient = {"n_iter_no_change": 50, "tol": 0.0, "early_stopping": True}
    model = small(**patient, **first, warm_start=True).fit(X, Y, **VALIDATION)
    n_before, losses = model.best_iteration_, model.validation_loss_[: model.best_iteration_]
    model.set_params(**second, max_iter=20).fit(X, Y, **validation)
    scores = model.validation_score_
    assert np.isnan(scores[:n_before]).all()
    assert not np.isnan(scores[n_before:]).any()
    assert model.best_iteration_ == n_before + scores[n_before:].argmax()
    kept = model.validation_loss_[:n_before]
    if validation is VALIDATION:
        np.testing.assert_array_equal(kept, losses)
    else:
        assert np.isnan(kept).all()


def test_other_scoring_in_a_warm_start_does_not_empty_the_model():
    settings = {"early_stopping": True, "n_iter_no_change": 50, "warm_start": True}
    model = small(**settings, max_iter=20, scoring="accuracy").fit(X, Y)
    n_before = model.best_iteration_
    model.set_params(max_iter=60, scoring="loss").fit(X, Y)
    assert model.best_iteration_ >= n_before > 0


def test_scores_of_earlier_validation_rows_are_kept():
    model = small(early_stopping=False, warm_start=True, max_iter=4).fit(X, Y, **VALIDATION)
    before = model.validation_score_
    model.set_params(max_iter=8).fit(X, Y)
    np.testing.assert_array_equal(model.validation_score_[:4], before[:4])
    assert np.isnan(model.validation_score_[4:]).all()


def test_baseline_parameter_may_change_without_changing_the_model():
    model = small(AdaptiveBaseClass(baseline="prior")).fit(X, Y)
    before = model.predict_proba(X).tobytes()
    model.baseline_[:] = 7
    assert model.predict_proba(X).tobytes() == before


def test_memory_is_checked_before_scores_of_an_earlier_fit(monkeypatch):
    model = small(max_iter=4, warm_start=True).fit(X, Y)
    monkeypatch.setattr("abcgbm.training.training_run.available_bytes", lambda: 0)
    monkeypatch.setattr(PreviousFit, "raw", None)
    with pytest.raises(MemoryError, match="training needs about"):
        model.set_params(max_iter=8).fit(X, Y)


@pytest.mark.parametrize("init", ["zero", "prior"])
def test_warm_start_of_a_single_class_works_with_any_baseline(init):
    settings = {
        "algorithm": AdaptiveBaseClass(baseline=init),
        "classes": [0, 1, 2, 3],
        "warm_start": True,
    }
    with pytest.warns(UserWarning, match="no tree can be split"):
        model = small(**settings).fit(X, np.zeros(300, int))
    assert model.fit(X, Y).n_iter_ == 8


def test_categorical_features_of_the_model_may_be_given_in_any_form():
    table = np.column_stack([X, Y])
    for given_again in ([4], [False] * 4 + [True], "auto", np.array([4])):
        model = small(max_iter=4, warm_start=True, categorical_features=[4]).fit(table, Y)
        model.set_params(max_iter=8, categorical_features=given_again).fit(table, Y)
        assert_same_model(model, small(categorical_features=[4]).fit(table, Y))


def test_categorical_features_do_not_apply_to_a_binned_table():
    with_labels = np.column_stack([X, Y])
    table = BinMapper(categorical_features=[4]).fit(with_labels).transform(with_labels)
    model = small(max_iter=4, warm_start=True, categorical_features=None).fit(table, Y)
    assert model.set_params(max_iter=8).fit(table, Y).n_iter_ == 8


@pytest.mark.parametrize(
    ("parameters", "table", "labels", "message"),
    [
        (
            {"max_iter": 3},
            X,
            Y,
            "max_iter=3 with warm_start=True; expected at least the 8 iterations",
        ),
        ({"max_iter": 9}, X, Y + 1, r"not among the classes: 4;"),
        ({"max_iter": 9}, X[:, :2], Y, "2 features, but .* expecting 4 features"),
        ({"max_iter": 9, "classes": [0, 1, 2]}, X, Y, r"classes=\[0, 1, 2\] with warm_start=True"),
        ({"max_iter": 9, "learning_rate": -1}, X, Y, "learning_rate=-1"),
        (
            {"algorithm": AdaptiveBaseClass(baseline="prior")},
            X,
            Y,
            "baseline='prior' with .* baseline='zero'; expected the same, or warm_start=False",
        ),
        (
            {"categorical_features": [0]},
            X,
            Y,
            r"categorical_features=\[0\] with warm_start=True; expected .* of the model, \[\]",
        ),
    ],
)
def test_failed_warm_start_keeps_the_model(parameters, table, labels, message):
    model = small(warm_start=True).fit(X, Y)
    before = copy.deepcopy(model)
    with pytest.raises(ValueError, match=message):
        model.set_params(**parameters).fit(table, labels)
    assert_same_fit(model, before)


def test_warm_start_that_is_not_boolean_is_named():
    with pytest.raises(TypeError, match="warm_start=1; expected True or False"):
        small(warm_start=1).fit(X, Y)
