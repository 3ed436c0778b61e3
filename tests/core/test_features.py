"""Features that a node may be split on: feature sampling and interaction constraints."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import core
import reference as ref
from strategies import Problem, algorithms, problems, random_problem

PLAIN = ([0, 1, 2], -1, False, 2 / 3)


def root_features(problem: Problem, n_iter: int) -> np.ndarray:
    """Return the feature of each root, by iteration and class."""
    trainer, features = core.trainer(problem), []
    for trainer.number in range(n_iter):
        result = trainer.train_iteration(*PLAIN)
        features.append(result.feature[result.tree_start[:-1]])
    return np.array(features)


def one_of_six(**params) -> Problem:
    """Return a problem in which any feature splits the root; the tiny learning rate keeps it that way."""
    params |= {"max_leaf_nodes": 2, "min_weight": 1, "learning_rate": 1e-6, "max_features": 1}
    return random_problem(0, 60, 6, 3, **params)


def test_features_are_sampled_with_equal_frequency():
    roots = root_features(one_of_six(), 600)
    counts = Counter(roots.ravel().tolist())
    assert set(counts) == set(range(6))
    assert 200 < min(counts.values()) < max(counts.values()) < 400  # 300 are expected


def test_each_tree_of_an_iteration_samples_its_own_features():
    roots = root_features(one_of_six(), 600)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert 60 < (roots[:, one] == roots[:, other]).sum() < 140  # 100 are expected


def test_another_seed_samples_other_features():
    one, other = (root_features(one_of_six(seed=seed), 20) for seed in (1, 2))
    assert (one != other).any()


def test_sampled_features_belong_to_the_interaction_groups():
    groups = [[1, 3], [3, 4]]
    roots = root_features(one_of_six(interaction_groups=groups), 200)
    counts = Counter(roots.ravel().tolist())
    assert set(counts) == {1, 3, 4}
    assert 150 < min(counts.values()) < max(counts.values()) < 250  # 200 are expected


@given(problems(), st.data())
def test_max_features_of_all_features_is_no_sampling(problem, data):
    algorithm, K = data.draw(algorithms(problem.n_classes)), problem.n_classes
    n = problem.X.shape[1] + data.draw(st.integers(0, 2))
    trainings = [
        ref.boost(core.trainer(problem.with_params(max_features=m)), algorithm, K, 2)
        for m in (0, n)
    ]
    core.assert_same_iterations(*trainings)


# -------------------------------------------------------------------------------------------- groups


def features_on_paths(result, tree: int) -> list[set[int]]:
    """Return the features on the path to each node of a tree."""
    start, end = result.tree_start[tree : tree + 2]
    path = [set() for _ in range(start, end)]
    for node in range(end - start):
        left = result.left[start + node]
        if left >= 0:
            path[left] = path[left + 1] = path[node] | {int(result.feature[start + node])}
    return path


some_groups = st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=4)


@given(st.integers(0, 10**6), some_groups, st.integers(0, 3))
def test_features_without_a_common_group_never_share_a_path(seed, groups, max_features):
    params = {
        "interaction_groups": [*map(list, groups)],
        "max_features": max_features,
        "seed": seed,
    }
    problem = random_problem(seed, 80, 5, 3, min_weight=2, **params)
    for this in ref.boost(core.trainer(problem), ref.Algorithm("abc-mart"), 3, 2):
        for tree in range(len(this.result.tree_class)):
            assert all(
                any(path <= g for g in groups) for path in features_on_paths(this.result, tree)
            )


@pytest.mark.parametrize("n_groups", [1, 2, 3])
def test_groups_of_one_feature_make_trees_of_one_feature(n_groups):
    groups = [[f] for f in range(n_groups)]
    problem = random_problem(2, 300, 3, 3, interaction_groups=groups, max_leaf_nodes=12)
    result = core.trainer(problem).train_iteration(*PLAIN)
    for tree in range(3):
        assert max(map(len, features_on_paths(result, tree))) == 1


@given(problems(), st.permutations(range(3)))
def test_one_group_of_all_features_is_no_constraint(problem, order):
    K, group = problem.n_classes, [f for f in order if f < problem.X.shape[1]]
    trainings = [
        ref.boost(
            core.trainer(problem.with_params(interaction_groups=groups)),
            ref.Algorithm("abc-mart"),
            K,
            2,
        )
        for groups in ([], [group], [group, group[:1]])
    ]
    core.assert_same_iterations(trainings[0], trainings[1])
    core.assert_same_iterations(trainings[0], trainings[2])


@pytest.mark.parametrize("groups", [[[]], [[], []]], ids=str)
def test_empty_groups_allow_no_split(groups):
    result = core.trainer(random_problem(0, 50, 2, 3, interaction_groups=groups)).train_iteration(
        *PLAIN
    )
    assert not result.changed
