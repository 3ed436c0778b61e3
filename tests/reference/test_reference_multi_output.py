"""The reference of multi-output trees against mathematics and single-output trees."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference as ref
import reference_multi_output as multi_output
from strategies import (
    HEAVY,
    Problem,
    mixed_problem,
    multi_output_problems,
    random_problem,
    reference_trainer,
    scores,
)

both_splits = pytest.mark.parametrize("hessian_split", [False, True], ids=["mart", "logitboost"])


def grown(problem: Problem, **params) -> tuple[multi_output.Tree, multi_output.Trainer]:
    """Return the first tree and its trainer."""
    trainer = reference_trainer(problem.with_params(multi_output=True, **params))
    K = problem.n_classes
    return trainer.grow_multi_output((K - 1) / K), trainer


def weighted(problem: Problem, seed: int = 0) -> Problem:
    """Return the problem with random weights, which avoid ties."""
    weight = np.random.default_rng(seed).integers(1, 1000, len(problem.y))
    return replace(problem, weight=weight).with_params(min_weight=1500)


# -------------------------------------------------------------------------------------- projections


@given(scores(limit=12.0), st.data())
def test_derivatives_along_a_projection_are_those_of_the_loss(row, data):
    """At F + e u and e = 0, these are the first derivative of - loss and the second of loss in e."""
    F, y = row
    u = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=len(F), max_size=len(F)))
    p, (R, _) = ref.softmax(F), ref.residuals_and_loss(F, y)
    g, h = multi_output.derivatives_along(u, [ref.on_grid(R_k, 48) for R_k in R], y, 48)
    mean = np.dot(p, u)
    assert math.isclose(ref.off_grid(g, 48), u[y] - mean, abs_tol=1e-13)
    assert math.isclose(ref.off_grid(h, 48), 1 - mean**2, abs_tol=1e-13)


def test_projections_are_random_signs():
    us = np.array(multi_output.random_projections(5, 7, 40, 50))
    assert us[3, 9] == (1 if ref.draw(5, 4, 7, 3 * 50 + 9) < 2**63 else -1)
    assert set(us.ravel().tolist()) == {-1, 1}
    assert abs(us.sum()) < 200  # of 2000; the standard deviation is 45
    assert np.abs(us @ us.T - 50 * np.eye(40)).max() < 40  # of two projections: 7
    assert (us != multi_output.random_projections(5, 8, 40, 50)).any()


@pytest.mark.parametrize("n_projections", [0, 6, 7, 2**31 - 1])
def test_as_many_projections_as_classes_means_all_classes(n_projections):
    result = grown(random_problem(0, 60, 2, 6), n_projections=n_projections)[0].target
    assert result.n_projections == 0
    assert all(len(row.G) == 6 for row in result.rows)


def test_gain_of_random_projections_is_unbiased():
    """For residuals of MART, the mean of (u.G)^2 is the sum of G_k^2."""
    problem = random_problem(3, 80, 1, 6, max_leaf_nodes=2)
    exact, _ = grown(problem)
    _, trainer = grown(problem, n_projections=5)
    left, right = ([i for i in range(80) if (i % 3 == 0) == side] for side in (True, False))

    def gain(target: ref.Target) -> float:
        sides = [sum((target.rows[i] for i in rows), ref.Sums()) for rows in (left, right)]
        return target.score_and_gain(*sides)[1]

    gains = []
    for trainer.number in range(100):
        gains.append(gain(trainer.search_target(exact.of_class)))
    assert math.isclose(np.mean(gains), gain(exact.target), rel_tol=0.2)


# ------------------------------------------------------------------------------- grid of the search


@given(st.integers(-(2**62), 2**62), st.integers(0, 33))
def test_dropped_bits_round_to_nearest(x, t):
    assert -Fraction(1, 2) < multi_output.without_bits(x, t) - Fraction(x, 2**t) <= Fraction(1, 2)


def largest_sums(target: ref.Target) -> int:
    """Return a bound on the sums of any node."""
    G = sum(np.abs(row.G) for row in target.rows)
    H = sum(np.abs(row.H) for row in target.rows)
    return max(int(G.max()), int(H.max()), sum(row.W for row in target.rows))


@given(multi_output_problems())
def test_no_sum_of_the_search_has_more_than_31_bits(problem):
    tree, _ = grown(problem)
    assert largest_sums(tree.target) < 2**31


@pytest.mark.parametrize("n_others", [1, 2, 4, 5, 28])
@pytest.mark.parametrize("weight", [2**29, 2**38, 2**38 + 2**37])
@pytest.mark.parametrize("above", [1.02, 1.5, 3.2])
def test_no_sum_has_more_than_31_bits_where_rounding_adds_most(n_others, weight, above):
    """Residuals of heavy rows are slightly above half a unit of the grid, and are rounded up."""
    K, bits = 30, min(30, 60 - (2 * weight + 1).bit_length())
    p = above * 2.0**-bits  # the light row, whose residual is 1, sets the grid
    raw = np.full((K, 3), -60.0)
    raw[0] = 0
    raw[1 : 1 + n_others, :2] = math.log(p)
    raw = np.round(raw * 2.0**32) / 2.0**32
    y = np.array([0, 0, 1])
    problem = Problem(np.zeros((3, 1)), y, K, np.array([weight, weight, 1]), raw=raw)
    for n_projections in (0, 29):
        tree, trainer = grown(problem, n_projections=n_projections)
        Rint, _ = trainer.residual_grid()
        assert Rint[0][1] < -above / 2  # else nothing was rounded up
        assert largest_sums(tree.target) < 2**31


def squares(node: ref.Node, tree: multi_output.Tree, l2: float) -> float:
    """Return the decrease of the quadratic loss by a leaf: the sum of G^2 / (H + l2), or of G^2 / W."""
    plain = tree.of_class[0]
    numbers = [(s.G, s.H, s.W) for s in node.by_class]
    G, H, W = np.ldexp(np.array(numbers, float), [-plain.shift, -plain.shift, 0]).T * plain.unit
    return float(np.sum(G**2 / (H + l2 if plain.params.hessian_split else W)))


@both_splits
@pytest.mark.parametrize("l2", [0.0, 0.5, 30.0])
def test_gain_of_the_search_is_the_decrease_of_the_quadratic_loss(hessian_split, l2):
    problem = weighted(random_problem(1, 60, 3, 5, hessian_split=hessian_split))
    tree, _ = grown(problem.with_params(l2_regularization=l2))
    inner = [node for node in tree.nodes if node.left >= 0]
    assert len(inner) > 4
    for node in inner:
        left, right = tree.nodes[node.left : node.left + 2]
        gain = squares(left, tree, l2) + squares(right, tree, l2) - squares(node, tree, l2)
        assert math.isclose(node.split.gain, gain, rel_tol=1e-3)


@both_splits
@pytest.mark.parametrize("n_projections", [0, 3])
def test_units_of_weight_change_only_the_grid(hessian_split, n_projections):
    """Scaling weights up and the unit down by 2^20 changes only t and tw."""
    problem = random_problem(2, 60, 3, 5, hessian_split=hessian_split, n_projections=n_projections)
    problem = weighted(problem.with_params(min_hessian_leaf=2.0, l2_regularization=0.1))
    heavy = replace(problem, weight=problem.weight * 2**20, unit=2.0**-20)
    heavy = heavy.with_params(min_weight=problem.params["min_weight"] * 2**20)
    (one, _), (other, of_heavy) = grown(problem), grown(heavy)
    assert of_heavy.lost_bits(other.of_class)[1] == 5
    one, other = (tree.flat(ref.StepScale(), True) for tree in (one, other))
    assert one.feature.tolist() == other.feature.tolist()
    np.testing.assert_allclose(one.leaf_value, other.leaf_value, rtol=1e-3)
    np.testing.assert_allclose(one.gain, other.gain, rtol=1e-3)
    np.testing.assert_array_equal(one.weight, other.weight)


# -------------------------------------------------------------------------------------------- trees


@both_splits
@pytest.mark.parametrize("seed", range(4))
def test_multi_output_tree_of_two_classes_equals_a_single_output_tree(seed, hessian_split):
    """Residuals of both classes differ only in sign, so each has half of the gain."""
    problem = mixed_problem(seed, 60, 2, hessian_split=hessian_split)
    problem = weighted(problem, seed)
    trainer = reference_trainer(problem)
    for _ in range(2):  # residuals are unequal in the second iteration
        tree, _ = grown(replace(problem, raw=trainer.raw()))
        both = tree.flat(ref.StepScale(), True)
        one = reference_trainer(replace(problem, raw=trainer.raw())).train_iteration(
            [1], -1, False, 1.0
        )
        for name in ("feature", "bin", "left", "missing_left", "left_set"):
            np.testing.assert_array_equal(getattr(both, name), getattr(one, name), err_msg=name)
        np.testing.assert_allclose(both.gain, 2 * one.gain, rtol=1e-7, atol=1e-8)
        against = trainer.train_iteration(
            [1], 0, True, 1.0
        )  # a tree with base class: the same function
        values = against.value[against.feature < 0]
        np.testing.assert_allclose(both.leaf_value, np.c_[-values, values], rtol=1e-6)


def test_tree_worked_by_hand():
    """Three classes at F = 0: residuals 2/3 and -1/3, hessians 2/9; values 2/3 g / h."""
    problem = Problem(
        X=np.array([[0.0], [1.0], [2.0], [3.0]]),
        y=np.array([0, 0, 1, 2]),
        n_classes=3,
        params={"min_weight": 1, "max_leaf_nodes": 2, "learning_rate": 0.5, "multi_output": True},
    )
    result = reference_trainer(problem).train_iteration([0, 1, 2], -1, False, 2 / 3)
    assert (result.feature.tolist(), result.left.tolist()) == ([0, -1, -1], [1, -1, -1])
    assert result.bin[0] == 1
    assert (result.tree_class.tolist(), result.base, result.base_scale) == ([-1], -1, 1.0)
    assert result.value.tolist() == [0.0, 0.0, 0.0]
    expected = [[1.0, -0.5, -0.5], [-0.5, 0.25, 0.25]]
    np.testing.assert_allclose(result.leaf_value, expected, rtol=1e-6)
    # Class 0: means 2/3 and -1/3 of two rows each; the others: -1/3 and 1/6.
    np.testing.assert_allclose(result.class_gain, [[1.0, 0.25, 0.25]], rtol=1e-6)
    np.testing.assert_allclose(result.gain, [1.5, 0.0, 0.0], rtol=1e-8)
    assert result.weight.tolist() == [4.0, 2.0, 2.0]
    assert result.gain_feature.tolist() == [0]
    assert (result.leaf_value.dtype, result.class_gain.dtype) == (np.float32, np.float64)


@given(multi_output_problems())
def test_gains_by_feature_and_class_add_up_to_the_gains_of_the_splits(problem):
    trainer = reference_trainer(problem)
    K = problem.n_classes
    result = trainer.train_iteration(range(K), -1, False, (K - 1) / K)
    features = result.feature[result.feature >= 0]
    assert result.gain_feature.tolist() == sorted(set(features.tolist()))
    of_splits = [result.gain[result.feature == f].sum() for f in result.gain_feature]
    np.testing.assert_allclose(result.class_gain.sum(axis=1), of_splits, rtol=1e-4, atol=1e-30)
    assert result.leaf_value.shape == ((result.feature < 0).sum(), K)
    np.testing.assert_array_equal(result.leaf_value * 2.0**32 % 1, 0)


def test_categories_are_sorted_by_the_projections_of_largest_spread():
    """Codes separate only classes 3 and 11 from the other eighteen."""
    rng = np.random.default_rng(0)
    y = np.r_[np.repeat([3, 11], 60), rng.integers(0, 20, 80)]
    X = np.r_[np.repeat([0.0, 1.0], 60), rng.integers(2, 6, 80)][:, None]
    problem = Problem(X, y, 20, categorical=(0,), params={"min_weight": 1, "max_leaf_nodes": 2})
    for hessian_split in (False, True):
        tree, _ = grown(problem, hessian_split=hessian_split)
        sort_projections = tree.target.sort_projections(ref.bin_sums(tree.nodes[0], 0, tree.target))
        assert len(sort_projections) == 8
        assert {3, 11} <= set(sort_projections)
        assert sort_projections == sorted(sort_projections)


def test_all_of_few_projections_sort_the_categories():
    problem = mixed_problem(0, 60, 20)
    for n_projections in (1, 7, 8):
        target = grown(problem, n_projections=n_projections)[0].target
        assert target.sort_projections([]) == list(range(n_projections))


def test_only_large_weights_lose_bits():
    problem = random_problem(0, 30, 2, 3)
    weight = np.full(30, HEAVY)
    tree, trainer = grown(replace(problem, weight=weight))
    assert trainer.lost_bits(tree.of_class)[1] == (30 * HEAVY).bit_length() - 30
    assert grown(problem)[1].lost_bits(tree.of_class)[1] == 0


# ---------------------------------------------------------------------------------- whole trainings


def textbook_leaf_values(
    tree: multi_output.Tree, F: np.ndarray, y: np.ndarray, nu: float
) -> np.ndarray:
    """Return Friedman's Newton step of each leaf, in floats."""
    K = F.shape[1]
    p = np.exp(F) / np.exp(F).sum(axis=1, keepdims=True)
    g, h = np.eye(K)[y] - p, p * (1 - p)
    rows = [leaf.rows for leaf in tree.leaves()]
    return np.array([nu * (K - 1) / K * g[r].sum(axis=0) / h[r].sum(axis=0) for r in rows])


@both_splits
@pytest.mark.parametrize("n_projections", [0, 2])
def test_leaf_values_are_those_of_the_textbook(hessian_split, n_projections):
    problem = random_problem(5, 60, 2, 4, hessian_split=hessian_split, n_projections=n_projections)
    trainer = grown(problem)[1]
    for trainer.number in range(2):
        tree, F = trainer.grow_multi_output(3 / 4), trainer.raw().T
        result = trainer.train_iteration(range(4), -1, False, 3 / 4)
        assert result.n_halvings == 0
        values = textbook_leaf_values(tree, F, problem.y, 0.1)
        np.testing.assert_allclose(result.leaf_value, values, rtol=1e-5)


@both_splits
@pytest.mark.parametrize("n_projections", [0, 3])
def test_iterations_lower_the_loss(hessian_split, n_projections):
    problem = mixed_problem(5, 40, 9, multi_output=True, n_projections=n_projections)
    trainer = reference_trainer(problem, hessian_split=hessian_split, learning_rate=0.3)
    first = trainer.loss()
    losses = [r.class_losses.sum() for r in ref.boost(trainer, multi_output.MULTI_OUTPUT, 9, 3)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.6 * first


@given(multi_output_problems())
def test_loss_never_rises(problem):
    trainer, K = reference_trainer(problem.with_params(subsample=1.0)), problem.n_classes
    before = trainer.loss()
    result = trainer.train_iteration(range(K), -1, False, (K - 1) / K)
    assert trainer.loss() <= before
    assert result.changed == bool(result.leaf_value.any() and len(result.feature) > 1)
