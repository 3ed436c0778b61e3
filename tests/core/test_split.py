"""The search for the best split of a node: empty bins, limits on the children, ties."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import core
from strategies import Problem, problems, reference_trainer_with

TWO_CLASSES = ([1], 0, True, 1.0)  # first residuals are 1 and -1, hessians 1


def table_of(problem: Problem, thresholds: list[np.ndarray]):
    return core.bin_table(problem.X, thresholds, 1, problem.is_categorical().astype(np.uint8))


def first_iteration(problem: Problem, thresholds: list[np.ndarray]):
    """Return the first iteration of the core after comparing it with the reference."""
    trainer = core.trainer(problem, binned=table_of(problem, thresholds))
    result = trainer.train_iteration(*TWO_CLASSES)
    expected = reference_trainer_with([t.tolist() for t in thresholds], problem)
    core.assert_same_result(result, expected.train_iteration(*TWO_CLASSES))
    return result


def one_column(x, y, **params) -> Problem:
    params = {"min_weight": 1, "max_leaf_nodes": 2} | params
    return Problem(np.array(x, float)[:, None], np.array(y, np.int32), 2, params=params)


# ---------------------------------------------------------------------------------- bins without rows


@given(problems(), st.data())
def test_splits_among_empty_bins_match_the_reference(problem, data):
    """Empty bins come before, between and after the values; a column may have all rows in one bin."""
    between = st.lists(st.floats(-6, 6), unique=True, max_size=40).map(sorted)
    thresholds = [np.array(t) for t in problem.thresholds()]
    for feature in set(range(problem.X.shape[1])) - set(problem.categorical):
        thresholds[feature] = np.array(data.draw(between))
    first_iteration(problem, thresholds)


@pytest.mark.parametrize("hessian_split", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_columns_of_different_lengths_are_split_as_by_the_reference(seed, hessian_split):
    """Columns are searched together: long, short, constant and empty ones, with missing values."""
    rng = np.random.default_rng(seed)
    lengths = rng.permutation([1, 2, 3, 5, 17, 80, 200, 1, 4, 60, 2])
    X = np.column_stack([rng.integers(0, n, 400).astype(float) for n in lengths])
    X[rng.random(X.shape) < rng.choice([0.0, 0.3, 1.0], len(lengths), p=[0.5, 0.4, 0.1])] = math.nan
    y = rng.integers(0, 2, 400).astype(np.int32)
    params = {"min_weight": int(rng.integers(1, 30)), "hessian_split": hessian_split}
    problem = Problem(X, y, 2, params=params)
    first_iteration(problem, [np.array(t) for t in problem.thresholds()])


def with_empty_bins(n_before: int, n_between: int, n_after: int) -> np.ndarray:
    """Return thresholds with empty bins before, between and after the values 0, 1, 2 and 3."""
    between = [np.linspace(v, v + 1, n_between + 3)[1:-1] for v in range(3)]
    return np.r_[np.arange(-n_before, 0), *between, 4.0 + np.arange(n_after)]


MISSING = {  # classes of the values and of missing values; last value on the left; side of missing values
    "none": ([1, 1, 0, 0], [], 1, True),  # equal weights: missing values go left
    "left": ([1, 1, 0, 0], [1, 1], 1, True),
    "right": ([1, 1, 0, 0], [0, 0], 1, False),
    "alone": ([0, 0, 0, 0], [1, 1], 3, False),
}


@pytest.mark.parametrize("case", MISSING.values(), ids=MISSING)
@pytest.mark.parametrize("n_after", [0, 1, 70])
@pytest.mark.parametrize("n_between", [0, 1, 5])
@pytest.mark.parametrize("n_before", [0, 1, 2, 63, 64])
def test_empty_bins_change_only_the_bin_number(n_before, n_between, n_after, case):
    """The split is after the last bin with rows on its left."""
    y, of_missing, last_left, missing_left = case
    x = [0, 1, 2, 3] + [math.nan] * len(of_missing)
    result = first_iteration(
        one_column(x, y + of_missing), [with_empty_bins(n_before, n_between, n_after)]
    )
    assert result.feature.tolist() == [0, -1, -1]
    assert result.bin[0] == n_before + last_left * (n_between + 1)
    assert result.missing_left[0] == missing_left


@pytest.mark.parametrize("n_leading", [1, 2, 7, 8, 9])
def test_missing_values_split_off_alone_go_right(n_leading):
    """Empty bins precede the first value; a split there would send missing values left."""
    x, y = [math.nan] * 4 + [0.0] * 4 + [1.0] * 4, [1] * 4 + [0] * 8
    result = first_iteration(one_column(x, y), [np.r_[np.arange(-n_leading, 0), 0.5]])
    assert (result.bin[0], result.missing_left[0]) == (n_leading + 1, 0)


# ---------------------------------------------------------------------------------- limits on the children


SIDES = {  # 5 rows of one class on one side of the only split, 20 of the other
    "lighter left": [0.0] * 5 + [1.0, 2.0] * 10,
    "lighter right": [2.0] * 5 + [0.0, 1.0] * 10,
    "lighter missing": [math.nan] * 5 + [0.0, 1.0] * 10,
    "sparse left": [0.0] * 5 + [1.0] * 20,
    "sparse right": [1.0] * 5 + [0.0] * 20,
    "sparse missing": [math.nan] * 5 + [0.0] * 20,
    "mostly missing": [0.0] * 5 + [math.nan] * 20,
    "several left": [0.0, 1.0, 1.0, 2.0, 3.0] + [4.0] * 20,
    "missing left": [math.nan, 0.0, 0.0, math.nan, 1.0] + [2.0, 3.0] * 10,
}
every_side = pytest.mark.parametrize("x", SIDES.values(), ids=SIDES)
kinds = pytest.mark.parametrize("categorical", [(), (0,)], ids=["numbers", "categories"])


def by_class(x: list[float], categorical: tuple[int, ...], **params) -> Problem:
    problem = one_column(x, [1] * 5 + [0] * 20, categorical_smoothing=0.0, **params)
    return replace(problem, categorical=categorical)


def separates_classes(problem: Problem) -> bool:
    """Return whether the split separates the classes."""
    result = first_iteration(problem, [np.array(t) for t in problem.thresholds()])
    return sorted(result.weight[1:].tolist()) == [5 * problem.unit, 20 * problem.unit]


@kinds
@every_side
@pytest.mark.parametrize("hessian_split", [False, True], ids=["weights", "hessians"])
def test_child_with_exactly_the_minimum_weight_is_allowed(x, categorical, hessian_split):
    problem = by_class(x, categorical, hessian_split=hessian_split)
    for min_weight in range(1, 14):
        assert separates_classes(problem.with_params(min_weight=min_weight)) == (min_weight <= 5)


@kinds
@every_side
def test_child_with_exactly_the_minimum_hessian_is_allowed(x, categorical):
    """Each row has a hessian of 1."""
    problem = by_class(x, categorical, hessian_split=True)
    for minimum in (0.0, 1.0, 4.0, math.nextafter(5.0, 0.0), 5.0):
        assert separates_classes(problem.with_params(min_hessian_leaf=minimum))
    for minimum in (5.0 + 2.0**-20, 6.0, 12.0, 13.0, 26.0):
        assert not separates_classes(problem.with_params(min_hessian_leaf=minimum))


@given(problems(), st.data())
def test_splits_at_the_limits_match_the_reference(problem, data):
    """The minimum weight is about that of some rows, and so is the minimum hessian."""
    rows = data.draw(st.lists(st.booleans(), min_size=len(problem.y), max_size=len(problem.y)))
    weight = max(1, int(problem.weight[np.array(rows)].sum()) // 2)
    minimum = data.draw(st.sampled_from([0.0, weight * problem.unit]))
    problem = problem.with_params(min_weight=weight, min_hessian_leaf=minimum)
    first_iteration(problem, [np.array(t) for t in problem.thresholds()])


# ---------------------------------------------------------------------------------------------- ties


@st.composite
def columns_of_equal_counts(draw) -> Problem:
    """Columns with the same values for each class in another order, so that all have the same scores."""
    n = [draw(st.integers(2, 12)) for _ in range(2)]
    y = np.repeat([0, 1], n)
    codes = st.one_of(st.integers(0, draw(st.integers(1, 5))).map(float), st.just(math.nan))
    x = [draw(st.lists(codes, min_size=m, max_size=m)) for m in n]
    columns = [
        np.concatenate([draw(st.permutations(of_class)) for of_class in x])
        for _ in range(draw(st.integers(2, 8)))
    ]
    params = {"min_weight": draw(st.integers(1, 3)), "max_leaf_nodes": draw(st.integers(2, 5))}
    problem = Problem(np.column_stack(columns), y, 2, params=params)
    categorical = draw(st.sets(st.integers(0, len(columns) - 1)))
    hessian_split = draw(st.booleans())
    return replace(problem, categorical=tuple(categorical)).with_params(hessian_split=hessian_split)


@given(columns_of_equal_counts())
def test_ties_between_columns_go_to_the_lowest_index(problem):
    result = first_iteration(problem, [np.array(t) for t in problem.thresholds()])
    if not problem.categorical:
        assert result.feature[0] in (0, -1)


@pytest.mark.parametrize("hessian_split", [False, True], ids=["weights", "hessians"])
def test_ties_between_bins_go_to_the_lowest_bin(hessian_split):
    """The first and the last split have the same score."""
    problem = one_column([0, 0, 1, 1, 2, 2], [1, 1, 0, 0, 1, 1], hessian_split=hessian_split)
    result = first_iteration(problem, [np.array([0.5, 1.5])])
    assert (result.feature[0], result.bin[0]) == (0, 0)


@pytest.mark.parametrize("hessian_split", [False, True], ids=["weights", "hessians"])
def test_ties_send_missing_values_right(hessian_split):
    """Missing values give the same score on both sides."""
    x = [0.0] * 3 + [1.0] * 3 + [math.nan] * 2
    problem = one_column(x, [1] * 3 + [0] * 3 + [0, 1], hessian_split=hessian_split)
    result = first_iteration(problem, [np.array([0.5])])
    assert (result.bin[0], result.missing_left[0]) == (0, 0)


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("n_before", [0, 3])
def test_splits_with_scores_equal_up_to_rounding_are_compared_exactly(n_before, n_threads):
    """Bins up to 2, or bins above 0 with missing values, leave seven rows with all but one of class 0."""
    of_value = {0.0: (1, 1), 1.0: (14, 5), 2.0: (20, 12), 3.0: (1, 1), math.nan: (6, 5)}
    x = np.repeat(list(of_value), [n for n, _ in of_value.values()])
    y = np.concatenate([np.arange(n) >= of_first for n, of_first in of_value.values()])
    others = np.tile(np.arange(len(x))[:, None] % 2, n_before)
    problem = Problem(
        np.column_stack([others, x]),
        np.where(y, 1 + np.arange(len(x)) % 8, 0).astype(np.int32),
        9,
        params={"min_weight": 1, "max_leaf_nodes": 2},
    )
    thresholds = [np.array(t) for t in problem.thresholds()]
    trainer = core.trainer(problem, n_threads, binned=table_of(problem, thresholds))
    result = trainer.train_iteration([0], -1, False, 1.0)
    expected = reference_trainer_with([t.tolist() for t in thresholds], problem)
    core.assert_same_result(result, expected.train_iteration([0], -1, False, 1.0))
    assert (result.feature[0], result.bin[0], result.missing_left[0]) == (n_before, 2, False)


def test_unsampled_rows_leave_empty_bins():
    """Each value has one row, so some samples leave the first or last bin empty."""
    x, y = [*range(30), *[math.nan] * 6], [1, 0, 0] * 12
    problem = one_column(x, y, subsample=0.5, max_leaf_nodes=5)
    thresholds = [np.array(t) for t in problem.thresholds()]
    for seed in range(20):
        first_iteration(problem.with_params(seed=seed), thresholds)
