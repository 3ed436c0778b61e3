"""Bad input gets an error that says what was given and what is allowed."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from abcgbm import (
    ABCBoostClassifier,
    AdaptiveBaseClass,
    BinMapper,
    Categorical,
    MultiOutputTrees,
    TimeLimit,
    TreePerClass,
)
from models import assert_same_model, noisy_data, parameter, small

X, Y = noisy_data(n_rows=60, n_classes=3)
NAMED = pd.DataFrame(X, columns=list("abcd"))


def says(*parts: object) -> str:
    """A pattern that finds all parts, in this order."""
    return "(?s)" + ".*".join(re.escape(str(part)) for part in parts)


# ------------------------------------------------------------------------------------- parameters

INTEGERS = {
    "max_iter": ([0, -1], "of at least 1"),
    "max_leaf_nodes": ([1, 0, -3, 32769, 2**40], "from 2 to 32768"),
    "max_depth": ([0, -1], "of at least 1"),
    "max_bins": ([1, 0, -1, 65535, 2**70], "from 2 to 65534"),
    "n_iter_no_change": ([0, -1], "of at least 1"),
    "verbose": ([-1], "of at least 0"),
}
REALS = {
    "learning_rate": ([0, -0.1, 1.5, np.nan, np.inf], "above 0 and at most 1"),
    "min_samples_leaf": ([0, -1, np.nan, np.inf], "above 0"),
    "l2_regularization": ([-1e-9, np.nan, np.inf], "of at least 0"),
    "subsample": ([0, -0.1, 1.5, np.nan], "above 0 and at most 1"),
    "validation_fraction": ([0, 1, 1.5, np.nan], "above 0 and below 1"),
    "tol": ([-1e-9, np.nan, np.inf], "of at least 0"),
    "min_gain": ([-1e-9, np.nan, np.inf], "of at least 0"),
    "min_hessian_leaf": ([-1e-9, np.nan, np.inf], "of at least 0"),
    "smoothing": ([-1e-9, np.nan, np.inf], "of at least 0"),
    "penalty": ([-1e-9, np.nan, np.inf], "of at least 0"),
    "seconds": ([0, -1, np.nan, np.inf], "of seconds above 0"),
}


def cases(table):
    return [(name, bad, allowed) for name, (values, allowed) in table.items() for bad in values]


@pytest.mark.parametrize(("name", "bad", "allowed"), cases(INTEGERS) + cases(REALS))
def test_number_out_of_range_is_named_with_its_range(name, bad, allowed):
    with pytest.raises(ValueError, match=says(f"{name}={bad!r}", allowed)):
        small(**parameter(name, bad)).fit(X, Y)


def wrong(name, bad):
    """A word is a wrong value where a word is allowed."""
    has_auto = ABCBoostClassifier().get_params().get(name) == "auto"
    return ValueError if has_auto and isinstance(bad, str) else TypeError


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("bad", [2.5, "3", [3], np.float64(3.5)], ids=repr)
def test_what_is_no_integer_is_named(name, bad):
    with pytest.raises(wrong(name, bad), match=says(f"{name}={bad!r}", INTEGERS[name][1])):
        small(**parameter(name, bad)).fit(X, Y)


@pytest.mark.parametrize("name", sorted(INTEGERS.keys() - {"verbose"}))
def test_truth_value_is_no_integer(name):
    with pytest.raises(TypeError, match=says(f"{name}=True", INTEGERS[name][1])):
        small(**parameter(name, True)).fit(X, Y)


@pytest.mark.parametrize("name", REALS)
@pytest.mark.parametrize("bad", ["0.1", None, [0.1], 1j, True], ids=repr)
def test_what_is_no_number_is_named(name, bad):
    with pytest.raises(wrong(name, bad), match=says(f"{name}={bad!r}", REALS[name][1])):
        small(**parameter(name, bad)).fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "parts"),
    [
        (
            {"categorical_features": Categorical(handle_unknown="ignore")},
            ("handle_unknown='ignore'", "'missing' or 'error'"),
        ),
        ({"categorical_features": ["a"]}, ("categorical_features has 'a'", "indices", "no names")),
        ({"categorical_features": [4]}, ("categorical_features has 4", "0 to 3")),
        ({"categorical_features": [True]}, ("1 booleans", "4 features")),
        ({"random_state": -1}, ("random_state=-1", "of at least 0")),
        ({"n_jobs": 0}, ("n_jobs=0", "None", "an integer other than 0", "-1")),
        (parameter("base_label", 7), ("base_label=7", "one of the labels 0, 1, 2")),
        (parameter("base_label", "wurst"), ("base_label='wurst'", "one of the labels 0, 1, 2")),
        (parameter("base_label", np.nan), ("base_label=nan", "one of the labels 0, 1, 2")),
        (parameter("base_label", [0, 1]), ("base_label=[0, 1]", "one of the labels 0, 1, 2")),
        (parameter("criterion", "gini"), ("criterion='gini'", "'logitboost' or 'mart'")),
        (parameter("baseline", "half"), ("baseline='half'", "'prior' or 'zero'")),
        (parameter("n_candidates", 0), ("AdaptiveBaseClass: n_candidates=0", "None or an integer")),
        (parameter("gap", -1), ("AdaptiveBaseClass: gap=-1", "of at least 0")),
        (
            {"algorithm": AdaptiveBaseClass(base_label=1, warmup=2)},
            ("base_label=1 with warmup=2", "one of the two"),
        ),
        (
            {"algorithm": AdaptiveBaseClass(n_candidates=None, base_derivatives=False)},
            ("base_derivatives=False with n_candidates=None", "n_candidates=1"),
        ),
        (
            {"algorithm": AdaptiveBaseClass(min_hessian_leaf=0.5)},
            ("AdaptiveBaseClass: min_hessian_leaf=0.5 with criterion='mart'", "0, or criterion="),
        ),
        (
            {"algorithm": TreePerClass("mart", min_hessian_leaf=1)},
            ("TreePerClass: min_hessian_leaf=1 with criterion='mart'", "0, or criterion="),
        ),
        (
            {"algorithm": MultiOutputTrees("mart", min_hessian_leaf=1)},
            ("MultiOutputTrees: min_hessian_leaf=1 with criterion='mart'", "0, or criterion="),
        ),
        (
            {"callbacks": [TimeLimit(1), TimeLimit(2)]},
            ("callbacks has 2 TimeLimit objects", "at most"),
        ),
        ({"max_iter": "3"}, ("max_iter='3'", "'auto' or None or an integer of at least 1")),
        ({"max_features": "all"}, ("max_features='all'", "None, 'sqrt', an integer")),
        ({"early_stopping": "yes"}, ("early_stopping='yes'", "'auto' or True or False")),
        (
            parameter("n_projections", "some"),
            ("='some'", "'auto', 'all' or an integer of at least 1"),
        ),
        (parameter("n_projections", 0), ("n_projections=0", "an integer of at least 1")),
        (parameter("n_projections", -1), ("n_projections=-1", "an integer of at least 1")),
    ],
    ids=lambda value: repr(value) if isinstance(value, dict) else "",
)
def test_choice_that_does_not_exist_is_named_with_those_that_do(parameters, parts):
    with pytest.raises(ValueError, match=says(*parts)):
        small(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("name", "bad", "allowed"),
    [
        ("categorical_features", "a", "'auto', None, a list, or Categorical(...)"),
        ("categorical_features", 3, "'auto', None, or a list of names"),
        ("recenter", 1, "True or False"),
        ("recenter", "no", "True or False"),
        ("n_jobs", 1.5, "None or an integer other than 0"),
        ("n_jobs", "all", "None or an integer other than 0"),
        ("early_stopping", 1, "'auto' or True or False"),
        ("refit", 1, "True or False"),
        ("sequential_residuals", None, "True or False"),
        ("line_search", "full", "True or False"),
        ("base_derivatives", 1, "True or False"),
        ("callbacks", 3, "None, a callable, TimeLimit"),
        ("callbacks", [print, "x"], "None, a callable, TimeLimit"),
        ("handle_unknown", None, "'missing' or 'error'"),
        ("criterion", None, "'logitboost' or 'mart'"),
        ("baseline", None, "'prior' or 'zero'"),
        ("algorithm", 3, "'auto', 'multi-output', 'mart'"),
        ("random_state", "seed", "an integer of at least 0"),
        ("random_state", 1.5, "an integer of at least 0"),
        ("n_projections", 2.5, "'auto', 'all' or an integer of at least 1"),
        ("n_projections", None, "'auto', 'all' or an integer of at least 1"),
        ("n_projections", True, "'auto', 'all' or an integer of at least 1"),
    ],
)
def test_wrong_type_is_named_with_the_right_one(name, bad, allowed):
    with pytest.raises(TypeError, match=says(f"{name}={bad!r}", allowed)):
        small(**parameter(name, bad)).fit(X, Y)


KNOWN = ("'auto'", "'multi-output'", "'mart'", "'logitboost'", "'abc-mart'", "'abc-logitboost'")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("abcmart", "abc-mart"),
        ("ABC-MART", "abc-mart"),
        ("abc_mart", "abc-mart"),
        ("MART", "mart"),
        ("marts", "mart"),
        ("logit-boost", "logitboost"),
        ("abclogitboost", "abc-logitboost"),
    ],
)
def test_unknown_algorithm_is_met_with_the_known_ones_and_the_nearest(name, nearest):
    with pytest.raises(ValueError, match=says(f"algorithm={name!r}", *KNOWN)) as raised:
        small(name).fit(X, Y)
    assert str(raised.value).endswith(f"; did you mean '{nearest}'?")


@pytest.mark.parametrize("name", ["xgboost", "", "random forest"], ids=repr)
def test_algorithm_like_no_other_is_met_with_the_known_ones(name):
    with pytest.raises(ValueError, match=says(f"algorithm={name!r}", *KNOWN)) as raised:
        small(name).fit(X, Y)
    assert "did you mean" not in str(raised.value)


@pytest.mark.parametrize("name", [3, True, ["mart"], b"mart"], ids=repr)
def test_algorithm_that_is_no_string_is_met_with_the_known_ones(name):
    with pytest.raises(TypeError, match=says(f"algorithm={name!r}", *KNOWN)):
        small(name).fit(X, Y)


@pytest.mark.parametrize("huge", [2**31, 10**30])
@pytest.mark.parametrize("name", ["max_depth", "n_jobs"])
def test_huge_bound_is_no_bound(name, huge):
    assert_same_model(small(**{name: huge}).fit(X, Y), small().fit(X, Y))


@pytest.mark.parametrize("huge", [1e10, 1e300])
def test_leaf_larger_than_all_rows_gives_a_warning_and_no_split(huge):
    why = ("total weight 60", f"less than twice min_samples_leaf={huge:g}")
    with pytest.warns(UserWarning, match=says("no tree can be split", *why)) as warned:
        model = small(min_samples_leaf=huge).fit(X, Y)
    assert (model.n_iter_, len(warned)) == (0, 1)


def test_numbers_of_numpy_are_numbers():
    model = small(
        AdaptiveBaseClass(min_gain=np.float32(0), min_hessian_leaf=np.float64(0)),
        learning_rate=np.float32(0.5),
        max_iter=np.int64(8),
        max_leaf_nodes=np.uint8(6),
        max_depth=np.int16(3),
        min_samples_leaf=np.float64(5),
        l2_regularization=np.float32(0.5),
        max_bins=np.int32(32),
        n_jobs=np.int64(1),
        random_state=np.int64(3),
    )
    plain = small(learning_rate=0.5, max_depth=3, min_samples_leaf=5, max_bins=32, random_state=3)
    assert_same_model(model.fit(X, Y), plain.set_params(l2_regularization=0.5).fit(X, Y))


# ------------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize(
    ("table", "labels", "parts"),
    [
        (np.empty((0, 3)), [], ("0 sample(s)", "minimum of 1")),
        (np.empty((4, 0)), [0, 1, 0, 1], ("0 feature(s)", "minimum of 1")),
        ([[1.0, 2.0]], ["a"], ("1 class, 'a'", "at least 2")),
        (X[:, 0], Y, ("Expected 2D array, got 1D array",)),
        (X[None], Y[:1], ("dim 3", "dim <= 2")),
        (X * 1j, Y, ("Complex data not supported",)),
        (np.full((60, 1), "word"), Y, ("X holds strings", "'word'", "in data frames")),
        (X, Y[:-1], ("59",)),
        (X, None, ("y", "None")),
        (X, np.column_stack([Y, Y]), ("1d array", "(60, 2)")),
    ],
)
def test_table_that_cannot_be_learned_is_described(table, labels, parts):
    with pytest.raises(ValueError, match=says(*parts)):
        small().fit(table, labels)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba"])
@pytest.mark.parametrize("n_features", [1, 3, 5])
def test_wrong_number_of_features_is_told(method, n_features):
    model = small().fit(X, Y)
    with pytest.raises(ValueError, match=says(f"{n_features} features", "expecting 4 features")):
        getattr(model, method)(np.zeros((2, n_features)))


def test_wrong_names_of_features_are_told():
    model = small().fit(NAMED, Y)
    with pytest.raises(ValueError, match=says("unseen at fit time", "- e", "now missing", "- d")):
        model.predict(NAMED.rename(columns={"d": "e"}))


@pytest.mark.parametrize(
    "method",
    ["predict", "predict_proba", "predict_log_proba", "decision_function", "score"],
)
def test_model_that_is_not_fitted_says_so(method):
    arguments = (X, Y) if method == "score" else (X,)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(small(), method)(*arguments)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_stages_of_a_model_that_is_not_fitted_say_so(method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        next(getattr(small(), f"staged_{method}")(X))


def test_importances_of_a_model_that_is_not_fitted_say_so():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        _ = small().feature_importances_


@pytest.mark.parametrize(
    ("parameters", "labels"),
    [({"algorithm": AdaptiveBaseClass(base_label=9)}, Y), ({}, np.zeros(60)), ({"n_jobs": 0}, Y)],
)
def test_model_whose_fit_failed_is_not_fitted(parameters, labels):
    model = small(**parameters)
    with pytest.raises(ValueError, match="expected"):
        model.fit(X, labels)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.predict(X)


@pytest.mark.parametrize(
    ("parameters", "table", "labels"),
    [
        ({"algorithm": AdaptiveBaseClass(base_label=9)}, X[:, :2], Y + 10),
        ({}, X[:, :2], np.zeros(60)),
        ({}, X[:, :2], Y[:-1]),
        ({}, X[:, 0], Y),
    ],
)
def test_failed_refit_leaves_nothing_of_the_model_before(parameters, table, labels):
    model = small().fit(NAMED, Y)
    before = {name: value for name, value in vars(model).items() if name not in model.get_params()}
    with pytest.raises(ValueError):  # noqa: PT011  (each case has its own message)
        model.set_params(**parameters).fit(table, labels)
    left = [name for name, value in before.items() if getattr(model, name, before) is value]
    assert left == []
    assert "model_" in before
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.predict(NAMED)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        _ = model.feature_importances_


@pytest.mark.parametrize(
    "bad", [{"learning_rate": -1}, {"random_state": -1}, {"n_jobs": 0}], ids=str
)
def test_parameter_that_is_not_allowed_keeps_the_model_before(bad):
    model = small().fit(NAMED, Y)
    expected = model.predict_proba(NAMED)
    with pytest.raises(ValueError, match="{}={}".format(*next(iter(bad.items())))):
        model.set_params(**bad).fit(X[:, :2], Y + 10)
    model.set_params(n_jobs=1)
    np.testing.assert_array_equal(model.predict_proba(NAMED), expected)


# ---------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize(
    ("bad", "parts"),
    [
        (np.r_[np.ones(59), -1.0], ("-1.0 at row 59", "1 row(s)", "at least 0")),
        (np.r_[np.nan, np.ones(58), -1], ("nan at row 0", "2 row(s)", "at least 0")),
        (np.full(60, np.inf), ("inf at row 0", "60 row(s)", "at least 0")),
        (np.zeros(60), ("0 at every row", "above 0")),
        (np.ones(59), ("(59,)", "expected (60,)")),
        (np.ones((60, 1)), ("(60, 1)", "expected (60,)")),
        (2.0, ("()", "expected (60,)")),
        (["heavy"] * 60, ("holds strings, such as 'heavy'", "expected numbers")),
    ],
)
def test_bad_weights_are_described(bad, parts):
    with pytest.raises(ValueError, match=says(*parts)):
        small().fit(X, Y, bad)


@pytest.mark.parametrize("extreme", [1e308, 5e-324])
def test_weights_whose_sum_is_out_of_range_are_refused(extreme):
    with pytest.raises(ValueError, match=says("sample_weight sums to", "1e-200 to 1e+200")):
        small().fit(X, Y, np.full(60, extreme))


def test_tiny_weights_give_a_warning_and_no_split():
    with pytest.warns(UserWarning, match="no tree can be split"):
        model = small().fit(X, Y, np.full(60, 1e-10))
    assert model.n_iter_ == 0


def test_weight_of_zero_for_all_but_one_class_is_one_class():
    with pytest.raises(ValueError, match=says("1 class, 2", "at least 2 classes")):
        small().fit(X, Y, Y == 2)


# --------------------------------------------------------------------------------- binned tables


@pytest.mark.parametrize("bad", [1, 0, -5, 65535])
def test_number_of_bins_out_of_range_is_named_by_the_mapper(bad):
    with pytest.raises(ValueError, match=says(f"max_bins={bad}", "2 to 65534")):
        BinMapper(max_bins=bad).fit(X)


@pytest.mark.parametrize("bad", [3.5, "many", None], ids=repr)
def test_number_of_bins_that_is_no_integer_is_named_by_the_mapper(bad):
    with pytest.raises(TypeError, match=says(f"max_bins={bad!r}", "2 to 65534")):
        BinMapper(max_bins=bad).fit(X)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, 0.0])
def test_bad_weights_are_refused_by_the_mapper(bad):
    with pytest.raises(ValueError, match=says("sample_weight is", bad or 0, "expected")):
        BinMapper().fit(X, sample_weight=np.full(60, bad))


def test_wrong_number_of_weights_is_an_error_of_the_mapper():
    with pytest.raises(ValueError, match=says("(5,)", "expected (60,)")):
        BinMapper().fit(X, sample_weight=np.ones(5))


def test_zero_weight_equals_dropping_the_row_for_the_mapper():
    weight = np.r_[np.zeros(30), np.ones(30)]
    weighted, absent = BinMapper(8).fit(X, sample_weight=weight), BinMapper(8).fit(X[30:])
    for got, expected in zip(weighted.thresholds_, absent.thresholds_, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        (X[0], ("Expected 2D array, got 1D array",)),
        (X[None], ("dim 3", "dim <= 2")),
        (X[:0], ("0 sample(s)", "minimum of 1")),
        (X[:, :0], ("0 feature(s)", "minimum of 1")),
        (X * 1j, ("Complex data not supported",)),
        (np.full((60, 1), "word"), ("X holds strings", "'word'", "in data frames")),
    ],
    ids=["row", "cube", "no rows", "no features", "complex", "words"],
)
def test_what_is_no_table_is_refused_by_the_mapper(table, parts):
    with pytest.raises(ValueError, match=says(*parts)):
        BinMapper().fit(table)


def test_mapper_tells_a_wrong_number_of_features():
    with pytest.raises(ValueError, match=says("2 features", "4")):
        BinMapper().fit(X).transform(X[:, :2])


def test_mapper_that_is_not_fitted_says_so():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        BinMapper().transform(X)


def test_mapper_refuses_columns_of_other_names():
    mapper = BinMapper().fit(NAMED)
    with pytest.raises(ValueError, match=says("unseen at fit time", "- e", "now missing", "- d")):
        mapper.transform(NAMED.rename(columns={"d": "e"}))


@pytest.mark.parametrize(
    "rows",
    [60, -61, [60], [-61], [0, 2**40], np.ones(59, bool), [0.5], 1.5, "a", (0, 1), (slice(3), 1)],
    ids=repr,
)
def test_index_that_no_row_has_gets_the_error_of_numpy(rows):
    table = BinMapper().fit(X).transform(X)
    with pytest.raises(IndexError) as expected:
        np.arange(60)[rows]
    with pytest.raises(IndexError, match=re.escape(str(expected.value))):
        table[rows]


@pytest.mark.parametrize(
    ("labels", "parts"), [(Y[:-1], ("59 labels", "60 rows")), (np.zeros(60), ("1 class",))]
)
def test_bad_labels_of_a_binned_table_are_described(labels, parts):
    with pytest.raises(ValueError, match=says(*parts)):
        small().fit(BinMapper().fit(X).transform(X), labels)


def test_binned_table_without_rows_is_refused():
    with pytest.raises(ValueError, match=says("X has 0 rows", "at least 1")):
        small().fit(BinMapper().fit(X).transform(X)[:0], [])
