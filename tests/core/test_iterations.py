"""Predictions with the first iterations of a model (`n_iter=`)."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.pipeline import make_pipeline

from abcgbm import BinMapper, TreePerClass
from models import noisy_data, small

METHODS = ("predict", "predict_proba", "decision_function")
VARIANTS = {
    "abc-mart": {},
    "mart, prior": {"algorithm": TreePerClass("mart", baseline="prior")},
    "sequential residuals": {"algorithm": TreePerClass("mart", sequential_residuals=True)},
    "multi-output": {"algorithm": "multi-output"},
    "deep": {"max_leaf_nodes": 60, "min_samples_leaf": 1},
}
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
X, Y = noisy_data(n_rows=600, n_classes=5)


@every_variant
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("method", METHODS)
def test_prediction_with_n_iter_equals_that_stage(variant, n_classes, method):
    x, y = noisy_data(n_rows=600, n_classes=n_classes)
    model = small(**variant).fit(x, y)
    predict, staged = getattr(model, method), getattr(model, f"staged_{method}")(x)
    for n_iter, stage in enumerate(staged, start=1):
        assert predict(x, n_iter=n_iter).tobytes() == stage.tobytes()
    assert predict(x, n_iter=8).tobytes() == predict(x).tobytes()


def test_log_proba_with_n_iter_is_the_log_of_proba():
    model = small().fit(X, Y)
    logs = model.predict_log_proba(X, n_iter=np.int64(3))
    np.testing.assert_allclose(logs, np.log(model.predict_proba(X, n_iter=3)), rtol=1e-12)


@every_variant
def test_zero_iterations_predict_the_baseline(variant):
    model = small(**variant).fit(X, Y)
    baseline = np.exp(model.baseline_) / np.exp(model.baseline_).sum()
    np.testing.assert_allclose(model.predict_proba(X, n_iter=0), [baseline] * len(X), rtol=1e-12)


@pytest.mark.parametrize(
    "form", [pd.DataFrame, BinMapper().fit(X).transform], ids=["frame", "bins"]
)
def test_n_iter_works_for_frames_and_binned_tables(form):
    model = small().fit(form(X), Y)
    expected = small(max_iter=3).fit(X, Y).predict_proba(X)
    assert model.predict_proba(form(X), n_iter=3).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("bad", "error"), [(9, ValueError), (-1, ValueError), (2.5, TypeError), (True, TypeError)]
)
@pytest.mark.parametrize("method", METHODS)
def test_n_iter_out_of_range_is_refused(method, bad, error):
    model = small().fit(X, Y)
    expected = rf"n_iter={bad!r}; expected an integer from 0 to 8 \(those of the model\)"
    with pytest.raises(error, match=expected):
        getattr(model, method)(X, n_iter=bad)


def test_early_stopping_keeps_the_iterations_up_to_the_best():
    model = small(max_iter=30, early_stopping=True, learning_rate=0.5).fit(X, Y)
    assert model.best_iteration_ < model.n_iter_
    model.predict(X, n_iter=model.best_iteration_)
    with pytest.raises(ValueError, match=f"from 0 to {model.best_iteration_} "):
        model.predict(X, n_iter=model.n_iter_)


def test_model_without_iterations_has_no_stages_and_predicts():
    with pytest.warns(UserWarning, match="no tree can be split"):
        model = small().fit(np.zeros((40, 1)), np.arange(40) % 4)
    assert all(list(getattr(model, f"staged_{method}")([[0.0]])) == [] for method in METHODS)
    np.testing.assert_array_equal(model.predict_proba([[0.0]], n_iter=0), 0.25)


def test_scorer_may_not_choose_n_iter():
    def scorer(estimator, rows, labels):
        return estimator.predict(rows, n_iter=2)

    with pytest.raises(ValueError, match="n_iter=2; expected None: a scorer gets the cur"):
        small(scoring=scorer, early_stopping=True).fit(X, Y)


def test_n_iter_is_routed_through_a_pipeline():
    with sklearn.config_context(enable_metadata_routing=True):
        model = small().set_predict_request(n_iter=True)
        pipeline = make_pipeline(model).fit(X, Y)
        labels = pipeline.predict(X, n_iter=2)
    assert (labels == small(max_iter=2).fit(X, Y).predict(X)).all()
