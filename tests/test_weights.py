"""Sample weights: their integers, and what they mean to a model."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight

import reference
from abcgbm import BinMapper
from abcgbm.data.weights import IntegerWeights, check_weights, class_weights, mean_factor
from models import assert_same_model, noisy_data, small

X, Y = noisy_data(n_rows=200, n_classes=3)
positive = st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=30)
both_algorithms = pytest.mark.parametrize("algorithm", ["mart", "abc-mart"])


@given(positive)
def test_integers_are_those_of_the_reference(weights):
    ours = IntegerWeights.from_floats(weights, len(weights))
    weight, unit = reference.integer_weights(weights)
    assert (ours.weight.tolist(), ours.unit) == (list(weight), unit)


@given(positive)
def test_rounding_is_a_tiny_part_of_the_sum(weights):
    ours = IntegerWeights.from_floats(weights, len(weights))
    total = math.fsum(weights)
    unit = math.ldexp(1.0, math.frexp(total)[1] - 30)
    assert unit <= total * 2.0**-29
    error = np.abs(ours.weight * ours.unit - weights)
    assert (error <= np.where(np.array(weights) < unit / 2, unit, unit / 2)).all()  # never to 0


@given(st.lists(st.integers(1, 10**6), min_size=1), st.sampled_from([2.0**-20, 0.5, 1.0, 4.0]))
def test_multiples_of_a_power_of_two_are_exact(counts, unit):
    weights = IntegerWeights.from_floats(np.array(counts) * unit, len(counts))
    assert (weights.weight * weights.unit == np.array(counts) * unit).all()


def test_no_weights_are_ones():
    none, ones = IntegerWeights.from_floats(None, 3), IntegerWeights.from_floats([1, 1, 1], 3)
    assert none.weight.tolist() == ones.weight.tolist() == [1, 1, 1]
    assert none.unit == ones.unit == 1.0
    np.testing.assert_array_equal(check_weights(None, 3), [1, 1, 1])


@given(positive, st.floats(1e-3, 1e3))
def test_smallest_leaf_is_rounded_up(weights, amount):
    ours = IntegerWeights.from_floats(weights, len(weights))
    assert ours.units(amount) == max(1, math.ceil(Fraction(amount) / Fraction(ours.unit)))


# -------------------------------------------------------------------------------------- in models


@both_algorithms
@pytest.mark.parametrize("seed", range(5))
def test_integer_weight_is_the_row_so_often(algorithm, seed):
    times = np.random.default_rng(seed).integers(1, 4, len(Y))
    weighted = small(algorithm, max_bins=16).fit(X, Y, times)
    repeated = small(algorithm, max_bins=16).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    assert_same_model(weighted, repeated)


@both_algorithms
@pytest.mark.parametrize("seed", range(5))
def test_weight_zero_is_the_row_absent(algorithm, seed):
    rng = np.random.default_rng(seed)
    kept = rng.random(len(Y)) < 0.7
    weight = np.where(kept, rng.uniform(0.5, 3, len(Y)), 0)
    weighted = small(algorithm, max_bins=16).fit(X, Y, weight)
    assert_same_model(weighted, small(algorithm, max_bins=16).fit(X[kept], Y[kept], weight[kept]))


def test_class_of_weight_zero_is_no_class():
    names = np.array(["a", "b", "c"])[Y]
    model = small().fit(X, names, names != "b")
    assert model.classes_.tolist() == ["a", "c"]
    assert_same_model(model, small().fit(X[Y != 1], names[Y != 1]))


@pytest.mark.parametrize("missing", [np.nan, None])
def test_row_of_weight_zero_needs_no_label(missing):
    names = np.array(["a", "b", "c"], object)[Y]
    names[:10] = missing
    weight = np.r_[np.zeros(10), np.ones(len(Y) - 10)]
    assert_same_model(small().fit(X, names, weight), small().fit(X[10:], names[10:]))


def test_values_of_rows_of_weight_zero_make_no_bins():
    wild = X.copy()
    wild[:10] = np.array([1e300, -np.inf, np.nan, 77])
    weight = np.r_[np.zeros(10), np.ones(len(Y) - 10)]
    assert_same_model(small().fit(wild, Y, weight), small().fit(X[10:], Y[10:]))


def test_rows_of_weight_zero_are_taken_out_of_a_binned_table():
    table = BinMapper().fit(X[20:]).transform(X)
    weight = np.r_[np.zeros(20), np.ones(len(Y) - 20)]
    assert_same_model(small().fit(table, Y, weight), small().fit(X[20:], Y[20:]))


@both_algorithms
@pytest.mark.parametrize("scale", [2.0**-5, 2.0**9])
def test_scaled_weights_and_leaf_give_the_scaled_model(algorithm, scale):
    weight = np.random.default_rng(0).uniform(0.5, 3, len(Y))
    model = small(algorithm).fit(X, Y, weight)
    scaled = small(algorithm, min_samples_leaf=10 * scale).fit(X, Y, weight * scale)
    assert scaled.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    np.testing.assert_array_equal(scaled.train_loss_, model.train_loss_ * scale)
    np.testing.assert_array_equal(
        scaled.model_.ensemble.weight, model.model_.ensemble.weight * scale
    )


def test_losses_are_weighted():
    weight = np.random.default_rng(0).uniform(0.5, 3, len(Y))
    model = small().fit(X, Y, weight)
    of_rows = -np.log(model.predict_proba(X)[np.arange(len(Y)), Y])
    expected = np.bincount(Y, of_rows * weight)
    # A weight is rounded by half a unit of 2^(exponent(total) - 30) at most.
    half_unit = math.ldexp(0.5, math.frexp(weight.sum())[1] - 30)
    bound = half_unit * np.bincount(Y, of_rows) + 1e-12 * expected
    assert (np.abs(model.class_losses_[-1] - expected) <= bound).all()


def test_smallest_leaf_counts_weights():
    model = small(min_samples_leaf=30).fit(X, Y, np.full(len(Y), 0.5))
    assert model.model_.ensemble.weight[model.model_.ensemble.feature < 0].min() >= 30


@pytest.mark.parametrize("dtype", [np.int8, np.float32, bool, object])
def test_weights_may_have_any_type_of_number(dtype):
    weight = np.ones(len(Y), dtype)
    assert_same_model(small().fit(X, Y, weight), small().fit(X, Y))
    assert_same_model(small().fit(X, Y, weight.tolist()), small().fit(X, Y))


def test_weights_of_very_different_size_are_learned():
    weight = np.where(Y == 0, 1e-300, 1.0)
    model = small().fit(X, Y, weight)
    assert np.isfinite(model.predict_proba(X)).all()
    assert (model.predict(X) != 0).all()


# -------------------------------------------------------------------------------- class weights

NAMES = np.array(["a", "b", "c"])[Y]


@both_algorithms
def test_class_weight_is_a_factor_of_the_sample_weight(algorithm):
    weight = np.random.default_rng(0).uniform(0.5, 3, len(Y))
    model = small(algorithm, class_weight={"a": 2.5, "c": 0.25}).fit(X, NAMES, weight)
    weighed = weight * np.array([2.5, 1, 0.25])[Y]
    expected = small(algorithm, min_samples_leaf=10 * mean_factor(weight, weighed))
    assert_same_model(model, expected.fit(X, NAMES, weighed))


@both_algorithms
def test_integer_class_weight_is_the_rows_so_often(algorithm):
    times = np.array([2, 1, 3])[Y]
    weighted = small(algorithm, max_bins=16, class_weight={"a": 2, "c": 3}).fit(X, NAMES)
    repeated = small(algorithm, max_bins=16, min_samples_leaf=10 * mean_factor(times**0, times))
    assert_same_model(weighted, repeated.fit(np.repeat(X, times, axis=0), np.repeat(NAMES, times)))


def test_balanced_classes_have_the_same_weight():
    weight = np.random.default_rng(0).uniform(0.5, 3, len(Y))
    of_class = np.bincount(Y, weight)
    factor = weight.sum() / (3 * of_class)
    model = small(class_weight="balanced").fit(X, NAMES, weight)
    expected = small(class_weight=dict(zip("abc", factor, strict=True))).fit(X, NAMES, weight)
    assert_same_model(model, expected)
    np.testing.assert_allclose(model.class_losses_[0], weight.sum() * math.log(3) / 3, rtol=1e-6)


def test_balanced_is_that_of_scikit_learn_without_weights():
    factor = compute_class_weight("balanced", classes=np.unique(NAMES), y=NAMES)
    model = small(class_weight="balanced").fit(X, NAMES)
    assert_same_model(model, small().fit(X, NAMES, factor[Y]))


def test_balanced_with_weights_is_that_of_repeated_rows():
    times = np.random.default_rng(0).integers(1, 4, len(Y))
    y, classes = Y.astype(np.int32), np.arange(3)
    weighted = class_weights("balanced", classes, y, times.astype(float))
    repeated = np.repeat(y, times)
    expected = class_weights("balanced", classes, repeated, np.ones(len(repeated)))
    np.testing.assert_array_equal(weighted, expected)


def test_class_without_rows_does_not_matter_to_balanced():
    rows = Y != 1
    model = small("mart", class_weight="balanced", classes=list("abc")).fit(X[rows], NAMES[rows])
    np.testing.assert_allclose(model.class_losses_[0, 0], model.class_losses_[0, 2], rtol=1e-9)


@both_algorithms
def test_class_of_class_weight_zero_has_no_rows_but_its_column(algorithm):
    model = small(algorithm, class_weight={"b": 0}).fit(X, NAMES)
    rows = Y != 1
    expected = small(algorithm, classes=list("abc")).fit(X[rows], NAMES[rows])
    assert_same_model(model, expected)
    assert model.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (
            {"a": 1, "d": 2, "e": 3},
            ValueError,
            r"class_weight has labels that are not .*'d', 'e'\]",
        ),
        ({0: 2}, ValueError, r"class_weight has labels that are not among the classes: \[0\]"),
        ({"a": -1}, ValueError, "class_weight={'a': -1}; expected finite numbers from 0 on"),
        ({"a": np.nan}, ValueError, "class_weight={'a': nan}; expected finite numbers from 0 on"),
        ({"a": "2"}, ValueError, "class_weight={'a': '2'}; expected finite numbers from 0 on"),
        ({"a": 0, "b": 0, "c": 0}, ValueError, "all weights are zero: class_weight is 0 for"),
        ({"a": 1e300}, ValueError, "sample_weight times class_weight sums to"),
        ("even", TypeError, "class_weight='even'; expected None, 'balanced', or a dict"),
        ([1, 2, 3], TypeError, r"class_weight=\[1, 2, 3\]; expected None, 'balanced', or a dict"),
    ],
    ids=str,
)
def test_bad_class_weights_are_described(bad, error, message):
    with pytest.raises(error, match=message):
        small(class_weight=bad).fit(X, NAMES)


def test_class_weight_of_a_class_that_a_fold_lacks_is_met_with_a_hint():
    fold, weights = Y != 1, {"a": 2, "b": 3}
    with pytest.raises(ValueError, match=r"not among the classes.* the parameter classes can name"):
        small(class_weight=weights).fit(X[fold], NAMES[fold])
    model = small(class_weight=weights, classes=list("abc")).fit(X[fold], NAMES[fold])
    assert model.classes_.tolist() == ["a", "b", "c"]


def test_smallest_leaf_of_weighed_classes_is_named_if_it_forbids_every_split():
    with pytest.warns(UserWarning, match="twice min_samples_leaf=150 times 1e-06"):
        small(class_weight=dict.fromkeys("abc", 1e-6), min_samples_leaf=150).fit(X, NAMES)
    with pytest.warns(UserWarning, match=r"no tree can be split.* total weight [0-9.e+-]+$"):
        small(class_weight=dict.fromkeys("abc", 1e-6), min_gain=1e9).fit(X, NAMES)
