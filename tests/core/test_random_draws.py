"""Keyed random draws, and the rows that are sampled for an iteration."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import core
import reference as ref
from abcgbm.training import validation as draws
from strategies import Problem, problems, random_problem

PLAIN = ([0, 1, 2], -1, False, 2 / 3)

# Outputs of splitmix64 with seed 0 as published; its state grows by the golden ratio.
SPLITMIX64 = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]


def test_draws_are_those_of_splitmix64():
    states = [i * 0x9E3779B97F4A7C15 % 2**64 for i in range(4)]
    assert [ref.mix(state) for state in states] == SPLITMIX64
    assert draws.mix(np.array(states, np.uint64)).tolist() == SPLITMIX64


@given(st.integers(0, 2**64 - 1), st.integers(1, 9))
def test_draws_of_the_package_are_those_of_the_core(seed, kind):
    expected = [ref.draw(seed, kind, 0, i) for i in range(5)]
    assert draws.draw(seed, kind, np.arange(5, dtype=np.uint64)).tolist() == expected


# --------------------------------------------------------------------------------------------- rows


def sampled_rows(problem: Problem, iteration: int) -> np.ndarray:
    seed, fraction = problem.params["seed"], problem.params["subsample"]
    rows = range(len(problem.y))
    return np.array([ref.is_sampled(seed, iteration, row, fraction) for row in rows])


@given(st.integers(0, 2**64 - 1), st.sampled_from([1e-9, 0.1, 0.5, 0.9, 1.0]))
def test_trees_use_the_rows_sampled_for_their_iteration(seed, fraction):
    problem = random_problem(3, 50, 2, 3, subsample=fraction, seed=seed)
    trainer = core.trainer(problem)
    for trainer.number in (0, 1, 2**63):
        result = trainer.train_iteration(*PLAIN)
        expected = sampled_rows(problem, trainer.number).sum()
        np.testing.assert_array_equal(result.weight[result.tree_start[:-1]], [expected] * 3)


def test_each_iteration_samples_its_own_rows_in_the_given_fraction():
    problem = random_problem(0, 1000, 1, 2, subsample=0.3, seed=5)
    first, second = sampled_rows(problem, 0), sampled_rows(problem, 1)
    assert 250 < first.sum() < 350
    assert 250 < second.sum() < 350
    assert 60 < (first & second).sum() < 120  # independent: 90 are expected


@given(problems(), st.randoms(use_true_random=False))
def test_rows_out_of_the_sample_do_not_change_the_trees(problem, random):
    """The scores are zero, where labels do not change the grid of the residuals."""
    problem = problem.with_params(subsample=0.5, learning_rate=0.05)
    is_out = ~sampled_rows(problem, 0)
    assume(is_out.any())
    X, y = problem.X.copy(), problem.y.copy()
    for row in np.flatnonzero(is_out):
        X[row] = problem.X[random.randrange(len(y))]
        y[row] = random.randrange(problem.n_classes)
    thresholds = [np.array(t) for t in problem.thresholds()]
    table = core.bin_table(X, thresholds, 1, problem.is_categorical().astype(np.uint8))
    arguments = (list(range(1, problem.n_classes)), 0, True, 1.0)
    one = core.trainer(problem, raw=None).train_iteration(*arguments)
    other = core.trainer(problem, binned=table, y=y, raw=None).train_iteration(*arguments)
    assume(one.base_scale == other.base_scale and one.n_halvings == other.n_halvings)
    assert core.result_bytes(one) == core.result_bytes(other)


@pytest.mark.parametrize("hessian_split", [False, True])
def test_iteration_without_sampled_rows_changes_nothing(hessian_split):
    problem = random_problem(0, 30, 2, 3, subsample=1e-300, hessian_split=hessian_split)
    trainer = core.trainer(problem)
    result = trainer.train_iteration(*PLAIN)
    assert not result.changed
    assert result.feature.tolist() == [-1] * 3
    assert not trainer.raw().any()


def test_scores_of_rows_out_of_the_sample_are_updated():
    problem = random_problem(1, 200, 2, 3, subsample=0.5, seed=0)
    trainer = core.trainer(problem)
    iterations = [ref.Iteration(trainer.train_iteration(*PLAIN), -1, trainer.class_losses())]
    arrays = core.forest_arrays(iterations, problem.thresholds())
    raw = core.predict(core.forest(arrays, 2, 3), problem.X, 3, 3)
    np.testing.assert_array_equal(trainer.raw().T, raw)
    assert raw[~sampled_rows(problem, 0)].any(axis=1).all()
