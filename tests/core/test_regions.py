"""Prediction kernels for blocks of rows: the scores are those of a traversal of each tree."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_predict import predicted_by_hand

import core

Arrays = dict[str, np.ndarray]
N_ROWS = [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 127, 128, 129, 256, 300]
N_CLASSES = 3


def random_tree(rng: Any, n_leaves: int, rule: Any) -> dict[str, list[Any]]:
    """Split random leaves until there are enough; ``rule()`` returns feature, threshold and set."""
    tree: dict[str, list[Any]] = {"feature": [-1], "threshold": [0.0], "left": [-1], "set": [[]]}
    leaves = [0]
    while len(leaves) < n_leaves:
        at = leaves.pop(int(rng.integers(len(leaves))))
        left = len(tree["feature"])
        tree["feature"][at], tree["threshold"][at], tree["set"][at] = rule()
        tree["left"][at] = left
        leaves += [left, left + 1]
        for name, empty in (("feature", -1), ("threshold", 0.0), ("left", -1), ("set", [])):
            tree[name] += [empty, empty]
    return tree


def forest_of(rng: np.random.Generator, trees: list[dict[str, list[Any]]]) -> Arrays:
    """Concatenate trees, with random values, classes and default directions of missing values."""
    joined = {name: [item for tree in trees for item in tree[name]] for name in trees[0]}
    n_nodes, n_trees = len(joined["feature"]), len(trees)
    sets = [np.array(s, np.uint64) for s in joined["set"]]
    tree_class = rng.integers(0, N_CLASSES, n_trees)
    return {
        "feature": np.array(joined["feature"], np.int32),
        "threshold": np.array(joined["threshold"], np.float64),
        "left": np.array(joined["left"], np.int32),
        "missing_left": rng.integers(0, 2, n_nodes).astype(np.uint8),
        "value": rng.integers(-(2**34), 2**34, n_nodes) / 2.0**32,
        "left_set_size": np.array([len(s) for s in sets], np.int32),
        "left_set": np.concatenate([np.empty(0, np.uint64), *sets]),
        "tree_start": np.cumsum([0, *(len(tree["feature"]) for tree in trees)], dtype=np.int64),
        "tree_class": tree_class.astype(np.int32),
        "tree_base": np.where(rng.random(n_trees) < 0.5, -1, (tree_class + 1) % N_CLASSES).astype(
            np.int32
        ),
        "tree_base_scale": rng.choice([1.0, 0.5, 0.25], n_trees),
        "leaf_value": np.empty((0, N_CLASSES), np.float32),
    }


def threshold_rule(rng: np.random.Generator, n_features: int, thresholds: np.ndarray) -> Any:
    return lambda: (int(rng.integers(n_features)), float(rng.choice(thresholds)), [])


def set_rule(rng: np.random.Generator, n_features: int, n_words: int) -> Any:
    def rule() -> tuple[int, float, list[int]]:
        words = rng.integers(0, 2**64, rng.integers(1, n_words + 1), dtype=np.uint64)
        return int(rng.integers(n_features)), 0.0, words.tolist()

    return rule


def random_rows(rng: np.random.Generator, n_rows: int, n_features: int, values: Any) -> np.ndarray:
    special = [np.nan, np.inf, -np.inf, -0.0, 5e-324, -1.0, 0.5, 63.0, 64.0, 191.0, 192.0, 1e300]
    values = np.concatenate([values, np.nextafter(values, np.inf), special])
    return rng.choice(values, (n_rows, n_features))


def assert_same_as_traversal(arrays: Arrays, X: np.ndarray, n_threads: int = 1) -> None:
    forest = core.forest(arrays, X.shape[1], N_CLASSES)
    raw = core.predict(forest, X, N_CLASSES, len(arrays["tree_class"]), n_threads)
    assert raw.tobytes() == (predicted_by_hand(arrays, X, N_CLASSES) + 0.0).tobytes()


def generated_forest(
    rng: np.random.Generator, n_rows: int, data: st.DataObject
) -> tuple[Arrays, np.ndarray]:
    """Return small trees of thresholds and sets, and rows close to their thresholds and codes."""
    n_features = data.draw(st.integers(1, 4), "features")
    thresholds = np.unique([-np.inf, np.inf, 0.0, *rng.normal(size=data.draw(st.integers(0, 9)))])
    rules = [
        threshold_rule(rng, n_features, thresholds),
        set_rule(rng, n_features, data.draw(st.integers(1, 4), "words")),
    ]
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=5), "leaves")

    def either() -> tuple[int, float, list[int]]:
        return rules[int(rng.integers(2))]()

    trees = [random_tree(rng, n, either) for n in sizes]
    X = random_rows(rng, n_rows, n_features, np.append(thresholds, np.arange(70.0)))
    return forest_of(rng, trees), X


@given(st.integers(0, 2**32), st.sampled_from(N_ROWS), st.data())
def test_any_forest_of_thresholds_and_sets_predicts_as_tree_traversal(seed, n_rows, data):
    arrays, X = generated_forest(np.random.default_rng(seed), n_rows, data)
    assert_same_as_traversal(arrays, X, data.draw(st.integers(1, 3), "threads"))


@pytest.mark.parametrize("n_rows", N_ROWS)
@pytest.mark.parametrize("n_thresholds", [1, 2, 3, 254, 255, 256, 257, 700])
def test_one_and_two_byte_codes_distinguish_all_thresholds(n_rows, n_thresholds):
    """With a stump for each threshold, the score of a row is a sum over the thresholds below its value."""
    thresholds = np.arange(n_thresholds) - 0.5
    rng = np.random.default_rng(n_rows)
    stump = {"feature": [0, -1, -1], "left": [1, -1, -1], "set": [[], [], []]}
    arrays = forest_of(rng, [stump | {"threshold": [t, 0.0, 0.0]} for t in thresholds.tolist()])
    assert_same_as_traversal(arrays, random_rows(rng, n_rows, 1, thresholds))


@pytest.mark.parametrize("n_leaves", [255, 256, 257, 600])
@pytest.mark.parametrize("n_rows", [1, 9, 130])
def test_trees_may_have_more_than_256_leaves(n_leaves, n_rows):
    rng = np.random.default_rng(n_leaves)
    thresholds = rng.normal(size=50)
    rule = threshold_rule(rng, 3, thresholds)
    trees = [random_tree(rng, n, rule) for n in (5, n_leaves, 1, n_leaves, 20)]
    assert_same_as_traversal(forest_of(rng, trees), random_rows(rng, n_rows, 3, thresholds))


@pytest.mark.parametrize("n_words", [1, 3, 4, 20, 1100])
@pytest.mark.parametrize("n_rows", [1, 9, 130])
def test_sets_of_any_length_distinguish_all_categories(n_words, n_rows):
    """With 4 words, codes of categories fit into one byte; with 1100, they need three."""
    rng = np.random.default_rng(n_words)
    trees = [random_tree(rng, 6, set_rule(rng, 2, n_words)) for _ in range(3)]
    codes = rng.integers(0, 64 * n_words + 2, 200).astype(float)
    assert_same_as_traversal(forest_of(rng, trees), random_rows(rng, n_rows, 2, codes))


def test_forest_may_have_more_than_65536_thresholds():
    n = 70_000
    stumps = {
        "feature": np.tile(np.array([0, -1, -1], np.int32), n),
        "threshold": np.repeat(np.arange(n) + 0.5, 3),
        "left": np.tile(np.array([1, -1, -1], np.int32), n),
        "missing_left": np.zeros(3 * n, np.uint8),
        "value": np.tile([0.0, 1.0, 2.0], n),
        "left_set_size": np.zeros(3 * n, np.int32),
        "left_set": np.empty(0, np.uint64),
        "tree_start": np.arange(0, 3 * n + 1, 3),
        "tree_class": np.zeros(n, np.int32),
        "tree_base": np.full(n, -1, np.int32),
        "tree_base_scale": np.ones(n),
        "leaf_value": np.empty((0, 1), np.float32),
    }
    X = np.array([[0.0], [1.0], [300.0], [65_536.0], [1e6], [np.nan]])
    raw = core.predict(core.forest(stumps, 1, 1), X, 1, n)
    assert raw[:, 0].tolist() == [n, n + 1, n + 300, n + 65_536, 2 * n, 2 * n]


def test_trees_of_one_leaf_need_no_features():
    arrays = forest_of(np.random.default_rng(0), [random_tree(None, 1, None)] * 9)
    for n_rows in (1, 2, 130):
        assert_same_as_traversal(arrays, np.empty((n_rows, 0)))


@pytest.mark.parametrize("n_rows", [1, 9, 130])
def test_trees_added_one_by_one_equal_all_at_once(n_rows):
    """For a single tree, only the features that it uses are coded."""
    rng = np.random.default_rng(5)
    thresholds = rng.normal(size=20)
    trees = [random_tree(rng, 8, threshold_rule(rng, 40, thresholds)) for _ in range(30)]
    arrays, X = forest_of(rng, trees), random_rows(rng, n_rows, 40, thresholds)
    forest, raw = core.forest(arrays, 40, N_CLASSES), np.zeros((n_rows, N_CLASSES))
    for tree in range(30):
        forest.add(X, raw, tree, tree + 1, 1)
    expected = predicted_by_hand(arrays, X, N_CLASSES)
    np.testing.assert_array_equal(raw, expected)
    np.testing.assert_array_equal(core.predict(forest, X, N_CLASSES, 30), expected)
