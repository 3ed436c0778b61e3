"""Prediction of the core from raw feature values."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import core
import reference as ref
from strategies import algorithms, mixed_problem, problems


def trees_of(arrays):
    """Yield each tree as lists, with its class, its base class and the scale of the base class."""
    ends = (arrays[name] for name in ("tree_class", "tree_base", "tree_base_scale"))
    for tree, (k, b, scale) in enumerate(zip(*ends, strict=True)):
        nodes = slice(*arrays["tree_start"][tree : tree + 2])
        names = ("feature", "threshold", "left", "missing_left", "value", "left_set_size")
        lists = {name: arrays[name][nodes].tolist() for name in names}
        first_word = arrays["left_set_size"][: nodes.start].sum()
        yield lists | {"left_set": arrays["left_set"][first_word:].tolist()}, k, b, scale


def predicted_by_hand(arrays, X: np.ndarray, n_classes: int) -> np.ndarray:
    raw = np.zeros((len(X), n_classes))
    for tree, k, b, scale in trees_of(arrays):
        values = np.array([ref.tree_value(tree, row) for row in X.tolist()])
        raw[:, k] += values
        if b >= 0:
            raw[:, b] -= values * scale
    return raw


@pytest.fixture(scope="module")
def trained():
    """A problem, its training scores and its trees."""
    problem = mixed_problem(9, 700, 5).with_params(categorical_smoothing=0.0)  # no rare categories
    trainer = core.trainer(problem)
    iterations = ref.boost(trainer, ref.Algorithm("abc-mart"), 5, 6)
    arrays = core.forest_arrays(iterations, problem.thresholds())
    assert (arrays["left_set_size"] > 1).any()  # else no set is longer than a word
    return problem, trainer.raw().T, arrays


def all_trees(arrays) -> int:
    return len(arrays["tree_class"])


def predict(arrays, X: np.ndarray) -> np.ndarray:
    return core.predict(core.forest(arrays, X.shape[1], 5), X, 5, all_trees(arrays))


@given(problems(), st.data())
def test_prediction_of_the_training_rows_equals_their_scores(problem, data):
    K, trainer = problem.n_classes, core.trainer(problem)
    iterations = ref.boost(trainer, data.draw(algorithms(K)), K, 3)
    if iterations:
        arrays = core.forest_arrays(iterations, problem.thresholds())
        forest = core.forest(arrays, problem.X.shape[1], K)
        baseline = 0 if problem.raw is None else problem.raw.T
        raw = core.predict(forest, problem.X, K, all_trees(arrays))
        np.testing.assert_array_equal(baseline + raw, trainer.raw().T)


def test_prediction_is_the_sum_over_tree_traversals(trained):
    problem, raw, arrays = trained
    np.testing.assert_array_equal(predict(arrays, problem.X), raw)
    np.testing.assert_array_equal(predicted_by_hand(arrays, problem.X, 5), raw)


def test_missing_and_extreme_values_are_predicted_as_tree_traversal(trained):
    _, _, arrays = trained
    thresholds = np.unique(arrays["threshold"])
    values = np.concatenate(
        [thresholds, np.nextafter(thresholds, np.inf), [np.nan, np.inf, -np.inf, -0.0, 5e-324]]
    )
    X = np.random.default_rng(0).choice(values, (500, 7))
    np.testing.assert_array_equal(predict(arrays, X), predicted_by_hand(arrays, X, 5))


@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
@pytest.mark.parametrize("batch", [7, 1000, 14000])
def test_prediction_is_the_same_for_any_thread_count_and_batch(trained, n_threads, batch):
    problem, raw, arrays = trained
    X = np.tile(problem.X, (20, 1))  # enough rows for several threads
    forest = core.forest(arrays, 7, 5)
    parts = [
        core.predict(forest, X[i : i + batch], 5, all_trees(arrays), n_threads)
        for i in range(0, len(X), batch)
    ]
    assert np.concatenate(parts).tobytes() == np.tile(raw, (20, 1)).tobytes()


def test_trees_can_be_added_in_ranges(trained):
    problem, expected, arrays = trained
    forest, raw = core.forest(arrays, 7, 5), np.zeros((700, 5))
    for first, last in [(0, 0), (0, 5), (5, 6), (6, all_trees(arrays))]:
        forest.add(problem.X, raw, first, last, 1)
    np.testing.assert_array_equal(raw, expected)


def test_one_forest_predicts_in_many_threads_at_once(trained):
    problem, expected, arrays = trained
    forest = core.forest(arrays, 7, 5)
    with ThreadPoolExecutor(4) as pool:
        calls = [
            pool.submit(core.predict, forest, problem.X, 5, all_trees(arrays), 2) for _ in range(16)
        ]
    assert {call.result().tobytes() for call in calls} == {expected.tobytes()}


def test_no_rows_give_no_scores(trained):
    _, _, arrays = trained
    assert predict(arrays, np.empty((0, 7))).shape == (0, 5)


# ---------------------------------------------------------------------------------------- wrong input

STUMPS = {  # the second one sends codes 1 and 66 left
    "feature": np.array([0, -1, -1, 1, -1, -1], np.int32),
    "threshold": np.array([0.5, 0, 0, 0, 0, 0]),
    "left": np.array([1, -1, -1, 1, -1, -1], np.int32),
    "missing_left": np.zeros(6, np.uint8),
    "value": np.array([0.0, 1.0, 2.0, 0.0, 4.0, 8.0]),
    "left_set_size": np.array([0, 0, 0, 2, 0, 0], np.int32),
    "left_set": np.array([2, 4], np.uint64),
    "tree_start": np.array([0, 3, 6], np.int64),
    "tree_class": np.array([0, 1], np.int32),
    "tree_base": np.array([-1, 0], np.int32),
    "tree_base_scale": np.array([1.0, 0.5]),
    "leaf_value": np.empty((0, 2), np.float32),  # no multi-output trees
}


def changed(name: str, index: int, value: float) -> dict[str, np.ndarray]:
    array = STUMPS[name].copy()
    array[index] = value
    return STUMPS | {name: array}


def test_stumps_add_and_subtract():
    X = np.array([[0.5, 1.0], [0.6, 0.0], [0.5, 66.0], [0.5, 65.0]])
    raw = core.predict(core.forest(STUMPS, 2, 2), X, 2, 2)
    left, right = [1.0 - 2.0, 4.0], [1.0 - 4.0, 8.0]
    np.testing.assert_array_equal(raw, [left, [2.0 - 4.0, 8.0], left, right])


@pytest.mark.parametrize("unknown", [np.nan, -1.0, -np.inf, 128.0, 1e300, np.inf])
@pytest.mark.parametrize("missing_left", [0, 1])
def test_unknown_category_goes_where_missing_values_go(unknown, missing_left):
    forest = core.forest(changed("missing_left", 3, missing_left), 2, 2)
    raw = core.predict(forest, np.array([[0.5, unknown]]), 2, 2)
    assert raw[0, 1] == (4.0 if missing_left else 8.0)


@pytest.mark.parametrize(
    "arrays",
    [
        *(STUMPS | {name: STUMPS[name][:-1]} for name in STUMPS if name != "leaf_value"),
        *(STUMPS | {name: STUMPS[name][:, None]} for name in STUMPS),
        changed("left", 0, 2),
        changed("left", 0, 10**9),
        changed("left", 0, -1),
        changed("left", 0, -7),
        changed("left", 0, 0),
        changed("feature", 0, 2),
        changed("tree_class", 0, 2),
        changed("tree_class", 0, -1),
        changed("tree_base", 0, 2),
        changed("tree_base", 0, -2),
        changed("tree_base_scale", 1, np.nan),
        changed("tree_start", 0, 1),
        changed("tree_start", 1, 7),
        changed("tree_start", 1, -1),
        changed("tree_start", 1, 0),
        changed("tree_start", 2, 5),
        changed("tree_start", 2, 10**12),
        changed("threshold", 0, np.nan),
        changed("value", 1, np.nan),
        changed("left_set_size", 3, 1),
        changed("left_set_size", 3, 3),
        changed("left_set_size", 3, -1),
        changed("left_set_size", 3, 2**31 - 1),
        changed("left_set_size", 0, 1),
        changed("left_set_size", 4, 2),
        STUMPS | {"left_set_size": np.array([0, 0, 0, 0, 2, 0], np.int32)},
    ],
)
def test_forest_rejects_invalid_trees(arrays):
    with pytest.raises((ValueError, TypeError)):
        core.forest(arrays, 2, 2)


def one_tree(feature: list[int], left: list[int]) -> dict[str, np.ndarray]:
    n = len(feature)
    return {
        "feature": np.array(feature, np.int32),
        "threshold": np.zeros(n),
        "left": np.array(left, np.int32),
        "missing_left": np.zeros(n, np.uint8),
        "value": np.arange(n, dtype=np.float64),
        "left_set_size": np.zeros(n, np.int32),
        "left_set": np.empty(0, np.uint64),
        "tree_start": np.array([0, n], np.int64),
        "tree_class": np.zeros(1, np.int32),
        "tree_base": np.full(1, -1, np.int32),
        "tree_base_scale": np.ones(1),
        "leaf_value": np.empty((0, 1), np.float32),
    }


def chain_of_splits(n_splits: int) -> dict[str, np.ndarray]:
    """Return splits whose left child is the right child of the previous split: few leaves, many splits."""
    left = [i + 1 for i in range(n_splits)]
    return one_tree([0] * n_splits + [-1, -1], [*left, -1, -1])


@pytest.mark.parametrize(
    "arrays",
    [
        one_tree([0, 0, 0, -1, -1], [1, 3, 3, -1, -1]),  # nodes 1 and 2 have the same children
        one_tree([0, 0, -1, -1], [1, 2, -1, -1]),  # nodes 0 and 1 have one child in common
        chain_of_splits(200),
        one_tree([-1, -1, -1], [-1, -1, -1]),
        one_tree([0, -1, -1, -1], [1, -1, -1, -1]),
        one_tree([0, -1, -1, 0, -1, -1], [1, -1, -1, 4, -1, -1]),
    ],
    ids=["two shared", "one shared", "chain", "three roots", "leaf apart", "tree apart"],
)
def test_every_node_except_the_root_has_one_parent(arrays):
    with pytest.raises(ValueError, match="forest: a node with"):
        core.forest(arrays, 1, 1)


@pytest.mark.parametrize(
    ("X", "raw", "first", "last", "n_threads"),
    [
        (np.zeros((3, 1)), np.zeros((3, 2)), 0, 2, 1),
        (np.zeros((3, 3)), np.zeros((3, 2)), 0, 2, 1),
        (np.zeros(3), np.zeros((3, 2)), 0, 2, 1),
        (np.zeros((3, 2)), np.zeros((2, 2)), 0, 2, 1),
        (np.zeros((3, 2)), np.zeros((3, 3)), 0, 2, 1),
        (np.zeros((3, 2)), np.zeros((3, 2), np.float32), 0, 2, 1),
        (np.zeros((3, 2)), np.zeros((2, 3)).T, 0, 2, 1),
        (np.zeros((3, 2)), np.zeros((3, 2)), 0, 3, 1),
        (np.zeros((3, 2)), np.zeros((3, 2)), -1, 2, 1),
        (np.zeros((3, 2)), np.zeros((3, 2)), 2, 1, 1),
        (np.zeros((3, 2)), np.zeros((3, 2)), 0, 2, 0),
    ],
)
def test_add_rejects_wrong_input_and_keeps_the_scores(X, raw, first, last, n_threads):
    with pytest.raises((ValueError, TypeError)):
        core.forest(STUMPS, 2, 2).add(X, raw, first, last, n_threads)
    assert not raw.any()


def test_add_rejects_read_only_scores():
    raw = np.zeros((3, 2))
    raw.flags.writeable = False
    with pytest.raises((ValueError, TypeError)):
        core.forest(STUMPS, 2, 2).add(np.zeros((3, 2)), raw, 0, 2, 1)
    assert not raw.any()
