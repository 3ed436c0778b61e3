"""Splits of categories into two sets."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import core
import reference as ref
from strategies import Problem, order_free_problems, reference_trainer

TWO_CLASSES = ([1], 0, True, 1.0)


def left_codes(result, node: int) -> set[int]:
    arrays = {"left_set_size": result.left_set_size.tolist(), "left_set": result.left_set.tolist()}
    return ref.left_codes(arrays, node)


# ------------------------------------------------------------------------------- the best of all subsets


def exact_gain(residual: np.ndarray, weight: np.ndarray, is_left: np.ndarray) -> Fraction:
    """Return G_L^2/W_L + G_R^2/W_R, the gain except for a constant that all splits share."""
    sides = [(int(residual[side].sum()), int(weight[side].sum())) for side in (is_left, ~is_left)]
    return sum(Fraction(G * G, W) for G, W in sides)


def best_gain_of_all_sets(codes: np.ndarray, residual: np.ndarray, weight: np.ndarray) -> Fraction:
    first, *others = np.unique(codes)
    sets = itertools.chain.from_iterable(
        itertools.combinations(others, n) for n in range(len(others))
    )
    return max(exact_gain(residual, weight, np.isin(codes, [first, *some])) for some in sets)


@st.composite
def few_categories(draw) -> Problem:
    """At most seven categories and missing values, two classes, every split allowed."""
    n = draw(st.integers(2, 25))
    codes = st.one_of(st.integers(0, 6).map(float), st.just(math.nan))
    X = np.array(draw(st.lists(codes, min_size=n, max_size=n)))[:, None]
    y, weight = (
        np.array(draw(st.lists(st.integers(low, high), min_size=n, max_size=n)))
        for low, high in ((0, 1), (1, 9))
    )
    params = {"min_weight": 1, "max_leaf_nodes": 2, "categorical_smoothing": 0.0}
    return Problem(X, y, 2, weight, categorical=(0,), params=params)


@given(few_categories(), st.booleans())
def test_without_smoothing_the_split_is_the_best_of_all_subsets(problem, hessian_split):
    """Fisher 1958: the best subset is a prefix of the categories sorted by their means."""
    assume(len(np.unique(problem.X)) > 1)
    result = core.trainer(problem.with_params(hessian_split=hessian_split)).train_iteration(
        *TWO_CLASSES
    )
    codes = np.nan_to_num(problem.X[:, 0], nan=-1.0)
    residual = np.where(problem.y == 1, 1, -1) * problem.weight  # times 1/2, as are all
    best = best_gain_of_all_sets(codes, residual, problem.weight)
    if result.feature[0] < 0:  # all categories have the same mean
        assert best == Fraction(int(residual.sum()) ** 2, int(problem.weight.sum()))
        return
    is_left = np.isin(codes, list(left_codes(result, 0)))
    is_left[codes == -1] = result.missing_left[0]
    assert exact_gain(residual, problem.weight, is_left) == best


def test_smoothing_sorts_a_rare_category_near_the_mean_of_all():
    """A category with one row is sorted next to the overall mean, not before one with 15 of 20 rows."""
    X = np.repeat([0.0, 1.0, 2.0], [20, 1, 19])[:, None]
    y = np.repeat([1, 0, 1, 0], [15, 5, 1, 19])
    problem = Problem(X, y, 2, categorical=(0,), params={"min_weight": 20, "max_leaf_nodes": 2})
    plain = core.trainer(problem.with_params(categorical_smoothing=0.0)).train_iteration(
        *TWO_CLASSES
    )
    assert plain.feature.tolist() == [-1]  # order 1, 0, 2: no split has 20 rows on both sides
    smooth = core.trainer(problem.with_params(categorical_smoothing=10.0)).train_iteration(
        *TWO_CLASSES
    )
    assert left_codes(smooth, 0) == {0}


def test_rare_categories_stay_together():
    """Categories with less weight than half the smoothing form one group, whatever their means."""
    X = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], [20, 4, 20, 4, 4])[:, None]
    y = np.repeat([1, 0, 1, 0], [24, 20, 4, 4])
    problem = Problem(X, y, 2, categorical=(0,), params={"min_weight": 1, "max_leaf_nodes": 2})
    apart = core.trainer(problem.with_params(categorical_smoothing=8.0)).train_iteration(
        *TWO_CLASSES
    )
    assert left_codes(apart, 0) == {0, 1, 3}
    together = core.trainer(problem.with_params(categorical_smoothing=8.1)).train_iteration(
        *TWO_CLASSES
    )
    assert left_codes(together, 0) in ({0}, {0, 1, 3, 4})


# ------------------------------------------------------------------------------------the penalty


@pytest.mark.parametrize("hessian_split", [False, True])
@pytest.mark.parametrize("multi_output", [False, True])
@pytest.mark.parametrize("fraction", [0.5, 0.9, 0.99, 1.01, 3.0])
def test_penalty_grows_with_the_number_of_possible_subsets(hessian_split, multi_output, fraction):
    """With two classes, initial residuals of 1/2 and hessians of 1/4 give the gain expected by chance.

    Half of the 40 categories have one class, half the other. Sending one category left costs no penalty, as
    for the 39 splits of a number, so that split remains once the penalty exceeds the gain of the best one.
    """
    n = 40
    X = np.repeat(np.arange(float(n)), 10)[:, None]
    y = (X[:, 0] < n // 2).astype(np.int32)

    def gain(n_left: int) -> float:  # in units of the hessian
        return 400.0 * n_left / (n - n_left)

    def chance(n_left: int) -> float:
        return max(0.0, math.log(math.comb(n, n_left) / 2 / (n - 1)))

    penalty = fraction * gain(n // 2) / chance(n // 2)
    best = max(range(1, n // 2 + 1), key=lambda m: gain(m) - penalty * chance(m))
    assert best == (n // 2 if fraction < 0.97 else 1)
    params = {"min_weight": 1, "max_leaf_nodes": 2, "hessian_split": hessian_split}
    params |= {"multi_output": multi_output, "categorical_penalty": penalty}
    result = core.trainer(Problem(X, y, 2, categorical=(0,), params=params)).train_iteration(
        [0, 1], -1, False, 0.5
    )
    n_left = len(left_codes(result, 0))
    assert min(n_left, n - n_left) == best


# --------------------------------------------------------------------------------- many categories


@pytest.mark.parametrize("n_categories", [2, 63, 64, 65, 1000])
def test_a_split_may_separate_any_number_of_categories(n_categories):
    """Each category has two rows; the first half of the categories has one class, the rest another."""
    X = np.repeat(np.arange(float(n_categories)), 2)[:, None]
    y = (X[:, 0] < n_categories // 2).astype(np.int32)
    params = {"min_weight": 1, "max_leaf_nodes": 2, "categorical_smoothing": 1.0}
    problem = Problem(X, y, 2, categorical=(0,), params=params)
    result = core.trainer(problem).train_iteration(*TWO_CLASSES)
    assert len(left_codes(result, 0)) == n_categories // 2
    assert result.left_set_size.tolist() == [math.ceil(n_categories / 64), 0, 0]


@pytest.mark.parametrize("hessian_split", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 5.0])
@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_trees_on_hundreds_of_categories_match_the_reference(smoothing, penalty, hessian_split):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 300, (700, 1)).astype(float)
    X[rng.random(X.shape) < 0.05] = math.nan
    y = (np.nan_to_num(X[:, 0]) * 7919 % 3 + rng.integers(0, 2, 700)).astype(np.int32) % 3
    params = {"min_weight": 5, "max_leaf_nodes": 6, "hessian_split": hessian_split}
    problem = Problem(X, y, 3, categorical=(0,), params=params)
    problem = problem.with_params(categorical_smoothing=smoothing, categorical_penalty=penalty)
    trainers = core.trainer(problem), reference_trainer(problem)
    iterations = [ref.boost(trainer, ref.Algorithm("abc-mart"), 3, 2) for trainer in trainers]
    core.assert_same_iterations(*iterations)


# ------------------------------------------------------------------------------------- codes are labels


@given(st.integers(0, 10**6), st.permutations(range(12)), st.booleans(), st.booleans())
def test_trees_do_not_depend_on_the_numbering_of_categories(seed, new_code, hessian_split, smooth):
    """Random weights avoid equal means and gains, whose ties are broken by the code."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, (80, 2)).astype(float)
    X[rng.random(X.shape) < 0.1] = math.nan
    y = rng.integers(0, 3, 80)
    weight = rng.integers(1, 10**6, 80)
    params = {"min_weight": 1, "max_leaf_nodes": 5, "hessian_split": hessian_split}
    params["categorical_smoothing"] = 4e6 if smooth else 0.0
    problem = Problem(X, y, 3, weight, categorical=(0, 1), params=params)
    renamed = np.append(new_code, math.nan)[np.nan_to_num(X, nan=12).astype(int)]
    trainers = [core.trainer(replace(problem, X=table)) for table in (X, renamed)]
    for trainer in trainers:
        assert len(ref.boost(trainer, ref.Algorithm("abc-mart"), 3, 2)) == 2
    np.testing.assert_array_equal(*(trainer.raw() for trainer in trainers))


def goes_left(result, node: int, missing: int, is_categorical: bool) -> np.ndarray:
    """Return for each code whether it goes left."""
    codes = np.arange(missing + 1)
    is_left = (
        np.isin(codes, list(left_codes(result, node)))
        if is_categorical
        else codes <= result.bin[node]
    )
    is_left[missing] = result.missing_left[node]
    return is_left


@given(order_free_problems())
def test_unseen_categories_and_missing_values_go_to_the_heavier_child(problem):
    """Unseen means without rows in this node."""
    table, result = core.binned(problem), core.trainer(problem).train_iteration([1], 0, True, 1.0)
    rows = {0: np.arange(len(problem.y))}
    for node, (feature, left) in enumerate(zip(result.feature, result.left, strict=True)):
        if feature < 0:
            continue
        missing, is_categorical = table.n_bins[feature] - 1, feature in problem.categorical
        is_left = goes_left(result, node, missing, is_categorical)
        codes = table.codes()[rows[node], feature]
        unseen = np.setdiff1d(np.arange(missing + 1) if is_categorical else [missing], codes)
        assert (is_left[unseen] == (result.weight[left] >= result.weight[left + 1])).all()
        rows[left], rows[left + 1] = rows[node][is_left[codes]], rows[node][~is_left[codes]]


two_codes = st.lists(st.sampled_from([0.0, 1.0, math.nan]), min_size=30, max_size=30)


@given(two_codes, st.lists(st.integers(0, 2), min_size=30, max_size=30), st.booleans())
def test_two_categories_are_split_like_two_numbers(codes, y, hessian_split):
    params = {"min_weight": 1, "max_leaf_nodes": 2, "categorical_smoothing": 0.0}
    problem = Problem(np.array(codes)[:, None], np.array(y), 3, params=params)
    problem = problem.with_params(hessian_split=hessian_split)
    gains = [
        core.trainer(replace(problem, categorical=categorical))
        .train_iteration([0, 1, 2], -1, False, 1.0)
        .gain
        for categorical in ((), (0,))
    ]
    np.testing.assert_array_equal(*gains)
