"""Validation rows."""

import math
import re
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    adjusted_rand_score,
    get_scorer,
    get_scorer_names,
    log_loss,
    make_scorer,
    mean_squared_error,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from abcgbm import ABCBoostClassifier, AdaptiveBaseClass, BinMapper, TreePerClass
from abcgbm.parameters.parameters import Parameters
from abcgbm.parameters.scoring import Scoring
from abcgbm.training import validation as draws
from abcgbm.training.validation import Monitor, hold_out
from models import assert_same_model, noisy_data, small

X, Y = noisy_data(n_rows=400, n_classes=4)
LEARNED, VALIDATED = slice(0, 250), slice(250, 400)
FIT = {"X": X[LEARNED], "y": Y[LEARNED]}
VALIDATION = {"X_val": X[VALIDATED], "y_val": Y[VALIDATED]}
WEIGHT = np.random.default_rng(0).integers(1, 4, 400).astype(float)
VARIANTS = {
    "mart": {"algorithm": "mart"},
    "mart class by class": {"algorithm": TreePerClass("mart", sequential_residuals=True)},
    "Mb": {"algorithm": AdaptiveBaseClass(base_derivatives=False)},
    "abc-mart": {"algorithm": "abc-mart"},
    "abc-logitboost, prior": {"algorithm": AdaptiveBaseClass("logitboost", baseline="prior")},
    "shared": {"algorithm": "multi-output"},
}
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)


def watched(**parameters):
    return small(early_stopping=False, **parameters)


# --------------------------------------------------------------------------------------- the loss


@every_variant
@pytest.mark.parametrize("n_classes", [2, 4])
def test_validation_loss_matches_staged_predictions(variant, n_classes):
    x, y = noisy_data(n_rows=400, n_classes=n_classes)
    given_rows = {"X_val": x[VALIDATED], "y_val": y[VALIDATED]}
    weight = WEIGHT[VALIDATED]
    model = watched(**variant).fit(x[LEARNED], y[LEARNED], **given_rows, sample_weight_val=weight)
    stages = list(model.staged_predict_proba(x[VALIDATED]))
    expected = [log_loss(y[VALIDATED], proba, sample_weight=weight) for proba in stages]
    np.testing.assert_allclose(model.validation_loss_[1:], expected, rtol=1e-9)
    np.testing.assert_allclose(model.validation_score_, -model.validation_loss_, rtol=1e-12)


def test_validation_on_the_training_rows_gives_the_training_loss():
    model = watched().fit(X, Y, WEIGHT, X_val=X, y_val=Y, sample_weight_val=WEIGHT)
    np.testing.assert_array_equal(model.validation_loss_, model.train_loss_)


def test_zero_weight_validation_rows_are_ignored():
    weight = np.where(np.arange(150) < 100, WEIGHT[VALIDATED], 0)
    model = watched(scoring="error").fit(**FIT, **VALIDATION, sample_weight_val=weight)
    kept = {"X_val": X[250:350], "y_val": Y[250:350], "sample_weight_val": weight[:100]}
    expected = watched(scoring="error").fit(**FIT, **kept)
    np.testing.assert_array_equal(model.validation_loss_, expected.validation_loss_)
    np.testing.assert_array_equal(model.validation_score_, expected.validation_score_)


@pytest.mark.parametrize("label", [None, np.nan, 77], ids=repr)
def test_label_of_a_zero_weight_validation_row_is_ignored(label):
    labels = Y[VALIDATED].astype(object)
    labels[:10] = label
    weight = (np.arange(150) >= 10).astype(float)
    given_rows = {"X_val": X[VALIDATED], "y_val": labels, "sample_weight_val": weight}
    model = watched().fit(**FIT, **given_rows)
    expected = watched().fit(**FIT, X_val=X[260:], y_val=Y[260:])
    np.testing.assert_array_equal(model.validation_loss_, expected.validation_loss_)


@pytest.mark.parametrize("class_weight", [{0: 2, 1: 3}, "balanced"], ids=str)
@pytest.mark.parametrize("scoring", ["loss", "error", "accuracy"])
def test_class_weights_apply_to_validation(class_weight, scoring):
    model = watched(class_weight=class_weight, scoring=scoring).fit(**FIT, **VALIDATION)
    count = np.bincount(Y[LEARNED])
    factor = count.sum() / (4 * count) if class_weight == "balanced" else np.array([2, 3, 1, 1])
    leaf = 10 * float(f"{factor[Y[LEARNED]].mean():.9g}")
    plain = watched(scoring=scoring, min_samples_leaf=leaf).fit(
        **FIT,
        **VALIDATION,
        sample_weight=factor[Y[LEARNED]],
        sample_weight_val=factor[Y[VALIDATED]],
    )
    assert_same_model(model, plain)
    np.testing.assert_array_equal(model.validation_loss_, plain.validation_loss_)
    np.testing.assert_array_equal(model.validation_score_, plain.validation_score_)


def test_binned_rows_can_be_validated_on():
    expected = watched().fit(**FIT, **VALIDATION)
    mapper = BinMapper().fit(X[LEARNED])
    learned, validated = mapper.transform(X[LEARNED]), mapper.transform(X[VALIDATED])
    for rows in (X[VALIDATED], validated):
        model = watched().fit(learned, Y[LEARNED], X_val=rows, y_val=Y[VALIDATED])
        assert_same_model(model, expected)
        np.testing.assert_array_equal(model.validation_loss_, expected.validation_loss_)
    with pytest.raises(ValueError, match="X_val is a BinnedTable with other bins than X"):
        watched().fit(learned, Y[LEARNED], X_val=BinMapper(7).fit(X).transform(X), y_val=Y)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_result_is_the_same_for_any_thread_count(n_jobs):
    model = watched(n_jobs=n_jobs, scoring="error").fit(**FIT, **VALIDATION)
    expected = watched(n_jobs=1, scoring="error").fit(**FIT, **VALIDATION)
    np.testing.assert_array_equal(model.validation_loss_, expected.validation_loss_)
    np.testing.assert_array_equal(model.validation_score_, expected.validation_score_)


# ---------------------------------------------------------------------------------------- scorers


def staged_scores(scorer, variant, labels, weight=None):
    """Return the score of the model after each iteration."""
    given_weight = {} if weight is None else {"sample_weight": weight}
    for n_iter in range(1, 9):
        model = small(**variant, max_iter=n_iter).fit(X[LEARNED], labels[LEARNED])
        yield scorer(model, X[VALIDATED], labels[VALIDATED], **given_weight)


@every_variant
@pytest.mark.parametrize(
    "scoring", ["accuracy", "f1_macro", "neg_log_loss", "roc_auc_ovr", "balanced_accuracy"]
)
def test_scorer_receives_the_predictions_of_the_model(variant, scoring):
    labels = np.array(["ash", "beech", "cedar", "dogwood"])[Y]
    model = watched(**variant, scoring=scoring).fit(
        X[LEARNED], labels[LEARNED], X_val=X[VALIDATED], y_val=labels[VALIDATED]
    )
    expected = list(staged_scores(get_scorer(scoring), variant, labels))
    assert model.validation_score_[1:].tolist() == expected


@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision", "neg_brier_score"])
def test_binary_scorer_receives_the_predictions_of_the_model(scoring):
    labels = Y % 2
    given_rows = {"X_val": X[VALIDATED], "y_val": labels[VALIDATED]}
    model = watched(scoring=scoring).fit(X[LEARNED], labels[LEARNED], **given_rows)
    expected = list(staged_scores(get_scorer(scoring), {}, labels))
    assert model.validation_score_[1:].tolist() == expected


@every_variant
def test_callable_can_use_every_prediction_method(variant):
    def scorer(estimator, rows, labels):
        assert estimator.classes_.tolist() == [0, 1, 2, 3]
        proba, log_proba = estimator.predict_proba(rows), estimator.predict_log_proba(rows)
        np.testing.assert_allclose(np.log(proba), log_proba, rtol=1e-9)
        right = np.mean(estimator.predict(rows) == labels)
        return right + estimator.decision_function(rows)[0, 0] + estimator.score(rows, labels)

    model = watched(**variant, scoring=scorer).fit(**FIT, **VALIDATION)
    assert model.validation_score_[1:].tolist() == list(staged_scores(scorer, variant, Y))


def test_error_score_is_the_negative_weighted_error_rate():
    model = watched(scoring="error").fit(**FIT, **VALIDATION, sample_weight_val=WEIGHT[VALIDATED])
    wrong = [labels != Y[VALIDATED] for labels in model.staged_predict(X[VALIDATED])]
    expected = [-np.average(w, weights=WEIGHT[VALIDATED]) for w in wrong]
    np.testing.assert_allclose(model.validation_score_[1:], expected, rtol=1e-12)


def test_scorer_receives_weights_if_it_accepts_them():
    weight = WEIGHT[VALIDATED]
    model = watched(scoring="accuracy").fit(**FIT, **VALIDATION, sample_weight_val=weight)
    expected = list(staged_scores(get_scorer("accuracy"), {}, Y, weight))
    assert model.validation_score_[1:].tolist() == expected

    def plain_accuracy(labels, predicted):
        return accuracy_score(labels, predicted)

    scorer = make_scorer(plain_accuracy)
    model = watched(scoring=scorer).fit(**FIT, **VALIDATION, sample_weight_val=weight)
    assert model.validation_score_[1:].tolist() == list(staged_scores(scorer, {}, Y))


FORMS = {"array": X, "list": X.tolist(), "pandas": pd.DataFrame(X), "polars": pl.DataFrame(X)}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_callable_receives_the_validation_table_itself(form):
    handed = []

    def scorer(estimator, rows, labels):
        handed.append(rows)
        return np.mean(estimator.predict(rows) == labels)

    model = watched(scoring=scorer).fit(form, Y, X_val=form, y_val=Y)
    assert len(handed) == model.n_iter_ + 1
    assert all(rows is form for rows in handed)
    expected = [np.mean(labels == Y) for labels in model.staged_predict(form)]
    assert model.validation_score_[1:].tolist() == expected


@pytest.mark.parametrize(
    ("parameters", "given_rows"),
    [
        ({}, VALIDATION | {"sample_weight_val": np.arange(150) % 3}),
        ({"class_weight": {0: 0}}, VALIDATION),
        ({"early_stopping": True}, {}),
    ],
    ids=["weight 0", "class weight 0", "held out"],
)
def test_callable_receives_as_many_rows_as_labels(parameters, given_rows):
    lengths = []

    def scorer(estimator, rows, labels):
        lengths.append((len(rows), len(estimator.predict(rows)), len(labels)))
        return len(lengths)

    small(scoring=scorer, **parameters).fit(**FIT, **given_rows)
    ((n_rows, *others),) = set(lengths)
    assert others == [n_rows, n_rows]
    assert n_rows < (150 if given_rows else 250)


def test_scorer_cannot_predict_other_rows():
    with pytest.raises(ValueError, match="X is not the validation table"):
        watched(scoring=lambda model, rows, labels: model.predict(rows[:5])).fit(
            **FIT, **VALIDATION
        )


def test_error_of_a_scorer_names_the_scorer():
    def picky(*_):
        raise KeyError("no such thing")

    with pytest.raises(
        ValueError, match=r"scoring=<function .*picky.* failed: .*no such"
    ) as raised:
        watched(scoring=picky).fit(**FIT, **VALIDATION)
    assert isinstance(raised.value.__cause__, KeyError)
    with pytest.raises(ValueError, match="scoring='roc_auc' failed: "):
        watched(scoring="roc_auc").fit(**FIT, **VALIDATION)


def test_scorer_without_a_number_is_an_error():
    with pytest.raises(TypeError, match="scoring returned 'good'; expected a number"):
        watched(scoring=lambda *_: "good").fit(**FIT, **VALIDATION)


def test_nan_validation_score_counts_as_no_improvement():
    model = small(scoring=lambda *_: math.nan, n_iter_no_change=3).fit(**FIT, **VALIDATION)
    assert (model.n_iter_, model.stop_reason_) == (3, "early_stopping")
    assert len(model.validation_loss_) == 4


def test_built_in_score_without_a_value_is_an_error():
    settings = SimpleNamespace(scoring=Scoring("brier"))
    monitor = SimpleNamespace(
        _resolved=SimpleNamespace(settings=settings), _rows=SimpleNamespace(integer_weights=None)
    )
    with pytest.raises(NotImplementedError, match="scoring='brier' has no value"):
        Monitor.score(monitor)


# ------------------------------------------------------------------------------- held-out rows


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=60),
    st.floats(0.01, 0.99),
    st.integers(0, 2**64 - 1),
)
def test_fraction_of_each_class_is_held_out_but_never_all_of_it(labels, fraction, seed):
    y = np.array(labels, np.int32)
    count = np.bincount(y, minlength=4)
    wanted = np.minimum(np.floor(fraction * count + 0.5), np.maximum(count - 1, 0)).astype(int)
    if not wanted.any():
        with pytest.raises(ValueError, match="holds out no row"):
            hold_out(y, 4, fraction, seed)
        return
    out, kept = hold_out(y, 4, fraction, seed)
    assert np.bincount(y[out], minlength=4).tolist() == wanted.tolist()
    assert sorted([*kept, *out]) == list(range(len(y)))
    assert (kept.tolist(), out.tolist()) == (sorted(kept), sorted(out))
    drawn = draws.draw(seed, draws.HELD_OUT, np.arange(len(y), dtype=np.uint64))
    for k in np.flatnonzero(wanted):
        assert drawn[out[y[out] == k]].max() < drawn[kept[y[kept] == k]].min()


def test_draws_are_splitmix64():
    """The first numbers published by its author for seed 1234567."""
    step, mask = 0x9E3779B97F4A7C15, 2**64 - 1
    states = np.array([(1234567 + i * step) & mask for i in range(3)], np.uint64)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert draws.mix(states).tolist() == expected


def test_draw_of_a_row_depends_on_seed_kind_and_row_alone():
    assert (
        draws.draw(7, 3, np.arange(100, dtype=np.uint64))[:10].tolist()
        == draws.draw(7, 3, np.arange(10, dtype=np.uint64)).tolist()
    )
    others = [
        draws.draw(seed, kind, np.arange(50, dtype=np.uint64))
        for seed, kind in [(7, 3), (8, 3), (7, 2)]
    ]
    assert len(np.unique(np.concatenate(others))) == 150


def test_held_out_rows_act_like_given_validation_rows():
    model = small(early_stopping=True, validation_fraction=0.25, random_state=5).fit(X, Y)
    out, kept = hold_out(Y.astype(np.int32), 4, 0.25, model.history_.seed)
    given_rows = {"X_val": X[out], "y_val": Y[out]}
    expected = small(early_stopping=True, random_state=5).fit(X[kept], Y[kept], **given_rows)
    assert_same_model(model, expected)
    np.testing.assert_array_equal(model.validation_loss_, expected.validation_loss_)


def test_held_out_rows_depend_on_the_random_state():
    losses = [
        small(early_stopping=True, random_state=s).fit(X, Y).validation_loss_[-1]
        for s in (0, 0, 1, None)
    ]
    assert losses[0] == losses[1] == losses[3] != losses[2]


def test_zero_weight_rows_are_ignored_by_the_held_out_draw():
    weight = np.where(np.arange(400) % 5 == 0, 0, WEIGHT)
    kept = weight > 0
    model = small(early_stopping=True).fit(X, Y, weight)
    assert_same_model(model, small(early_stopping=True).fit(X[kept], Y[kept], weight[kept]))


# ------------------------------------------------------------------------------------- bad input

BINNED, OTHER = (BinMapper().fit(x).transform(x) for x in (X, X[:, :3]))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"X_val": X}, "y_val is None; expected X_val and y_val together"),
        ({"y_val": Y}, "X_val is None; expected X_val and y_val together"),
        ({"sample_weight_val": WEIGHT}, "X_val is None; expected X_val and y_val together"),
        ({"X_val": X, "y_val": Y[:-1]}, "y_val has 399 labels; X_val has 400 rows"),
        ({"X_val": X, "y_val": Y + 1}, r"y_val has labels that are not among the classes: 4;"),
        ({"X_val": X, "y_val": np.where(Y, Y, np.nan)}, "y_val contains NaN or None"),
        ({"X_val": X[:, :3], "y_val": Y}, "X_val has 3 features, but .* is expecting 4 features"),
        ({"X_val": X, "y_val": np.c_[Y, Y]}, r"y_val should be a 1d array, got .* \(400, 2\)"),
        ({"X_val": X, "y_val": np.where(Y > 9, 0, None)}, "y_val contains .* first at 0"),
        (
            {"X_val": BINNED[:0], "y_val": []},
            "X_val has 0 rows; expected at least 1",
        ),
        (
            {"X_val": OTHER, "y_val": Y},
            "X_val is a BinnedTable of 3 features; expected the columns",
        ),
        (
            {"X_val": X, "y_val": Y, "sample_weight_val": WEIGHT[:3]},
            r"sample_weight_val.shape == \(3,\); expected \(400,\)",
        ),
        ({"X_val": X, "y_val": Y, "sample_weight_val": -WEIGHT}, "sample_weight_val is -"),
        ({"X_val": X, "y_val": Y, "sample_weight_val": 0 * WEIGHT}, "sample_weight_val is 0"),
    ],
)
def test_bad_validation_rows_are_described(bad, message):
    with pytest.raises(ValueError, match=message):
        small().fit(X, Y, **bad)


def test_class_weights_without_a_validation_row_are_an_error():
    rows = np.flatnonzero(Y == 0)
    with pytest.raises(ValueError, match="class_weight is 0 for every class in y_val"):
        small(class_weight={0: 0}).fit(X, Y, X_val=X[rows], y_val=Y[rows])
    with pytest.raises(ValueError, match="sample_weight_val times class_weight sums to"):
        small(class_weight={0: 1e100}).fit(
            X, Y, X_val=X, y_val=Y, sample_weight_val=np.full(400, 1e150)
        )


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"scoring": "good"}, ValueError, "scoring='good'; expected 'loss', 'error', a name in"),
        ({"scoring": 3}, TypeError, "scoring=3; expected 'loss', 'error', a name in"),
        ({"early_stopping": "yes"}, ValueError, "early_stopping='yes'; expected 'auto' or True or"),
        ({"early_stopping": 1}, TypeError, "early_stopping=1; expected 'auto' or True or False"),
        ({"validation_fraction": 1.0}, ValueError, "validation_fraction=1.0; expected .* below 1"),
        ({"validation_fraction": None}, TypeError, "validation_fraction=None; expected a number"),
    ],
)
def test_bad_validation_parameters_are_named(parameters, error, message):
    with pytest.raises(error, match=message):
        small(**parameters).fit(X, Y)


def test_fraction_without_held_out_rows_is_an_error():
    with pytest.raises(ValueError, match=r"validation_fraction=0.001 of 400 row\(s\) in 4 classes"):
        small(early_stopping=True, validation_fraction=0.001).fit(X, Y)


# ---------------------------------------------------------------------------------- scikit-learn


def test_pipeline_transforms_validation_rows():
    with sklearn.config_context(enable_metadata_routing=True):
        model = watched().set_fit_request(X_val=True, y_val=True)
        pipeline = make_pipeline(StandardScaler(), model).set_params(transform_input=["X_val"])
        pipeline.fit(X[LEARNED], Y[LEARNED], X_val=X[VALIDATED], y_val=Y[VALIDATED])
    scaler = StandardScaler().fit(X[LEARNED])
    expected = watched().fit(
        scaler.transform(X[LEARNED]),
        Y[LEARNED],
        X_val=scaler.transform(X[VALIDATED]),
        y_val=Y[VALIDATED],
    )
    np.testing.assert_array_equal(pipeline[-1].validation_loss_, expected.validation_loss_)


# ------------------------------------------------------------------------------ metrics of other tasks

OF_REGRESSION = re.compile("r2|explained_variance|d2_absolute.*|neg_.*(error|deviance)")
OF_CLUSTERINGS = re.compile(
    ".*(rand|mutual_info|mallows)_score|completeness.*|homogeneity.*|v_mea.*"
)


@pytest.mark.parametrize("name", get_scorer_names())
def test_scorer_of_another_task_is_refused_before_the_fit(name):
    given = {**ABCBoostClassifier(scoring=name).get_params()}
    if OF_REGRESSION.fullmatch(name):
        expected = f"scoring='{name}' is a metric of continuous targets; expected .* 'loss' or"
    elif OF_CLUSTERINGS.fullmatch(name):
        expected = f"scoring='{name}' is a metric of clusterings, .* 'error', 'balanced_accuracy'"
    else:
        assert Parameters.from_parameters(given).scoring.given == name
        return
    with pytest.raises(ValueError, match=expected):
        Parameters.from_parameters(given)


@pytest.mark.parametrize(
    "metric",
    [mean_squared_error, partial(mean_squared_error, multioutput="uniform_average")],
    ids=["function", "partial"],
)
def test_custom_regression_scorer_is_refused(metric):
    scorer = make_scorer(metric, greater_is_better=False)
    with pytest.raises(
        ValueError, match=r"scoring=make_scorer\(.*is a metric of continuous targets"
    ):
        small(scoring=scorer).fit(X, Y, X_val=X, y_val=Y)


def test_custom_clustering_scorer_is_refused():
    with pytest.raises(ValueError, match=r"scoring=make_scorer\(adj.*is a metric of clusterings"):
        small(scoring=make_scorer(adjusted_rand_score)).fit(X, Y)
