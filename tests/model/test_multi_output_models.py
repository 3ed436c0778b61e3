"""Multi-output trees in the estimator."""

import pickle

import numpy as np
import pytest

from abcgbm import ABCBoostClassifier, AdaptiveBaseClass, MultiOutputTrees
from abcgbm.data.samples import ClassLabels
from abcgbm.data.schema import Schema
from abcgbm.model.ensemble import ALL_CLASSES
from abcgbm.parameters.defaults import MAX_PROJECTIONS, Size, resolve_defaults
from abcgbm.parameters.parameters import Parameters
from abcgbm.training.boosting import IterationPlan, plan_iteration
from abcgbm.training.resolved import ResolvedParameters, resolve_parameters
from models import assert_same_model, base_labels, ensemble_arrays, noisy_data, small

X, Y = noisy_data(n_rows=500, n_classes=5)
MANY_X, MANY_Y = noisy_data(n_rows=600, n_classes=9)
VALIDATION = {"X_val": X[400:], "y_val": Y[400:]}


def shared(algorithm="multi-output", **parameters) -> ABCBoostClassifier:
    return small(algorithm, **parameters)


# --------------------------------------------------------------------------- resolved parameters


def plan_of(n_classes: int, **parameters) -> ResolvedParameters:
    settings = Parameters.from_parameters(ABCBoostClassifier(**parameters).get_params())
    classes = ClassLabels(np.arange(n_classes), np.ones(n_classes))
    settings = resolve_defaults(settings, Size(1000, n_classes), has_validation=False)
    return resolve_parameters(settings, Schema(np.zeros(3, bool)), classes, 0.0)


@pytest.mark.parametrize(
    ("given", "n_classes", "n_projections"),
    [
        ("auto", 2, 2),
        ("auto", MAX_PROJECTIONS, MAX_PROJECTIONS),
        ("auto", MAX_PROJECTIONS + 1, MAX_PROJECTIONS),
        ("auto", 1000, MAX_PROJECTIONS),
        ("all", 1000, 1000),
        (5, 1000, 5),
        (np.int64(5), 4, 4),
        (10**30, 4, 4),
        (1, 2, 1),
    ],
)
def test_n_projections_is_resolved_by_the_number_of_classes(given, n_classes, n_projections):
    plan = plan_of(n_classes, algorithm=MultiOutputTrees(n_projections=given), max_features=None)
    assert plan.n_projections == n_projections
    assert plan.has_draws == (n_projections < n_classes)


def test_trees_per_class_have_no_projections():
    plan = plan_of(20, algorithm="mart")
    assert (plan.n_projections, plan.has_draws) == (0, False)
    assert plan_of(20, algorithm="mart", subsample=0.5).has_draws


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_multi_output_iteration_has_no_base_class(n_classes):
    algorithm = plan_of(n_classes, algorithm="multi-output").settings.algorithm
    expected = IterationPlan((-1,), base_derivatives=False, leaf_scale=(n_classes - 1) / n_classes)
    assert plan_iteration(algorithm, n_classes, ()) == expected


# ------------------------------------------------------------------------------------- the trees


@pytest.mark.parametrize("n_classes", [2, 3, 9])
@pytest.mark.parametrize("algorithm", ["mart", "logitboost"])
def test_multi_output_iteration_is_one_tree(algorithm, n_classes):
    model = shared(MultiOutputTrees(algorithm)).fit(*noisy_data(n_classes=n_classes))
    arrays = ensemble_arrays(model)
    assert arrays["tree_class"].tolist() == [ALL_CLASSES] * model.n_iter_
    assert arrays["leaf_value"].shape == ((arrays["feature"] < 0).sum(), n_classes)
    assert base_labels(model) == [None] * model.n_iter_
    assert np.isnan(model.history_.candidate_losses).all()


@pytest.mark.parametrize("n_projections", [1, 3, "auto"])
def test_projections_depend_on_the_random_state(n_projections):
    def fitted(random_state):
        return shared(MultiOutputTrees(n_projections=n_projections), random_state=random_state).fit(
            MANY_X, MANY_Y
        )

    assert_same_model(fitted(3), fitted(3))
    one, other = (ensemble_arrays(fitted(seed))["leaf_value"] for seed in (3, 4))
    assert not np.array_equal(one, other)


def test_all_projections_need_no_random_draw():
    one, other = (
        shared(MultiOutputTrees(n_projections="all"), random_state=s).fit(MANY_X, MANY_Y)
        for s in (3, 4)
    )
    assert_same_model(one, other)


def test_single_projection_of_two_classes_is_drawn_until_it_separates_them():
    X, y = noisy_data(n_classes=2)
    model = shared(MultiOutputTrees(n_projections=1), max_iter=20).fit(X, y)
    assert (model.n_iter_, model.stop_reason_) == (20, "max_iter")


def test_importance_is_the_sum_over_classes():
    """The gain of a split is the sum of its gains by class."""
    model = shared().fit(X, Y)
    ensemble = model.model_.ensemble
    total = np.zeros(4)
    np.add.at(total, ensemble.gain_feature, ensemble.class_gain.sum(axis=1))
    np.testing.assert_allclose(total / total.sum(), model.feature_importances_, rtol=1e-5)
    np.testing.assert_allclose(model.feature_importances_by_class_.sum(axis=1), 1)


# -------------------------------------------------------------------------------- the estimator


def test_warm_start_may_change_the_tree_type():
    model = shared(max_iter=3, warm_start=True, early_stopping=False).fit(X, Y, **VALIDATION)
    model.set_params(algorithm=AdaptiveBaseClass(baseline="zero"), max_iter=5).fit(
        X, Y, **VALIDATION
    )
    model.set_params(algorithm=MultiOutputTrees(baseline="zero"), max_iter=9).fit(
        X, Y, **VALIDATION
    )
    assert [b is None for b in base_labels(model)] == [True] * 3 + [False] * 2 + [True] * 4
    losses = [
        -np.log(proba[np.arange(100), Y[400:]]).mean()
        for proba in model.staged_predict_proba(X[400:])
    ]
    np.testing.assert_allclose(model.validation_loss_[1:], losses, rtol=1e-9)
    assert (np.diff(model.train_loss_) <= 0).all()
    np.testing.assert_allclose(model.feature_importances_by_class_.sum(axis=1), 1)


def test_model_is_truncated_to_its_best_iteration():
    eager = {"learning_rate": 0.5, "n_iter_no_change": 4}
    model = shared(**eager, max_iter=200).fit(X[:400], Y[:400], **VALIDATION)
    assert model.stop_reason_ == "early_stopping"
    shorter = shared(**eager, max_iter=model.best_iteration_).fit(X[:400], Y[:400])
    for name, array in ensemble_arrays(model).items():
        np.testing.assert_array_equal(
            array, ensemble_arrays(shorter)[name], err_msg=name, strict=True
        )
    assert model.predict_proba(X).tobytes() == shorter.predict_proba(X).tobytes()


def test_pickle_is_the_model_without_candidate_losses():
    model = shared().fit(X, Y)
    restored = pickle.loads(pickle.dumps(model))
    assert restored.model_ == model.model_
    assert_same_model(restored, model)
    assert restored.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert model.history_.search_losses.shape == (8, 0)
    assert model.history_.candidate_losses.shape == (8, 5)


def test_pickle_is_little_larger_than_its_leaf_values():
    """In addition to float32 leaf values: two such numbers per node, and gains by class."""
    X, y = noisy_data(n_rows=4000, n_features=5, n_classes=100)
    model = shared(max_iter=20, max_leaf_nodes=20).fit(X, y)
    leaves, gains = model.model_.ensemble.leaf_value, model.model_.ensemble.class_gain
    losses = model.history_.class_losses
    assert len(pickle.dumps(model)) < 1.3 * leaves.nbytes + gains.nbytes + losses.nbytes


def test_callbacks_receive_no_base_class():
    heard = []
    shared(callbacks=heard.append).fit(X, Y)
    assert [report.base_class for report in heard] == [None] * 8
