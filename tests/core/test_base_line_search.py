"""The line search for the step of the base class: in every iteration, or none."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

import core
import reference as ref
from abcgbm import ABCBoostClassifier, AdaptiveBaseClass
from models import assert_same_model, noisy_data, small
from strategies import Problem, random_problem, reference_trainer


def base_scales(model: ABCBoostClassifier) -> np.ndarray:
    """Return the scale of the base class's step in each iteration."""
    ensemble = model.model_.ensemble
    return ensemble.tree_base_scale[ensemble.iteration_start[:-1]]


def step_of(trainer: core.Trainer, base: int, n_classes: int) -> ref.IterationResult:
    return trainer.train_iteration([k for k in range(n_classes) if k != base], base, True, 1.0)


def losses_by_halvings(problem: Problem) -> list[float]:
    """Return the reference's loss after 0 to 10 halvings of the base class's first step (class 0)."""
    trainer = reference_trainer(problem)
    trees = [trainer.grow_tree(k, 0, 1.0) for k in range(1, problem.n_classes)]
    start, losses = trainer.raw(), []
    for n_halvings in range(11):
        trainer.set_raw(start + trainer.added(trees, 0, ref.StepScale(0, n_halvings)))
        losses.append(trainer.loss())
    return losses


# ------------------------------------------------------------------------------------- one iteration, exactly


@pytest.mark.parametrize("hessian_split", [False, True])
@pytest.mark.parametrize("subsample", [1.0, 0.7])
def test_base_line_search_matches_the_reference_where_the_full_step_lowers_the_loss(
    hessian_split, subsample
):
    params = {"hessian_split": hessian_split, "subsample": subsample, "learning_rate": 0.4}
    problem = random_problem(0, 90, 2, 12, min_weight=2, base_line_search=True, **params)
    trainers = core.trainer(problem), reference_trainer(problem)
    ours, theirs = (ref.boost(t, ref.Algorithm(), 12, 2) for t in trainers)
    core.assert_same_iterations(ours, theirs)
    np.testing.assert_array_equal(trainers[0].raw(), trainers[1].raw())
    full = step_of(core.trainer(problem.with_params(base_line_search=False)), theirs[0].base, 12)
    assert full.base_scale == 1  # else scaling back would explain the difference
    assert theirs[0].result.base_scale < 1


@pytest.mark.parametrize("seed", range(2))
def test_base_step_is_halved_as_long_as_the_loss_decreases(seed):
    problem = random_problem(
        seed, 90, 2, 12, min_weight=2, learning_rate=0.5, base_line_search=True
    )
    losses = losses_by_halvings(problem)
    n_halvings = next(n for n in range(10) if losses[n + 1] >= losses[n])
    assert n_halvings > 0
    trainer = core.trainer(problem)
    assert step_of(trainer, 0, 12).base_scale == 2.0**-n_halvings
    assert trainer.loss() == losses[n_halvings]


@pytest.mark.parametrize("hessian_split", [False, True])
def test_candidate_losses_are_those_after_the_line_search(hessian_split):
    params = {"hessian_split": hessian_split, "learning_rate": 0.5, "min_weight": 2}
    problem = random_problem(0, 60, 2, 12, **params, base_line_search=True)
    found = core.trainer(problem).search(range(12))
    after = []
    for base in range(12):
        trainer = core.trainer(problem)
        step_of(trainer, base, 12)
        after.append(trainer.loss())
    np.testing.assert_allclose(found.candidate_losses, after, rtol=1e-9)
    ours, theirs = (t.search([0, 5]) for t in (core.trainer(problem), reference_trainer(problem)))
    core.assert_same_result(ours, theirs)
    assert ours.base_scale < 1


def test_base_line_search_is_the_same_for_any_thread_count():
    problem = random_problem(6, 700, 3, 25, learning_rate=0.5, base_line_search=True)
    one, three = (core.trainer(problem, n_threads) for n_threads in (1, 3))
    for base in (3, 4):
        ours, theirs = step_of(one, base, 25), step_of(three, base, 25)
        assert core.result_bytes(ours) == core.result_bytes(theirs)
        assert ours.base_scale < 1


# ---------------------------------------------------------------------------------------- the parameter


@pytest.mark.parametrize("criterion", ["mart", "logitboost"])
@pytest.mark.parametrize("fields", [{}, {"n_candidates": 2, "gap": 2}, {"base_label": 3}], ids=str)
def test_base_line_search_shortens_steps_that_already_lower_the_loss(criterion, fields):
    X, y = noisy_data(n_rows=150, n_classes=25)
    given = {"learning_rate": 0.2, "min_samples_leaf": 2, "max_iter": 1}
    searched, full = (
        small(AdaptiveBaseClass(criterion, line_search=s, **fields), **given).fit(X, y)
        for s in (True, False)
    )
    assert (base_scales(full) == 1).all()
    assert (base_scales(searched) < 1).all()
    assert searched.train_loss_[1] < full.train_loss_[1] < full.train_loss_[0]


def test_line_search_makes_no_difference_with_two_classes():
    X, y = noisy_data(n_classes=2)
    models = (small(AdaptiveBaseClass(line_search=s)).fit(X, y) for s in (True, False))
    assert_same_model(*models)


# ----------------------------------------------------------------------------------------- validation rows


def generated(n_classes: int, n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows, and a quarter as many for validation."""
    X, y = make_classification(
        n_rows, n_features=20, n_informative=15, n_redundant=2, n_classes=n_classes,
        n_clusters_per_class=1, random_state=0,
    )  # fmt: skip
    n = n_rows - n_rows // 4
    return X[:n], y[:n], X[n:], y[n:]


@pytest.mark.parametrize("algorithm", ["abc-mart", "abc-logitboost"])
@pytest.mark.parametrize(
    ("n_classes", "n_rows", "l2"),
    [(3, 600, 0.0), (30, 1500, 0.0), (100, 5000, 0.0), (300, 6000, 1.0)],
)
def test_first_iterations_lower_the_validation_loss(algorithm, n_classes, n_rows, l2):
    X, y, X_val, y_val = generated(n_classes, n_rows)
    model = ABCBoostClassifier(algorithm, max_iter=10, learning_rate=0.1, l2_regularization=l2)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    assert model.validation_loss_[10] < model.validation_loss_[0]
    assert model.best_iteration_ > 0
