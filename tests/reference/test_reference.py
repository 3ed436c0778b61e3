"""The reference against the standard library, scikit-learn's trees and examples computed by hand."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeRegressor

import reference as ref
from strategies import Problem, problems, reference_trainer, scores, tables


def ulps(found: float, expected: float) -> float:
    return abs(found - expected) / math.ulp(expected)


@given(st.floats(-708, 0))
def test_exp_is_within_two_ulp(x):
    assert ulps(ref.exp(x), math.exp(x)) <= 2


def test_exp_of_zero_is_one_and_never_zero():
    assert ref.exp(0.0) == 1.0
    assert ref.exp(-1e300) == ref.exp(-708.0) > 0


@given(st.one_of(st.floats(0, 300), st.floats(1e-300, 1.0), st.floats(-40, 6).map(math.exp)))
def test_log1p_is_within_three_ulp(x):
    assert ulps(ref.log1p(x), math.log1p(x)) <= 3


def test_log1p_of_tiny_values_is_the_value():
    assert ref.log1p(0.0) == 0.0
    assert ref.log1p(1e-20) == 1e-20


# ------------------------------------------------------------------------------------------ weights


def test_weights_of_one_stay_one():
    assert ref.integer_weights([1.0] * 5) == ([1] * 5, 1.0)


def test_integer_weights_stay_themselves():
    assert ref.integer_weights([3.0, 2.0, 1.0]) == ([3, 2, 1], 1.0)


def test_weights_in_halves_have_a_unit_of_one_half():
    assert ref.integer_weights([0.5, 1.0, 2.5]) == ([1, 2, 5], 0.5)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1))
def test_integer_weights_approximate_the_given_ones(sample_weight):
    weight, unit = ref.integer_weights(sample_weight)
    assert math.frexp(unit)[0] == 0.5
    assert sum(weight) <= 2**30 + len(weight)
    for w, s in zip(weight, sample_weight, strict=True):
        assert abs(w * unit - s) <= unit / 2 or (w == 1 and s < unit)


def test_min_weight_is_rounded_up():
    assert [ref.min_weight(s, 0.25) for s in (0.0, 0.25, 0.3, 1.0)] == [1, 1, 2, 4]


# --------------------------------------------------------------------------------------------- bins


def test_bins_of_equal_weight_are_even():
    assert ref.find_thresholds([float(x) for x in range(9)], [1] * 9, 3) == [2.5, 5.5]


def test_heavy_value_has_a_bin_of_its_own():
    assert ref.find_thresholds([0.0, 1.0, 2.0, 3.0], [1, 9, 1, 1], 3) == [0.5, 1.5]


def test_infinities_are_extremes_and_can_be_split_off():
    column = [-math.inf, 0.0, math.inf, math.nan]
    thresholds = ref.find_thresholds(column, [1] * 4, 255)
    assert thresholds == [-math.inf, 0.0]
    assert [ref.code(x, thresholds) for x in column] == [0, 1, 2, 3]


@given(tables(20, max_features=1), st.integers(2, 25))
def test_each_distinct_value_has_its_own_bin_up_to_max_bins(X, max_bins):
    column = X[:, 0].tolist()
    thresholds = ref.find_thresholds(column, [1] * len(column), max_bins)
    n_distinct = len({x for x in column if not math.isnan(x)})
    assert len(thresholds) + 1 == max(1, min(n_distinct, max_bins))
    assert thresholds == sorted(set(thresholds))


# ------------------------------------------------------------------------------------------- scores


@given(scores(limit=800.0))
def test_residual_of_the_label_is_the_largest_of_its_row(row):
    F, y = row
    R, loss = ref.residuals_and_loss(F, y)
    assert R[y] == max(map(abs, R))
    assert math.isclose(sum(R), 0.0, abs_tol=1e-14)
    assert loss >= 0


@given(scores())
def test_residuals_and_loss_follow_the_textbook(row):
    F, y = row
    p = np.exp(F) / np.sum(np.exp(F))
    R, loss = ref.residuals_and_loss(F, y)
    np.testing.assert_allclose(R, np.eye(len(F))[y] - p, atol=1e-14)
    np.testing.assert_allclose(ref.softmax(F), p, rtol=1e-13)
    assert math.isclose(loss, -math.log(p[y]), rel_tol=1e-12)


# -------------------------------------------------------------------------------------------- trees

sums = st.builds(
    ref.Sums, st.integers(-(2**60), 2**60), st.integers(1, 2**30), st.integers(1, 2**60)
)


def target(**params) -> ref.Target:
    return ref.Target(ref.Binned([], [], []), [], 48, 0.5, 1.0, ref.TrainParams(**params))


def sum_of_squares(node: ref.Sums, whole: Fraction, scale: int) -> Fraction:
    return Fraction(node.G) ** 2 / whole / scale


@given(sums, sums)
def test_gain_is_the_decrease_of_the_squared_error(left, right):
    both = left + right
    parts = [sum_of_squares(s, Fraction(s.W), 2**96) for s in (left, right, both)]
    exact = float((parts[0] + parts[1] - parts[2]) / 2)  # the unit is 1/2
    _, gain = ref.score_and_gain(left, right, target())
    assert math.isclose(gain, exact, rel_tol=1e-9, abs_tol=1e-12 * float(parts[0] + parts[1]))


@given(sums, sums, st.sampled_from([0.0, 0.25, 3.0]))
def test_gain_of_logitboost_is_weighted_by_the_hessian(left, right, l2):
    both, l2_int = left + right, Fraction(l2) * 2**48 * 2
    wholes = [left.H + l2_int, right.H + l2_int, both.H + 2 * l2_int]
    nodes = zip((left, right, both), wholes, strict=True)
    parts = [sum_of_squares(s, w, 2**48) for s, w in nodes]
    exact = float((parts[0] + parts[1] - parts[2]) / 2)
    hessian = target(hessian_split=True, l2_regularization=l2)
    _, gain = ref.score_and_gain(left, right, hessian)
    assert math.isclose(gain, exact, rel_tol=1e-9, abs_tol=1e-12 * float(parts[0] + parts[1]))


def test_leaf_value_is_bounded_where_the_hessian_vanishes():
    assert ref.leaf_value(ref.Sums(5, 1, 0), target()) == 5.0
    assert ref.leaf_value(ref.Sums(-5, 1, 0), target()) == -5.0
    assert ref.leaf_value(ref.Sums(0, 1, 0), target()) == 0.0


def test_min_hessian_leaf_rejects_smaller_children():
    bound = target(min_weight=1, hessian_split=True, min_hessian_leaf=0.25)
    assert bound.min_hessian == 2**47
    assert ref.is_large_enough(ref.Sums(0, 1, 2**47), bound)
    assert not ref.is_large_enough(ref.Sums(0, 1, 2**47 - 1), bound)


def test_tree_worked_by_hand():
    """Two classes, F = 0: residuals +-1 with a base class, hessians 1; the split is between 1 and 2."""
    problem = Problem(
        X=np.array([[0.0], [1.0], [2.0], [3.0]]),
        y=np.array([0, 0, 1, 1]),
        n_classes=2,
        params={"min_weight": 1, "max_leaf_nodes": 4, "learning_rate": 0.5},
    )
    result = reference_trainer(problem).train_iteration([1], 0, True, 1.0)
    assert result.feature.tolist() == [0, -1, -1]
    assert result.bin[0] == 1
    assert result.left.tolist() == [1, -1, -1]
    assert result.value.tolist() == [0.0, -0.5, 0.5]
    assert result.gain.tolist() == [4.0, 0.0, 0.0]
    assert result.weight.tolist() == [4.0, 2.0, 2.0]


def test_missing_values_go_to_the_side_of_larger_gain():
    nan = math.nan
    problem = Problem(
        X=np.array([[0.0], [1.0], [nan], [2.0], [3.0], [nan]]),
        y=np.array([0, 0, 1, 1, 1, 1]),
        n_classes=2,
        params={"min_weight": 1, "max_leaf_nodes": 2},
    )
    result = reference_trainer(problem).train_iteration([1], 0, True, 1.0)
    assert (result.feature[0], result.bin[0], result.missing_left[0]) == (0, 1, False)
    assert result.weight.tolist() == [6.0, 2.0, 4.0]


@given(problems())
def test_logitboost_with_equal_hessians_grows_the_trees_of_mart(problem):
    """At F = 0 and K = 2 every hessian is one, so both algorithms weight rows equally."""
    params = problem.params | {"l2_regularization": 0.0, "min_hessian_leaf": 0.0}
    two = replace(problem.with_two_classes(), raw=None, params=params)
    mart = reference_trainer(two, hessian_split=False).train_iteration([1], 0, True, 1.0)
    logitboost = reference_trainer(two, hessian_split=True).train_iteration([1], 0, True, 1.0)
    np.testing.assert_array_equal(mart.value, logitboost.value)
    np.testing.assert_allclose(mart.gain, logitboost.gain, rtol=1e-12)


# ---------------------------------------------------------------------------------- whole trainings


def textbook_leaves(X: np.ndarray, g: np.ndarray, max_leaf_nodes: int) -> np.ndarray:
    """Return the leaf of every row in scikit-learn's best-first least-squares tree."""
    tree = DecisionTreeRegressor(max_leaf_nodes=max_leaf_nodes, min_samples_leaf=10, random_state=0)
    return tree.fit(X, g).apply(X)


def newton(leaves: np.ndarray, g: np.ndarray, h: np.ndarray) -> np.ndarray:
    return np.bincount(leaves, g)[leaves] / np.bincount(leaves, h)[leaves]


def softmax_rows(F: np.ndarray) -> np.ndarray:
    e = np.exp(F)
    return e / e.sum(axis=1, keepdims=True)


def textbook_mart(X: np.ndarray, y: np.ndarray, K: int, J: int, n_iter: int) -> np.ndarray:
    """Friedman's Alg. 6 in floats."""
    F, r = np.zeros((len(y), K)), np.eye(K)[y]
    for _ in range(n_iter):
        p = softmax_rows(F)
        for k in range(K):
            g, h = r[:, k] - p[:, k], p[:, k] * (1 - p[:, k])
            F[:, k] += 0.1 * (K - 1) / K * newton(textbook_leaves(X, g, J), g, h)
    return F


def textbook_abc_mart(X: np.ndarray, y: np.ndarray, K: int, J: int, n_iter: int) -> np.ndarray:
    """Alg. 3 of the paper in floats, with 0 as the first base class."""
    F, r, b = np.zeros((len(y), K)), np.eye(K)[y], 0
    for _ in range(n_iter):
        p = softmax_rows(F)
        others = [k for k in range(K) if k != b]
        for k in others:
            g = -(r[:, b] - p[:, b]) + (r[:, k] - p[:, k])
            h = p[:, b] * (1 - p[:, b]) + p[:, k] * (1 - p[:, k]) + 2 * p[:, b] * p[:, k]
            F[:, k] += 0.1 * newton(textbook_leaves(X, g, J), g, h)
        F[:, b] = -F[:, others].sum(axis=1)
        row_losses = -np.log(softmax_rows(F)[np.arange(len(y)), y])
        b = int(np.argmax(np.bincount(y, row_losses, K)))
    return F


def distinct_integers(seed: int, n_rows: int = 200, n_features: int = 4) -> np.ndarray:
    """Return integers without ties that are exact in scikit-learn's float32."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.permutation(n_rows) for _ in range(n_features)]).astype(float)


@pytest.mark.parametrize(
    ("algorithm", "textbook"),
    [
        (ref.Algorithm("mart", None), textbook_mart),
        (ref.Algorithm("abc-mart"), textbook_abc_mart),
    ],
    ids=["mart", "abc-mart"],
)
@pytest.mark.parametrize("K", [3, 5])
def test_training_follows_the_textbook_to_nine_digits(algorithm, textbook, K):
    X = distinct_integers(seed=K)
    noise = np.random.default_rng(K).normal(size=len(X))
    y = np.digitize(X[:, 0] + X[:, 1] / 2 + 30 * noise, np.linspace(60, 240, K - 1))
    problem = Problem(X, y, K, params={"max_leaf_nodes": 6, "min_weight": 10})
    trainer = reference_trainer(problem)
    iterations = ref.boost(trainer, algorithm, K, 6)
    assert len(iterations) == 6
    assert all(r.result.n_halvings == 0 for r in iterations)
    np.testing.assert_allclose(trainer.raw().T, textbook(X, y, K, 6, 6), atol=1e-9)


@pytest.mark.parametrize(
    "algorithm",
    [
        ref.Algorithm("mart", None),
        ref.Algorithm("mart", None, sequential_residuals=True),
        ref.Algorithm("mart", "worst"),
        ref.Algorithm("abc-mart"),
        ref.Algorithm("abc-mart", 1),
    ],
    ids=["mart", "mart-class", "Mb", "abc-mart", "abc-mart-fixed"],
)
def test_training_on_iris_fits_all_rows(algorithm):
    X, y = load_iris(return_X_y=True)
    params = {"max_leaf_nodes": 6, "min_weight": 2, "learning_rate": 0.5}
    trainer = reference_trainer(Problem(X, y, 3, params=params))
    iterations = ref.boost(trainer, algorithm, 3, 12)
    losses = [r.class_losses.sum() for r in iterations]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 3.0
    assert np.array_equal(trainer.raw().argmax(axis=0), y)
