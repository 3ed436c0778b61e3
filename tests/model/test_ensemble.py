"""The fitted trees."""

import dataclasses
import functools
import itertools
import pickle

import numpy as np
import pytest

import reference
from abcgbm import Categorical
from abcgbm.model.ensemble import ALL_CLASSES, Ensemble, EnsembleBuilder
from abcgbm.model.explanation import class_gain_importances, gain_importances
from models import ensemble_arrays, noisy_data, small

NUMBERS, Y = noisy_data(n_rows=250, n_classes=3)
# Categories in a meaningless order; a set of more than 64 takes two words.
LEVELS = (np.arange(250) // 3 * 3 + Y) * 37 % 100
X = np.column_stack([NUMBERS, np.where(np.arange(250) % 20 == 0, np.nan, LEVELS)])


VARIANTS = {"mart": {"algorithm": "mart"}, "abc-mart": {}, "shared": {"algorithm": "multi-output"}}


CHEAP_LEVELS = Categorical([4], smoothing=0.0, penalty=0.0)


@pytest.fixture(scope="module")
def ensembles():
    return {
        name: small(**variant, categorical_features=CHEAP_LEVELS).fit(X, Y).model_.ensemble
        for name, variant in VARIANTS.items()
    }


@pytest.fixture(params=VARIANTS)
def ensemble(request, ensembles):
    return ensembles[request.param]


def test_arrays_have_the_documented_types(ensemble):
    expected = {
        "feature": np.int32,
        "threshold": np.float64,
        "left": np.int32,
        "missing_left": np.uint8,
        "value": np.float64,
        "gain": np.float64,
        "weight": np.float64,
        "left_set_size": np.int32,
        "left_set": np.uint64,
        "leaf_value": np.float32,
        "gain_feature": np.int32,
        "class_gain": np.float64,
        "gain_start": np.int64,
        "tree_start": np.int64,
        "tree_class": np.int32,
        "tree_base": np.int32,
        "tree_base_scale": np.float64,
        "iteration_start": np.int64,
        "init": np.float64,
    }
    assert {name: getattr(ensemble, name).dtype for name in expected} == expected
    others = {"n_features", "n_classes"}
    assert {f.name for f in dataclasses.fields(Ensemble)} == expected.keys() | others


def test_trees_are_stored_contiguously(ensemble):
    assert ensemble.tree_start[0] == ensemble.iteration_start[0] == 0
    assert ensemble.tree_start[-1] == len(ensemble.feature)
    assert ensemble.iteration_start[-1] == len(ensemble.tree_class)
    assert (np.diff(ensemble.tree_start) % 2 == 1).all()  # one more leaf than splits
    assert ensemble.n_iter == 8


def test_nodes_are_leaves_or_splits(ensemble):
    is_leaf = ensemble.feature < 0
    assert (ensemble.left[is_leaf] == -1).all()
    assert (ensemble.gain[is_leaf] == 0).all()
    assert (ensemble.gain[~is_leaf] > 0).all()
    assert (ensemble.value[~is_leaf] == 0).all()
    assert np.isfinite(ensemble.value).all()
    assert not np.isnan(ensemble.threshold).any()


def test_weights_of_children_sum_to_that_of_the_parent(ensemble):
    start = np.repeat(ensemble.tree_start[:-1], np.diff(ensemble.tree_start))
    splits = np.flatnonzero(ensemble.feature >= 0)
    left = start[splits] + ensemble.left[splits]
    np.testing.assert_array_equal(
        ensemble.weight[left] + ensemble.weight[left + 1], ensemble.weight[splits]
    )
    assert (ensemble.weight[ensemble.tree_start[:-1]] == len(Y)).all()


def test_category_sets_are_stored_contiguously(ensemble):
    is_split = ensemble.feature >= 0
    is_categorical = ensemble.feature == 4
    np.testing.assert_array_equal(ensemble.left_set_size[is_categorical], 2)
    np.testing.assert_array_equal(ensemble.left_set_size[~is_categorical], 0)
    assert len(ensemble.left_set) == 2 * is_categorical.sum() > 0
    feature, threshold = ensemble.splits()
    is_number = is_split & ~is_categorical
    np.testing.assert_array_equal(feature, ensemble.feature[is_number])
    np.testing.assert_array_equal(threshold, ensemble.threshold[is_number])


def node_values(ensemble):
    """Return node values by class; those of a tree per class are its own values."""
    values = np.zeros((len(ensemble.feature), ensemble.n_classes))
    node_tree = np.repeat(np.arange(len(ensemble.tree_class)), np.diff(ensemble.tree_start))
    is_shared = ensemble.tree_class[node_tree] == ALL_CLASSES
    values[is_shared & (ensemble.feature < 0)] = ensemble.leaf_value
    for node in np.flatnonzero(~is_shared):
        tree = node_tree[node]
        values[node, ensemble.tree_class[tree]] = ensemble.value[node]
        if (base := ensemble.tree_base[tree]) >= 0:
            values[node, base] = -ensemble.value[node] * ensemble.tree_base_scale[tree]
    return values


def trees_of(ensemble):
    names = ("feature", "threshold", "left", "missing_left", "left_set_size")
    word = np.concatenate([[0], np.cumsum(ensemble.left_set_size)])
    values = node_values(ensemble)
    for a, b in zip(ensemble.tree_start[:-1], ensemble.tree_start[1:], strict=True):
        others = {"left_set": ensemble.left_set[word[a] : word[b]], "value": values[a:b]}
        yield {name: getattr(ensemble, name)[a:b] for name in names} | others


def assert_scores_are_walks(ensemble):
    rows = np.vstack([X[:40], np.full(5, np.nan), np.full(5, np.inf), np.full(5, 128.0)])
    expected = np.zeros((len(rows), 3))
    for tree in trees_of(ensemble):
        expected += [reference.tree_value(tree, row) for row in rows.tolist()]
    np.testing.assert_array_equal(ensemble.raw(rows, 1), expected)


def test_scores_are_the_sums_of_leaf_values(ensemble):
    assert_scores_are_walks(ensemble)


def test_multi_output_trees_have_a_value_for_each_leaf_and_class(ensembles):
    shared, alone = ensembles["shared"], ensembles["mart"]
    assert (shared.tree_class == ALL_CLASSES).all()
    assert shared.leaf_value.shape == ((shared.feature < 0).sum(), 3)
    assert shared.leaf_value.any(axis=1).all()
    assert not shared.value.any()
    assert alone.leaf_value.shape == (0, 3)


def test_gains_by_class_are_stored_contiguously(ensembles):
    shared, alone = ensembles["shared"], ensembles["mart"]
    assert shared.class_gain.shape == (len(shared.gain_feature), 3)
    for step, (first, last) in enumerate(itertools.pairwise(shared.gain_start.tolist())):
        nodes = slice(*shared.tree_start[step : step + 2])  # one tree per iteration
        feature, gain = shared.feature[nodes], shared.gain[nodes]
        assert shared.gain_feature[first:last].tolist() == np.unique(feature[feature >= 0]).tolist()
        of_feature = np.bincount(feature[feature >= 0], gain[feature >= 0], minlength=5)
        found = shared.class_gain[first:last].sum(axis=1)
        np.testing.assert_allclose(found, of_feature[shared.gain_feature[first:last]], rtol=1e-5)
    assert alone.class_gain.shape == (0, 3)
    assert alone.gain_start.tolist() == [0] * 9


def test_last_stage_is_the_whole_model(ensemble):
    stages = [raw.copy() for raw in ensemble.staged_raw(X, 1)]
    assert len(stages) == ensemble.n_iter
    np.testing.assert_array_equal(stages[-1], ensemble.raw(X, 1))
    assert not np.array_equal(stages[0], stages[-1])


def test_compact_ensemble_reads_only_used_features(ensemble):
    wide = dataclasses.replace(
        ensemble, feature=np.where(ensemble.feature == 2, 0, ensemble.feature)
    )
    assert wide.used_features.tolist() == [0, 1, 3, 4]
    assert (wide.n_features, wide.narrow.n_features) == (5, 4)
    assert wide.narrow.used_features.tolist() == [0, 1, 2, 3]
    narrow = np.ascontiguousarray(X[:, wide.used_features])
    np.testing.assert_array_equal(wide.narrow.raw(narrow, 1), wide.raw(X, 1))


@pytest.mark.parametrize("n_iter", [0, 1, 5, 8])
def test_first_and_remaining_iterations_sum_to_the_whole(ensemble, n_iter):
    stages = [np.zeros((250, 3)), *(raw.copy() for raw in ensemble.staged_raw(X, 1))]
    first = ensemble.first_iterations(n_iter)
    np.testing.assert_array_equal(first.raw(X, 1), stages[n_iter])
    for again in (first.followed_by(ensemble), ensemble.followed_by(first)):
        assert again.n_iter == 8 + n_iter
        np.testing.assert_array_equal(again.raw(X, 1), stages[n_iter] + stages[8])


@pytest.mark.parametrize("names", [("shared", "mart"), ("abc-mart", "shared", "abc-mart")])
def test_iterations_of_both_tree_types_can_be_combined(ensembles, names):
    parts = [ensembles[name] for name in names]
    joined = functools.reduce(Ensemble.followed_by, parts)
    np.testing.assert_array_equal(joined.raw(X, 1), sum(part.raw(X, 1) for part in parts))
    assert_scores_are_walks(joined)
    stages = [np.zeros((250, 3)), *(raw.copy() for raw in joined.staged_raw(X, 1))]
    for n_iter in (0, 3, 8, 11, 16):
        first = joined.first_iterations(n_iter)
        np.testing.assert_array_equal(first.raw(X, 1), stages[n_iter])
        assert_scores_are_walks(first)
        assert first.gain_start[-1] == len(first.gain_feature) == len(first.class_gain)
    narrow = np.ascontiguousarray(X[:, joined.used_features])
    np.testing.assert_array_equal(joined.narrow.raw(narrow, 1), joined.raw(X, 1))


def test_compact_ensemble_keeps_its_gains(ensembles):
    shared = ensembles["shared"]
    wide = dataclasses.replace(
        shared,
        feature=np.where(shared.feature >= 0, shared.feature + 2, -1).astype(np.int32),
        gain_feature=shared.gain_feature + np.int32(2),
        n_features=7,
    )
    narrow = class_gain_importances(wide.narrow)
    np.testing.assert_array_equal(narrow, class_gain_importances(wide)[:, wide.used_features])


def test_importances_sum_to_one(ensemble):
    shares = gain_importances(ensemble)
    assert shares.shape == (5,)
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(), 1)


def test_pickle_has_only_the_arrays(ensemble):
    ensemble.raw(X, 1)
    restored = pickle.loads(pickle.dumps(ensemble))
    assert restored.__dict__.keys() == {f.name for f in dataclasses.fields(Ensemble)}
    np.testing.assert_array_equal(restored.raw(X, 1), ensemble.raw(X, 1))


def test_ensemble_without_trees_predicts_zero():
    empty = EnsembleBuilder(n_features=2, n_classes=3).build(lambda feature, code: feature)
    assert empty.n_iter == 0
    np.testing.assert_array_equal(empty.raw(np.ones((4, 2)), 2), np.zeros((4, 3)))
    np.testing.assert_array_equal(gain_importances(empty), [0, 0])
    np.testing.assert_array_equal(class_gain_importances(empty), np.zeros((3, 2)))
    assert list(empty.staged_raw(np.ones((4, 2)), 1)) == []


def test_thresholds_lie_between_values_seen():
    e = ensemble_arrays(small().fit(NUMBERS, Y))
    for feature in range(4):
        values = np.unique(NUMBERS[~np.isnan(NUMBERS[:, feature]), feature])
        cuts = np.unique(e["threshold"][e["feature"] == feature])
        middle = (values[:-1] + values[1:]) / 2
        # Infinity separates all values from missing ones.
        assert np.isclose(cuts[:, None], np.append(middle, np.inf)).any(axis=1).all()
