"""Multi-output trees of the core match the reference for any table, weights and number of threads."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

import core
import reference as ref
from models import run_python
from reference_multi_output import MULTI_OUTPUT
from strategies import (
    HEAVY,
    Problem,
    mixed_problem,
    multi_output_problems,
    one_hot_problem,
    one_hot_problems,
    random_problem,
    reference_trainer,
    reference_trainer_with,
    sparse_problems,
)

both_splits = pytest.mark.parametrize("hessian_split", [False, True], ids=["mart", "logitboost"])
some_projections = pytest.mark.parametrize("n_projections", [0, 3])
# One of each, where the reference is slow.
two_kinds = pytest.mark.parametrize(
    ("hessian_split", "n_projections"),
    [(False, 3), (True, 0)],
    ids=["mart projected", "logitboost"],
)


def assert_same_training(ours, theirs, n_classes: int, n_iter: int = 3) -> list[ref.Iteration]:
    iterations, expected = (
        ref.boost(this, MULTI_OUTPUT, n_classes, n_iter) for this in (ours, theirs)
    )
    core.assert_same_iterations(iterations, expected)
    np.testing.assert_array_equal(ours.raw(), theirs.raw())
    return iterations


def assert_training_matches_reference(
    problem: Problem, n_iter: int = 3, n_threads: int = 1
) -> list[ref.Iteration]:
    problem = problem.with_params(multi_output=True)
    trainers = core.trainer(problem, n_threads), reference_trainer(problem)
    return assert_same_training(*trainers, problem.n_classes, n_iter)


def all_classes(problem: Problem) -> tuple[list[int], int, bool, float]:
    return ref.iteration_arguments("multi-output", -1, problem.n_classes)


def with_fractional_weights(problem: Problem, seed: int = 0) -> Problem:
    """Return the problem with fractional weights."""
    given = np.random.default_rng(seed).uniform(0.2, 2.0, len(problem.y))
    weight, unit = ref.integer_weights(given)
    minimum = ref.min_weight(problem.params["min_weight"], unit)
    return replace(problem, weight=np.array(weight), unit=unit).with_params(min_weight=minimum)


# ------------------------------------------------------------------------------------- any problem


@given(multi_output_problems())
def test_training_matches_the_reference(problem):
    assert_training_matches_reference(problem)


@given(multi_output_problems(sparse_problems()))
def test_training_on_sparse_columns_matches_the_reference(problem):
    assert_training_matches_reference(problem, 2)


@given(multi_output_problems(one_hot_problems()))
def test_training_on_one_hot_columns_matches_the_reference(problem):
    assert_training_matches_reference(problem, 2)


@both_splits
@pytest.mark.parametrize(
    ("n_classes", "n_projections"),
    [(2, 0), (2, 1), (3, 0), (7, 3), (8, 0), (9, 7), (9, 8), (12, 9), (19, 17), (30, 0)],
)
def test_longer_training_matches_the_reference(n_classes, n_projections, hessian_split):
    problem = random_problem(n_classes, 50, 1, n_classes, n_projections=n_projections)
    problem = with_fractional_weights(
        problem.with_params(hessian_split=hessian_split, learning_rate=0.5)
    )
    iterations = assert_training_matches_reference(problem, 3, n_threads=2)
    assert (
        n_projections == 1 or len(iterations) == 3
    )  # one projection may have the same sign for all


@both_splits
@pytest.mark.parametrize("n_projections", [0, 1, 9])
def test_training_on_all_kinds_of_columns_matches_the_reference(n_projections, hessian_split):
    params = {"categorical_smoothing": 1.0, "categorical_penalty": 0.1}
    params |= {"n_projections": n_projections, "hessian_split": hessian_split}
    problem = mixed_problem(3, 40, 11, **params)
    iterations = assert_training_matches_reference(with_fractional_weights(problem), 2)
    assert {3, 6} & {
        f for r in iterations for f in r.result.feature.tolist()
    }  # splits on columns with many categories


def test_trees_of_the_digits_match_the_reference():
    X, y = load_digits(return_X_y=True)
    params = {"min_weight": 5, "max_leaf_nodes": 6, "l2_regularization": 0.01}
    problem = Problem(X[:90], y[:90].astype(np.int32), 10, params=params)
    assert_training_matches_reference(problem.with_params(hessian_split=True), 1)


# ------------------------------------------------------------------------------------------ options

OPTIONS = {
    "some rows": {"subsample": 0.6, "seed": 5},
    "some features": {"max_features": 7, "seed": 2**63},
    "groups": {"interaction_groups": [list(range(14)), list(range(10, 28))]},
    "two features on a path": {"max_path_features": 2},
    "depth": {"max_depth": 2},
    "gain": {"min_gain": 3.0},
    "weight": {"min_weight": 12},
    "hessian": {"min_hessian_leaf": 12.0, "l2_regularization": 1.0},
    "large l2": {"l2_regularization": 1e80},
}


@two_kinds
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_every_option_matches_the_reference(options, n_projections, hessian_split):
    problem = one_hot_problem(5, 40, 4, **options, hessian_split=hessian_split)
    problem = with_fractional_weights(
        problem.with_params(n_projections=n_projections, max_leaf_nodes=5)
    )
    assert_training_matches_reference(problem, 2)


@some_projections
def test_child_with_exactly_the_minimum_hessian_is_allowed(n_projections):
    """The split has 12 of 60 rows on one side; the hessians of all classes add up to 3/4 for a row."""
    x, y = np.repeat([0.0, 1.0], [12, 48]), np.r_[np.zeros(12), 1 + np.arange(48) % 3]
    problem = Problem(
        x[:, None], y.astype(np.int32), 4, params={"min_weight": 1, "multi_output": True}
    )
    problem = problem.with_params(hessian_split=True, n_projections=n_projections, seed=1)
    exact = reference_trainer(problem)
    target = exact.search_target([exact.target(k, -1, 1.0) for k in range(4)])
    minimum = sum(int(row.H.sum()) for row in target.rows[:12]) / max(1, n_projections)
    minimum = math.ldexp(minimum, -target.shift)
    for bound, is_split in ((minimum * (1 - 1e-6), True), (minimum * (1 + 1e-6), False)):
        iterations = assert_training_matches_reference(
            problem.with_params(min_hessian_leaf=bound), 1
        )
        assert (len(iterations) == 1) == is_split


# -------------------------------------------------------------------------------- grids of the search


def fitted(problem: Problem, rows: np.ndarray, margin: float) -> Problem:
    """Return scores that fit some rows, and are random for the others."""
    raw = np.random.default_rng(0).integers(-(2**32), 2**32, (problem.n_classes, len(problem.y)))
    raw = raw / 2.0**32
    raw[problem.y[rows], rows] += margin
    return replace(problem, raw=raw)


def no_bits_lost(problem: Problem) -> Problem:
    """Return a problem in which the rows with large residuals are not sampled."""
    problem = problem.with_params(subsample=0.7, seed=3)
    drawn = np.flatnonzero(
        reference_trainer(problem.with_params(multi_output=True)).sampled_weight()
    )
    return fitted(problem, drawn, 24.0)


def heavy_weights_lose_bits(problem: Problem) -> Problem:
    """Return a problem in which the rows with large residuals have tiny weights."""
    weight, heavy = np.ones(len(problem.y), np.int64), np.array([1, 4, 9])
    weight[heavy] = 2**38
    return fitted(replace(problem, weight=weight).with_params(min_weight=1), heavy, 40.0)


def both_lose_bits(problem: Problem) -> Problem:
    weight = np.random.default_rng(0).integers(1, HEAVY, len(problem.y))
    problem = replace(problem, weight=weight, unit=2.0**-30)
    return problem.with_params(min_weight=int(weight[:3].sum()))


GRIDS: dict[str, tuple[Callable[[Problem], Problem], tuple[bool, bool]]] = {
    "none": (no_bits_lost, (False, False)),
    "residuals": (lambda problem: problem, (True, False)),
    "weights": (heavy_weights_lose_bits, (False, True)),
    "both": (both_lose_bits, (True, True)),
}


@both_splits
@some_projections
@pytest.mark.parametrize(("made", "expected"), GRIDS.values(), ids=GRIDS)
def test_training_on_every_grid_matches_the_reference(made, expected, n_projections, hessian_split):
    problem = mixed_problem(4, 25, 5, n_projections=n_projections, hessian_split=hessian_split)
    problem = made(problem.with_params(multi_output=True))
    trainer = reference_trainer(problem)
    lost = trainer.lost_bits([trainer.target(k, -1, 1.0) for k in range(5)])
    assert (lost[0] > 0, lost[1] > 0) == expected
    assert_training_matches_reference(problem, 2)


@pytest.mark.parametrize("weight", [2**20, 2**29, 2**37 + 2**36])
@pytest.mark.parametrize("n_projections", [0, 29])
def test_sums_match_the_reference_where_rounding_adds_most(weight, n_projections):
    """As in the test of the bound, residuals of heavy rows are rounded up, and that of a light row is 1."""
    bits = min(30, 60 - (4 * weight + 1).bit_length())
    raw = np.full((30, 5), -60.0)
    raw[0] = 0
    raw[1:29, :4] = math.log(1.02 * 2.0**-bits)
    X, y = np.array([[0.0, 0, 1, 1, 1]]).T, np.array([0, 0, 0, 0, 1], np.int32)
    problem = Problem(X, y, 30, np.array([weight] * 4 + [1]), raw=np.round(raw * 2**32) / 2**32)
    problem = problem.with_params(min_weight=1, n_projections=n_projections, multi_output=True)
    for hessian_split in (False, True):
        this = problem.with_params(hessian_split=hessian_split)
        ours, theirs = core.trainer(this), reference_trainer(this)
        core.assert_same_result(*(t.train_iteration(*all_classes(problem)) for t in (ours, theirs)))


# ------------------------------------------------------------------------------------ the line search


@both_splits
@some_projections
def test_line_search_matches_the_reference(n_projections, hessian_split):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 1)), rng.integers(0, 12, 60).astype(np.int32)
    raw = np.round(rng.normal(size=(12, 60)) * 4 * 2**32) / 2**32
    params = {"max_leaf_nodes": 4, "min_weight": 2, "learning_rate": 1.0}
    problem = Problem(X, y, 12, raw=raw, params=params)
    problem = problem.with_params(n_projections=n_projections, hessian_split=hessian_split)
    iterations = assert_training_matches_reference(problem)
    assert any(r.result.n_halvings > 0 for r in iterations)  # else nothing was tested


def test_loss_never_rises_with_many_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 5)), rng.integers(0, 40, 2000).astype(np.int32)
    params = {"max_leaf_nodes": 20, "min_weight": 10, "learning_rate": 1.0, "multi_output": True}
    trainer = core.trainer(Problem(X, y, 40, params=params))
    losses = [trainer.loss()]
    losses += [r.class_losses.sum() for r in ref.boost(trainer, MULTI_OUTPUT, 40, 10)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.95 * losses[0]


@both_splits
def test_iteration_without_a_split_changes_nothing(hessian_split):
    for params in ({"min_weight": 16}, {"subsample": 1e-300}, {"min_gain": 1e300}):
        problem = random_problem(0, 30, 2, 3, multi_output=True, hessian_split=hessian_split)
        problem = problem.with_params(**params)
        trainer, expected = core.trainer(problem), reference_trainer(problem)
        result = trainer.train_iteration(*all_classes(problem))
        core.assert_same_result(result, expected.train_iteration(*all_classes(problem)))
        assert not result.changed
        assert not trainer.raw().any()


# ------------------------------------------------------------------------------------------- splits


@both_splits
@pytest.mark.parametrize(("n_classes", "n_projections"), [(3, 0), (12, 0), (12, 9), (12, 2)])
def test_trees_on_many_categories_match_the_reference(n_classes, n_projections, hessian_split):
    """More than 64 categories on both sides, and more than 8 projections to sort them by."""
    rng = np.random.default_rng(0)
    X = rng.permutation(np.arange(200.0) % 140)[:, None]
    X[rng.random(X.shape) < 0.05] = math.nan
    y = (np.nan_to_num(X[:, 0]) * 7919 % n_classes + rng.integers(0, 2, 200)) % n_classes
    params = {"min_weight": 5, "max_leaf_nodes": 3, "categorical_smoothing": 2.0}
    problem = Problem(X, y.astype(np.int32), n_classes, categorical=(0,), params=params)
    problem = problem.with_params(n_projections=n_projections, hessian_split=hessian_split)
    assert_training_matches_reference(problem, 1)


@given(multi_output_problems(), st.data())
def test_splits_among_empty_bins_match_the_reference(problem, data):
    """Empty bins come before, between and after the values; a column may have all rows in one bin."""
    between = st.lists(st.floats(-6, 6), unique=True, max_size=40).map(sorted)
    thresholds = [np.array(t) for t in problem.thresholds()]
    for feature in set(range(problem.X.shape[1])) - set(problem.categorical):
        thresholds[feature] = np.array(data.draw(between))
    table = core.bin_table(problem.X, thresholds, 1, problem.is_categorical().astype(np.uint8))
    theirs = reference_trainer_with([t.tolist() for t in thresholds], problem)
    assert_same_training(core.trainer(problem, binned=table), theirs, problem.n_classes, 1)


@both_splits
@pytest.mark.parametrize("n_distinct", [255, 256, 600])
def test_tree_matches_the_reference_with_one_and_two_byte_codes(n_distinct, hessian_split):
    rng = np.random.default_rng(n_distinct)
    X = rng.permutation(np.arange(600.0) % n_distinct)[:, None]
    y = (X[:, 0] * 7 / n_distinct % 3).astype(np.int32)
    params = {"min_weight": 2, "max_leaf_nodes": 3, "hessian_split": hessian_split}
    assert_training_matches_reference(Problem(X, y, 3, max_bins=65534, params=params), 1)


@both_splits
@some_projections
def test_ties_go_to_the_first_split(n_projections, hessian_split):
    """Copies and mirrored columns give many splits of equal gain."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 4, 40).astype(float), rng.integers(0, 5, 40).astype(np.int32)
    X = np.column_stack([x, 3 - x, x, x == 2, x != 2])
    X[rng.random(40) < 0.2] = math.nan
    params = {"min_weight": 1, "max_leaf_nodes": 8, "n_projections": n_projections}
    problem = Problem(X, y, 5, params=params | {"hessian_split": hessian_split})
    for categorical in ((), (1, 3), (0, 1, 2, 3, 4)):
        assert_training_matches_reference(replace(problem, categorical=categorical), 2)


# ------------------------------------------------------------------- reproducibility

LARGE = {
    "numbers": lambda: random_problem(2, 9001, 6, 5),
    "many classes": lambda: random_problem(2, 5003, 4, 23, max_leaf_nodes=20),
    "all kinds": lambda: mixed_problem(2, 5003, 9, max_features=4),
    "bundles": lambda: one_hot_problem(2, 5003, 9, subsample=0.7),
}
every_large = pytest.mark.parametrize("made", LARGE.values(), ids=LARGE)


def training(problem: Problem, n_threads: int = 1) -> list[bytes]:
    problem = problem.with_params(multi_output=True)
    iterations = ref.boost(core.trainer(problem, n_threads), MULTI_OUTPUT, problem.n_classes, 3)
    assert len(iterations) == 3
    return [core.result_bytes(r.result) + r.class_losses.tobytes() for r in iterations]


@every_large
@both_splits
@some_projections
def test_training_is_the_same_for_any_thread_count(made, n_projections, hessian_split):
    problem = made().with_params(n_projections=n_projections, hessian_split=hessian_split)
    expected = training(problem)
    for n_threads in (2, 3):
        assert training(problem, n_threads) == expected


@every_large
@two_kinds
def test_training_is_the_same_for_any_row_order(made, n_projections, hessian_split):
    problem = made().with_params(n_projections=n_projections, hessian_split=hessian_split)
    weight = np.random.default_rng(1).integers(1, 2**16, len(problem.y))
    problem = replace(problem.with_params(subsample=1.0, min_weight=2**18), weight=weight)
    order = np.random.default_rng(0).permutation(len(problem.y))
    assert training(problem.rows(order), 2) == training(problem)


@given(multi_output_problems(), st.randoms(use_true_random=False), st.integers(1, 3))
def test_iterations_are_the_same_for_any_row_order_and_thread_count(problem, random, n_threads):
    problem = problem.with_params(subsample=1.0)
    order = np.array(random.sample(range(len(problem.y)), len(problem.y)))
    trainers = core.trainer(problem), core.trainer(problem.rows(order), n_threads)
    one, other = (ref.boost(trainer, MULTI_OUTPUT, problem.n_classes, 2) for trainer in trainers)
    assert [core.result_bytes(r.result) for r in one] == [
        core.result_bytes(r.result) for r in other
    ]
    np.testing.assert_array_equal(trainers[0].raw()[:, order], trainers[1].raw())


@given(multi_output_problems(sparse_problems()), st.data())
def test_training_does_not_depend_on_the_fill_value(problem, data):
    values = [st.sampled_from([*column, 0.5, math.nan]) for column in problem.X.T.tolist()]
    fill = np.array([data.draw(value) for value in values])
    table = core.bin_sparse(problem, fill)
    trainers = core.trainer(problem, binned=table), core.trainer(problem)
    assert_same_training(*trainers, problem.n_classes, 2)


@both_splits
@some_projections
def test_training_with_integer_weights_equals_training_on_repeated_rows(
    n_projections, hessian_split
):
    problem = random_problem(3, 1500, 4, 5, n_projections=n_projections)
    problem = problem.with_params(hessian_split=hessian_split)
    repeats = np.random.default_rng(0).integers(1, 4, 1500)
    repeated = problem.rows(np.repeat(np.arange(1500), repeats))
    assert training(repeated) == training(replace(problem, weight=repeats))


@pytest.mark.parametrize(("total", "is_same"), [(2**24 - 1, True), (2**24, False)])
def test_weights_below_24_bits_equal_repeated_rows(total, is_same):
    """A heavy row is given whole and in two halves. Above 24 bits, residuals are rounded after weighting."""
    X, y = np.array([[0.0], [1.0], [2.0], [3.0], [3.0]]), np.array([0, 1, 2, 0, 0], np.int32)
    raw = np.random.default_rng(0).integers(-(2**32), 2**32, (3, 4)) / 2.0**32
    raw = np.ascontiguousarray(raw[:, [0, 1, 2, 3, 3]])
    half = 3333
    weight = np.array([1, 2, total - 3 - 2 * half, half, half])
    params = {"min_weight": 1, "max_leaf_nodes": 3, "multi_output": True}
    halved = Problem(X, y, 3, weight, raw=raw, params=params)
    whole = replace(halved.rows(np.arange(4)), weight=weight[:4] + np.array([0, 0, 0, half]))
    targets = []
    for problem in (halved, whole):
        trainer = reference_trainer(problem)
        targets.append(trainer.search_target([trainer.target(k, -1, 1.0) for k in range(3)]))
        assert_training_matches_reference(problem, 2)
    sums = [sum(target.rows, ref.Sums()) for target in targets]
    assert np.array_equal(sums[0].G, sums[1].G) == is_same


LEVELS = ("baseline", "avx2", "avx512")
FINGERPRINT = """
import sys
import core
sys.stdout.write(core.simd_level() + " " + core.multi_output_fingerprint())
"""


@pytest.fixture(scope="module")
def fingerprint() -> str:
    return core.multi_output_fingerprint()


@pytest.mark.parametrize("level", LEVELS)
def test_trees_and_scores_are_the_same_at_every_simd_level(level, fingerprint):
    in_use = core.simd_level()
    if LEVELS.index(level) >= LEVELS.index(in_use):
        pytest.skip(f"this process uses {in_use}")
    assert run_python(FINGERPRINT, ABCGBM_SIMD=level).split() == [level, fingerprint]


@pytest.mark.parametrize("n_threads", [2, 3])
def test_fingerprint_is_the_same_for_any_thread_count(n_threads, fingerprint):
    assert core.multi_output_fingerprint(n_threads) == fingerprint


# ---------------------------------------------------------------------------------------- wrong input


@pytest.mark.parametrize("n_projections", [-1, 2**64, 1.5, "2", None], ids=repr)
def test_n_projections_is_a_non_negative_integer(n_projections):
    with pytest.raises((ValueError, TypeError, OverflowError)):
        core.train_params(multi_output=True, n_projections=n_projections)


@pytest.mark.parametrize(
    "arguments",
    [
        ([0, 1], -1, False, 1.0),
        ([0], -1, False, 1.0),
        ([], -1, False, 1.0),
        ([1, 2], 0, True, 1.0),
        ([1, 2], 0, False, 1.0),
        ([0, 1, 2], -1, True, 1.0),
        ([0, 1, 3], -1, False, 1.0),
        ([0, 1, 2, 2], -1, False, 1.0),
        ([0, 1, 2], -1, False, math.nan),
    ],
    ids=str,
)
def test_iteration_rejects_wrong_input_and_keeps_the_scores(arguments):
    trainer = core.trainer(random_problem(0, 20, 2, 3, multi_output=True))
    with pytest.raises((ValueError, TypeError)):
        trainer.train_iteration(*arguments)
    assert not trainer.raw().any()


def test_multi_output_trees_reject_a_search_for_the_base_class():
    trainer = core.trainer(random_problem(0, 20, 2, 3, multi_output=True))
    with pytest.raises((ValueError, TypeError)):
        trainer.search([0, 1])
    assert not trainer.raw().any()
