"""Shapley values of the core, and the leaf of each row."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_multi_output_predict import predicted_by_hand, with_multi_output
from test_regions import forest_of, generated_forest, random_rows, random_tree, threshold_rule

import core
import reference
import reference_explain

Arrays = dict[str, np.ndarray]


def with_weights(rng: np.random.Generator, arrays: Arrays) -> Arrays:
    """Add node weights; some nodes and some pairs of children have weight zero."""
    return arrays | {"weight": rng.integers(0, 6, len(arrays["feature"])).astype(float)}


def node_fractions(arrays: Arrays) -> np.ndarray:
    trees = reference_explain.trees_with_values(arrays, arrays["leaf_value"].shape[1])
    return np.concatenate([tree["fraction"] for tree in trees])


def explain(
    arrays: Arrays, X: np.ndarray, n_classes: int, n_threads: int = 1, n_trees: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return values of shape (n_rows, n_features, n_classes), and the mean scores."""
    forest, fractions = core.forest(arrays, X.shape[1], n_classes), node_fractions(arrays)
    n_trees = len(arrays["tree_class"]) if n_trees is None else n_trees
    values = np.zeros((*X.shape, n_classes))
    forest.explain(fractions, X, values, n_trees, n_threads)
    return values, forest.mean_scores(fractions, n_trees)


def forest_with_weights(
    seed: int, n_trees: int, n_leaves: int, n_features: int, n_classes: int
) -> tuple[Arrays, np.random.Generator]:
    """Return a forest of single- and multi-output trees with thresholds from -2 to 2."""
    rng = np.random.default_rng(seed)
    rule = threshold_rule(rng, n_features, np.linspace(-2, 2, 21))
    trees = forest_of(rng, [random_tree(rng, n_leaves, rule) for _ in range(n_trees)])
    return with_weights(rng, with_multi_output(rng, trees, n_classes, 0.5)), rng


# --------------------------------------------------------------------------------------- definition


@given(
    st.integers(0, 2**32),
    st.sampled_from([1, 2, 3, 4, 5, 8, 9]),
    st.sampled_from([3, 4, 5, 9]),
    st.data(),
)
def test_values_are_those_of_the_definition(seed, n_rows, n_classes, data):
    rng = np.random.default_rng(seed)
    forest, X = generated_forest(rng, n_rows, data)
    fraction = data.draw(st.sampled_from([0.0, 0.5, 1.0]), "fraction of multi-output trees")
    arrays = with_weights(rng, with_multi_output(rng, forest, n_classes, fraction))
    expected, means = reference_explain.explained(arrays, X, n_classes)
    found, found_means = explain(arrays, X, n_classes)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found_means, means, rtol=0, atol=1e-12)


@given(st.integers(0, 2**32), st.sampled_from([1, 7, 130]), st.data())
def test_values_add_up_to_the_scores(seed, n_rows, data):
    rng = np.random.default_rng(seed)
    forest, X = generated_forest(rng, n_rows, data)
    arrays = with_weights(rng, with_multi_output(rng, forest, 3, 0.5))
    values, means = explain(arrays, X, 3)
    scores = predicted_by_hand(arrays, X, 3)
    np.testing.assert_allclose(means + values.sum(axis=1), scores, rtol=0, atol=1e-9)


def chain(n_leaves: int) -> dict[str, list]:
    """Return a tree with a different feature in each split, each split below the previous one."""
    rule = iter([(feature, 0.0, []) for feature in range(n_leaves - 1)])

    class Last:
        def integers(self, n: int) -> int:
            return n - 1

    return random_tree(Last(), n_leaves, lambda: next(rule))


def exact_shapley_values(tree: reference_explain.Tree, row: list[float]) -> list[Fraction]:
    """Return the values of a chain in fractions: leaf by leaf, by integrating a polynomial."""
    n_splits = len(tree["feature"]) // 2
    found = [Fraction(0)] * n_splits
    path: list[tuple[Fraction, Fraction]] = []  # o and z of each feature, from the root down
    node = 0
    for split in range(n_splits + 1):
        is_last = split == n_splits
        is_left = not is_last and reference.goes_left(tree, node, row)
        left = tree["left"][node]
        z = Fraction(1) if is_last else Fraction(float(tree["fraction"][left]))
        leaf = node if is_last else left
        ends = path if is_last else [*path, (Fraction(is_left), z)]
        value = Fraction(float(tree["values"][leaf].sum()))
        for i, (o, of_i) in enumerate(ends):
            poly = [Fraction(1)]
            for o_j, z_j in (e for j, e in enumerate(ends) if j != i):
                grown = [Fraction(0), *poly]  # times t
                poly = [
                    z_j * low + (o_j - z_j) * high
                    for low, high in zip([*poly, Fraction(0)], grown, strict=True)
                ]
            found[i] += value * (o - of_i) * sum(c / (k + 1) for k, c in enumerate(poly))
        path.append((Fraction(not is_left), 1 - z))
        node = left + 1
    return found


def test_paths_on_many_features_are_exact():
    rng = np.random.default_rng(1)
    arrays = forest_of(rng, [chain(20)])
    arrays["weight"] = rng.integers(1, 1000, len(arrays["feature"])).astype(float)
    arrays["tree_base"][:] = -1
    X = rng.normal(size=(3, 19))
    values, _ = explain(arrays, X, 3)
    (tree,) = reference_explain.trees_with_values(arrays, 3)
    for row, found in zip(X.tolist(), values.sum(axis=2), strict=True):
        expected = [float(value) for value in exact_shapley_values(tree, row)]
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("multi_output", [0.0, 1.0])
def test_very_deep_trees_keep_full_precision(multi_output):
    """300 features are on one path. Algorithms that divide on the way up lose all digits much earlier."""
    rng = np.random.default_rng(2)
    arrays = with_multi_output(rng, forest_of(rng, [chain(301)] * 3), 3, multi_output)
    arrays["weight"] = rng.integers(1, 1000, len(arrays["feature"])).astype(float)
    X = np.where(rng.random((9, 300)) < 0.05, -1.0, 1.0)
    X[0] = 1.0  # reaches the last leaf
    values, means = explain(arrays, X, 3)
    scores = predicted_by_hand(arrays, X, 3)
    np.testing.assert_allclose(means + values.sum(axis=1), scores, rtol=0, atol=1e-11)


def test_values_of_stumps_are_differences_from_the_mean():
    """There are more trees than are processed at a time."""
    rng = np.random.default_rng(3)
    stump = {"feature": [1, -1, -1], "left": [1, -1, -1], "set": [[], [], []]}
    thresholds = rng.normal(size=12_000)
    arrays = forest_of(rng, [stump | {"threshold": [t, 0.0, 0.0]} for t in thresholds.tolist()])
    arrays["weight"] = np.tile([4.0, 1.0, 3.0], len(thresholds))
    arrays["tree_class"][:] = 2
    arrays["tree_base"][:] = -1
    X = rng.normal(size=(20, 3))
    values, means = explain(arrays, X, 3)
    left, right = arrays["value"][1::3], arrays["value"][2::3]
    mean = 0.25 * left + 0.75 * right
    expected = (np.where(X[:, 1, None] <= thresholds, left, right) - mean).sum(axis=1)
    np.testing.assert_allclose(values[:, 1, 2], expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(means, [0, 0, mean.sum()], rtol=0, atol=1e-9)
    assert not values[:, [0, 2]].any()
    assert not values[:, :, :2].any()


# ------------------------------------------------------------------------------------ reproducibility


@pytest.mark.parametrize("n_threads", [2, 3])
def test_values_are_the_same_bits_for_any_thread_count_and_batch(n_threads):
    arrays, rng = forest_with_weights(4, 30, 12, 5, 6)
    X = random_rows(rng, 1001, 5, np.linspace(-2, 2, 21))
    whole, _ = explain(arrays, X, 6)
    assert explain(arrays, X, 6, n_threads)[0].tobytes() == whole.tobytes()
    parts = [explain(arrays, X[i : i + 77], 6)[0] for i in range(0, len(X), 77)]
    assert np.concatenate(parts).tobytes() == whole.tobytes()


def test_only_the_first_trees_are_explained_if_requested():
    arrays, rng = forest_with_weights(6, 9, 8, 4, 3)
    X = random_rows(rng, 11, 4, np.linspace(-2, 2, 21))
    whole, means = explain(arrays, X, 3)
    for n_trees in (0, 1, 4):
        values, first_means = explain(arrays, X, 3, n_trees=n_trees)
        trees = reference_explain.trees_with_values(arrays, 3)[:n_trees]
        expected, expected_means = reference_explain.explained_trees(trees, X, 3)
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(first_means, expected_means, rtol=0, atol=1e-12)
    assert not np.allclose(values, whole)
    assert not np.allclose(first_means, means)


def test_values_are_added_to_the_output_array():
    arrays, rng = forest_with_weights(7, 3, 5, 2, 3)
    X = random_rows(rng, 5, 2, np.linspace(-2, 2, 21))
    forest, values = core.forest(arrays, 2, 3), np.ones((5, 2, 3))
    forest.explain(node_fractions(arrays), X, values, 3, 1)
    np.testing.assert_allclose(values, 1 + explain(arrays, X, 3)[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_rows", [0, 1, 9])
def test_trees_of_one_leaf_have_zero_values(n_rows):
    rng = np.random.default_rng(8)
    arrays = with_multi_output(rng, forest_of(rng, [random_tree(None, 1, None)] * 4), 3, 0.5)
    arrays["weight"] = np.ones(4)
    values, means = explain(arrays, np.empty((n_rows, 0)), 3)
    assert values.shape == (n_rows, 0, 3)
    np.testing.assert_allclose(means, predicted_by_hand(arrays, np.empty((1, 0)), 3)[0])


# -------------------------------------------------------------------------------------------- leaves


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 9, 130]), st.data())
def test_apply_returns_the_leaf_of_each_row(seed, n_rows, data):
    rng = np.random.default_rng(seed)
    forest, X = generated_forest(rng, n_rows, data)
    arrays = with_weights(rng, with_multi_output(rng, forest, 3, 0.5))
    trees = reference_explain.trees_with_values(arrays, 3)
    n_trees = data.draw(st.integers(0, len(trees)), "trees")
    leaves = np.full((n_rows, n_trees), -1, np.int32)
    core.forest(arrays, X.shape[1], 3).apply(X, leaves, data.draw(st.integers(1, 2), "threads"))
    expected = [[reference.tree_leaf(t, row) for t in trees[:n_trees]] for row in X.tolist()]
    np.testing.assert_array_equal(leaves, np.array(expected).reshape(n_rows, n_trees))


# --------------------------------------------------------------------------------------- wrong input


def test_explain_rejects_wrong_input():
    arrays, _ = forest_with_weights(9, 2, 4, 3, 3)
    forest, fractions, X = core.forest(arrays, 3, 3), node_fractions(arrays), np.zeros((2, 3))
    values = np.zeros((2, 3, 3))
    wrong_fractions = [
        fractions[1:],
        np.append(fractions, 1.0),
        fractions * np.nan,
        fractions - 1,
        fractions + 1,
    ]
    for fraction in wrong_fractions:
        with pytest.raises(ValueError, match="fraction"):
            forest.explain(fraction, X, values, 2, 1)
        with pytest.raises(ValueError, match="fraction"):
            forest.mean_scores(fraction, 2)
    for wrong in (values[:1], values[:, :2].copy(), values[:, :, :2].copy()):
        with pytest.raises(ValueError, match="shapley"):
            forest.explain(fractions, X, wrong, 2, 1)
    with pytest.raises(ValueError, match="features"):
        forest.explain(fractions, X[:, :2].copy(), values, 2, 1)
    with pytest.raises(ValueError, match="trees"):
        forest.explain(fractions, X, values, 3, 1)
    with pytest.raises(ValueError, match="n_threads"):
        forest.explain(fractions, X, values, 2, 0)
    with pytest.raises(TypeError):
        forest.explain(fractions.astype(np.float32), X, values, 2, 1)
    assert not values.any()


def test_apply_rejects_wrong_input():
    arrays, _ = forest_with_weights(9, 2, 4, 3, 3)
    forest, X = core.forest(arrays, 3, 3), np.zeros((2, 3))
    for rows, shape in [(X, (1, 2)), (X, (2, 3)), (X[:, :2].copy(), (2, 2))]:
        with pytest.raises(ValueError, match="wrong"):
            forest.apply(rows, np.zeros(shape, np.int32), 1)
    with pytest.raises(TypeError):
        forest.apply(X, np.zeros((2, 2)), 1)
