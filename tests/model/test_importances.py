"""Feature importances, overall and by class."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from abcgbm import ABCBoostClassifier, AdaptiveBaseClass, BinMapper
from abcgbm.model.ensemble import ALL_CLASSES, NO_BASE, Ensemble, EnsembleBuilder
from abcgbm.model.explanation import class_gain_importances, gain_importances
from models import noisy_data, small

N_CLASSES = 3


def test_class_importances_do_not_depend_on_the_weight_unit():
    X, y = load_iris(return_X_y=True)
    shares = []
    for unit in (1e-60, 1.0, 1e60):
        model = ABCBoostClassifier(
            "multi-output",
            max_iter=5,
            learning_rate=0.15,
            min_samples_leaf=0.05,
            l2_regularization=unit / 1000,
        )
        shares.append(model.fit(X, y, np.full(len(y), unit)).feature_importances_by_class_)
    np.testing.assert_allclose(shares[0], shares[1], rtol=1e-6)
    np.testing.assert_allclose(shares[2], shares[1], rtol=1e-6)


def stump(tree_class: int, feature: int, gain: float, class_gain: tuple[float, ...] = ()):
    """Return an iteration of one tree with one split."""
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
        builder.add_iteration([step])
    return builder.build(lambda feature, code: 0.0 * feature)


def test_trees_per_class_count_for_their_class():
    ensemble = ensemble_of(stump(0, 0, 3.0), stump(0, 1, 1.0), stump(2, 1, 4.0))
    expected = [[0.75, 0.25], [0, 0], [0, 1]]
    np.testing.assert_array_equal(class_gain_importances(ensemble), expected)
    np.testing.assert_array_equal(gain_importances(ensemble), [3 / 8, 5 / 8])


def test_multi_output_trees_count_for_each_class_by_its_gain():
    ensemble = ensemble_of(
        shared_stump(0, 3, 0, 1), shared_stump(1, 1, 0, 1), shared_stump(1, 0, 0, 2)
    )
    expected = [[0.75, 0.25], [0, 0], [0.25, 0.75]]
    np.testing.assert_array_equal(class_gain_importances(ensemble), expected)
    np.testing.assert_array_equal(gain_importances(ensemble), [4 / 8, 4 / 8])


def test_importances_of_both_tree_types_add_up():
    shared, alone = [shared_stump(0, 1, 1, 0)], [stump(0, 1, 3.0), stump(1, 0, 2.0)]
    expected = [[0.25, 0.75], [1, 0], [0, 0]]
    for steps in ((*shared, *alone), (*alone, *shared)):
        found = class_gain_importances(ensemble_of(*steps))
        np.testing.assert_array_equal(found, expected)
    joined = ensemble_of(*shared).followed_by(ensemble_of(*alone))
    np.testing.assert_array_equal(class_gain_importances(joined), expected)


def test_first_iterations_have_their_own_importances():
    steps = [shared_stump(0, 1, 1, 0), stump(2, 1, 1.0), shared_stump(1, 0, 3, 1)]
    whole = ensemble_of(*steps)
    assert whole.gain_start.tolist() == [0, 1, 1, 2]
    for n_iter in range(4):
        first = whole.first_iterations(n_iter)
        expected = ensemble_of(*steps[:n_iter])
        found, wanted = vars(first), vars(expected)
        for name in wanted:
            np.testing.assert_array_equal(found[name], wanted[name], err_msg=name, strict=True)


@pytest.mark.parametrize(
    "variant",
    [{"algorithm": "mart"}, {"algorithm": "logitboost"}, {"algorithm": "multi-output"}],
    ids=["mart", "logitboost", "shared"],
)
def test_feature_that_separates_a_class_has_its_importance(variant):
    """Only feature k separates class k from the others; the last class has no feature."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (600, 4)).astype(float)
    y = np.where(X[:, 0] == 1, 0, np.where(X[:, 1] == 1, 1, 2))
    model = small(**variant).fit(X, y)
    shares = model.feature_importances_by_class_
    assert shares.shape == (3, 4)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert shares[:, 2:].max() < 0.05
    assert shares[0].argmax() == 0
    assert shares[1, 1] > shares[0, 1]


def test_constant_base_class_has_no_importances_of_its_own():
    shares = (
        small(AdaptiveBaseClass(base_label=1))
        .fit(*noisy_data(n_classes=3))
        .feature_importances_by_class_
    )
    np.testing.assert_allclose(shares.sum(axis=1), [1, 0, 1])


# ------------------------------------------------------------------------------ other importances


KINDS = [{"algorithm": "mart"}, {"algorithm": "abc-mart"}, {"algorithm": "multi-output"}]
every_kind_of_tree = pytest.mark.parametrize("variant", KINDS, ids=["mart", "abc-mart", "shared"])


@every_kind_of_tree
def test_importances_by_gain_are_the_attributes(variant):
    model = small(**variant).fit(*noisy_data())
    np.testing.assert_array_equal(model.feature_importances(), model.feature_importances_)
    by_class = model.feature_importances("gain", per_class=True)
    np.testing.assert_array_equal(by_class, model.feature_importances_by_class_)


@every_kind_of_tree
@pytest.mark.parametrize("kind", ["split", "cover"])
def test_split_counts_match_the_data_frame(variant, kind):
    model = small(**variant).fit(*noisy_data())
    frame = model.trees_to_dataframe()
    splits = frame[frame["feature"].notna()].assign(split=1.0)
    amount = "split" if kind == "split" else "weight"
    total = splits.groupby("feature")[amount].sum()
    np.testing.assert_allclose(model.feature_importances(kind), total / total.sum())
    by_class = model.feature_importances(kind, per_class=True)
    assert by_class.shape == (4, 4)
    for k, found in enumerate(by_class):
        own = splits[splits["class"].isna() | (splits["class"] == k)]
        total = own.groupby("feature")[amount].sum().reindex(["x0", "x1", "x2", "x3"], fill_value=0)
        np.testing.assert_allclose(found, total / max(total.sum(), 1))


@every_kind_of_tree
def test_permutation_importance_is_the_increase_of_the_loss(variant):
    """Computed by hand for one feature and the first permutation."""
    X, y = noisy_data(n_features=2)
    model = small(**variant).fit(X, y)
    given = {"X": X, "y": y, "n_repeats": 1, "random_state": 7}
    found = model.feature_importances("permutation", **given)
    shuffled = X.copy()
    shuffled[:, 0] = X[np.random.default_rng(7).permutation(len(X)), 0]
    rows = np.arange(len(X))
    rise = (model.predict_log_proba(X) - model.predict_log_proba(shuffled))[rows, y]
    np.testing.assert_allclose(found[0], rise.mean())
    by_class = model.feature_importances("permutation", per_class=True, **given)
    np.testing.assert_allclose(by_class[:, 0], [rise[y == k].mean() for k in range(4)])
    np.testing.assert_allclose(np.bincount(y) / len(y) @ by_class, found)


def test_permutation_importance_of_any_table_and_of_unused_features():
    X, y = noisy_data(n_features=3)
    names = np.array(["a", "b", "c", "d"])[y]
    X[:, 1] = 5.0
    model = small().fit(X, names)
    found = model.feature_importances("permutation", X=X, y=names)
    assert found[1] == 0
    assert (found[[0, 2]] > 0).all()
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    same = small().fit(frame, names).feature_importances("permutation", X=frame, y=names)
    np.testing.assert_array_equal(same, found)
    binned = BinMapper().fit(X).transform(X)
    of_bins = small().fit(binned, names).feature_importances("permutation", X=binned, y=names)
    np.testing.assert_array_equal(of_bins, found)


def test_permutation_importance_of_a_class_without_rows_is_nan():
    X, y = noisy_data()
    model = small().fit(X, y)
    found = model.feature_importances("permutation", per_class=True, X=X[y > 0], y=y[y > 0])
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[1:]).all()


def test_permutation_importance_leaves_the_table_unchanged_and_is_reproducible():
    X, y = noisy_data()
    before = X.copy()
    model = small().fit(X, y)
    one, other = (model.feature_importances("permutation", X=X, y=y) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(X, before)
    drawn = model.feature_importances("permutation", X=X, y=y, random_state=1)
    assert not np.array_equal(drawn, one)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"kind": "loss"}, ValueError, "kind='loss'; expected 'gain' or 'split' or"),
        ({"per_class": 1}, TypeError, "per_class=1; expected True or False"),
        ({"kind": "permutation"}, ValueError, "X is None; kind='permutation' expects rows"),
        ({"kind": "permutation", "X": [[0.0] * 4]}, ValueError, "y is None"),
        ({"X": [[0.0] * 4]}, ValueError, "kind='gain' uses no rows"),
        ({"kind": "permutation", "n_repeats": 0}, ValueError, "n_repeats=0"),
        ({"kind": "permutation", "random_state": -1}, ValueError, "random_state=-1"),
        ({"kind": "permutation", "X": [[0.0] * 4], "y": [9]}, ValueError, "not among the classes"),
    ],
)
def test_wrong_arguments_are_refused(given, error, message):
    model = small().fit(*noisy_data())
    with pytest.raises(error, match=message):
        model.feature_importances(**given)


@pytest.mark.parametrize("algorithm", ["mart", "abc-mart"])
def test_binary_trees_count_for_both_classes(algorithm):
    X, y = noisy_data(n_classes=2)
    first, second = small(algorithm=algorithm).fit(X, y).feature_importances_by_class_
    assert first.sum() == pytest.approx(1)
    assert (first == second).all()
