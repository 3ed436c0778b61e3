"""Training on sparse columns, which store only the rows other than the fill value: the same model."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import core
import reference as ref
from strategies import (
    Problem,
    algorithms,
    mixed_problem,
    random_problem,
    reference_trainer,
    reference_trainer_with,
    sparse_problems,
)


def assert_same_training(trainer, theirs, algorithm: ref.Algorithm, n_classes: int) -> None:
    iterations = [ref.boost(this, algorithm, n_classes, 3) for this in (trainer, theirs)]
    core.assert_same_iterations(*iterations)
    np.testing.assert_array_equal(trainer.raw(), theirs.raw())


@given(sparse_problems(), st.data())
def test_training_on_sparse_columns_matches_the_reference(problem, data):
    assert any(core.binned(problem).is_sparse)
    algorithm = data.draw(algorithms(problem.n_classes))
    trainers = core.trainer(problem), reference_trainer(problem)
    assert_same_training(*trainers, algorithm, problem.n_classes)


@given(sparse_problems(), st.data())
def test_training_does_not_depend_on_the_fill_value(problem, data):
    """The fill value need not be the most common one, nor occur in the column."""
    values = [st.sampled_from([*column, 0.5, math.nan]) for column in problem.X.T.tolist()]
    fill = np.array([data.draw(value) for value in values])
    algorithm, K = data.draw(algorithms(problem.n_classes)), problem.n_classes
    trainers = core.trainer(problem, binned=core.bin_sparse(problem, fill)), core.trainer(problem)
    assert_same_training(*trainers, algorithm, K)


def taken(problem: Problem, rows: np.ndarray) -> tuple[core.Trainer, ref.Trainer]:
    """Return trainers on some rows of a table that was binned as a whole."""
    some = problem.rows(rows)
    ours = core.trainer(some, binned=core.binned(problem).take(rows))
    return ours, reference_trainer_with(problem.thresholds(), some)


@given(sparse_problems(), st.data())
def test_training_on_taken_rows_matches_the_reference(problem, data):
    """Rows are taken in any order with repetitions; the common value may be rare among them."""
    rows = data.draw(st.lists(st.integers(0, len(problem.y) - 1), min_size=1, max_size=40))
    algorithm = data.draw(algorithms(problem.n_classes))
    assert_same_training(*taken(problem, np.array(rows)), algorithm, problem.n_classes)


@given(sparse_problems(), st.data())
def test_taken_rows_have_their_codes(problem, data):
    n = len(problem.y)
    rows = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=40)), np.int64)
    table = core.binned(problem)
    some = table.take(rows)
    np.testing.assert_array_equal(some.codes(), table.codes()[rows])
    assert (some.n_rows, some.total_bins) == (len(rows), table.total_bins)
    assert list(some.n_bins) == list(table.n_bins)


def test_rows_taken_from_columns_of_all_kinds_have_their_codes():
    table = core.binned(mixed_problem(2, 400, 3))
    rows = np.random.default_rng(0).integers(0, 400, 900)
    np.testing.assert_array_equal(table.take(rows).codes(), table.codes()[rows])


@pytest.mark.parametrize("rows", [[0, 20], [-1], [2**40]], ids=repr)
def test_take_rejects_rows_out_of_range(rows):
    with pytest.raises(ValueError, match="rows: 0 to n_rows - 1"):
        core.binned(random_problem(0, 20, 2, 3)).take(np.array(rows))


@pytest.mark.parametrize("n_others", [3, 4, 5])
def test_column_is_sparse_if_one_code_has_80_percent_of_the_rows(n_others):
    X = np.zeros((20, 1))
    X[:n_others] = math.nan
    problem = Problem(X, np.zeros(20, np.int32), 2)
    assert list(core.binned(problem).is_sparse) == [n_others <= 4]
    assert list(core.bin_sparse(problem, np.zeros(1)).is_sparse) == [n_others <= 4]


@pytest.mark.parametrize("hessian_split", [False, True])
@pytest.mark.parametrize("K", [2, 4])
def test_trees_on_all_kinds_of_columns_match_the_reference(K, hessian_split):
    params = {"hessian_split": hessian_split, "subsample": 0.8, "max_features": 4}
    problem = mixed_problem(K, 400, K, **params)
    assert list(core.binned(problem).is_sparse) == [False] * 4 + [True] * 3
    trainers = core.trainer(problem, n_threads=2), reference_trainer(problem)
    assert_same_training(*trainers, ref.Algorithm("abc-mart"), K)


def test_training_on_only_sparse_columns_matches_the_reference():
    problem = mixed_problem(1, 600, 3)
    problem = replace(problem, X=np.ascontiguousarray(problem.X[:, 4:]), categorical=(2,))
    assert all(core.binned(problem).is_sparse)
    trainers = core.trainer(problem), reference_trainer(problem)
    assert_same_training(*trainers, ref.Algorithm("mart", None), 3)
    assert trainers[0].raw().any()


def test_builder_accepts_each_feature_once():
    X, thresholds = np.zeros((10, 1)), [np.array([0.5]), np.array([0.5])]
    builder = core.builder(10, thresholds)
    with pytest.raises(ValueError, match="features: each once"):
        builder.add_block(np.array([1, 1], np.int32), np.zeros((10, 2)), 1)
    builder.add_block(np.array([0], np.int32), X, 1)
    with pytest.raises(ValueError, match="features: each once"):
        builder.add_block(np.array([0], np.int32), X, 1)
    with pytest.raises(ValueError, match="every feature must be added"):
        builder.finish()
    builder.add_block(np.array([1], np.int32), X, 1)
    assert builder.finish().n_features == 2
    with pytest.raises(ValueError, match="every feature must be added"):
        builder.finish()
