"""Single trees of the core: splits, growth and leaf values."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

import core
from strategies import Problem, order_free_problems, problems, random_problem, reference_trainer


class Iteration(NamedTuple):
    """Arguments of `train_iteration`."""

    classes: list[int]
    base: int = 0
    base_derivatives: bool = True
    leaf_scale: float = 1.0


PLAIN = Iteration([0, 1, 2], base=-1, base_derivatives=False, leaf_scale=2 / 3)
BASE = Iteration([1, 2])


def assert_same_first_iteration(problem: Problem, arguments: Iteration) -> None:
    ours = core.trainer(problem).train_iteration(*arguments)
    core.assert_same_result(ours, reference_trainer(problem).train_iteration(*arguments))


@given(problems(), st.data())
def test_tree_matches_the_reference(problem, data):
    k, base = data.draw(st.permutations(range(problem.n_classes)))[:2]
    scale = (problem.n_classes - 1) / problem.n_classes
    variants = [
        Iteration([k], base),
        Iteration([k], base=-1, base_derivatives=False, leaf_scale=scale),
        Iteration([k], base, base_derivatives=False),
    ]
    assert_same_first_iteration(problem, data.draw(st.sampled_from(variants)))


@pytest.mark.parametrize("arguments", [PLAIN, BASE], ids=["plain", "base"])
@pytest.mark.parametrize("n_distinct", [255, 256, 600])
def test_tree_matches_the_reference_with_one_and_two_byte_codes(arguments, n_distinct):
    rng = np.random.default_rng(n_distinct)
    X = rng.integers(0, n_distinct, (600, 2)).astype(np.float64)
    X[:, 0] = np.arange(600) % n_distinct
    y = ((X[:, 0] * 7 / n_distinct + X[:, 1] / n_distinct) % 3).astype(np.int32)
    params = {"min_weight": 2, "max_leaf_nodes": 30}
    assert_same_first_iteration(Problem(X, y, 3, max_bins=65534, params=params), arguments)


def test_trees_of_the_digits_match_the_reference():
    X, y = load_digits(return_X_y=True)
    params = {"min_weight": 5, "max_leaf_nodes": 10}
    problem = Problem(X[:150], y[:150].astype(np.int32), 10, params=params)
    assert_same_first_iteration(problem, Iteration([*range(1, 10)]))


@pytest.mark.parametrize("arguments", [PLAIN, BASE], ids=["plain", "base"])
def test_tree_matches_the_reference_where_weights_take_most_of_the_bits(arguments):
    """The grid of the residuals must be coarser for these weights."""
    problem = random_problem(11, 150, 3, 3, min_weight=2**30)
    weight = np.random.default_rng(0).integers(1, 2**29, 150)
    assert int(weight.sum()).bit_length() > 30
    assert_same_first_iteration(replace(problem, weight=weight, unit=2.0**-20), arguments)


def test_ties_between_leaves_go_to_the_older_leaf():
    """Feature 0 halves the rows. Feature 1 then splits the left child with the gain of feature 2 in the right."""
    rows = [((0, 0, 0), 0, 6), ((0, 1, 0), 1, 2), ((1, 0, 1), 0, 2), ((1, 0, 0), 1, 6)]
    X = np.array([x for x, _, n in rows for _ in range(n)], np.float64)
    y = np.array([y for _, y, n in rows for _ in range(n)], np.int32)
    problem = Problem(X, y, 2, params={"min_weight": 1, "max_leaf_nodes": 4})
    full = core.trainer(problem).train_iteration(*Iteration([1]))
    assert full.feature.tolist() == [0, 1, 2, -1, -1, -1, -1]
    assert full.gain[1] == full.gain[2] > 0
    three_leaves = problem.with_params(max_leaf_nodes=3)
    assert_same_first_iteration(three_leaves, Iteration([1]))
    result = core.trainer(three_leaves).train_iteration(*Iteration([1]))
    assert result.feature.tolist() == [0, 1, -1, -1, -1]


def first_iteration(problem: Problem, n_threads: int = 1) -> bytes:
    K = problem.n_classes
    result = core.trainer(problem, n_threads).train_iteration(*Iteration([*range(1, K)]))
    return core.result_bytes(result)


@given(order_free_problems(), st.randoms(use_true_random=False))
def test_trees_are_the_same_for_any_row_order(problem, random):
    order = np.array(random.sample(range(len(problem.y)), len(problem.y)))
    assert first_iteration(problem.rows(order)) == first_iteration(problem)


@given(order_free_problems(), st.data())
def test_integer_weights_equal_repeated_rows(problem, data):
    n = len(problem.y)
    repeats = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)), np.int64)
    weighted = replace(problem.with_params(min_weight=2), weight=repeats, unit=1.0)
    repeated = weighted.rows(np.repeat(np.arange(n), repeats))
    repeated = replace(repeated, weight=np.ones(len(repeated.y), np.int64))
    assert first_iteration(repeated) == first_iteration(weighted)


@pytest.mark.parametrize("n_threads", [2, 3, 8])
@pytest.mark.parametrize("K", [2, 3, 12])
def test_trees_are_the_same_for_any_thread_count(K, n_threads):
    problem = random_problem(K, 9001, 6, K, max_leaf_nodes=20)
    assert first_iteration(problem, n_threads) == first_iteration(problem)


def test_trees_of_one_iteration_equal_trees_grown_one_by_one():
    """With this number of bins, root histograms are built for a few classes at a time."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1100, 1000)), rng.integers(0, 11, 1100).astype(np.int32)
    params = {"max_leaf_nodes": 3, "min_weight": 100}
    problem = Problem(X, y, 11, max_bins=65534, params=params)
    together = core.trainer(problem).train_iteration(*Iteration([*range(1, 11)]))
    assert together.n_halvings == 0
    for tree in (7, 8):
        alone = core.trainer(problem).train_iteration(*Iteration([tree + 1]))
        nodes = slice(*together.tree_start[tree : tree + 2])
        for name in ("feature", "bin", "left", "value", "gain"):
            np.testing.assert_array_equal(getattr(together, name)[nodes], getattr(alone, name))


@pytest.fixture(scope="module")
def balanced_tree() -> Problem:
    """A problem whose tree has leaves of similar gain: the effects of four features add up.

    Only three of the eight classes occur; the others make that number of threads useful.
    """
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1100, 100))
    score = (X[:, :4] > 0) @ [2.0, 1.8, 1.6, 1.4] + rng.normal(size=1100)
    y = np.digitize(score, [2.8, 4.0]).astype(np.int32)
    return Problem(X, y, 8, max_bins=65534, params={"max_leaf_nodes": 16, "min_weight": 20})


@pytest.fixture(scope="module")
def many_bins(balanced_tree):
    """A table whose histograms eight threads keep at most four times each, a single one at least six times."""
    return core.bin_table(
        balanced_tree.X, core.find_thresholds(balanced_tree.X, balanced_tree.weight, 65534)
    )


@pytest.mark.parametrize("hessian_split", [False, True])
def test_tree_is_the_same_if_few_histograms_can_be_kept(balanced_tree, many_bins, hessian_split):
    problem = balanced_tree.with_params(hessian_split=hessian_split)
    few, many = (
        core.trainer(problem, n, binned=many_bins).train_iteration(*Iteration([2])) for n in (8, 1)
    )
    assert 4 < core.max_waiting_leaves(many) <= 6  # only the trainer of eight threads discards some
    assert core.result_bytes(few) == core.result_bytes(many)


def test_tree_matches_the_reference_if_histograms_were_discarded(balanced_tree, many_bins):
    """The reference sees only the features that the tree uses; the others have no better split."""
    result = core.trainer(balanced_tree, 8, binned=many_bins).train_iteration(*Iteration([2]))
    used = np.unique(result.feature[result.feature >= 0])
    few = replace(balanced_tree, X=np.ascontiguousarray(balanced_tree.X[:, used]))
    expected = reference_trainer(few).train_iteration(*Iteration([2]))
    for name in ("gain", "value", "left", "weight"):
        np.testing.assert_array_equal(getattr(result, name), getattr(expected, name))


def depths(result, tree: int) -> list[int]:
    start, end = result.tree_start[tree : tree + 2]
    depth = [0] * int(end - start)
    for node, left in enumerate(result.left[start:end]):
        if left >= 0:
            depth[left] = depth[left + 1] = depth[node] + 1
    return depth


def test_growth_respects_its_limits():
    params = {"max_leaf_nodes": 9, "max_depth": 3, "min_weight": 40, "min_gain": 0.5}
    problem = random_problem(5, 600, 4, 3, **params)
    result = core.trainer(problem).train_iteration(*BASE)
    leaf, inner = np.asarray(result.feature) < 0, np.asarray(result.feature) >= 0
    for tree in (0, 1):
        assert 3 <= leaf[slice(*result.tree_start[tree : tree + 2])].sum() <= 9
        assert max(depths(result, tree)) <= 3
    assert result.weight.min() >= 40
    assert result.gain[inner].min() > 0.5
    assert not result.gain[leaf].any()
    assert not result.value[inner].any()


def test_leaf_values_are_finite_and_on_their_grid():
    problem = random_problem(6, 300, 3, 5, min_weight=1, max_leaf_nodes=30, learning_rate=1.0)
    trainer = core.trainer(problem)
    for _ in range(30):
        result = trainer.train_iteration(*Iteration([1, 2, 3, 4]))
        assert np.abs(result.value).max() <= 50
        np.testing.assert_array_equal(result.value * 2.0**32, np.rint(result.value * 2.0**32))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_leaf_nodes": 0}, "max_leaf_nodes: 2 to 32768"),
        ({"max_leaf_nodes": -3}, "max_leaf_nodes: 2 to 32768"),
        ({"min_weight": 0}, "min_weight: at least 1"),
        ({"learning_rate": float("nan")}, "learning_rate: above 0, at most 1"),
        ({"learning_rate": float("inf")}, "learning_rate: above 0, at most 1"),
        ({"categorical_smoothing": -1.0}, "categorical_smoothing: at least 0"),
        ({"categorical_smoothing": float("nan")}, "categorical_smoothing: at least 0"),
        ({"categorical_smoothing": float("inf")}, "categorical_smoothing: at least 0"),
        ({"subsample": 0.0}, "subsample: above 0, at most 1"),
        ({"subsample": 1.1}, "subsample: above 0, at most 1"),
        ({"subsample": float("nan")}, "subsample: above 0, at most 1"),
        ({"interaction_groups": [[0], [1]]}, "interaction_groups: 0 to n_features - 1"),
    ],
    ids=str,
)
def test_grow_params_reject_values_out_of_range(params, message):
    with pytest.raises(ValueError, match=message):
        core.trainer(random_problem(0, 20, 1, 2, **params))


@pytest.mark.parametrize(
    "params",
    [
        {"max_features": -1},
        {"interaction_groups": [[-1]]},
        {"interaction_groups": [0]},
        {"seed": -1},
        {"seed": 2**64},
        {"unknown": 1},
    ],
    ids=str,
)
def test_grow_params_reject_unknown_names_and_other_types(params):
    with pytest.raises(TypeError, match="incompatible function arguments"):
        core.trainer(random_problem(0, 20, 1, 2, **params))
