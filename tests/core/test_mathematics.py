"""The statements of the paper, each as a test."""

import itertools
import math
from dataclasses import replace

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import core
import reference as ref
from strategies import Problem, problems, random_problem, scores

SHIFT = 48  # the grid is fine enough for the derivatives of one row


def probabilities(F) -> np.ndarray:
    e = np.exp(np.asarray(F) - np.max(F))
    return e / e.sum()


def with_base(F, b: int, k: int, change: float) -> list[float]:
    """Return the scores after F_k grew by `change`, with F_b = - sum of the others."""
    F = list(F)
    F[k] += change
    F[b] -= change
    return F


def derivatives_on_grid(F, y: int, k: int, b: int = -1) -> tuple[float, float]:
    """Return residual and hessian of one row, rounded as for the trees."""
    R, _ = ref.residuals_and_loss(F, y)
    Rint = [ref.on_grid(R_k, SHIFT) for R_k in R]
    if b < 0:
        g, h = ref.plain_derivatives(Rint, k, SHIFT)
    else:
        g, h = ref.base_derivatives(Rint, y, k, b, SHIFT)
    return ref.off_grid(g, SHIFT), ref.off_grid(h, SHIFT)


def is_full_step(result) -> bool:
    """Return whether the step was not scaled back: then it is the paper's."""
    return result.base_scale == 1 and result.n_halvings == 0


def with_small_steps(problem: Problem) -> Problem:
    """Return the problem with a learning rate at which steps are rarely scaled back."""
    return problem.with_params(learning_rate=0.05)


def pairs(K: int):
    return itertools.permutations(range(K), 2)


# ------------------------------------------------------------------------------------ the two lemmas


@given(scores())
def test_lemma_1_derivatives_of_the_probabilities(row):
    F, _ = row
    p, delta = probabilities(F), 1e-5
    for b, k in pairs(len(F)):
        up, down = (probabilities(with_base(F, b, k, s)) for s in (delta, -delta))
        expected = p * (p[b] - p[k])
        expected[k] = p[k] * (1 + p[b] - p[k])
        expected[b] = p[b] * (-1 + p[b] - p[k])
        np.testing.assert_allclose((up - down) / (2 * delta), expected, atol=1e-9)


@given(scores())
def test_lemma_2_derivatives_of_the_loss(row):
    F, y = row
    delta = 1e-3

    def loss(change: float) -> float:
        return ref.residuals_and_loss(with_base(F, b, k, change), y)[1]

    for b, k in pairs(len(F)):
        g, h = derivatives_on_grid(F, y, k, b)
        first = (loss(delta) - loss(-delta)) / (2 * delta)
        second = (loss(delta) - 2 * loss(0.0) + loss(-delta)) / delta**2
        assert math.isclose(-g, first, abs_tol=1e-5)
        assert math.isclose(h, second, abs_tol=1e-5)


@given(scores())
def test_plain_derivatives_are_derivatives_by_an_unconstrained_score(row):
    F, y = row
    p = probabilities(F)
    for k in range(len(F)):
        g, h = derivatives_on_grid(F, y, k)
        assert math.isclose(g, (k == y) - p[k], abs_tol=1e-13)
        assert math.isclose(h, p[k] * (1 - p[k]), abs_tol=1e-13)


# ---------------------------------------------------------------- MART approximately averages over b


@given(scores())
def test_residuals_averaged_over_base_classes_equal_those_of_mart(row):
    F, y = row
    K, p = len(F), probabilities(F)
    for k in range(K):
        total = sum(derivatives_on_grid(F, y, k, b)[0] for b in range(K) if b != k)
        assert math.isclose(total, K * ((k == y) - p[k]), abs_tol=1e-12)


@given(scores())
def test_hessians_averaged_over_base_classes_have_k_plus_one_terms(row):
    F, y = row
    K, p = len(F), probabilities(F)
    spread = p * (1 - p)
    for k in range(K):
        total = sum(derivatives_on_grid(F, y, k, b)[1] for b in range(K) if b != k)
        exact = (K + 1) * spread[k] + spread.sum() - spread[k]
        assert math.isclose(total, exact, abs_tol=1e-12)
        if K == 2:  # where the paper's K + 2 is exact
            assert math.isclose(total, (K + 2) * spread[k], abs_tol=1e-12)


# ------------------------------------------------------------------------------------- two classes


@given(st.floats(-9, 9), st.floats(-9, 9), st.integers(0, 1), st.integers(0, 1))
def test_with_two_classes_abc_derivatives_are_twice_and_four_times_those_of_mart(F_0, F_1, y, k):
    plain_g, plain_h = derivatives_on_grid([F_0, F_1], y, k)
    base_g, base_h = derivatives_on_grid([F_0, F_1], y, k, 1 - k)
    assert base_g == 2 * plain_g
    assert math.isclose(base_h, 4 * plain_h, abs_tol=1e-13)


@given(problems(), st.sampled_from([0, 1, "worst"]))
def test_with_two_classes_abc_mart_is_mart(problem, base_class):
    two = problem.with_two_classes()
    mart, abc = core.trainer(two), core.trainer(two)
    plain = ref.boost(mart, ref.Algorithm("mart", None), 2, 4)
    base = ref.boost(abc, ref.Algorithm("abc-mart", base_class, first_base=1), 2, 4)
    np.testing.assert_array_equal(np.diff(mart.raw(), axis=0), np.diff(abc.raw(), axis=0))
    if all(is_full_step(r.result) for r in plain):
        np.testing.assert_array_equal(mart.raw(), abc.raw())
    for one, other in zip(plain, base, strict=True):
        sign = 1 if other.base == 0 else -1
        np.testing.assert_array_equal(one.result.feature, other.result.feature)
        np.testing.assert_array_equal(one.result.value, sign * np.asarray(other.result.value))


def test_with_two_classes_abc_mart_equals_textbook_mart_with_two_trees():
    """F_k += nu (K-1)/K sum(r - p) / sum p(1 - p), one tree for each of the two classes."""
    problem = random_problem(3, 400, 4, 2)
    one_tree, two_trees = core.trainer(problem), core.trainer(problem)
    for _ in range(10):
        one = one_tree.train_iteration([1], 0, True, 1.0)
        two = two_trees.train_iteration([0, 1], -1, False, 0.5)
        second = slice(*two.tree_start[1:])
        np.testing.assert_array_equal(one.feature, two.feature[second])
        np.testing.assert_array_equal(one.bin, two.bin[second])
        np.testing.assert_allclose(one.value, two.value[second], atol=1e-9)
        np.testing.assert_allclose(one_tree.raw(), two_trees.raw(), atol=1e-8)


# ---------------------------------------------------------------------------- scores and base classes


@given(problems(), st.data())
def test_scores_sum_to_exactly_zero_with_a_base_class(problem, data):
    K = problem.n_classes
    first = data.draw(st.integers(0, K - 1))
    name = data.draw(st.sampled_from(["abc-mart", "mart"]))
    trainer = core.trainer(replace(with_small_steps(problem), raw=None))
    iterations = ref.boost(trainer, ref.Algorithm(name, "worst", first_base=first), K, 4)
    assume(all(is_full_step(r.result) for r in iterations))
    np.testing.assert_array_equal(trainer.raw().sum(axis=0), np.zeros(len(problem.y)))


@given(problems(), st.data())
def test_tree_of_class_k_with_base_b_is_minus_the_tree_of_b_with_base_k(problem, data):
    K = problem.n_classes
    b, k = data.draw(st.permutations(range(K)))[:2]
    start = [c for c in range(K) if c != k]
    trainers = [core.trainer(with_small_steps(problem)) for _ in range(2)]
    for trainer in trainers:
        trainer.train_iteration(start, k, True, 1.0)  # so that scores are not all zero
    one, other = (
        trainers[0].train_iteration([k], b, True, 1.0),
        trainers[1].train_iteration([b], k, True, 1.0),
    )
    assume(is_full_step(one) and is_full_step(other))
    for name in ("feature", "left", "bin", "missing_left", "gain", "left_set_size", "left_set"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.value, -np.asarray(other.value))
    np.testing.assert_array_equal(trainers[0].raw(), trainers[1].raw())
