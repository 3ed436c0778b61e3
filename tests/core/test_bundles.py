"""Bundles of mutually exclusive sparse columns, stored as one column: the model stays the same."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import core
import reference as ref
from strategies import (
    VARIANTS,
    Problem,
    algorithms,
    one_hot,
    one_hot_problem,
    one_hot_problems,
    reference_trainer,
    reference_trainer_with,
)

EVERY_VARIANT = VARIANTS | {"abc-mart-search": ref.Algorithm("abc-mart", ref.Search(3))}
OPTIONS = {
    "all rows and features": {},
    "some rows": {"subsample": 0.6},
    "some features": {"max_features": 7},
    "groups": {"interaction_groups": [list(range(14)), list(range(10, 28))]},
    "two features on a path": {"max_path_features": 2},
    "bounds": {"min_weight": 12, "min_hessian_leaf": 3.0, "l2_regularization": 1.0},
}


def assert_same_training(trainer, theirs, algorithm: ref.Algorithm, n_classes: int) -> list:
    ours, expected = (ref.boost(this, algorithm, n_classes, 2) for this in (trainer, theirs))
    core.assert_same_iterations(ours, expected)
    np.testing.assert_array_equal(trainer.raw(), theirs.raw())
    return ours


def features_of(iterations: list) -> set[int]:
    """Return the features that trees are split on."""
    return {f for r in iterations for f in r.result.feature.tolist() if f >= 0}


@given(one_hot_problems(), st.data())
def test_training_on_one_hot_columns_matches_the_reference(problem, data):
    algorithm = data.draw(algorithms(problem.n_classes))
    trainers = core.trainer(problem), reference_trainer(problem)
    assert_same_training(*trainers, algorithm, problem.n_classes)


@pytest.mark.parametrize("hessian_split", [False, True], ids=["weights", "hessians"])
@pytest.mark.parametrize("algorithm", EVERY_VARIANT.values(), ids=EVERY_VARIANT)
def test_every_algorithm_on_one_hot_columns_matches_the_reference(algorithm, hessian_split):
    problem = one_hot_problem(4, 120, 3, hessian_split=hessian_split)
    table = core.binned(problem)
    assert 15 < sum(table.is_bundled) < sum(table.is_sparse) == 26
    trainers = core.trainer(problem, n_threads=2), reference_trainer(problem)
    iterations = assert_same_training(*trainers, algorithm, 3)
    assert len(features_of(iterations)) > 8  # more than there are dense ones


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_every_option_on_one_hot_columns_matches_the_reference(options):
    problem = one_hot_problem(5, 120, 3, hessian_split="min_hessian_leaf" in options)
    weight, unit = ref.integer_weights(np.random.default_rng(0).uniform(0.5, 2.0, 120))
    smallest = ref.min_weight(options.get("min_weight", 5), unit)
    problem = replace(problem, weight=np.array(weight), unit=unit)
    problem = problem.with_params(**options | {"min_weight": smallest})
    trainers = core.trainer(problem), reference_trainer(problem)
    assert_same_training(*trainers, ref.Algorithm("abc-mart"), 3)


@pytest.mark.parametrize("n_threads", [2, 3, 8])
@pytest.mark.parametrize("K", [2, 9])
def test_trees_on_one_hot_columns_are_the_same_for_any_thread_count(K, n_threads):
    problem, classes = one_hot_problem(6, 5000, K), list(range(1, K))
    one, other = (
        core.trainer(problem, n).train_iteration(classes, 0, True, 1.0) for n in (1, n_threads)
    )
    assert core.result_bytes(one) == core.result_bytes(other)


def test_training_on_only_one_hot_columns_matches_the_reference():
    problem = one_hot_problem(7, 150, 3)
    is_sparse = np.array(core.binned(problem).is_sparse)
    problem = replace(problem, X=np.ascontiguousarray(problem.X[:, is_sparse]), categorical=())
    assert all(core.binned(problem).is_sparse)
    trainers = core.trainer(problem), reference_trainer(problem)
    assert features_of(assert_same_training(*trainers, ref.Algorithm("mart", None), 3))


# -------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("n_copies", [1, 2, 3, 4])
def test_sparse_columns_are_bundled_unless_they_need_many_bundles(n_copies):
    """Copies have the same non-default rows, so each needs its own bundle."""
    X = np.zeros((50, n_copies))
    X[:7] = 1.0
    table = core.binned(Problem(X, np.zeros(50, np.int32), 2))
    assert list(table.is_sparse) == [True] * n_copies
    assert list(table.is_bundled) == [n_copies <= 2] * n_copies
    np.testing.assert_array_equal(table.codes(), X)


def assert_codes(problem: Problem, table) -> None:
    expected = ref.bin_table(problem.X, problem.thresholds()).codes
    np.testing.assert_array_equal(table.codes(), expected)


@given(one_hot_problems())
def test_codes_of_one_hot_columns_match_the_reference(problem):
    assert_codes(problem, core.binned(problem))


@given(one_hot_problems(), st.data())
def test_rows_taken_from_one_hot_columns_have_their_codes_and_trees(problem, data):
    """Rows are taken in any order with repetitions, and then taken again from the result."""
    some = st.lists(st.integers(0, len(problem.y) - 1), min_size=1, max_size=40).map(np.array)
    first = data.draw(some)
    second = data.draw(some) % len(first)
    algorithm, rows = data.draw(algorithms(problem.n_classes)), first[second]
    table, taken = core.binned(problem), problem.rows(rows)
    twice = table.take(first).take(second)
    np.testing.assert_array_equal(twice.codes(), table.codes()[rows])
    theirs = reference_trainer_with(problem.thresholds(), taken)
    assert_same_training(core.trainer(taken, binned=twice), theirs, algorithm, problem.n_classes)


@pytest.mark.parametrize("max_bins", [255, 65534])
def test_rows_taken_from_many_one_hot_columns_have_their_codes(max_bins):
    problem = replace(one_hot_problem(8, 900, 3), max_bins=max_bins)
    X = np.column_stack([problem.X, np.arange(900.0)])
    table = core.binned(replace(problem, X=X))
    assert table.code_bytes == (1 if max_bins == 255 else 2)
    rows = np.random.default_rng(0).integers(0, 900, 2000)
    np.testing.assert_array_equal(table.take(rows).codes(), table.codes()[rows])
    assert table.take(rows[:0]).codes().shape == (0, X.shape[1])


def hundreds_of_bins(n_bins: int, n_distinct: int) -> Problem:
    """Return one-hot columns with `n_bins` bins in total, 3 each and up to 5 in the first, and a dense column.

    Each column has four non-default rows; those of the columns 60 to 89 have their own class.
    """
    categories = np.repeat(np.arange(n_bins // 3), 4)
    values = np.ones(len(categories))
    values[:3] += np.minimum(np.arange(3), n_bins % 3)
    values[3::4] = math.nan  # in the last bin of each column
    y = ((categories >= 60) & (categories < 90)).astype(np.int32) + (categories % 7 == 0)
    X = np.column_stack(
        [one_hot(categories, values), np.arange(float(len(categories))) % n_distinct]
    )
    return Problem(X, y, 3, max_bins=65534, params={"min_weight": 2, "max_leaf_nodes": 6})


@pytest.mark.parametrize("n_distinct", [3, 1000], ids=["one byte", "two bytes"])
@pytest.mark.parametrize("n_bins", [255, 256, 257, 258, 300, 520])
def test_bundles_may_have_any_number_of_bins(n_bins, n_distinct):
    """Above 256 bins the codes of a column take two bytes."""
    problem = hundreds_of_bins(n_bins, n_distinct)
    table = core.binned(problem)
    assert sum(table.n_bins[:-1]) == n_bins
    assert all(table.is_sparse[:-1])
    assert table.code_bytes == (2 if n_distinct == 1000 else 1)
    assert_codes(problem, table)
    trainers = core.trainer(problem, binned=table), reference_trainer(problem)
    ours, theirs = (trainer.train_iteration([1], -1, False, 2 / 3) for trainer in trainers)
    core.assert_same_result(ours, theirs)
    rows = np.random.default_rng(0).permutation(len(problem.y))
    np.testing.assert_array_equal(table.take(rows).codes(), table.codes()[rows])


def bin_columns(problem: Problem):
    """Bin the table of a problem whose thresholds would take the reference too long."""
    thresholds = core.find_thresholds(problem.X, problem.weight, problem.max_bins)
    return core.bin_table(problem.X, thresholds)


def test_bundles_have_at_most_65536_bins():
    """A tree on one column of the bundles equals the tree on three copies of it, which are not bundled."""
    rng = np.random.default_rng(0)
    categories, n = rng.permutation(120_000) % 5, 120_000
    X = one_hot(categories, rng.permutation(n) + 1.0)
    y = (rng.random(n) < 0.2 + 0.6 * (X.max(axis=1) > n / 3)).astype(np.int32)
    problem = Problem(X, y, 2, max_bins=65534, params={"max_leaf_nodes": 4})
    table = bin_columns(problem)
    assert all(table.is_sparse)
    assert sum(table.n_bins[:2]) < 2**16 < sum(table.n_bins[:3])
    for feature in range(5):
        alone = replace(problem, X=np.ascontiguousarray(X[:, [feature] * 3]))
        table_alone = bin_columns(alone)
        assert (sum(table_alone.is_sparse), sum(table_alone.is_bundled)) == (3, 0)
        np.testing.assert_array_equal(table.codes()[:, [feature] * 3], table_alone.codes())
        among = problem.with_params(interaction_groups=[[feature]])
        ours = core.trainer(among, binned=table).train_iteration([1], 0, True, 1.0)
        expected = core.trainer(alone, binned=table_alone).train_iteration([1], 0, True, 1.0)
        assert set(ours.feature.tolist()) == {feature, -1}
        for name in ("bin", "left", "value", "gain", "weight"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(expected, name))
