"""The search for the best cut of a node: bins without rows, bounds on the sides, ties."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import core
from strategies import Problem, problems, reference_trainer_with

TWO_CLASSES = ([1], 0, True, 1.0)  # the residuals of the first step are 1 and -1, the hessians 1


def table_of(problem: Problem, thresholds: list[np.ndarray]):
    return core.bin_table(problem.X, thresholds, 1, problem.is_categorical().astype(np.uint8))


def first_iteration(problem: Problem, thresholds: list[np.ndarray]):
    """The first step of the core, which is that of the reference."""
    trainer = core.trainer(problem, binned=table_of(problem, thresholds))
    step = trainer.step(*TWO_CLASSES)
    expected = reference_trainer_with([t.tolist() for t in thresholds], problem)
    core.assert_same_step(step, expected.step(*TWO_CLASSES))
    return step


def one_column(x, y, **params) -> Problem:
    params = {"min_weight": 1, "max_leaf_nodes": 2} | params
    return Problem(np.array(x, float)[:, None], np.array(y, np.int32), 2, params=params)


# ---------------------------------------------------------------------------------- bins without rows


@given(problems(), st.data())
def test_cuts_among_empty_bins_are_those_of_the_reference(problem, data):
    """Bins before, between and after the values have no rows; all of a column may be in one bin."""
    between = st.lists(st.floats(-6, 6), unique=True, max_size=40).map(sorted)
    thresholds = [np.array(t) for t in problem.thresholds()]
    for feature in set(range(problem.X.shape[1])) - set(problem.categorical):
        thresholds[feature] = np.array(data.draw(between))
    first_iteration(problem, thresholds)


@pytest.mark.parametrize("hessian_split", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_columns_of_any_lengths_side_by_side_are_cut_as_by_the_reference(seed, hessian_split):
    """Several columns are searched together: long and short, constant and empty ones, with gaps."""
    rng = np.random.default_rng(seed)
    lengths = rng.permutation([1, 2, 3, 5, 17, 80, 200, 1, 4, 60, 2])
    X = np.column_stack([rng.integers(0, n, 400).astype(float) for n in lengths])
    X[rng.random(X.shape) < rng.choice([0.0, 0.3, 1.0], len(lengths), p=[0.5, 0.4, 0.1])] = math.nan
    y = rng.integers(0, 2, 400).astype(np.int32)
    params = {"min_weight": int(rng.integers(1, 30)), "hessian_split": hessian_split}
    problem = Problem(X, y, 2, params=params)
    first_iteration(problem, [np.array(t) for t in problem.thresholds()])


def spread(n_before: int, n_between: int, n_after: int) -> np.ndarray:
    """Thresholds with so many empty bins before, between and after the values 0, 1, 2 and 3."""
    cuts = [np.linspace(v, v + 1, n_between + 3)[1:-1] for v in range(3)]
    return np.r_[np.arange(-n_before, 0), *cuts, 4.0 + np.arange(n_after)]


MISSING = {  # classes of the values and of missing ones; the last value on the left, their side
    "none": ([1, 1, 0, 0], [], 1, True),  # as there is as much on the left
    "left": ([1, 1, 0, 0], [1, 1], 1, True),
    "right": ([1, 1, 0, 0], [0, 0], 1, False),
    "alone": ([0, 0, 0, 0], [1, 1], 3, False),
}


@pytest.mark.parametrize("case", MISSING.values(), ids=MISSING)
@pytest.mark.parametrize("n_after", [0, 1, 70])
@pytest.mark.parametrize("n_between", [0, 1, 5])
@pytest.mark.parametrize("n_before", [0, 1, 2, 63, 64])
def test_empty_bins_change_nothing_but_the_number_of_the_bin(n_before, n_between, n_after, case):
    """The cut is behind the last bin with rows on its left."""
    y, of_missing, last_left, missing_left = case
    x = [0, 1, 2, 3] + [math.nan] * len(of_missing)
    step = first_iteration(one_column(x, y + of_missing), [spread(n_before, n_between, n_after)])
    assert step.feature.tolist() == [0, -1, -1]
    assert step.bin[0] == n_before + last_left * (n_between + 1)
    assert step.missing_left[0] == missing_left


@pytest.mark.parametrize("n_leading", [1, 2, 7, 8, 9])
def test_missing_values_alone_are_cut_to_the_right(n_leading):
    """Left of the first value are as many empty bins: a cut there would have them on the left."""
    x, y = [math.nan] * 4 + [0.0] * 4 + [1.0] * 4, [1] * 4 + [0] * 8
    step = first_iteration(one_column(x, y), [np.r_[np.arange(-n_leading, 0), 0.5]])
    assert (step.bin[0], step.missing_left[0]) == (n_leading + 1, 0)


# ---------------------------------------------------------------------------------- bounds on the sides


SIDES = {  # 5 rows of one class on one side of the only cut, 20 of the other
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


def is_parted(problem: Problem) -> bool:
    """Whether the cut is that between the classes."""
    step = first_iteration(problem, [np.array(t) for t in problem.thresholds()])
    return sorted(step.weight[1:].tolist()) == [5 * problem.unit, 20 * problem.unit]


@kinds
@every_side
@pytest.mark.parametrize("hessian_split", [False, True], ids=["weights", "hessians"])
def test_side_of_exactly_the_least_weight_is_allowed(x, categorical, hessian_split):
    problem = by_class(x, categorical, hessian_split=hessian_split)
    for min_weight in range(1, 14):
        assert is_parted(problem.with_params(min_weight=min_weight)) == (min_weight <= 5)


@kinds
@every_side
def test_side_of_exactly_the_least_hessian_is_allowed(x, categorical):
    """Each row has a hessian of 1."""
    problem = by_class(x, categorical, hessian_split=True)
    for least in (0.0, 1.0, 4.0, math.nextafter(5.0, 0.0), 5.0):
        assert is_parted(problem.with_params(min_hessian_leaf=least))
    for least in (5.0 + 2.0**-20, 6.0, 12.0, 13.0, 26.0):
        assert not is_parted(problem.with_params(min_hessian_leaf=least))


@given(problems(), st.data())
def test_cuts_at_the_border_of_the_bounds_are_those_of_the_reference(problem, data):
    """The least weight is that of some of the rows, the least hessian about what they have."""
    rows = data.draw(st.lists(st.booleans(), min_size=len(problem.y), max_size=len(problem.y)))
    weight = max(1, int(problem.weight[np.array(rows)].sum()) // 2)
    least = data.draw(st.sampled_from([0.0, weight * problem.unit]))
    problem = problem.with_params(min_weight=weight, min_hessian_leaf=least)
    first_iteration(problem, [np.array(t) for t in problem.thresholds()])


# ---------------------------------------------------------------------------------------------- ties


@st.composite
def columns_of_equal_counts(draw) -> Problem:
    """Columns that differ by the order of the rows of each class, each with the same scores."""
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
def test_of_columns_with_equal_scores_the_lowest_is_cut(problem):
    step = first_iteration(problem, [np.array(t) for t in problem.thresholds()])
    if not problem.categorical:
        assert step.feature[0] in (0, -1)


@pytest.mark.parametrize("hessian_split", [False, True], ids=["weights", "hessians"])
def test_of_bins_with_equal_scores_the_lowest_is_cut(hessian_split):
    """The first and the last cut are equally good."""
    problem = one_column([0, 0, 1, 1, 2, 2], [1, 1, 0, 0, 1, 1], hessian_split=hessian_split)
    step = first_iteration(problem, [np.array([0.5, 1.5])])
    assert (step.feature[0], step.bin[0]) == (0, 0)


@pytest.mark.parametrize("hessian_split", [False, True], ids=["weights", "hessians"])
def test_of_sides_with_equal_scores_missing_values_go_right(hessian_split):
    """Missing values are as good with the one as with the other."""
    x = [0.0] * 3 + [1.0] * 3 + [math.nan] * 2
    problem = one_column(x, [1] * 3 + [0] * 3 + [0, 1], hessian_split=hessian_split)
    step = first_iteration(problem, [np.array([0.5])])
    assert (step.bin[0], step.missing_left[0]) == (0, 0)


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("n_before", [0, 3])
def test_sides_with_scores_equal_after_rounding_are_told_apart_too(n_before, n_threads):
    """Left of bin 2, or right of bin 0 with the missing values: seven rows that are all of class 0 but one."""
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
    step = trainer.step([0], -1, False, 1.0)
    expected = reference_trainer_with([t.tolist() for t in thresholds], problem)
    core.assert_same_step(step, expected.step([0], -1, False, 1.0))
    assert (step.feature[0], step.bin[0], step.missing_left[0]) == (n_before, 2, False)


def test_rows_that_are_not_drawn_leave_empty_bins():
    """Each value has one row, so that bins at both ends are empty in some step."""
    x, y = [*range(30), *[math.nan] * 6], [1, 0, 0] * 12
    problem = one_column(x, y, subsample=0.5, max_leaf_nodes=5)
    thresholds = [np.array(t) for t in problem.thresholds()]
    for seed in range(20):
        first_iteration(problem.with_params(seed=seed), thresholds)
