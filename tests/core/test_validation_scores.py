"""Validation scores, updated after every iteration of a training."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import core
import reference as ref
from strategies import Problem, algorithms, mixed_problem, problems, random_problem, sparse_problems


def followed_by(trainer: core.Trainer, validation, check) -> core.Trainer:
    """Return the trainer; after each of its iterations the validation is updated and checked."""
    native_iteration = trainer.native_iteration

    def observed(*arguments):
        result = native_iteration(*arguments)
        if result.changed:
            validation.add(result)
            check()
        return result

    trainer.native_iteration = observed
    return trainer


def assert_same_state(validation, trainer: core.Trainer) -> None:
    np.testing.assert_array_equal(validation.raw(), trainer.raw())
    np.testing.assert_array_equal(validation.leading(), trainer.raw().argmax(axis=0))
    assert validation.loss() == trainer.loss()


@given(st.one_of(problems(), sparse_problems()), st.data(), st.integers(1, 2))
def test_validation_on_the_training_rows_has_the_training_scores(problem, data, n_threads):
    algorithm, K = data.draw(algorithms(problem.n_classes)), problem.n_classes
    trainer, validation = core.trainer(problem), core.validation(problem, n_threads)
    assert_same_state(validation, trainer)
    followed_by(trainer, validation, lambda: assert_same_state(validation, trainer))
    ref.boost(trainer, algorithm, K, 3)


@pytest.mark.parametrize("K", [2, 9, 40])
def test_validation_follows_steps_that_are_scaled_back(K):
    """The step of the base class is a fraction of the trees' values."""
    rng = np.random.default_rng(K)
    X, y = rng.normal(size=(500, 3)), rng.integers(0, K, 500).astype(np.int32)
    problem = Problem(X, y, K, params={"min_weight": 2, "learning_rate": 1.0})
    trainer, validation = core.trainer(problem), core.validation(problem, 3)
    followed_by(trainer, validation, lambda: assert_same_state(validation, trainer))
    iterations = ref.boost(trainer, ref.Algorithm("abc-mart"), K, 5)
    assert len(iterations) == 5
    assert K == 2 or any(r.result.base_scale < 1 for r in iterations)


def other_rows(problem: Problem, random, n: int) -> Problem:
    """Return rows with random training values or missing ones."""
    columns = [[*column, math.nan] for column in problem.X.T.tolist()]
    X = np.array([[random.choice(column) for column in columns] for _ in range(n)])
    y = np.array([random.randrange(problem.n_classes) for _ in range(n)], np.int32)
    weight = np.array([random.randrange(1, 9) for _ in range(n)])
    raw = None if problem.raw is None else np.repeat(problem.raw[:, :1], n, axis=1)
    return replace(problem, X=X, y=y, weight=weight, raw=raw)


def validation_of(rows: Problem, problem: Problem):
    """Return a validation on other rows, binned as the training rows."""
    thresholds = [np.array(t) for t in problem.thresholds()]
    table = core.bin_table(rows.X, thresholds, 1, problem.is_categorical().astype(np.uint8))
    return core.validation(rows, binned=table)


@given(problems(), st.data(), st.randoms(use_true_random=False), st.integers(1, 20))
def test_validation_on_other_rows_has_the_predicted_scores(problem, data, random, n):
    K, rows = problem.n_classes, other_rows(problem, random, n)
    validation = validation_of(rows, problem)
    trainer = followed_by(core.trainer(problem), validation, lambda: None)
    iterations = ref.boost(trainer, data.draw(algorithms(K)), K, 3)
    raw = np.zeros((n, K)) if rows.raw is None else rows.raw.T.copy()
    if iterations:
        arrays = core.forest_arrays(iterations, problem.thresholds())
        forest = core.forest(arrays, problem.X.shape[1], K)
        forest.add(rows.X, raw, 0, len(arrays["tree_class"]), 1)
    np.testing.assert_array_equal(validation.raw(), raw.T)
    np.testing.assert_array_equal(validation.leading(), raw.argmax(axis=1))
    assert validation.loss() == core.trainer(rows, raw=np.ascontiguousarray(raw.T)).loss()


@pytest.mark.parametrize("n_threads", [2, 3, 8])
def test_validation_is_the_same_for_any_thread_count(n_threads):
    problem = mixed_problem(5, 3000, 5)
    one, several = core.validation(problem), core.validation(problem, n_threads)
    trainer = core.trainer(problem)
    for iteration in ref.boost(trainer, ref.Algorithm("abc-mart"), 5, 3):
        one.add(iteration.result)
        several.add(iteration.result)
    assert_same_state(one, trainer)
    assert_same_state(several, trainer)


# ---------------------------------------------------------------------------------------- wrong input

PROBLEM = mixed_problem(0, 100, 3)


def first_iteration(problem: Problem):
    return core.trainer(problem).native_iteration(range(problem.n_classes), [-1], False, 1.0, 0)


def columns_of(problem: Problem, *columns: int) -> Problem:
    categorical = tuple(i for i, f in enumerate(columns) if f in problem.categorical)
    return replace(problem, X=np.ascontiguousarray(problem.X[:, columns]), categorical=categorical)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (replace(PROBLEM, y=PROBLEM.y % 2, n_classes=2), "classes"),
        (columns_of(PROBLEM, 0), "bins"),
        (replace(PROBLEM, max_bins=2), "bins"),
        (replace(PROBLEM, X=PROBLEM.X % 4), "bins"),
        (replace(PROBLEM, X=np.nan_to_num(PROBLEM.X).round(), categorical=(0, 1)), "bins"),
    ],
    ids=["classes", "features", "fewer bins", "fewer categories", "other kinds"],
)
def test_iteration_of_another_training_is_refused_and_keeps_the_scores(other, said):
    problem = PROBLEM.with_params(max_leaf_nodes=20, categorical_smoothing=0.0)
    validation = core.validation(other)
    with pytest.raises(ValueError, match=f"result: of a training with other {said}"):
        validation.add(first_iteration(problem))
    assert not validation.raw().any()


@pytest.mark.parametrize(
    "result", [None, 1, ref.IterationResult(*[np.zeros(0)] * 11, 1.0, 0, False)], ids=type
)
def test_other_objects_than_results_are_refused(result):
    with pytest.raises(TypeError):
        core.validation(PROBLEM).add(result)


@pytest.mark.parametrize(
    "changed",
    [
        {"binned": None},
        {"y": PROBLEM.y[:-1]},
        {"y": PROBLEM.y + 3},
        {"weight": PROBLEM.weight * 0},
        {"unit": math.nan},
        {"n_classes": 1},
        {"n_threads": 0},
        {"raw": np.zeros((100, 3))},
        {"raw": np.full((3, 100), 2.0**-33)},
    ],
    ids=str,
)
def test_validation_rejects_wrong_input(changed):
    with pytest.raises((ValueError, TypeError)):
        core.validation(PROBLEM, **changed)


def test_training_continues_after_its_validation_is_deleted():
    problem = random_problem(0, 200, 2, 3)
    trainer, validation = core.trainer(problem), core.validation(problem)
    result = first_iteration(problem)
    validation.add(result)
    del validation
    trainer.train_iteration([0, 1, 2], -1, False, 1.0)
    again = core.validation(problem)
    again.add(result)
    assert_same_state(again, trainer)
