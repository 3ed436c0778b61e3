"""How much each feature matters, to all classes and to each."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris

from abcgbm import ABCBoostClassifier
from abcgbm.model.ensemble import ALL_CLASSES, NO_BASE, Ensemble, EnsembleBuilder
from abcgbm.model.importances import class_gain_importances, gain_importances
from models import noisy_data, small

N_CLASSES = 3


def test_class_importances_of_any_unit_of_weight():
    X, y = load_iris(return_X_y=True)
    shares = []
    for unit in (1e-60, 1.0, 1e60):
        model = ABCBoostClassifier(
            trees="shared", max_iter=5, min_samples_leaf=0.05, l2_regularization=unit / 1000
        )
        shares.append(model.fit(X, y, np.full(len(y), unit)).class_importances_)
    np.testing.assert_allclose(shares[0], shares[1], rtol=1e-6)
    np.testing.assert_allclose(shares[2], shares[1], rtol=1e-6)


def stump(tree_class: int, feature: int, gain: float, class_gain: tuple[float, ...] = ()):
    """A step of one tree with one split."""
    n_gains = 1 if class_gain else 0
    return SimpleNamespace(
        feature=np.array([feature, -1, -1], np.int32),
        bin=np.zeros(3, np.int32),
        left=np.array([1, -1, -1], np.int32),
        missing_left=np.zeros(3, np.uint8),
        value=np.zeros(3),
        gain=np.array([gain, 0, 0]),
        weight=np.array([2.0, 1, 1]),
        left_set_size=np.zeros(3, np.int32),
        left_set=np.empty(0, np.uint64),
        tree_start=np.array([0, 3]),
        tree_class=np.array([tree_class], np.int32),
        leaf_value=np.ones((2 * n_gains, N_CLASSES), np.float32),
        gain_feature=np.full(n_gains, feature, np.int32),
        class_gain=np.array(class_gain, np.float32).reshape(n_gains, N_CLASSES),
        base=NO_BASE,
        base_scale=1.0,
    )


def shared_stump(feature: int, *class_gain: float):
    return stump(ALL_CLASSES, feature, sum(class_gain), class_gain)


def ensemble_of(*steps) -> Ensemble:
    builder = EnsembleBuilder(n_features=2, n_classes=N_CLASSES)
    for step in steps:
        builder.add_step([step])
    return builder.build(lambda feature, code: 0.0 * feature)


def test_trees_per_class_count_for_their_class():
    ensemble = ensemble_of(stump(0, 0, 3.0), stump(0, 1, 1.0), stump(2, 1, 4.0))
    expected = [[0.75, 0.25], [0, 0], [0, 1]]
    np.testing.assert_array_equal(class_gain_importances(ensemble), expected)
    np.testing.assert_array_equal(gain_importances(ensemble), [3 / 8, 5 / 8])


def test_shared_trees_count_for_each_class_by_its_gain():
    ensemble = ensemble_of(
        shared_stump(0, 3, 0, 1), shared_stump(1, 1, 0, 1), shared_stump(1, 0, 0, 2)
    )
    expected = [[0.75, 0.25], [0, 0], [0.25, 0.75]]
    np.testing.assert_array_equal(class_gain_importances(ensemble), expected)
    np.testing.assert_array_equal(gain_importances(ensemble), [4 / 8, 4 / 8])


def test_importances_of_both_kinds_of_trees_add_up():
    shared, alone = [shared_stump(0, 1, 1, 0)], [stump(0, 1, 3.0), stump(1, 0, 2.0)]
    expected = [[0.25, 0.75], [1, 0], [0, 0]]
    for steps in ((*shared, *alone), (*alone, *shared)):
        found = class_gain_importances(ensemble_of(*steps))
        np.testing.assert_array_equal(found, expected)
    joined = ensemble_of(*shared).followed_by(ensemble_of(*alone))
    np.testing.assert_array_equal(class_gain_importances(joined), expected)


def test_first_steps_have_their_own_importances():
    steps = [shared_stump(0, 1, 1, 0), stump(2, 1, 1.0), shared_stump(1, 0, 3, 1)]
    whole = ensemble_of(*steps)
    assert whole.gain_start.tolist() == [0, 1, 1, 2]
    for n_steps in range(4):
        first = whole.first_steps(n_steps)
        expected = ensemble_of(*steps[:n_steps])
        found, wanted = vars(first), vars(expected)
        for name in wanted:
            np.testing.assert_array_equal(found[name], wanted[name], err_msg=name, strict=True)


@pytest.mark.parametrize(
    "variant",
    [{"algorithm": "mart"}, {"algorithm": "logitboost"}, {"trees": "shared"}],
    ids=["mart", "logitboost", "shared"],
)
def test_class_is_told_by_its_own_feature(variant):
    """Feature k alone tells class k from the others; the last class has none."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (600, 4)).astype(float)
    y = np.where(X[:, 0] == 1, 0, np.where(X[:, 1] == 1, 1, 2))
    model = small(**variant).fit(X, y)
    shares = model.class_importances_
    assert shares.shape == (3, 4)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert shares[:, 2:].max() < 0.05
    assert shares[0].argmax() == 0
    assert shares[1, 1] > shares[0, 1]


def test_constant_base_class_has_no_importances_of_its_own():
    shares = small("abc-mart", base_class=1).fit(*noisy_data(n_classes=3)).class_importances_
    np.testing.assert_allclose(shares.sum(axis=1), [1, 0, 1])
