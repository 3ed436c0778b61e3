"""Scores of multi-output trees, also mixed with single-output ones: in validation and in prediction."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_predict import trees_of
from test_regions import (
    N_ROWS,
    Arrays,
    forest_of,
    generated_forest,
    random_rows,
    random_tree,
    threshold_rule,
)
from test_validation_scores import assert_same_state, followed_by, other_rows, validation_of

import core
import reference as ref
from reference_multi_output import MULTI_OUTPUT
from strategies import (
    Problem,
    mixed_problem,
    multi_output_problems,
    random_problem,
    sparse_problems,
)


def predicted_by_hand(arrays: Arrays, X: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the sum of the leaf values of each row."""
    raw, first_leaf = np.zeros((len(X), n_classes)), 0
    for tree, k, b, scale in trees_of(arrays):
        leaves = np.array([ref.tree_leaf(tree, row) for row in X.tolist()])
        is_leaf = np.array(tree["feature"]) < 0
        if k < 0:
            number = first_leaf + np.cumsum(is_leaf)[leaves] - 1
            raw += arrays["leaf_value"][number].astype(float)
            first_leaf += is_leaf.sum()
            continue
        raw[:, k] += np.array(tree["value"])[leaves]
        if b >= 0:
            raw[:, b] -= np.array(tree["value"])[leaves] * scale
    return raw


def predict(arrays: Arrays, X: np.ndarray, n_classes: int, n_threads: int = 1) -> np.ndarray:
    forest = core.forest(arrays, X.shape[1], n_classes)
    return core.predict(forest, X, n_classes, len(arrays["tree_class"]), n_threads)


# ------------------------------------------------------------------------------------ validation


@given(
    st.one_of(multi_output_problems(), multi_output_problems(sparse_problems())), st.integers(1, 2)
)
def test_validation_on_the_training_rows_has_the_training_scores(problem, n_threads):
    trainer, validation = core.trainer(problem), core.validation(problem, n_threads)
    followed_by(trainer, validation, lambda: assert_same_state(validation, trainer))
    ref.boost(trainer, MULTI_OUTPUT, problem.n_classes, 3)


def with_raw_of_one_row(problem: Problem) -> Problem:
    """Give all rows the same initial scores, as the validation rows have here."""
    if problem.raw is None:
        return problem
    return replace(problem, raw=np.repeat(problem.raw[:, :1], len(problem.y), axis=1))


@given(multi_output_problems(), st.randoms(use_true_random=False), st.integers(1, 20))
def test_validation_on_other_rows_has_the_predicted_scores(problem, random, n):
    problem, K = with_raw_of_one_row(problem), problem.n_classes
    rows = other_rows(problem, random, n)
    validation = validation_of(rows, problem)
    trainer = followed_by(core.trainer(problem), validation, lambda: None)
    iterations = ref.boost(trainer, MULTI_OUTPUT, K, 3)
    raw = np.zeros((n, K)) if rows.raw is None else rows.raw.T.copy()
    if iterations:
        arrays = core.forest_arrays(iterations, problem.thresholds())
        raw += predicted_by_hand(arrays, rows.X, K)
    np.testing.assert_array_equal(validation.raw(), raw.T)
    np.testing.assert_array_equal(validation.leading(), raw.argmax(axis=1))
    assert validation.loss() == core.trainer(rows, raw=np.ascontiguousarray(raw.T)).loss()


@pytest.mark.parametrize("n_threads", [2, 3])
def test_validation_is_the_same_for_any_thread_count(n_threads):
    problem = mixed_problem(5, 3000, 11, multi_output=True, hessian_split=True)
    one, several = core.validation(problem), core.validation(problem, n_threads)
    trainer = core.trainer(problem)
    for iteration in ref.boost(trainer, MULTI_OUTPUT, 11, 3):
        one.add(iteration.result)
        several.add(iteration.result)
    assert_same_state(one, trainer)
    assert_same_state(several, trainer)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_iteration_of_a_training_with_other_classes_is_refused(n_classes):
    result = core.trainer(random_problem(0, 50, 2, 3, multi_output=True)).train_iteration(
        [0, 1, 2], -1, False, 2 / 3
    )
    assert result.changed
    validation = core.validation(random_problem(0, 50, 2, n_classes))
    with pytest.raises(ValueError, match="result: of a training with other classes"):
        validation.add(result)
    assert not validation.raw().any()


# --------------------------------------------------------------------------------------- prediction


@given(multi_output_problems())
def test_prediction_of_the_training_rows_equals_their_scores(problem):
    K, trainer = problem.n_classes, core.trainer(problem)
    iterations = ref.boost(trainer, MULTI_OUTPUT, K, 3)
    if iterations:
        arrays = core.forest_arrays(iterations, problem.thresholds())
        baseline = 0 if problem.raw is None else problem.raw.T
        np.testing.assert_array_equal(baseline + predict(arrays, problem.X, K), trainer.raw().T)


def boosted_alternately(problem: Problem) -> tuple[Arrays, np.ndarray]:
    """Return a forest of alternating multi-output and single-output trees, and its training scores."""
    K, iterations, raw = problem.n_classes, [], np.zeros((problem.n_classes, len(problem.y)))
    algorithms = [
        MULTI_OUTPUT,
        ref.Algorithm("abc-mart"),
        MULTI_OUTPUT,
        ref.Algorithm("mart", None),
    ]
    for algorithm in algorithms:
        this = replace(problem.with_params(multi_output=algorithm is MULTI_OUTPUT), raw=raw)
        trainer = core.trainer(this)
        iterations += ref.boost(trainer, algorithm, K, 2)
        raw = trainer.raw()
    return core.forest_arrays(iterations, problem.thresholds()), raw.T


@pytest.fixture(scope="module")
def mixed() -> tuple[Problem, Arrays, np.ndarray]:
    problem = mixed_problem(9, 700, 5)
    return problem, *boosted_alternately(problem)


def test_multi_output_and_single_output_trees_add_up(mixed):
    problem, arrays, raw = mixed
    assert {-1, 0, 4} <= set(arrays["tree_class"].tolist())
    np.testing.assert_array_equal(predicted_by_hand(arrays, problem.X, 5), raw)
    np.testing.assert_array_equal(predict(arrays, problem.X, 5), raw)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("batch", [1, 7, 14000])
def test_prediction_is_the_same_for_any_thread_count_and_batch(mixed, n_threads, batch):
    problem, arrays, raw = mixed
    times = 1 if batch == 1 else 20  # enough rows for several threads
    X = np.tile(problem.X, (times, 1))
    parts = [predict(arrays, X[i : i + batch], 5, n_threads) for i in range(0, len(X), batch)]
    np.testing.assert_array_equal(np.concatenate(parts), np.tile(raw, (times, 1)))


def test_trees_can_be_added_in_ranges(mixed):
    """A range may start after multi-output trees, whose leaf values are then skipped."""
    problem, arrays, expected = mixed
    n_trees = len(arrays["tree_class"])
    forest, raw = core.forest(arrays, 7, 5), np.zeros((700, 5))
    for first, last in [(0, 0), (0, 1), (1, 4), (4, 5), (5, 11), (11, n_trees)]:
        forest.add(problem.X, raw, first, last, 1)
    np.testing.assert_array_equal(raw, expected)


def float_values(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Return multiples of 2^-32 that are exact in float32."""
    integers = rng.integers(-(2**23), 2**23, shape)
    return np.ldexp(integers, -rng.integers(13, 33, shape)).astype(np.float32)


def with_multi_output(
    rng: np.random.Generator, arrays: Arrays, n_classes: int, fraction: float
) -> Arrays:
    """Replace some trees of a forest by multi-output ones."""
    is_multi_output = rng.random(len(arrays["tree_class"])) < fraction
    of_node = np.repeat(is_multi_output, np.diff(arrays["tree_start"]))
    n_leaves = int((of_node & (arrays["feature"] < 0)).sum())
    return arrays | {
        "leaf_value": float_values(rng, (n_leaves, n_classes)),
        "value": np.where(of_node, 0.0, arrays["value"]),
        "tree_class": np.where(is_multi_output, -1, arrays["tree_class"]).astype(np.int32),
        "tree_base": np.where(is_multi_output, -1, arrays["tree_base"]).astype(np.int32),
        "tree_base_scale": np.where(is_multi_output, 1.0, arrays["tree_base_scale"]),
    }


def assert_same_as_traversal(
    arrays: Arrays, X: np.ndarray, n_classes: int, n_threads: int = 1
) -> None:
    raw = predict(arrays, X, n_classes, n_threads)
    np.testing.assert_array_equal(raw, predicted_by_hand(arrays, X, n_classes))


@given(
    st.integers(0, 2**32),
    st.sampled_from(N_ROWS),
    st.sampled_from([3, 4, 7, 8, 9, 16, 17, 33, 100]),
    st.data(),
)
def test_any_forest_predicts_as_tree_traversal(seed, n_rows, n_classes, data):
    rng = np.random.default_rng(seed)
    forest, X = generated_forest(rng, n_rows, data)
    fraction = data.draw(st.sampled_from([0.5, 1.0]), "fraction of multi-output trees")
    arrays = with_multi_output(rng, forest, n_classes, fraction)
    assert_same_as_traversal(arrays, X, n_classes, data.draw(st.integers(1, 3), "threads"))


@pytest.mark.parametrize("n_leaves", [255, 256, 257, 600])
@pytest.mark.parametrize("n_rows", [1, 9, 130])
@pytest.mark.parametrize("fraction", [0.5, 1.0])
def test_trees_may_have_more_than_256_leaves(n_leaves, n_rows, fraction):
    rng = np.random.default_rng(n_leaves)
    thresholds = rng.normal(size=50)
    rule = threshold_rule(rng, 3, thresholds)
    trees = [random_tree(rng, n, rule) for n in (5, n_leaves, 1, n_leaves, 20)]
    arrays = with_multi_output(rng, forest_of(rng, trees), 9, fraction)
    assert_same_as_traversal(arrays, random_rows(rng, n_rows, 3, thresholds), 9)


@pytest.mark.parametrize("n_rows", [1, 9, 130])
def test_trees_added_one_by_one_equal_all_at_once(n_rows):
    """For a single tree, only the features that it uses are coded."""
    rng = np.random.default_rng(5)
    thresholds = rng.normal(size=20)
    trees = [random_tree(rng, 8, threshold_rule(rng, 40, thresholds)) for _ in range(30)]
    arrays = with_multi_output(rng, forest_of(rng, trees), 11, 0.6)
    X = random_rows(rng, n_rows, 40, thresholds)
    forest, raw = core.forest(arrays, 40, 11), np.zeros((n_rows, 11))
    for tree in range(30):
        forest.add(X, raw, tree, tree + 1, 1)
    np.testing.assert_array_equal(raw, predicted_by_hand(arrays, X, 11))


def test_multi_output_trees_of_one_leaf_need_no_features():
    rng = np.random.default_rng(0)
    arrays = with_multi_output(rng, forest_of(rng, [random_tree(None, 1, None)] * 9), 4, 1.0)
    for n_rows in (1, 2, 130):
        assert_same_as_traversal(arrays, np.empty((n_rows, 0)), 4)


# ---------------------------------------------------------------------------------------- wrong input

STUMPS = {  # the first is a multi-output tree
    "feature": np.array([0, -1, -1, 1, -1, -1], np.int32),
    "threshold": np.array([0.5, 0, 0, 0, 0, 0]),
    "left": np.array([1, -1, -1, 1, -1, -1], np.int32),
    "missing_left": np.zeros(6, np.uint8),
    "value": np.array([0.0, 0.0, 0.0, 0.0, 4.0, 8.0]),
    "left_set_size": np.zeros(6, np.int32),
    "left_set": np.empty(0, np.uint64),
    "tree_start": np.array([0, 3, 6], np.int64),
    "tree_class": np.array([-1, 1], np.int32),
    "tree_base": np.array([-1, -1], np.int32),
    "tree_base_scale": np.array([1.0, 1.0]),
    "leaf_value": np.array([[1.0, 2.0, 3.0], [-0.5, 0.25, 0.0]], np.float32),
}


def test_stumps_add():
    X = np.array([[0.5, 0.0], [0.6, 1.0], [np.nan, np.nan]])
    right = [-0.5, 8.25, 0.0]
    np.testing.assert_array_equal(predict(STUMPS, X, 3), [[1.0, 6.0, 3.0], right, right])


LEAF_VALUE = STUMPS["leaf_value"]


@pytest.mark.parametrize(
    "changed",
    [
        {"leaf_value": LEAF_VALUE[:1]},
        {"leaf_value": np.r_[LEAF_VALUE, LEAF_VALUE]},
        {"leaf_value": LEAF_VALUE[:, :2]},
        {"leaf_value": LEAF_VALUE.ravel()},
        {"leaf_value": np.where(LEAF_VALUE == 2, np.nan, LEAF_VALUE).astype(np.float32)},
        {"leaf_value": np.where(LEAF_VALUE == 2, np.inf, LEAF_VALUE).astype(np.float32)},
        {"leaf_value": None},
        {"leaf_value": LEAF_VALUE.astype(str)},
        {"leaf_value": np.empty((0, 3), np.float32)},
        {"tree_class": np.array([-1, -1], np.int32)},
        {"tree_class": np.array([1, 1], np.int32)},
        {"tree_class": np.array([-2, 1], np.int32)},
        {"tree_base": np.array([0, -1], np.int32)},
    ],
)
def test_forest_rejects_invalid_leaves(changed):
    with pytest.raises((ValueError, TypeError)):
        core.forest(STUMPS | changed, 2, 3)


def test_forest_rejects_multi_output_trees_without_leaf_values():
    with pytest.raises((ValueError, TypeError, KeyError)):
        core.forest({name: a for name, a in STUMPS.items() if name != "leaf_value"}, 2, 3)
