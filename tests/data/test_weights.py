"""Sample weights: their integers, and what they mean to a model."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight

import reference
from abcgbm import AdaptiveBaseClass, BinMapper
from abcgbm.data.weights import (
    SCALE,
    IntegerWeights,
    WeightGrid,
    WeightSums,
    check_weights,
    class_weights,
    exact_class_sums,
    mean_factor,
)
from models import assert_same_model, noisy_data, small

X, Y = noisy_data(n_rows=200, n_classes=3)
positive = st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=30)
any_weights = pytest.mark.filterwarnings("ignore:.*weigh at most")
VARIANTS = {
    "mart": {"algorithm": "mart"},
    "abc-mart": {"algorithm": "abc-mart"},
    "shared": {
        "algorithm": "multi-output",
        "l2_regularization": 0.0,
    },  # a ridge does not scale with weights
}
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)


def rounded(weights, y=None, factor=None):
    factor = None if factor is None else np.array(factor, np.float64)
    y = None if y is None else np.array(y, np.int32)
    return IntegerWeights.from_rows(np.array(weights, np.float64), y, factor)


@st.composite
def weighted_rows(draw, min_rows=1):
    """Sample weights of every kind, classes, and the factor of each class."""
    n, n_classes = draw(st.integers(min_rows, 30)), draw(st.integers(1, 3))
    kinds = st.sampled_from([st.just(1.0), st.integers(1, 9).map(float), st.floats(1e-3, 1e3)])
    weights = draw(kinds.flatmap(lambda kind: st.lists(kind, min_size=n, max_size=n)))
    if draw(st.booleans()):
        weights = (np.array(weights) / math.fsum(weights)).tolist()  # sums to 1, or almost
    y = draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n))
    factors = st.lists(st.floats(0.01, 100), min_size=n_classes, max_size=n_classes)
    given = [
        factors,
        st.just([1.0] * n_classes),
        st.just([0.1] * n_classes),
        st.just(reference.balanced(weights, y, n_classes)),
    ]
    return weights, y, draw(st.sampled_from(given).flatmap(lambda kind: kind))


@any_weights
@given(weighted_rows())
def test_integers_are_those_of_the_reference(rows):
    ours, theirs = rounded(*rows), reference.weigh(*rows)
    assert (ours.weight.tolist(), ours.unit) == (theirs.weight, theirs.unit)
    assert ours.max_rounding_loss == theirs.lost


@any_weights
@given(weighted_rows(), st.floats(1e-3, 1e3))
def test_smallest_leaf_and_mean_factor_are_those_of_the_reference(rows, least):
    weights, y, factor = rows
    sums = WeightSums.from_rows(np.array(weights), np.array(y, np.int32), len(factor))
    mean = mean_factor(sums, np.array(factor))
    assert mean == reference.mean_factor(weights, y, factor)
    theirs = reference.weigh(*rows)
    expected = reference.min_weight(least, theirs.unit, theirs.lost, mean)
    assert rounded(*rows).units(least * mean) == expected


@any_weights
@given(weighted_rows(), st.data())
def test_parts_of_the_rows_in_any_order_have_the_weights_of_all(rows, data):
    weights, y, factor = np.array(rows[0]), np.array(rows[1], np.int32), np.array(rows[2])
    order = np.array(data.draw(st.permutations(range(len(y)))))
    parts = np.array_split(order, data.draw(st.integers(1, len(y))))
    sums = [WeightSums.from_rows(weights[p], y[p], len(factor)) for p in parts]
    merged = sums[0]
    for part in sums[1:]:
        merged = merged.merged(part)
    whole = WeightSums.from_rows(weights, y, len(factor))
    assert merged == whole
    expected, grid = rounded(*rows), WeightGrid.from_sums(merged, factor)
    rounded_parts = [grid.round(weights[p], y[p]) for p in parts]
    assert {part.unit for part in rounded_parts} == {expected.unit}
    assert max(part.max_rounding_loss for part in rounded_parts) == expected.max_rounding_loss
    integers = np.concatenate([part.weight for part in rounded_parts])
    assert integers.tolist() == expected.weight[order].tolist()


@given(st.lists(st.tuples(st.floats(0, 1e300), st.integers(0, 2)), max_size=20))
def test_sums_of_floats_are_exact(rows):
    values, y = np.array([v for v, _ in rows], np.float64), np.array([k for _, k in rows], np.int32)
    sums = exact_class_sums(values, y, 3)
    expected = reference.class_sums(values.tolist(), y.tolist(), 3)
    assert [Fraction(total, 2**SCALE) for total in sums] == expected


@any_weights
@given(weighted_rows(), st.data())
def test_rows_that_weigh_as_much_as_the_smallest_leaf_are_one(rows, data):
    weights, y, factor = rows
    ours, weighted = rounded(*rows), np.array(weights) * np.array(factor)[y]
    some = np.array(data.draw(st.lists(st.booleans(), min_size=len(y), max_size=len(y))))
    if some.any():
        bound = float(sum(map(Fraction, weighted[some].tolist())))
        assert ours.count(some) >= ours.units(bound)
        assert ours.units(bound) * ours.unit >= bound * (1 - 2**-9)


@pytest.mark.parametrize("weight", [0.001, 0.7, 1 / 3, 123.456])
@pytest.mark.parametrize("n", [1, 3, 10, 77])
def test_n_rows_of_a_weight_are_a_leaf_of_n_times_that(weight, n):
    for others in ([], [1.0], [17.3, 1e-3]):
        ours = rounded([*[weight] * 100, *others])
        assert int(ours.weight[:n].sum()) >= ours.units(n * weight)
        if others == []:
            assert int(ours.weight[: n - 1].sum()) < ours.units(n * weight)


@any_weights
@given(positive)
def test_rounding_is_a_tiny_part_of_the_sum(weights):
    ours = rounded(weights)
    total = math.fsum(weights)
    unit = math.ldexp(1.0, math.frexp(total)[1] - 30)
    assert unit <= total * 2.0**-29
    error = np.abs(ours.weight * ours.unit - weights)
    assert (error <= np.where(np.array(weights) < unit / 2, unit, unit / 2)).all()  # never to 0


@given(st.lists(st.integers(1, 10**6), min_size=1), st.sampled_from([2.0**-20, 0.5, 1.0, 4.0]))
def test_multiples_of_a_power_of_two_are_exact(counts, unit):
    weights = rounded(np.array(counts) * unit)
    assert (weights.weight * weights.unit == np.array(counts) * unit).all()


def test_no_weights_are_ones():
    none, ones = IntegerWeights.from_rows(check_weights(None, 3)), rounded([1, 1, 1])
    assert none.weight.tolist() == ones.weight.tolist() == [1, 1, 1]
    assert none.unit == ones.unit == 1.0
    assert none.weight.strides == (0,)  # no memory
    np.testing.assert_array_equal(check_weights(None, 3), [1, 1, 1])


@given(st.lists(st.integers(1, 9), min_size=1), st.floats(1e-3, 1e3))
def test_smallest_leaf_of_whole_weights_is_rounded_up(weights, amount):
    assert rounded(weights).units(amount) == max(1, math.ceil(amount * (1 - 2**-40)))
    assert [rounded(weights).units(m) for m in (2.5, 10, 1e-9)] == [3, 10, 1]


# -------------------------------------------------------------------------------------- in models


@every_variant
@pytest.mark.parametrize("seed", range(5))
def test_integer_weight_equals_repeating_the_row(variant, seed):
    times = np.random.default_rng(seed).integers(1, 4, len(Y))
    weighted = small(**variant, max_bins=16).fit(X, Y, times)
    repeated = small(**variant, max_bins=16).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    assert_same_model(weighted, repeated)


@every_variant
@pytest.mark.parametrize("seed", range(5))
def test_zero_weight_equals_dropping_the_row(variant, seed):
    rng = np.random.default_rng(seed)
    kept = rng.random(len(Y)) < 0.7
    weight = np.where(kept, rng.uniform(0.5, 3, len(Y)), 0)
    weighted = small(**variant, max_bins=16).fit(X, Y, weight)
    assert_same_model(weighted, small(**variant, max_bins=16).fit(X[kept], Y[kept], weight[kept]))


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


@every_variant
@pytest.mark.parametrize("scale", [2.0**-3, 2.0**9])
def test_scaled_weights_and_leaf_give_the_scaled_model(variant, scale):
    weight = np.random.default_rng(0).uniform(0.5, 3, len(Y))
    model = small(**variant).fit(X, Y, weight)
    scaled = small(**variant, min_samples_leaf=10 * scale).fit(X, Y, weight * scale)
    assert scaled.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    np.testing.assert_array_equal(scaled.history_.train_loss, model.history_.train_loss * scale)
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
    assert (np.abs(model.history_.class_losses[-1] - expected) <= bound).all()


def test_smallest_leaf_counts_weights():
    model = small(min_samples_leaf=30).fit(X, Y, np.full(len(Y), 0.5))
    assert model.model_.ensemble.weight[model.model_.ensemble.feature < 0].min() >= 30


@pytest.mark.parametrize("dtype", [np.int8, np.float32, bool, object])
def test_weights_may_have_any_type_of_number(dtype):
    weight = np.ones(len(Y), dtype)
    assert_same_model(small().fit(X, Y, weight), small().fit(X, Y))
    assert_same_model(small().fit(X, Y, weight.tolist()), small().fit(X, Y))


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (np.ma.array(np.ones(200), mask=Y == 1), ValueError, r"sample_weight is masked at \d+ row"),
        (
            np.ones(200) * 1j,
            TypeError,
            "sample_weight is an array of type complex128; expected real",
        ),
        ([1j] * 200, TypeError, "sample_weight is an array of type complex128"),
        (np.array([1, 2j] * 100, object), TypeError, "sample_weight holds values of type complex"),
        (["1"] * 200, ValueError, "sample_weight holds strings, such as '1'; expected numbers"),
        ([1, "1"] * 100, ValueError, "sample_weight holds strings"),
        ([1.0, None] * 100, ValueError, "sample_weight is nan at row 1 "),
        ([1.0, Decimal("sNaN")] * 100, ValueError, "sample_weight is nan at row 1 "),
        ([1.0, 10**400] * 100, ValueError, "sample_weight is inf at row 1 "),
        (np.full(200, np.datetime64("2024-01-01")), TypeError, "sample_weight is an array of type"),
        ([object()] * 200, TypeError, "sample_weight holds values of type object, such as"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_weights_that_are_no_numbers_are_described(bad, error, message):
    with pytest.raises(error, match=message):
        small().fit(X, Y, bad)
    with pytest.raises(error, match=message):
        BinMapper().fit(X, sample_weight=bad)
    with pytest.raises(error, match=message.replace("sample_weight", "sample_weight_val")):
        small().fit(X, Y, X_val=X, y_val=Y, sample_weight_val=bad)


def test_mask_without_masked_rows_is_accepted():
    weight = np.random.default_rng(0).integers(1, 5, 200)
    model = small().fit(X, Y, np.ma.array(weight, mask=False))
    assert_same_model(model, small().fit(X, Y, weight))
    assert_same_model(model, small().fit(X, Y, [Decimal(int(w)) for w in weight]))


def test_class_weight_beyond_all_floats_is_refused():
    with pytest.raises(ValueError, match=r"class_weight={'a': 1000.*; expected finite numbers"):
        small(class_weight={"a": 10**400}).fit(X, NAMES)


def test_weights_of_very_different_size_are_learned():
    weight = np.where(Y == 0, 1e-300, 1.0)
    with pytest.warns(UserWarning, match=rf"{(Y == 0).sum()} row\(s\) weigh at most .* counts as"):
        model = small().fit(X, Y, weight)
    assert np.isfinite(model.predict_proba(X)).all()
    assert (model.predict(X) != 0).all()


# -------------------------------------------------------------------------------- class weights

NAMES = np.array(["a", "b", "c"])[Y]


@every_variant
def test_class_weight_is_a_factor_of_the_sample_weight(variant):
    weight = np.random.default_rng(0).uniform(0.5, 3, len(Y))
    model = small(**variant, class_weight={"a": 2.5, "c": 0.25}).fit(X, NAMES, weight)
    weighted = weight * np.array([2.5, 1, 0.25])[Y]
    sums = WeightSums.from_rows(weight, Y, 3)
    least = 10 * mean_factor(sums, np.array([2.5, 1, 0.25]))
    assert_same_model(model, small(**variant, min_samples_leaf=least).fit(X, NAMES, weighted))


@every_variant
def test_integer_class_weight_equals_repeating_the_rows(variant):
    times = np.array([2, 1, 3])[Y]
    weighted = small(**variant, max_bins=16, class_weight={"a": 2, "c": 3}).fit(X, NAMES)
    repeated = small(**variant, max_bins=16, min_samples_leaf=10 * times.mean())
    assert_same_model(weighted, repeated.fit(np.repeat(X, times, axis=0), np.repeat(NAMES, times)))


def test_balanced_classes_have_the_same_weight():
    weight = np.random.default_rng(0).uniform(0.5, 3, len(Y))
    of_class = np.bincount(Y, weight)
    factor = weight.sum() / (3 * of_class)
    model = small(class_weight="balanced").fit(X, NAMES, weight)
    np.testing.assert_allclose(factor, reference.balanced(weight, Y, 3), rtol=1e-14)
    factor = reference.balanced(weight, Y, 3)
    expected = small(class_weight=dict(zip("abc", factor, strict=True))).fit(X, NAMES, weight)
    assert_same_model(model, expected)
    np.testing.assert_allclose(model.class_losses_[0], math.log(3) / 3, rtol=1e-6)


def test_balanced_is_that_of_scikit_learn_without_weights():
    factor = compute_class_weight("balanced", classes=np.unique(NAMES), y=NAMES)
    model = small(class_weight="balanced").fit(X, NAMES)
    assert_same_model(model, small().fit(X, NAMES, factor[Y]))


def test_balanced_with_weights_is_that_of_repeated_rows():
    times = np.random.default_rng(0).integers(1, 4, len(Y))
    weighted = WeightSums.from_rows(times.astype(float), Y, 3)
    repeated = WeightSums.from_rows(np.ones(times.sum()), np.repeat(Y, times), 3)
    assert weighted == repeated
    factors = [class_weights("balanced", np.arange(3), sums) for sums in (weighted, repeated)]
    np.testing.assert_array_equal(*factors)


CLASS_WEIGHTS = {
    "balanced": "balanced",
    "thirds": {"a": 1 / 3, "b": 0.7},
    "shared": dict.fromkeys("abc", 0.1),
    "halves": {"a": 2.5, "c": 0.25},
}
every_class_weight = pytest.mark.parametrize(
    "class_weight", CLASS_WEIGHTS.values(), ids=CLASS_WEIGHTS
)


@every_class_weight
@pytest.mark.parametrize("seed", range(3))
def test_integer_weight_with_class_weights_equals_repeating_the_row(class_weight, seed):
    rng = np.random.default_rng(seed)
    times = rng.integers(1, 5, len(Y))
    parameters = {"class_weight": class_weight, "max_bins": 16, "min_samples_leaf": 3.3}
    weighted = small(**parameters).fit(X, NAMES, times)
    repeated = small(**parameters).fit(np.repeat(X, times, axis=0), np.repeat(NAMES, times))
    assert_same_model(weighted, repeated)


factors = st.floats(1e-3, 1e3, exclude_min=True)
any_class_weight = st.just("balanced") | st.fixed_dictionaries(
    {}, optional=dict.fromkeys("abc", factors)
)


@any_weights
@pytest.mark.parametrize("algorithm", ["mart", "abc-mart", "logitboost", "abc-logitboost"])
@given(st.integers(0, 2**32 - 1), any_class_weight)
def test_trees_per_class_take_whole_weights_for_repeated_rows(algorithm, seed, class_weight):
    times = np.random.default_rng(seed).integers(1, 5, len(Y))
    parameters = {"class_weight": class_weight, "max_bins": 16, "max_iter": 4}
    weighted = small(algorithm, **parameters).fit(X, NAMES, times)
    repeated = small(algorithm, **parameters)
    repeated.fit(np.repeat(X, times, axis=0), np.repeat(NAMES, times))
    assert_same_model(weighted, repeated)


@any_weights
@given(weighted_rows(), st.data())
def test_integers_of_a_repeated_row_add_up_to_those_of_its_weight(rows, data):
    _, y, factor = rows
    times = np.array(data.draw(st.lists(st.integers(1, 9), min_size=len(y), max_size=len(y))))
    weighted = rounded(times, y, factor)
    repeated = rounded(np.ones(times.sum()), np.repeat(y, times), factor)
    first = np.cumsum(times) - times
    assert weighted.weight.tolist() == np.add.reduceat(repeated.weight, first).tolist()
    assert (weighted.unit, weighted.max_rounding_loss) == (
        repeated.unit,
        repeated.max_rounding_loss,
    )


def test_rows_in_any_order_give_the_model_where_weights_sum_to_a_power_of_two():
    rng = np.random.default_rng(99)
    table, y = rng.integers(0, 4, (60, 3)), np.arange(60) % 3
    weight = rng.integers(1, 5, 60)
    weight = weight / weight.sum()
    parameters = {"class_weight": "balanced", "min_samples_leaf": 0.05}
    model = small(**parameters).fit(table, y, weight)
    for seed in range(12):
        order = np.random.default_rng(seed).permutation(60) if seed else np.arange(60)[::-1]
        assert_same_model(model, small(**parameters).fit(table[order], y[order], weight[order]))


@given(st.integers(0, 2**32 - 1), st.sampled_from(list(CLASS_WEIGHTS)))
@settings(max_examples=15)
def test_rows_in_any_order_give_the_model_for_any_weights(seed, class_weight):
    rng = np.random.default_rng(seed)
    weight = rng.choice([rng.integers(1, 5, len(Y)) / 7, rng.exponential(size=len(Y)) + 1e-3])
    weight = weight / math.fsum(weight) * rng.choice([1, 128])
    parameters = {
        "class_weight": CLASS_WEIGHTS[class_weight],
        "min_samples_leaf": 0.05 * math.fsum(weight),
        "max_iter": 3,
        "scoring": "error",
    }
    order = rng.permutation(len(Y))
    val = {"X_val": X, "y_val": NAMES, "sample_weight_val": weight}
    model = small(**parameters).fit(X, NAMES, weight, **val)
    val = {"X_val": X[order], "y_val": NAMES[order], "sample_weight_val": weight[order]}
    shuffled = small(**parameters).fit(X[order], NAMES[order], weight[order], **val)
    assert_same_model(model, shuffled)
    assert model.validation_score_.tolist() == shuffled.validation_score_.tolist()


@every_variant
@pytest.mark.parametrize("factor", [0.1, 1 / 3, 7.0])
@pytest.mark.parametrize("weights", [None, "whole", "fractional"])
def test_class_weight_that_all_classes_share_changes_no_tree(variant, factor, weights):
    rng = np.random.default_rng(0)
    weight = {None: None, "whole": rng.integers(1, 5, 200), "fractional": rng.random(200) + 0.1}[
        weights
    ]
    plain = small(**variant).fit(X, NAMES, weight)
    shared = small(**variant, class_weight=dict.fromkeys("abc", factor)).fit(X, NAMES, weight)
    for name in ("feature", "threshold", "left", "value", "tree_base"):
        ours, theirs = (getattr(model.model_.ensemble, name) for model in (plain, shared))
        np.testing.assert_array_equal(ours, theirs)
    losses = plain.history_.train_loss * factor
    np.testing.assert_allclose(shared.history_.train_loss, losses, rtol=1e-12)
    np.testing.assert_allclose(shared.train_loss_, plain.train_loss_, rtol=1e-12)


def test_rows_of_a_fractional_weight_are_a_leaf_of_their_sum():
    y = np.repeat([0, 1, 2], 10)
    model = small(min_samples_leaf=0.01).fit(y[:, None].astype(float), y, np.full(30, 0.001))
    assert (model.predict(y[:, None].astype(float)) == y).all()


@pytest.mark.parametrize("n_rows", [10**6, 2**27])
def test_class_factors_of_very_many_rows_keep_their_digits(n_rows):
    """By their sums alone: no table is made."""
    sums = WeightSums((n_rows << SCALE, 3 * n_rows << SCALE), 0)
    factor = np.array([0.7, 1.1])
    ours = WeightGrid.from_sums(sums, factor).round(np.ones(2), np.array([0, 1], np.int32))
    np.testing.assert_allclose(ours.weight * ours.unit, factor, atol=2**-9)
    assert int(ours.weight @ [n_rows, 3 * n_rows]) < 2**40


def test_huge_factor_of_a_class_without_rows_does_not_matter():
    X, y = noisy_data(n_classes=3)
    parameters = {"algorithm": AdaptiveBaseClass(baseline="prior"), "classes": [0, 1, 2, 3]}
    huge = small(class_weight={0: 2.0, 3: 1e300}, **parameters).fit(X, y)
    assert_same_model(huge, small(class_weight={0: 2.0}, **parameters).fit(X, y))


def test_class_without_rows_does_not_matter_to_balanced():
    rows = Y != 1
    model = small("mart", class_weight="balanced", classes=list("abc")).fit(X[rows], NAMES[rows])
    np.testing.assert_allclose(model.class_losses_[0, 0], model.class_losses_[0, 2], rtol=1e-9)


@every_variant
def test_class_of_class_weight_zero_has_no_rows_but_its_column(variant):
    model = small(**variant, class_weight={"b": 0}).fit(X, NAMES)
    rows = Y != 1
    expected = small(**variant, classes=list("abc")).fit(X[rows], NAMES[rows])
    assert_same_model(model, expected)
    assert model.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (
            {"a": 1, "d": 2, "e": 3},
            ValueError,
            r"class_weight has labels that are not .*'d', 'e';",
        ),
        ({0: 2}, ValueError, r"class_weight has labels that are not among the classes: 0;"),
        ({"a": -1}, ValueError, "class_weight={'a': -1}; expected finite numbers, at least 0"),
        ({"a": np.nan}, ValueError, "class_weight={'a': nan}; expected finite numbers, at least 0"),
        ({"a": "2"}, ValueError, "class_weight={'a': '2'}; expected finite numbers, at least 0"),
        ({"a": 0, "b": 0, "c": 0}, ValueError, "all weights are zero: class_weight is 0 for"),
        ({"a": 1e300}, ValueError, "sample_weight times class_weight sums to"),
        ("even", ValueError, "class_weight='even'; expected None, 'balanced' or a dict"),
        ([1, 2, 3], TypeError, r"class_weight=\[1, 2, 3\]; expected None, 'balanced', or a dict"),
    ],
    ids=str,
)
def test_bad_class_weights_are_described(bad, error, message):
    with pytest.raises(error, match=message):
        small(class_weight=bad).fit(X, NAMES)


def test_error_for_class_weight_of_an_absent_class_suggests_classes():
    fold, weights = Y != 1, {"a": 2, "b": 3}
    with pytest.raises(
        ValueError, match=r"not among the classes.* use the parameter classes to declare"
    ):
        small(class_weight=weights).fit(X[fold], NAMES[fold])
    model = small(class_weight=weights, classes=list("abc")).fit(X[fold], NAMES[fold])
    assert model.classes_.tolist() == ["a", "b", "c"]


def test_smallest_leaf_of_weighted_classes_is_named_if_it_forbids_every_split():
    with pytest.warns(UserWarning, match="twice min_samples_leaf=150 times 1e-06"):
        small(class_weight=dict.fromkeys("abc", 1e-6), min_samples_leaf=150).fit(X, NAMES)
    with pytest.warns(UserWarning, match=r"no tree can be split.* smaller min_gain than 1e\+09 or"):
        small(AdaptiveBaseClass(min_gain=1e9), class_weight=dict.fromkeys("abc", 1e-6)).fit(
            X, NAMES
        )


@every_variant
@pytest.mark.parametrize("scale", [2.0**-40, 0.1, 1.0, 7.0])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_leaf_below_one_is_a_share_of_all_weights(variant, scale, class_weight):
    given = {**variant, "class_weight": class_weight}
    weight = np.full(len(Y), scale)
    share = small(**given, min_samples_leaf=0.1).fit(X, NAMES, weight)
    counted = small(**given, min_samples_leaf=len(Y) / 10).fit(X, NAMES)
    for name in ("feature", "threshold", "left", "tree_base"):
        ours, theirs = (getattr(model.model_.ensemble, name) for model in (share, counted))
        np.testing.assert_array_equal(ours, theirs)
    is_leaf = share.model_.ensemble.feature < 0
    of_leaf = share.model_.ensemble.weight[is_leaf]
    assert of_leaf.min() >= 0.1 * len(Y) * scale * (1 - 1e-6)


def test_one_is_a_weight_of_one_as_integer_and_as_float():
    assert_same_model(*(small(min_samples_leaf=one).fit(X, Y) for one in (1, 1.0)))
    smallest = small(min_samples_leaf=np.nextafter(1, 0))
    with pytest.warns(
        UserWarning, match=r"total weight 200, less than twice min_samples_leaf=1 of"
    ):
        smallest.fit(X, Y)  # a leaf of all rows
