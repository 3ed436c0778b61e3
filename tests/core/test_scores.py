"""Residuals, losses and probabilities of the core."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import core
import reference as ref
from strategies import Problem, algorithms, problems, random_problem, reference_trainer


def assert_same_scores(ours, theirs) -> None:
    np.testing.assert_array_equal(ours.raw(), theirs.raw())
    (Rint, shift), (expected, expected_shift) = ours.residuals(), theirs.residuals()
    assert shift == expected_shift
    np.testing.assert_array_equal(Rint, expected)
    np.testing.assert_array_equal(ours.class_losses(), theirs.class_losses())
    assert ours.loss() == theirs.loss()


@given(problems())
def test_scores_start_at_zero_or_at_the_given_scores(problem):
    trainer = core.trainer(problem)
    zeros = np.zeros((problem.n_classes, len(problem.y)))
    np.testing.assert_array_equal(trainer.raw(), zeros if problem.raw is None else problem.raw)
    assert_same_scores(trainer, reference_trainer(problem))


@given(problems(), st.data())
def test_residuals_and_losses_match_the_reference(problem, data):
    algorithm = data.draw(algorithms(problem.n_classes))
    trainers = core.trainer(problem), reference_trainer(problem)
    for trainer in trainers:
        ref.boost(trainer, algorithm, problem.n_classes, 3)
    assert_same_scores(*trainers)


@pytest.mark.parametrize("K", [2, 3, 4, 5, 8, 9, 17, 33])
def test_residuals_match_the_reference_for_any_number_of_classes(K):
    """Numbers of classes and rows are around the width of a SIMD register."""
    problem = random_problem(K, 53, 2, K, learning_rate=1.0, min_weight=3, max_leaf_nodes=4)
    trainers = core.trainer(problem), reference_trainer(problem)
    for trainer in trainers:
        ref.boost(trainer, ref.Algorithm("abc-mart"), K, 2)
    assert_same_scores(*trainers)


def test_residuals_are_exact_down_to_machine_accuracy():
    """On separable rows the loss decreases to machine accuracy, and the grid follows."""
    X = np.repeat(np.arange(3.0), 4)[:, None]
    params = {"min_weight": 1, "learning_rate": 1.0}
    problem = Problem(X, X[:, 0].astype(np.int32), 3, params=params)
    trainers = core.trainer(problem), reference_trainer(problem)
    ours, theirs = (ref.boost(t, ref.Algorithm("abc-mart"), 3, 200) for t in trainers)
    core.assert_same_iterations(ours, theirs)
    assert_same_scores(*trainers)
    assert len(ours) < 200
    assert 0 < trainers[0].loss() < 2e-14


@pytest.mark.parametrize("height", [2.0, 9.0, 20.0])
def test_grid_becomes_coarser_if_the_loss_of_a_row_increases(height):
    """Twenty rows have the feature value of the last one, whose loss increases with their gain."""
    y = np.array([0] * 25 + [1], np.int32)
    X = np.array([0.0] * 5 + [1.0] * 21)[:, None]
    raw = np.zeros((3, 26))
    raw[y, np.arange(26)] = height
    problem = Problem(X, y, 3, raw=raw, params={"min_weight": 1, "learning_rate": 0.5})
    trainers = core.trainer(problem), reference_trainer(problem)
    shift_before = trainers[0].residuals()[1]
    for trainer in trainers:
        ref.boost(trainer, ref.Algorithm("mart"), 3, 9)
    assert trainers[0].residuals()[1] < shift_before
    assert_same_scores(*trainers)


def test_residual_may_exceed_the_previous_grid():
    """All classes except the base class have twenty rows, and their steps add up against its only row."""
    K = 20
    y = np.array([0, 0, *np.repeat(np.arange(K - 1), 20), K - 1], np.int32)
    X = np.array([0.0, 0.0] + [1.0] * (len(y) - 2))[:, None]
    raw = np.zeros((K, len(y)))
    raw[y, np.arange(len(y))] = 12.0
    problem = Problem(X, y, K, raw=raw, params={"min_weight": 1, "learning_rate": 1.0})
    trainers = core.trainer(problem), reference_trainer(problem)
    for trainer in trainers:
        trainer.train_iteration(list(range(K - 1)), K - 1, True, 1.0)
    assert_same_scores(*trainers)


@pytest.mark.parametrize("lead", [600.0, 680.0, 700.0, 900.0])
def test_grids_of_tiny_residuals_match_the_reference(lead):
    y = np.arange(17, dtype=np.int32) % 3
    raw = np.zeros((3, 17))
    raw[y, np.arange(17)] = lead
    problem = Problem(np.zeros((17, 1)), y, 3, raw=raw)
    assert_same_scores(core.trainer(problem), reference_trainer(problem))


raw_scores = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 9), st.integers(2, 9)),
    elements=st.one_of(st.floats(-3, 3), st.floats(-1000, 1000), st.sampled_from([0.0, 1.0])),
)


@given(raw_scores)
def test_softmax_matches_the_reference(raw):
    proba = core.softmax(raw)
    np.testing.assert_array_equal(proba, [ref.softmax(F) for F in raw.tolist()])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-14)


@given(raw_scores)
def test_log_softmax_is_the_logarithm_of_softmax(raw):
    shifted = raw - raw.max(axis=1, keepdims=True)
    expected = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(core.log_softmax(raw), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("function", [core.softmax, core.log_softmax])
@pytest.mark.parametrize("raw", [np.zeros(3), np.zeros((2, 2, 2)), None, [["a", "b"]]])
def test_softmax_rejects_wrong_input(function, raw):
    with pytest.raises((ValueError, TypeError)):
        function(raw)
