"""The core's Shapley values, and the leaves that rows come to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import core
import reference
import reference_explain
from test_predict import predicted_by_hand as predicted_by_classes
from test_predict import trees_of
from test_regions import drawn_forest, forest_of, random_rows, random_tree, threshold_rule
from test_shared_predict import predicted_by_hand, with_shared

Arrays = dict[str, np.ndarray]


def with_weights(rng: np.random.Generator, arrays: Arrays) -> Arrays:
    """Weights of nodes; some have none, and some with none have children with none."""
    weight = rng.integers(0, 6, len(arrays["feature"])).astype(float)
    return arrays | {"weight": weight}


def node_shares(arrays: Arrays) -> np.ndarray:
    trees = reference_explain.trees_with_values(arrays, arrays["leaf_value"].shape[1])
    return np.concatenate([tree["share"] for tree in trees])


def explain(
    arrays: Arrays, X: np.ndarray, n_classes: int, n_threads: int = 1, n_trees: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    forest, shares = core.forest(arrays, X.shape[1], n_classes), node_shares(arrays)
    n_trees = len(arrays["tree_class"]) if n_trees is None else n_trees
    values = np.zeros((*X.shape, n_classes))
    forest.explain(shares, X, values, n_trees, n_threads)
    return values, forest.mean_scores(shares, n_trees)


def deep_forest(rng: np.random.Generator, n_features: int, n_leaves: int, n_trees: int) -> Arrays:
    """Trees that are cut at the last leaf again and again, so that all features meet on a path."""

    class Last:
        def integers(self, n: int) -> int:
            return n - 1

    rule = threshold_rule(rng, n_features, rng.normal(size=9))
    return forest_of(rng, [random_tree(Last(), n_leaves, rule) for _ in range(n_trees)])


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3, 4, 5, 8, 9]), st.data())
def test_values_are_those_of_the_definition(seed, n_rows, data):
    rng = np.random.default_rng(seed)
    forest, X = drawn_forest(rng, n_rows, data)
    share = data.draw(st.sampled_from([0.0, 0.5, 1.0]), "share")
    arrays = with_weights(rng, with_shared(rng, forest, 3, share))
    expected, means = reference_explain.explained(arrays, X, 3)
    found, found_means = explain(arrays, X, 3)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found_means, means, rtol=0, atol=1e-12)
