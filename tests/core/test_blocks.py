"""Tables with thousands of bins, whose columns are processed in blocks: the model stays the same."""

import itertools
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
    one_hot,
    one_hot_problem,
    one_hot_problems,
    problems,
    reference_trainer,
)

BLOCK = 2048  # maximum number of bins of the columns in a block
TWO_CLASSES = ([1], 0, True, 1.0)


def with_empty_bins(problem: Problem, n_empty: dict[int, int]):
    """Return the table with empty bins above all values in some columns: codes and trees stay the same."""
    thresholds = [np.array(t) for t in problem.thresholds()]
    for feature, n in n_empty.items():
        assert feature not in problem.categorical
        assert np.nanmax(problem.X[:, feature], initial=0.0) <= 1e307
        thresholds[feature] = np.append(thresholds[feature], 1e307 + np.arange(n) * 1e300)
    return core.bin_table(problem.X, thresholds, 1, problem.is_categorical().astype(np.uint8))


def assert_same_training(problem: Problem, table, algorithm: ref.Algorithm) -> None:
    trainers = core.trainer(problem, binned=table), reference_trainer(problem)
    iterations = [ref.boost(trainer, algorithm, problem.n_classes, 2) for trainer in trainers]
    core.assert_same_iterations(*iterations)
    np.testing.assert_array_equal(trainers[0].raw(), trainers[1].raw())


@given(st.one_of(problems(), one_hot_problems()), st.data())
def test_training_matches_the_reference_for_any_number_of_blocks(problem, data):
    sizes = st.sampled_from([0, 200, 1000, BLOCK - 2, BLOCK, 5000])
    problem = replace(problem, X=np.where(problem.X > 1e300, 1e300, problem.X))
    numeric = [f for f in range(problem.X.shape[1]) if f not in problem.categorical]
    table = with_empty_bins(problem, {f: data.draw(sizes) for f in numeric})
    assert_same_training(problem, table, data.draw(algorithms(problem.n_classes)))


@pytest.mark.parametrize("hessian_split", [False, True], ids=["weights", "hessians"])
def test_trees_on_hundreds_of_columns_match_the_reference(hessian_split):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(60, 250)), 1)
    X[rng.random(X.shape) < 0.05] = math.nan
    y = rng.integers(0, 3, 60)
    params = {"min_weight": 4, "max_leaf_nodes": 4, "hessian_split": hessian_split}
    problem = Problem(X, y, 3, params=params)
    table = core.binned(problem)
    assert table.total_bins > 3 * BLOCK
    ours, theirs = (
        trainer.train_iteration([1, 2], 0, True, 1.0)
        for trainer in (core.trainer(problem, binned=table), reference_trainer(problem))
    )
    core.assert_same_result(ours, theirs)
    assert len(set(ours.feature.tolist())) > 4


@pytest.mark.parametrize("K", [2, 10])
@pytest.mark.parametrize("n_threads", [2, 3, 8, 100])
def test_trees_on_wide_tables_are_the_same_for_any_thread_count(K, n_threads):
    """Each thread has its own range of columns, or none."""
    problem = one_hot_problem(1, 3000, K)
    numbers = np.random.default_rng(0).normal(size=(3000, 30))
    for X in (np.hstack([problem.X, numbers]), problem.X):
        table = core.binned(replace(problem, X=X))
        one, other = (
            core.trainer(problem, n, binned=table).train_iteration(list(range(1, K)), 0, True, 1.0)
            for n in (1, n_threads)
        )
        assert core.result_bytes(one) == core.result_bytes(other)


# ---------------------------------------------------------------------------------------------- ties


ROWS = np.arange(60) % 20
RARE = np.arange(60) < 12  # the rows of the other class
KINDS = {  # columns that separate the classes equally well
    "dense": np.where(RARE, 0.0, 1.0 + ROWS),
    "mirrored": np.where(RARE, 3.0, -ROWS),
    "sparse": RARE.astype(float),
    "missing": np.where(RARE, math.nan, ROWS),
    "mostly missing": np.where(RARE, 1.0, math.nan),
}
OTHERS = one_hot(np.maximum((np.arange(60) - 12) // 8, -1))  # fit into a bundle with "sparse"
NOISE = np.random.default_rng(0).normal(size=(60, 3))


def tied_table(kinds: tuple[str, ...], apart: bool) -> tuple[Problem, object]:
    """Return columns of these kinds with noise between and after them; `apart` puts each in its own block."""
    columns = [[KINDS[kind], noise] for kind, noise in zip(kinds, NOISE.T, strict=False)]
    X = np.column_stack([*itertools.chain.from_iterable(columns), OTHERS])
    problem = Problem(X, RARE.astype(np.int32), 2, params={"min_weight": 3, "max_leaf_nodes": 4})
    n_empty = {f: BLOCK for f in range(2 * len(kinds)) if apart}
    return problem, with_empty_bins(problem, n_empty)


@pytest.mark.parametrize("apart", [False, True], ids=["one block", "many blocks"])
@pytest.mark.parametrize("kinds", [*itertools.permutations(KINDS, 3)], ids=" ".join)
def test_ties_between_features_go_to_the_lowest_index(kinds, apart):
    problem, table = tied_table(kinds, apart)
    result = core.trainer(problem, binned=table).train_iteration(*TWO_CLASSES)
    assert result.feature[0] == 0
    core.assert_same_result(result, reference_trainer(problem).train_iteration(*TWO_CLASSES))


@pytest.mark.parametrize("apart", [False, True], ids=["one block", "many blocks"])
@given(problem=one_hot_problems(), data=st.data())
def test_duplicated_columns_are_split_at_their_first_occurrence(problem, data, apart):
    """Copies come in any order, and may be in other blocks, sparse or bundled."""
    X, n = np.where(problem.X > 1e300, 1e300, problem.X), problem.X.shape[1]
    chosen = data.draw(st.lists(st.integers(0, n - 1), min_size=2, max_size=2 * n))
    is_category = problem.is_categorical()[chosen]
    problem = replace(
        problem.with_params(interaction_groups=[], max_features=0),
        X=np.ascontiguousarray(X[:, chosen]),
        categorical=tuple(np.flatnonzero(is_category).tolist()),
    )
    n_empty = {f: BLOCK for f in np.flatnonzero(~is_category).tolist() if apart}
    table = with_empty_bins(problem, n_empty)
    result = core.trainer(problem, binned=table).train_iteration(*TWO_CLASSES)
    core.assert_same_result(result, reference_trainer(problem).train_iteration(*TWO_CLASSES))
    firsts = {chosen.index(f) for f in chosen}
    assert set(result.feature.tolist()) <= firsts | {-1}


@pytest.mark.parametrize("apart", [False, True], ids=["one block", "many blocks"])
@pytest.mark.parametrize("hessian_split", [False, True], ids=["weights", "hessians"])
@pytest.mark.parametrize("first", ["sparse", "dense", "mirrored"])
def test_rounding_does_not_decide_between_equal_scores(first, hessian_split, apart):
    """Weights make the scores non-integer. Dense columns are searched before the others."""
    rng = np.random.default_rng(0)
    X = np.column_stack([KINDS[first], KINDS["mirrored"], KINDS["dense"], KINDS["sparse"]])
    params = {"min_weight": 1, "max_leaf_nodes": 2, "hessian_split": hessian_split}
    for _ in range(50):
        y, weight = RARE & (rng.permutation(60) > 9), rng.integers(1, 10**6, 60)
        problem = Problem(X, y, 2, weight, params=params)
        table = with_empty_bins(problem, {f: BLOCK for f in range(4) if apart})
        result = core.trainer(problem, binned=table).train_iteration(*TWO_CLASSES)
        assert result.feature.tolist() == [0, -1, -1]


# ----------------------------------------------------------------------------- histograms are discarded


@pytest.mark.parametrize("hessian_split", [False, True], ids=["weights", "hessians"])
def test_tree_on_one_hot_columns_matches_the_reference_if_histograms_are_discarded(
    hessian_split,
):
    """With this number of bins a thread keeps at most three histograms."""
    problem = one_hot_problem(11, 150, 8, max_leaf_nodes=16, min_weight=3)
    problem = problem.with_params(hessian_split=hessian_split)
    X = np.column_stack([problem.X, np.random.default_rng(0).integers(0, 5, (150, 20))])
    problem = replace(problem, X=X)
    table = with_empty_bins(problem, dict.fromkeys(range(X.shape[1] - 20, X.shape[1]), 65000))
    assert max(2**24 // 8, 2**23) // (table.total_bins * 16) <= 3
    result = core.trainer(problem, 8, binned=table).train_iteration([3], 0, True, 1.0)
    assert core.max_waiting_leaves(result) >= 5
    core.assert_same_result(result, reference_trainer(problem).train_iteration([3], 0, True, 1.0))
