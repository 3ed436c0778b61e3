import math

import numpy as np
import pytest

from abcgbm.demo import Reading, Readings, error_curve, loss_curve, p_value, relative_improvement

# The paper's summary table: test rows, errors of MART and ABC-MART, R_err, P-value as printed.
# (Pendigits' R_err is printed as 15.5; its counts give 15.4.)
SUMMARY = {
    "covertype": (290506, 11133, 10203, "8.4", "4.4e-11"),
    "letter": (4000, 135, 111, "17.8", "0.060"),
    "pendigits": (3498, 123, 104, "15.4", "0.100"),
    "zipcode": (2007, 111, 98, "11.7", "0.178"),
    "optdigits": (1797, 56, 41, "26.8", "0.061"),
    "isolet": (1559, 84, 69, "17.9", "0.107"),
}


class TwoSteps:
    """A stub of a model of two iterations over the labels "a", "b", "c"."""

    classes_ = np.array(["a", "b", "c"])

    def __init__(self, *stages):
        self.stages = [np.array(proba) for proba in stages]

    def staged_predict_proba(self, X):
        yield from self.stages

    def staged_predict(self, X):
        for proba in self.stages:
            yield self.classes_[proba.argmax(axis=1)]


MODEL = TwoSteps(
    [[0.5, 0.3, 0.2], [0.4, 0.5, 0.1]],
    [[0.2, 0.2, 0.6], [0.7, 0.1, 0.2]],
)


@pytest.mark.parametrize("name", SUMMARY)
def test_summary_table_of_the_paper_is_reproduced_to_its_digits(name):
    n_test, mart, abc, improvement, p = SUMMARY[name]
    assert f"{relative_improvement(mart, abc):.1f}" == improvement
    digits = ".1e" if "e" in p else ".3f"
    assert format(p_value(mart, abc, n_test), digits) == p


def test_p_values_of_the_two_directions_sum_to_one():
    assert p_value(56, 41, 1797) + p_value(41, 56, 1797) == pytest.approx(1.0, abs=1e-15)
    assert p_value(56, 41, 1797) < 0.5


@pytest.mark.parametrize(
    ("errors_a", "errors_b", "expected"), [(0, 0, 0.5), (9, 9, 0.5), (9, 0, 0.0), (0, 9, 1.0)]
)
def test_p_value_is_defined_where_the_variance_is_zero(errors_a, errors_b, expected):
    assert p_value(errors_a, errors_b, 9) == expected


@pytest.mark.parametrize(("errors", "n_test"), [(-1, 10), (11, 10), (0, 0)])
def test_impossible_counts_are_refused(errors, n_test):
    with pytest.raises(ValueError, match=f"errors={errors}, n_test={n_test}; expected"):
        p_value(errors, errors, n_test)


def test_improvement_on_no_errors_is_undefined():
    assert math.isnan(relative_improvement(0, 3))


def test_worse_result_is_a_negative_improvement():
    assert relative_improvement(10, 12) == -20.0


def test_error_curve_counts_errors_after_each_iteration():
    assert error_curve(MODEL, None, ["a", "b"]).tolist() == [0, 2]
    assert error_curve(MODEL, None, ["c", "b"]).tolist() == [1, 1]


def test_loss_curve_sums_the_negative_log_of_the_labels_probability():
    expected = [-math.log(0.2) - math.log(0.4), -math.log(0.6) - math.log(0.7)]
    assert loss_curve(MODEL, None, ["c", "a"]) == pytest.approx(expected, rel=1e-15)


def test_loss_curve_stays_finite_at_probability_zero():
    assert np.isfinite(loss_curve(TwoSteps([[1.0, 0.0, 0.0]]), None, ["b"])).all()


def test_loss_curve_refuses_a_label_unknown_to_the_model():
    with pytest.raises(ValueError, match=r"'z'.*expected one of \['a', 'b', 'c'\]"):
        loss_curve(MODEL, None, ["a", "z"])


def test_summary_has_the_first_lowest_the_last_and_the_validated_iteration():
    readings = Readings.from_curves([9, 4, 6, 4, 5], validation_loss=[3.0, 2.0, 1.0, 2.0, 1.0])
    assert readings == Readings(Reading(2, 4), Reading(5, 5), Reading(3, 6))


def test_validated_iteration_beyond_the_last_is_the_last():
    assert Readings.from_curves([9, 4], validation_loss=[3.0, 2.0, 1.0]).validated == Reading(2, 4)


@pytest.mark.parametrize("curves", [([], [1.0]), ([1], [])])
def test_summary_of_an_empty_curve_is_refused(curves):
    with pytest.raises(ValueError, match="at least one iteration"):
        Readings.from_curves(*curves)
