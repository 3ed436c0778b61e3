"""Explanations: the contribution of each feature to the reported scores."""

import dataclasses
import math
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import reference_explain
from abcgbm import (
    ABCBoostClassifier,
    AdaptiveBaseClass,
    BinMapper,
    Categorical,
    MultiOutputTrees,
    TreePerClass,
    inspection,
)
from models import ensemble_arrays, noisy_data, small
from strategies import mixed_problem

VARIANTS = {
    "mart": {"algorithm": "mart"},
    "mart recentred": {"algorithm": TreePerClass("mart", recenter=True)},
    "abc-mart": {"algorithm": "abc-mart"},
    "abc-logitboost": {"algorithm": "abc-logitboost"},
    "prior": {"algorithm": TreePerClass("mart", baseline="prior")},
    "shared": {"algorithm": "multi-output"},
    "shared from zero": {"algorithm": MultiOutputTrees(baseline="zero")},
}
CHEAP = {"smoothing": 0.0, "penalty": 0.0}


def reported(model: ABCBoostClassifier, X, n_iter: int | None = None) -> np.ndarray:
    """Return the scores of each class, also for two classes."""
    raw = model._raw(X, n_iter)
    return model.model_.link.by_class(raw)


@pytest.fixture(scope="module")
def problem():
    """Return numbers, categories, and columns of mostly one value or missing values."""
    return mixed_problem(3, 300, 4)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("n_iter", [None, 0, 3])
def test_values_add_up_to_reported_scores(problem, variant, n_iter):
    model = small(**variant, categorical_features=Categorical(problem.categorical, **CHEAP))
    model.fit(problem.X, problem.y)
    found = model.explain(problem.X, n_iter=n_iter)
    assert found.values.shape == (300, 7, 4)
    assert found.base_values.shape == (4,)
    total = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(total, reported(model, problem.X, n_iter), rtol=0, atol=1e-9)
    scores = model.decision_function(problem.X, n_iter=n_iter)
    np.testing.assert_allclose(total, scores, rtol=0, atol=1e-9)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_binary_explanation_sums_to_the_decision_function(variant):
    X, y = noisy_data(n_classes=2)
    model = small(**variant).fit(X, y)
    found = model.explain(X)
    assert found.values.shape == (*X.shape, 2)
    assert found.base_values.shape == (2,)
    total = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(total, reported(model, X), rtol=0, atol=1e-9)
    difference = total[:, 1] - total[:, 0]
    np.testing.assert_allclose(difference, model.decision_function(X), rtol=0, atol=1e-9)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_values_match_the_definition(problem, variant):
    """Means are weighted means of the training rows."""
    rng = np.random.default_rng(0)
    model = small(
        **variant, max_iter=3, categorical_features=Categorical(problem.categorical, **CHEAP)
    ).fit(problem.X, problem.y, rng.integers(1, 4, 300))
    found = model.explain(problem.X[:4])
    values, means = reference_explain.explained(ensemble_arrays(model), found.data, 4)
    if model.model_.link.is_centred:
        values, means = (a - a.mean(axis=-1, keepdims=True) for a in (values, means))
        means += model.baseline_ - model.baseline_.mean()
    np.testing.assert_allclose(found.values, values, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.base_values, means, rtol=0, atol=1e-9)


def test_base_values_are_the_mean_scores_of_the_training_rows():
    X, y = noisy_data()
    model = small("mart").fit(X, y)
    np.testing.assert_allclose(
        model.explain(X).base_values, model.decision_function(X).mean(axis=0), atol=1e-9
    )


def test_explanation_is_the_same_for_any_table_type():
    X, y = noisy_data()
    model = small().fit(X, y)
    expected = model.explain(X)
    tables = [X.tolist(), np.asfortranarray(X), sparse.csr_matrix(np.nan_to_num(X))]
    for table in tables[:2]:
        np.testing.assert_array_equal(model.explain(table).values, expected.values)
    filled = model.explain(np.nan_to_num(X)).values
    np.testing.assert_array_equal(model.explain(tables[2]).values, filled)
    binned = BinMapper().fit(X).transform(X)
    of_bins = small().fit(binned, y)
    np.testing.assert_array_equal(of_bins.explain(binned).values, expected.values)
    one = model.explain(X[5:6])
    np.testing.assert_array_equal(one.values, expected.values[5:6])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_explanation_has_names_and_categories(frame):
    colour = ["red", "green", "blue", None, "red", "green"] * 20
    size = [1.0, 2.0, math.nan, 4.0, 5.0, 6.0] * 20
    y = ["a", "b", "c", "a", "b", "c"] * 20
    model = small(categorical_features=Categorical(**CHEAP), min_samples_leaf=1).fit(
        frame({"colour": colour, "size": size}), y
    )
    rows = frame({"colour": ["red", None, "pink"], "size": [1.0, math.nan, 3.0]})
    found = model.explain(rows)
    assert found.feature_names == ["colour", "size"]
    assert found.classes.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(found.data, [[2, 1], [np.nan] * 2, [np.nan, 3]])
    assert found.display_data[:, 0].tolist() == ["red", None, None]
    assert repr(found) == "Explanation(3 rows, 2 features, 3 classes)"


def test_features_without_names_are_numbered():
    X, y = noisy_data()
    found = small().fit(X, y).explain(X)
    assert found.feature_names == ["x0", "x1", "x2", "x3"]
    assert found.display_data is None
    assert found.data is X


def test_model_without_iterations_has_its_baseline_as_base_values():
    X, y = noisy_data()
    model = small(AdaptiveBaseClass(baseline="prior")).fit(X, y)
    found = model.explain(X, n_iter=0)
    assert not found.values.any()
    np.testing.assert_allclose(found.base_values, model.baseline_ - model.baseline_.mean())


def test_wrong_arguments_are_refused():
    X, y = noisy_data()
    with pytest.raises(NotFittedError):
        small().explain(X)
    model = small().fit(X, y)
    with pytest.raises(ValueError, match=r"n_iter=9; expected an integer from 0 to 8"):
        model.explain(X, n_iter=9)
    with pytest.raises(ValueError, match="features"):
        model.explain(X[:, :2])


def test_too_large_explanation_is_an_error_that_says_what_fits(monkeypatch):
    X, y = noisy_data()
    model = small().fit(X, y)
    of_row = 4 * 4 * 8
    monkeypatch.setattr(inspection, "_SMALL", 0)
    monkeypatch.setattr(inspection, "available_bytes", lambda: len(X) * of_row)
    assert len(model.explain(X).values) == len(X)
    monkeypatch.setattr(inspection, "available_bytes", lambda: 10 * of_row + 5)
    with pytest.raises(
        MemoryError, match=r"400 rows, 4 features and 4 classes need 51.2 KB.* 10 r"
    ):
        model.explain(X)
    monkeypatch.setattr(inspection, "available_bytes", lambda: None)
    assert len(model.explain(X).values) == len(X)


# ---------------------------------------------------------------------------------- the shap package


def test_without_shap_the_error_names_the_extra(monkeypatch):
    X, y = noisy_data()
    found = small().fit(X, y).explain(X)
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r'pip install "abcgbm\[explain\]"'):
        found.to_shap()
    with pytest.raises(ImportError, match=r'pip install "abcgbm\[explain\]"'):
        found[:, :, 0]


def as_shap_tree(tree: reference_explain.Tree) -> dict[str, np.ndarray]:
    left = np.array(tree["left"])
    is_split = left >= 0
    missing = left + 1 - np.array(tree["missing_left"])
    return {
        "children_left": left,
        "children_right": np.where(is_split, left + 1, -1),
        "children_default": np.where(is_split, missing, -1),
        "features": np.array(tree["feature"]),
        "thresholds": np.array(tree["threshold"]),
        "values": tree["values"],
        "node_sample_weight": np.array(tree["weight"]),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_values_match_the_shap_package(variant):
    shap = pytest.importorskip("shap")
    X, y = noisy_data()
    model = small(**variant, max_leaf_nodes=20).fit(X, y)
    trees = reference_explain.trees_with_values(ensemble_arrays(model), 4)
    theirs = shap.TreeExplainer(
        {
            "trees": [as_shap_tree(tree) for tree in trees],
            "internal_dtype": np.float64,
            "input_dtype": np.float64,
        }
    ).shap_values(X[:50])
    if model.model_.link.is_centred:
        theirs = theirs - theirs.mean(axis=2, keepdims=True)
    np.testing.assert_allclose(model.explain(X[:50]).values, theirs, rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_plots_of_shap_take_explanations(problem):
    shap = pytest.importorskip("shap")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    labels = np.array(["a", "b", "c", "d"])[problem.y]
    model = small(categorical_features=problem.categorical).fit(problem.X, labels)
    found = model.explain(problem.X)
    of_class = found.to_shap("c")
    np.testing.assert_array_equal(of_class.values, found.values[:, :, 2])
    np.testing.assert_array_equal(of_class.base_values, np.full(300, found.base_values[2]))
    np.testing.assert_array_equal(found.to_shap()[:, :, "c"].values, of_class.values)
    for plot in (shap.plots.beeswarm, shap.plots.bar, shap.plots.violin, shap.plots.heatmap):
        plot(of_class, show=False)
        pyplot.close("all")
    shap.plots.waterfall(of_class[0], show=False)
    shap.plots.scatter(of_class[:, "x1"], show=False)
    pyplot.close("all")
    np.testing.assert_array_equal(found[:, :, 2].values, of_class.values)
    np.testing.assert_array_equal(found[:, :, 2].base_values, of_class.base_values)
    np.testing.assert_array_equal(found[5, "x1", "c"].values, found.values[5, 1, 2])
    assert found[:20].shape == (20, *found.values.shape[1:])
    shap.plots.beeswarm(model.explain(problem.X)[:, :, 0], show=False)
    pyplot.close("all")
    with pytest.raises(ValueError, match=r"class_='e'; expected one of 'a', 'b', 'c', 'd'"):
        found.to_shap("e")


def test_values_are_writable():
    X, y = noisy_data()
    found = small().fit(X, y).explain(X)
    assert all(getattr(found, name).flags.writeable for name in ("values", "base_values"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.values = None
