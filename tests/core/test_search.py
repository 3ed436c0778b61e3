"""The search for the base class, through the core and through the estimator."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score

import core
from abcgbm import ABCBoostClassifier, AdaptiveBaseClass, TreePerClass
from models import assert_same_model, base_labels, noisy_data
from strategies import Problem, random_problem, reference_trainer

X, Y = load_iris(return_X_y=True)
CRITERIA = ("mart", "logitboost")


def abc(criterion: str, **fields) -> AdaptiveBaseClass:
    return AdaptiveBaseClass(criterion, **fields)


def small(algorithm="abc-logitboost", **changed) -> ABCBoostClassifier:
    settings = {"max_iter": 12, "learning_rate": 0.1, "max_leaf_nodes": 5, "min_samples_leaf": 5}
    return ABCBoostClassifier(algorithm, **settings | changed)


def many_classes(n_classes: int, n_rows: int = 900) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_classes)
    y = np.arange(n_rows) % n_classes
    return rng.normal(size=(n_classes, 6))[y] + rng.normal(size=(n_rows, 6)), y


def replayed(problem: Problem, bases: list[int]) -> core.Trainer:
    """Return a trainer after iterations with these base classes."""
    trainer = core.trainer(problem)
    for base in bases:
        trainer.train_iteration([k for k in range(problem.n_classes) if k != base], base, True, 1.0)
    return trainer


def best_by_hand(problem: Problem, bases: list[int]) -> int:
    losses = [replayed(problem, [*bases, b]).loss() for b in range(problem.n_classes)]
    return int(np.argmin(losses))


@pytest.mark.parametrize("hessian_split", [False, True])
@pytest.mark.parametrize("n_classes", [3, 5, 11])
def test_exhaustive_search_takes_the_base_class_with_the_smallest_loss(n_classes, hessian_split):
    problem = random_problem(n_classes, 300, 4, n_classes, hessian_split=hessian_split)
    searched = core.trainer(problem)
    bases: list[int] = []
    for _ in range(4):
        iteration = searched.search(range(n_classes))
        bases.append(best_by_hand(problem, bases))
        assert iteration.base == bases[-1]
        assert iteration.n_halvings == 0
    np.testing.assert_array_equal(searched.raw(), replayed(problem, bases).raw())


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), n_candidates=st.integers(2, 5))
def test_search_is_the_same_for_any_thread_count(seed, n_candidates):
    problem = random_problem(seed, 120, 3, 5, hessian_split=bool(seed % 2))
    one, two = (core.trainer(problem, n_threads) for n_threads in (1, 3))
    for _ in range(2):
        assert core.result_bytes(one.search(range(n_candidates))) == core.result_bytes(
            two.search(range(n_candidates))
        )


@pytest.mark.parametrize("criterion", CRITERIA)
def test_n_candidates_of_at_least_the_classes_is_all_classes(criterion):
    search = small(abc(criterion, n_candidates=3)).fit(X, Y)
    for n_candidates in (None, 7):
        assert_same_model(search, small(abc(criterion, n_candidates=n_candidates)).fit(X, Y))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_two_classes_have_one_model_for_every_choice_of_the_base_class(criterion):
    X2, y2 = X[50:], Y[50:]
    plain = small(criterion).fit(X2, y2)
    for fields in (
        {},
        {"n_candidates": None},
        {"base_label": 1},
        {"base_label": 2},
        {"n_candidates": 2, "gap": 3, "warmup": 2},
    ):
        model = small(abc(criterion, **fields)).fit(X2, y2)
        np.testing.assert_array_equal(model.decision_function(X2), plain.decision_function(X2))
        np.testing.assert_array_equal(model.predict_proba(X2), plain.predict_proba(X2))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_warmup_iterations_have_no_base_class(criterion):
    model = small(abc(criterion, n_candidates=2, gap=1, warmup=4)).fit(X, Y)
    plain = small(criterion, max_iter=4).fit(X, Y)
    np.testing.assert_array_equal(model.train_loss_[:5], plain.train_loss_)
    assert base_labels(model)[:4] == [None] * 4
    assert None not in base_labels(model)[4:]
    np.testing.assert_allclose(model.decision_function(X).sum(axis=1), 0, atol=1e-12)


def test_base_class_is_kept_for_the_gap_and_searched_again():
    model = small(abc("logitboost", n_candidates=2, gap=3)).fit(X, Y)
    searched = ~np.isnan(model.history_.candidate_losses).all(axis=1)
    assert np.flatnonzero(searched).tolist() == [0, 4, 8]
    for iteration, base in enumerate(base_labels(model)):
        assert base == base_labels(model)[iteration - iteration % 4]


def test_candidates_are_the_classes_of_largest_loss_and_the_best_is_taken():
    X4, y4 = many_classes(7)
    model = small(abc("logitboost", n_candidates=3)).fit(X4, y4)
    for iteration, losses in enumerate(model.history_.candidate_losses):
        tried = np.flatnonzero(~np.isnan(losses))
        worst = np.argsort(-model.class_losses_[iteration], kind="stable")[:3]
        assert tried.tolist() == sorted(worst.tolist())
        assert base_labels(model)[iteration] == np.nanargmin(losses)
        assert np.nanmin(losses) == pytest.approx(
            model.history_.train_loss[iteration + 1], rel=1e-9
        )


def test_candidate_without_a_split_does_not_end_the_search():
    """Only classes 0 and 1 are separable, and only against each other is the gain large enough."""
    X3 = np.repeat([0.0, 1.0], 100)[:, None]
    y3 = np.array([0] * 45 + [1] * 5 + [2] * 50 + [0] * 5 + [1] * 45 + [2] * 50)
    stuck = small(AdaptiveBaseClass(base_label=2, min_gain=10))
    with pytest.warns(UserWarning, match="no tree can be split"):
        assert stuck.fit(X3, y3).stop_reason_ == "no_progress"
    model = small(AdaptiveBaseClass(n_candidates=None, min_gain=10)).fit(X3, y3)
    assert model.n_iter_ > 1
    assert np.isinf(model.history_.candidate_losses[:, 2]).all()
    assert np.isfinite(model.history_.candidate_losses[:, :2]).all()
    assert 2 not in base_labels(model)


def test_exhaustive_search_is_not_worse_than_one_candidate_with_many_classes():
    """Full steps overshoot with 60 classes, so candidates are compared by the loss after scaling back."""
    X60, y60 = noisy_data(n_rows=900, n_classes=60)
    exhaustive, worst = (
        small(abc("mart", n_candidates=n), max_iter=10).fit(X60, y60).train_loss_ for n in (None, 1)
    )
    assert len(exhaustive) == len(worst) == 11
    assert exhaustive[-1] <= 1.05 * worst[-1]


def test_candidate_losses_are_those_after_scaling_back():
    problem = random_problem(60, 900, 4, 60, learning_rate=1.0)
    bases = range(6)
    expected = []
    for base in bases:
        trainer = core.trainer(problem)
        iteration = trainer.train_iteration([k for k in range(60) if k != base], base, True, 1.0)
        expected.append((trainer.loss(), iteration.base_scale))
    assert all(scale < 1 for _, scale in expected)
    searched = core.trainer(problem).search(bases).candidate_losses
    np.testing.assert_allclose(searched, [loss for loss, _ in expected], rtol=1e-9)


@pytest.mark.parametrize("hessian_split", [False, True])
def test_candidate_losses_match_the_reference_where_steps_are_scaled_back(hessian_split):
    params = {"learning_rate": 1.0, "max_leaf_nodes": 3, "min_weight": 2, "subsample": 0.8}
    problem = random_problem(30, 60, 3, 30, hessian_split=hessian_split, **params)
    ours, theirs = (t.search([0, 5]) for t in (core.trainer(problem), reference_trainer(problem)))
    assert ours.base_scale < 1
    core.assert_same_result(ours, theirs)


def test_candidate_losses_are_nan_without_a_search():
    assert np.isnan(small("abc-mart").fit(X, Y).history_.candidate_losses).all()


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    ("fields", "n_classes"),
    [
        ({}, 60),
        ({"n_candidates": 2, "gap": 5}, 60),
        ({"n_candidates": 3, "warmup": 2}, 40),
        ({}, 300),
    ],
    ids=str,
)
def test_loss_never_rises_with_many_classes(criterion, fields, n_classes):
    X4, y4 = many_classes(n_classes)
    model = small(abc(criterion, **fields), min_samples_leaf=1, max_iter=8).fit(X4, y4)
    assert model.n_iter_ == 8
    assert (np.diff(model.train_loss_) <= 0).all()


@pytest.mark.parametrize("algorithm", ["logitboost", "abc-mart", "abc-logitboost"])
def test_training_reaches_machine_accuracy_with_finite_leaves(algorithm):
    """Hessians become tiny, but no gain, leaf value or score may become infinite."""
    model = ABCBoostClassifier(
        algorithm, max_iter=3000, max_leaf_nodes=4, min_samples_leaf=2, learning_rate=0.5
    ).fit(X, Y)
    assert model.stop_reason_ == "machine_accuracy"
    assert np.isfinite(model.model_.ensemble.value).all()
    assert np.isfinite(model.model_.ensemble.gain).all()


def test_l2_shrinks_leaf_values_and_min_hessian_leaf_prevents_splits():
    plain = small("logitboost", max_iter=1).fit(X, Y)
    shrunk = small("logitboost", max_iter=1, l2_regularization=100.0).fit(X, Y)
    assert (
        np.abs(shrunk.model_.ensemble.value).max() < np.abs(plain.model_.ensemble.value).max() / 2
    )
    with pytest.warns(UserWarning, match="no tree can be split"):
        unsplit = small(TreePerClass(min_hessian_leaf=1e6)).fit(X, Y)
    assert (unsplit.n_iter_, unsplit.stop_reason_) == (0, "no_progress")


# ----------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        ({"n_candidates": 0}, ValueError, "n_candidates=0"),
        ({"n_candidates": 2.5}, TypeError, "n_candidates=2.5"),
        ({"n_candidates": 2, "gap": -1}, ValueError, "gap=-1"),
        ({"n_candidates": 2, "warmup": -1}, ValueError, "warmup=-1"),
        ({"n_candidates": 2, "warmup": None}, TypeError, "warmup=None"),
    ],
    ids=str,
)
def test_error_names_the_wrong_parameter_of_the_search(fields, error, said):
    with pytest.raises(error, match=f"AdaptiveBaseClass: {said}"):
        small(AdaptiveBaseClass(**fields)).fit(X, Y)


def test_grid_search_reaches_the_parameters_of_the_search():
    model = small(abc("logitboost", n_candidates=2, gap=5))
    grid = GridSearchCV(model, {"algorithm__gap": [0, 3]}, cv=2).fit(X, Y)
    for gap, found in zip([0, 3], grid.cv_results_["mean_test_score"], strict=True):
        alone = small(abc("logitboost", n_candidates=2, gap=gap))
        assert found == cross_val_score(alone, X, Y, cv=2).mean()
    best = abc("logitboost", n_candidates=2, gap=grid.best_params_["algorithm__gap"])
    assert_same_model(grid.best_estimator_, small(best).fit(X, Y))
    assert clone(model).set_params(algorithm__n_candidates=3).algorithm.n_candidates == 3
    assert model.algorithm.n_candidates == 2
