"""Resolved parameters: interaction constraints, features per split, and row subsampling."""

import numpy as np
import pandas as pd
import pytest

from abcgbm.data.schema import Schema
from abcgbm.training.resolved import FeatureRules, interaction_groups, n_features_per_split
from models import assert_same_model, model_bytes, noisy_data, small

X, Y = noisy_data(n_rows=400, n_features=6, n_classes=3)
NAMED = pd.DataFrame(X, columns=list("abcdef"))


def features_on_paths(model):
    """Return the set of features on the path to each leaf."""
    e = model.model_.ensemble
    for start, end in zip(e.tree_start[:-1], e.tree_start[1:], strict=True):
        seen = [set() for _ in range(end - start)]
        for i in range(end - start):  # parents come before their children
            if e.feature[start + i] < 0:
                yield frozenset(seen[i])
                continue
            for child in (e.left[start + i], e.left[start + i] + 1):
                seen[child] = seen[i] | {int(e.feature[start + i])}


# -------------------------------------------------------------------------------------- groups


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, []),
        ([[0, 1, 2]], [[0, 1, 2]]),
        ([[0, 1]], [[0, 1], [2]]),
        ([(2, 0), {1, 0}], [[0, 2], [0, 1]]),
        ([["c", "a"]], [[0, 2], [1]]),
        ([[np.int64(1)]], [[1], [0, 2]]),
    ],
)
def test_groups_are_complete(given, expected):
    assert interaction_groups(given, 3, np.array(["a", "b", "c"], object)) == expected


@pytest.mark.parametrize(
    ("given", "most"), [("no_interactions", 1), ("pairwise", 2), (None, 0), ([[0]], 0)], ids=str
)
def test_path_feature_limit_needs_no_list_of_groups(given, most):
    rules = FeatureRules.from_parameters(None, given, Schema(np.zeros(10**5, bool)))
    assert rules.max_path_features == most
    assert len(rules.interaction_groups) == (2 if given == [[0]] else 0)


@pytest.mark.parametrize("given", ["pairwise", "no_interactions"])
def test_path_feature_limit_equals_all_groups_of_that_size(given):
    pairs = [[i, j] for i in range(6) for j in range(i)]
    listed = pairs if given == "pairwise" else [[i] for i in range(6)]
    model = small(interaction_cst=given, max_leaf_nodes=12).fit(X, Y)
    assert_same_model(model, small(interaction_cst=listed, max_leaf_nodes=12).fit(X, Y))
    single = small(interaction_cst=given).fit(X[:, :1], Y)
    assert_same_model(single, small().fit(X[:, :1], Y))


@pytest.mark.parametrize("bad", [{"interaction_cst": [[6]]}, {"max_features": 7}], ids=str)
def test_bad_features_are_an_error_before_binning(bad, monkeypatch):
    monkeypatch.setattr("abcgbm.training.fit_run.bin_rows", None)
    with pytest.raises(ValueError, match="expected"):
        small(**bad).fit(X, Y)


@pytest.mark.parametrize(
    ("given", "most"), [("no_interactions", 1), ("pairwise", 2), (None, 6)], ids=str
)
def test_paths_respect_the_interaction_limit(given, most):
    model = small(interaction_cst=given, max_leaf_nodes=12).fit(X, Y)
    assert max(map(len, features_on_paths(model))) <= most
    assert given is None or max(map(len, features_on_paths(model))) == most


def test_features_interact_only_within_their_groups():
    groups = [{0, 1}, {1, 2}]
    model = small(interaction_cst=groups, max_leaf_nodes=12).fit(X, Y)
    allowed = [*groups, {3, 4, 5}]
    paths = set(features_on_paths(model))
    assert all(any(path <= group for group in allowed) for path in paths)
    assert any(len(path) > 1 for path in paths)


def test_groups_may_be_given_by_name():
    by_name = small(interaction_cst=[["a", "b"], ["c"]]).fit(NAMED, Y)
    assert_same_model(by_name, small(interaction_cst=[[0, 1], [2]]).fit(X, Y))


def test_one_group_of_all_features_is_no_constraint():
    assert_same_model(small(interaction_cst=[range(6)]).fit(X, Y), small().fit(X, Y))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            "all",
            "interaction_cst='all'; expected None, 'pairwise', 'no_interactions', or a list",
        ),
        (3, "interaction_cst=3; expected None"),
        ([0, 1], r"interaction_cst=\[0, 1\]; expected None"),
        (["ab"], r"interaction_cst=\['ab'\]; expected None"),
        ([[6]], "names the feature 6; expected numbers from 0 to 5$"),
        ([[-1]], "names the feature -1; expected numbers from 0 to 5$"),
        ([["a"]], "names the feature 'a'; expected numbers from 0 to 5$"),
        ([[True]], "names the feature True; expected numbers from 0 to 5$"),
    ],
)
def test_bad_groups_are_described(bad, message):
    with pytest.raises(ValueError, match=message):
        small(interaction_cst=bad).fit(X, Y)


def test_unknown_feature_name_is_an_error():
    with pytest.raises(ValueError, match=r"names the feature 'z'; .* to 5 or names of columns"):
        small(interaction_cst=[["z"]]).fit(NAMED, Y)


# --------------------------------------------------------------------------------- drawn features


@pytest.mark.parametrize(
    ("given", "n_features", "expected"),
    [
        (None, 6, 0),
        (1.0, 6, 0),
        (6, 6, 0),
        (1, 6, 1),
        (0.5, 6, 3),
        (0.51, 6, 4),
        (1e-9, 6, 1),
        ("sqrt", 6, 2),
        ("sqrt", 1, 0),
        (np.int64(5), 6, 5),
    ],
)
def test_number_of_drawn_features(given, n_features, expected):
    assert n_features_per_split(given, n_features) == expected


@pytest.mark.parametrize("everything", [None, 1.0, 6], ids=repr)
def test_max_features_of_all_features_draws_nothing(everything):
    assert_same_model(small(max_features=everything).fit(X, Y), small().fit(X, Y))


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (0, ValueError, "max_features=0; expected 'auto', None, 'sqrt', an integer of at least 1"),
        (-1, ValueError, "max_features=-1; expected 'auto', None"),
        (0.0, ValueError, "max_features=0.0; expected 'auto', None"),
        (1.5, ValueError, "max_features=1.5; expected 'auto', None"),
        (np.nan, ValueError, "max_features=nan; expected 'auto', None"),
        (7, ValueError, "max_features=7; expected at most the 6 features of X"),
        ("log2", ValueError, "max_features='log2'; expected 'auto', None"),
        (True, TypeError, "max_features=True; expected 'auto', None"),
        ([1], TypeError, r"max_features=\[1\]; expected 'auto', None"),
    ],
)
def test_bad_max_features_is_named(bad, error, message):
    with pytest.raises(error, match=message):
        small(max_features=bad).fit(X, Y)


# -------------------------------------------------------------------------------------- draws


DRAWN = [{"subsample": 0.5}, {"max_features": 2}, {"subsample": 0.7, "max_features": "sqrt"}]
every_draw = pytest.mark.parametrize("drawn", DRAWN, ids=str)


@every_draw
def test_draws_depend_only_on_the_random_state(drawn):
    one, again, other = (small("mart", **drawn, random_state=s).fit(X, Y) for s in (1, 1, 2))
    assert_same_model(one, again)
    assert model_bytes(one) != model_bytes(other)
    assert model_bytes(one) != model_bytes(small("mart").fit(X, Y))


@every_draw
@pytest.mark.parametrize("n_jobs", [2, 5])
def test_draws_are_the_same_for_any_thread_count(drawn, n_jobs):
    assert_same_model(small(**drawn, n_jobs=n_jobs).fit(X, Y), small(**drawn, n_jobs=1).fit(X, Y))


@every_draw
def test_random_state_without_draws_affects_only_the_first_base_class(drawn):
    plain = [small("mart", random_state=s).fit(X, Y) for s in (1, 2)]
    assert_same_model(*plain)


def test_trees_are_grown_on_the_drawn_rows():
    model = small("mart", subsample=0.5).fit(X, Y)
    roots = model.model_.ensemble.weight[model.model_.ensemble.tree_start[:-1]]
    assert (roots < len(Y)).all()
    assert len(np.unique(roots)) > 1  # drawn in each iteration
    assert len(np.unique(roots[:3])) == 1  # once for all trees of an iteration
