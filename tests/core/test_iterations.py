"""Predictions by the first steps of a model."""

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
    "class by class": {"algorithm": TreePerClass("mart", sequential_residuals=True)},
    "shared": {"algorithm": "multi-output"},
    "deep": {"max_leaf_nodes": 60, "min_samples_leaf": 1},
}
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
X, Y = noisy_data(n_rows=600, n_classes=5)


@every_variant
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("method", METHODS)
def test_prediction_by_so_many_steps_is_that_stage(variant, n_classes, method):
    x, y = noisy_data(n_rows=600, n_classes=n_classes)
    model = small(**variant).fit(x, y)
    ask, staged = getattr(model, method), getattr(model, f"staged_{method}")(x)
    for n_iter, stage in enumerate(staged, start=1):
        assert ask(x, n_iter=n_iter).tobytes() == stage.tobytes()
    assert ask(x, n_iter=8).tobytes() == ask(x).tobytes()


def test_logarithms_are_those_of_the_probabilities():
    model = small().fit(X, Y)
    logs = model.predict_log_proba(X, n_iter=np.int64(3))
    np.testing.assert_allclose(logs, np.log(model.predict_proba(X, n_iter=3)), rtol=1e-12)


@every_variant
def test_no_step_is_the_start(variant):
    model = small(**variant).fit(X, Y)
    start = np.exp(model.baseline_) / np.exp(model.baseline_).sum()
    np.testing.assert_allclose(model.predict_proba(X, n_iter=0), [start] * len(X), rtol=1e-12)


@pytest.mark.parametrize(
    "form", [pd.DataFrame, BinMapper().fit(X).transform], ids=["frame", "bins"]
)
def test_tables_of_any_form_are_predicted_by_so_many_steps(form):
    model = small().fit(form(X), Y)
    expected = small(max_iter=3).fit(X, Y).predict_proba(X)
    assert model.predict_proba(form(X), n_iter=3).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("bad", "error"), [(9, ValueError), (-1, ValueError), (2.5, TypeError), (True, TypeError)]
)
@pytest.mark.parametrize("method", METHODS)
def test_steps_that_the_model_does_not_have_are_refused(method, bad, error):
    model = small().fit(X, Y)
    expected = rf"n_iter={bad!r}; expected an integer from 0 to 8 \(those of the model\)"
    with pytest.raises(error, match=expected):
        getattr(model, method)(X, n_iter=bad)


def test_early_stopping_leaves_the_steps_to_the_best():
    model = small(max_iter=30, early_stopping=True, learning_rate=0.5).fit(X, Y)
    assert model.best_iteration_ < model.n_iter_
    model.predict(X, n_iter=model.best_iteration_)
    with pytest.raises(ValueError, match=f"from 0 to {model.best_iteration_} "):
        model.predict(X, n_iter=model.n_iter_)


def test_model_of_no_step_has_no_stage_and_an_answer():
    with pytest.warns(UserWarning, match="no tree can be split"):
        model = small().fit(np.zeros((40, 1)), np.arange(40) % 4)
    assert all(list(getattr(model, f"staged_{method}")([[0.0]])) == [] for method in METHODS)
    np.testing.assert_array_equal(model.predict_proba([[0.0]], n_iter=0), 0.25)


def test_scorer_sees_the_model_as_it_stands():
    def scorer(estimator, rows, labels):
        return estimator.predict(rows, n_iter=2)

    with pytest.raises(ValueError, match="n_iter=2; expected None: a scorer gets the cur"):
        small(scoring=scorer, early_stopping=True).fit(X, Y)


def test_steps_are_routed_through_a_pipeline():
    with sklearn.config_context(enable_metadata_routing=True):
        model = small().set_predict_request(n_iter=True)
        pipeline = make_pipeline(model).fit(X, Y)
        labels = pipeline.predict(X, n_iter=2)
    assert (labels == small(max_iter=2).fit(X, Y).predict(X)).all()
