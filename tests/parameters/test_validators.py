"""Validation of single values: integers, numbers, missing values, and names of features."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from abcgbm import ABCBoostClassifier
from abcgbm.data.arrays import is_missing
from abcgbm.data.once import lazy
from abcgbm.data.schema import find_feature
from abcgbm.parameters.validators import check_integer, is_finite_real, is_integer
from models import noisy_data, parameter, small

NAMES = np.array(["a", "b", "c"], object)


@pytest.mark.parametrize("value", [0, -3, 10**400, np.int8(4), np.uint64(2**64 - 1)], ids=type)
def test_integers_of_any_type_are_accepted(value):
    assert is_integer(value)


@pytest.mark.parametrize("value", [True, np.True_, 1.0, np.float64(1), "1", None, [1]], ids=repr)
def test_other_values_are_not_integers(value):
    assert not is_integer(value)


def test_integers_out_of_bounds_are_described():
    assert check_integer("n", np.int64(3), 2, 5) == 3
    assert type(check_integer("n", 4.0, 2, 5)) is int
    for value, error in ((1, ValueError), (6, ValueError), (2.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match=f"^n={value!r}; expected an integer from 2 to 5 rows$"):
            check_integer("n", value, 2, 5, note=" rows")
    with pytest.raises(ValueError, match=r"^n=1; expected an integer of at least 2$"):
        check_integer("n", 1, 2)


FLOATS = [n for n, v in ABCBoostClassifier().get_params().items() if type(v) is float]


@pytest.mark.parametrize(
    "name",
    [*FLOATS, "min_samples_leaf", "l2_regularization", "seconds", "min_gain", "max_leaf_nodes"],
)
def test_number_beyond_the_float_range_is_refused(name):
    with pytest.raises(ValueError, match=f"{name}=1000.*; expected"):
        small(**parameter(name, 10**400)).fit(*noisy_data())


def test_number_of_features_beyond_the_float_range_is_too_many():
    with pytest.raises(ValueError, match="expected at most the 4 features"):
        small(max_features=10**400).fit(*noisy_data())


def test_error_mentions_none_if_allowed():
    with pytest.raises(ValueError, match="max_depth=0; expected None or an integer of at least 1"):
        small(max_depth=0).fit(*noisy_data())


@pytest.mark.parametrize(("bad", "error"), [(0, ValueError), ("all", ValueError), (9.5, TypeError)])
def test_error_mentions_auto_if_allowed(bad, error):
    expected = f"max_iter={bad!r}; expected 'auto' or None or an integer of at least 1"
    with pytest.raises(error, match=expected):
        small(max_iter=bad).fit(*noisy_data())


@pytest.mark.parametrize(("n_jobs", "error"), [("x", TypeError), (0, ValueError)])
def test_number_of_threads_is_checked_at_prediction_too(n_jobs, error):
    X, y = noisy_data()
    model = small().fit(X, y).set_params(n_jobs=n_jobs)
    with pytest.raises(error, match=f"n_jobs={n_jobs!r}; expected None or an integer other than 0"):
        model.predict(X)


def test_numbers_within_the_float_range_are_finite():
    assert all(map(is_finite_real, [0, -1.5, 10**300, np.float32(2), Fraction(1, 3)]))
    assert not any(map(is_finite_real, [10**400, np.inf, np.nan, True, "1", 1j, None]))


def test_features_are_found_by_name_and_by_index():
    assert [find_feature(item, 3, NAMES) for item in ("a", "c", 0, np.int16(2))] == [0, 2, 0, 2]
    for item in ("d", 3, -1, True, 1.0, None, ["a"]):
        assert find_feature(item, 3, NAMES) is None
    assert find_feature("a", 3, None) is None


def test_all_missing_values_are_recognized():
    nothing = [None, np.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT", "s")]
    nothing += [np.timedelta64("NaT", "s"), Decimal("NaN"), Decimal("sNaN")]
    assert all(map(is_missing, nothing))
    something = [0, "", "nan", np.inf, False, Decimal(1), np.datetime64("2024"), [], object()]
    assert not any(map(is_missing, something))


def test_lazy_attribute_is_computed_once_and_holds_no_lock():
    computed = []

    class Sum:
        @lazy
        def value(self):
            """The sum."""
            computed.append(self)
            return Sum.value.__doc__ if len(computed) > 1 else Sum().value

    assert Sum().value == "The sum."  # one uses another while it is computed
    assert len(computed) == 2
    one = Sum()
    assert one.value is one.value
    assert len(computed) == 3
