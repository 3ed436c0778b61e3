"""Whole trainings and the line search; row order, threads and SIMD level do not change the result."""

import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import core
import reference as ref
from strategies import VARIANTS, Problem, algorithms, problems, random_problem, reference_trainer

every_variant = pytest.mark.parametrize("algorithm", VARIANTS.values(), ids=VARIANTS)


@given(problems(), st.data())
def test_training_matches_the_reference(problem, data):
    algorithm, K = data.draw(algorithms(problem.n_classes)), problem.n_classes
    trainers = core.trainer(problem), reference_trainer(problem)
    ours, theirs = (ref.boost(trainer, algorithm, K, 4) for trainer in trainers)
    core.assert_same_iterations(ours, theirs)
    np.testing.assert_array_equal(trainers[0].raw(), trainers[1].raw())


@every_variant
@pytest.mark.parametrize("K", [2, 3, 7])
def test_longer_training_matches_the_reference(algorithm, K):
    problem = random_problem(K, 70, 3, K)
    rng = np.random.default_rng(K)
    weight, unit = ref.integer_weights(rng.uniform(0.2, 2.0, 70))
    smallest = ref.min_weight(5, unit)
    params = problem.params | {"min_weight": smallest}
    problem = replace(problem, weight=np.array(weight), unit=unit, params=params)
    ours, theirs = (
        ref.boost(trainer, algorithm, K, 4)
        for trainer in (core.trainer(problem, n_threads=2), reference_trainer(problem))
    )
    assert len(theirs) == 4
    core.assert_same_iterations(ours, theirs)


def training(problem: Problem, algorithm: ref.Algorithm, n_threads: int = 1) -> tuple[bytes, ...]:
    iterations = ref.boost(core.trainer(problem, n_threads), algorithm, problem.n_classes, 5)
    return tuple(core.result_bytes(r.result) + r.class_losses.tobytes() for r in iterations)


@every_variant
def test_training_is_the_same_for_any_row_order(algorithm):
    problem = random_problem(1, 2000, 4, 5)
    order = np.random.default_rng(0).permutation(2000)
    assert training(problem.rows(order), algorithm) == training(problem, algorithm)


@every_variant
@pytest.mark.parametrize("n_threads", [2, 3, 8])
def test_training_is_the_same_for_any_thread_count(algorithm, n_threads):
    problem = random_problem(2, 9001, 4, 5)
    assert training(problem, algorithm, n_threads) == training(problem, algorithm)


@every_variant
def test_training_with_integer_weights_equals_training_on_repeated_rows(algorithm):
    problem = random_problem(3, 1500, 4, 5)
    repeats = np.random.default_rng(0).integers(1, 4, 1500)
    repeated = problem.rows(np.repeat(np.arange(1500), repeats))
    assert training(repeated, algorithm) == training(replace(problem, weight=repeats), algorithm)


# ------------------------------------------------------------------------------------ the line search


def random_labels(K: int, **params) -> Problem:
    rng = np.random.default_rng(K)
    X, y = rng.normal(size=(2000, 5)), rng.integers(0, K, 2000).astype(np.int32)
    return Problem(X, y, K, params={"max_leaf_nodes": 20, "min_weight": 10} | params)


@pytest.mark.parametrize("learning_rate", [0.1, 1.0])
def test_loss_never_rises_with_many_classes(learning_rate):
    trainer = core.trainer(random_labels(40, learning_rate=learning_rate))
    first = trainer.loss()
    iterations = ref.boost(trainer, VARIANTS["abc-mart"], 40, 15)
    losses = [first] + [r.class_losses.sum() for r in iterations]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.95 * first
    assert any(r.result.base_scale < 1 for r in iterations)  # else nothing was tested


@pytest.mark.parametrize(
    ("K", "learning_rate", "algorithm", "acts"),
    [
        (12, 1.0, VARIANTS["mart"], lambda s: s.n_halvings > 0),
        (12, 1.0, VARIANTS["mart-class"], lambda s: s.n_halvings > 0),
        (12, 1.0, VARIANTS["Mb"], lambda s: s.n_halvings > 0 and s.base_scale < 1),
        (12, 1.0, VARIANTS["abc-mart"], lambda s: s.n_halvings == 0 and s.base_scale < 1),
        (25, 0.3, VARIANTS["abc-mart"], lambda s: s.n_halvings < 0 and s.base_scale < 1),
    ],
    ids=["halved", "halved-class", "base-and-step-halved", "base-halved", "base-halved-doubled"],
)
def test_line_search_matches_the_reference(K, learning_rate, algorithm, acts):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(100, 1)), rng.integers(0, K, 100).astype(np.int32)
    params = {"max_leaf_nodes": 3, "min_weight": 2, "learning_rate": learning_rate}
    problem = Problem(X, y, K, params=params)
    trainers = core.trainer(problem), reference_trainer(problem)
    ours, theirs = (ref.boost(trainer, algorithm, K, 3) for trainer in trainers)
    assert any(acts(r.result) for r in theirs)  # else nothing was tested
    core.assert_same_iterations(ours, theirs)
    np.testing.assert_array_equal(trainers[0].raw(), trainers[1].raw())


def one_row_far_off(seed: int) -> Problem:
    """Return weights of 30 bits, and one unsampled row whose large loss makes the grid of the losses coarse."""
    rng = np.random.default_rng(seed)
    K, y = 6, rng.integers(0, 6, 24).astype(np.int32)
    raw = rng.normal(size=(K, 24))
    raw[y, np.arange(24)] += rng.uniform(14, 20)
    weight, unit = ref.integer_weights(rng.uniform(0.5, 2, 24))
    params = {"max_leaf_nodes": 4, "learning_rate": 1.0, "subsample": 0.7, "seed": seed}
    problem = Problem(
        rng.normal(size=(24, 2)), y, K, weight=np.array(weight), unit=unit, params=params
    )
    row = reference_trainer(problem).sampled_weight().index(0)
    raw[y[row], row] = -20
    return replace(problem, raw=np.round(raw * 2**32) / 2**32)


def test_line_search_matches_the_reference_on_a_coarse_loss_grid():
    n_scaled_back = 0
    for problem in map(one_row_far_off, range(8)):
        for base in range(6):
            others = [k for k in range(6) if k != base]
            ours, theirs = (
                trainer.train_iteration(others, base, False, 5 / 6)
                for trainer in (core.trainer(problem), reference_trainer(problem))
            )
            assert (ours.base_scale, ours.n_halvings) == (theirs.base_scale, theirs.n_halvings)
            n_scaled_back += theirs.base_scale < 1
    assert n_scaled_back > 10  # else nothing was tested


def leaf_values(result, tree: int, codes: np.ndarray, n_bins: list[int]) -> np.ndarray:
    """Return the value of each training row by traversing the tree with its bin codes."""
    result, start = ref.joined([result]), result.tree_start[tree]
    values = []
    for row in codes.tolist():
        node = start
        while result.feature[node] >= 0:
            feature = result.feature[node]
            is_missing = row[feature] == n_bins[feature] - 1
            is_left = result.missing_left[node] if is_missing else row[feature] <= result.bin[node]
            node = start + result.left[node] + (0 if is_left else 1)
        values.append(result.value[node])
    return np.array(values)


@every_variant
def test_scores_are_those_of_the_paper_for_full_steps(algorithm):
    """F_k = F_k + nu * leaf, and F_b = - sum of the others (Alg. 2 and 3)."""
    problem = random_problem(4, 300, 3, 4)
    trainer, binned = core.trainer(problem), core.binned(problem)
    F = np.zeros((4, 300))
    for this in ref.boost(trainer, algorithm, 4, 6):
        assert (this.result.n_halvings, this.result.base_scale) == (0, 1)
        for tree, k in enumerate(this.result.tree_class):
            F[k] += leaf_values(this.result, tree, binned.codes(), binned.n_bins)
        if this.base >= 0:
            F[this.base] = 0
            F[this.base] = -F.sum(axis=0)
    np.testing.assert_array_equal(trainer.raw(), F)


def test_iteration_without_a_split_changes_nothing():
    problem = random_problem(0, 30, 2, 3, min_weight=16)
    trainer = core.trainer(problem)
    result = trainer.train_iteration([0, 1, 2], -1, False, 2 / 3)
    assert not result.changed
    assert not trainer.raw().any()


# --------------------------------------------------------------------------------------- SIMD levels

LEVELS = ["baseline", "avx2", "avx512"]


def run_at_level(level: str | None) -> list[str]:
    """Return the level in use and the fingerprint of a process that is started with this level."""
    environment = {k: v for k, v in os.environ.items() if k != "ABCGBM_SIMD"}
    if level is not None:
        environment["ABCGBM_SIMD"] = level
    command = [sys.executable, core.__file__]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout.split()


@pytest.fixture(scope="module")
def best_run() -> list[str]:
    return run_at_level(None)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.slow
def test_trees_and_scores_are_the_same_at_every_simd_level(level, best_run):
    best_level, best_fingerprint = best_run
    if LEVELS.index(level) > LEVELS.index(best_level):
        pytest.skip(f"the best level of this CPU is {best_level}")
    assert run_at_level(level) == [level, best_fingerprint]


@pytest.mark.parametrize("n_threads", [2, 3])
@pytest.mark.slow
def test_fingerprint_is_the_same_for_any_thread_count(n_threads, best_run):
    assert core.fingerprint(n_threads) == best_run[1]


# ---------------------------------------------------------------------------------------- wrong input

PROBLEM = random_problem(0, 20, 2, 3)


@pytest.mark.parametrize(
    "changed",
    [
        {"y": PROBLEM.y[:-1]},
        {"y": PROBLEM.y[:, None]},
        {"y": np.full(20, 3, np.int32)},
        {"y": np.full(20, -1, np.int32)},
        {"y": PROBLEM.y.astype(str)},
        {"weight": PROBLEM.weight[:-1]},
        {"weight": PROBLEM.weight * 0},
        {"weight": -PROBLEM.weight},
        {"weight": PROBLEM.weight * 2**60},
        {"weight": None},
        {"n_classes": 1},
        {"n_classes": 0},
        {"n_classes": -3},
        {"unit": 0.0},
        {"unit": math.inf},
        {"raw": np.zeros((20, 3))},
        {"raw": np.zeros((2, 20))},
        {"raw": np.zeros((3, 20), np.float32)},
        {"raw": np.full((3, 20), 2.0**-33)},
        {"raw": np.full((3, 20), 2.0**20)},
        {"raw": np.full((3, 20), math.nan)},
        {"raw": np.full((3, 20), -math.inf)},
    ],
    ids=str,
)
def test_trainer_rejects_wrong_input(changed):
    with pytest.raises((ValueError, TypeError)):
        core.trainer(PROBLEM, **changed)


@pytest.mark.parametrize("n_threads", [0, -1])
def test_trainer_rejects_wrong_thread_count(n_threads):
    with pytest.raises((ValueError, TypeError)):
        core.trainer(PROBLEM, n_threads)


@pytest.mark.parametrize(
    "arguments",
    [
        ([3], -1, False, 1.0),
        ([-1], -1, False, 1.0),
        ([], 0, True, 1.0),
        ([0], 0, True, 1.0),
        ([1, 1], 0, True, 1.0),
        ([1], 0, True, math.nan),
        ([0, 1], 3, True, 1.0),
        ([0, 1], -2, True, 1.0),
        ([0, 1], -1, True, 1.0),
    ],
    ids=str,
)
def test_iteration_rejects_wrong_input_and_keeps_the_scores(arguments):
    trainer = core.trainer(PROBLEM)
    with pytest.raises((ValueError, TypeError)):
        trainer.train_iteration(*arguments)
    assert not trainer.raw().any()


def test_weights_may_have_any_stride():
    problem = random_problem(3, 90, 3, 3)
    weight = np.random.default_rng(0).integers(1, 4, 90)
    expected = core.trainer(problem, weight=weight).train_iteration([1, 2], 0, True, 1.0)
    for strided in (np.repeat(weight, 2)[::2], weight[::-1].copy()[::-1]):
        result = core.trainer(problem, weight=strided).train_iteration([1, 2], 0, True, 1.0)
        assert core.result_bytes(result) == core.result_bytes(expected)
    one = core.trainer(problem, weight=np.broadcast_to(np.int64(1), 90))
    ones = core.trainer(problem).train_iteration([1, 2], 0, True, 1.0)
    assert core.result_bytes(one.train_iteration([1, 2], 0, True, 1.0)) == core.result_bytes(ones)


@pytest.mark.parametrize("n_threads", [2, 3, 5])
def test_order_in_which_trees_are_started_does_not_matter(n_threads):
    """Class sizes differ much: from the second iteration on, the largest trees are started first."""
    problem = random_problem(4, 700, 4, 6)
    y = np.repeat(np.arange(6), [10, 400, 20, 200, 40, 30]).astype(np.int32)
    problem = replace(problem, y=y)
    trainers = core.trainer(problem), core.trainer(problem, n_threads)
    for _ in range(4):
        one, other = (t.train_iteration(list(range(1, 6)), 0, True, 1.0) for t in trainers)
        assert core.result_bytes(one) == core.result_bytes(other)
