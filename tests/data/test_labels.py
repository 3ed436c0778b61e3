"""Labels of any type."""

import datetime
import enum
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abcgbm import BinMapper
from abcgbm.data import labels as labels_module
from abcgbm.data.labels import encode_labels
from models import assert_same_model, noisy_data, small, with_fields

X, NUMBERS = noisy_data(n_rows=90, n_classes=3)
SORTED = {
    "strings": np.array(["apple", "pear", "plum"]),
    "strings as objects": np.array(["apple", "pear", "plum"], object),
    "gaps": np.array([-7, 0, 1000]),
    "unsigned": np.array([0, 3, 255], np.uint8),
    "large": np.array([-(2**63), 2**53 + 1, 2**63 - 1]),
    "floats": np.array([0.0, 1.0, 2.0]),
    "dates": np.array(["2001-01-01", "2002-02-02", "2003-03-03"], "M8[s]"),
}
CONTAINERS = {
    "array": lambda y: y,
    "list": list,
    "series": pd.Series,
    "series with an index": lambda y: pd.Series(y, index=range(1000, 1000 + len(y))),
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
@pytest.mark.parametrize("labels", SORTED.values(), ids=SORTED)
def test_labels_of_any_type_come_back(labels, container):
    model = small().fit(X, container(labels[NUMBERS]))
    plain = small().fit(X, NUMBERS)
    assert_same_model(model, plain)
    assert model.classes_.tolist() == labels.tolist()
    np.testing.assert_array_equal(model.predict(X), labels[plain.predict(X)])
    assert model.score(X, container(labels[NUMBERS])) == plain.score(X, NUMBERS)


@pytest.mark.parametrize("labels", SORTED.values(), ids=SORTED)
def test_type_of_labels_is_kept(labels):
    model = small().fit(X, labels[NUMBERS])
    assert model.classes_.dtype == model.predict(X).dtype == labels.dtype


@pytest.mark.parametrize("values", [[3, 5, 9], [False, True, True]], ids=repr)
def test_objects_of_one_type_are_labels(values):
    y = np.array(values, object)[NUMBERS]
    model, plain = small().fit(X, y), small().fit(X, np.array(values)[NUMBERS])
    assert_same_model(model, plain)
    assert model.classes_.tolist() == plain.classes_.tolist()
    assert model.predict(X).tolist() == plain.predict(X).tolist()


def test_truth_values_are_labels():
    model = small().fit(X, NUMBERS == 1)
    assert model.classes_.dtype == model.predict(X).dtype == np.dtype(bool)
    as_numbers = small().fit(X, (NUMBERS == 1).astype(int))
    np.testing.assert_array_equal(model.predict(X), as_numbers.predict(X) == 1)


@pytest.mark.parametrize(
    "y",
    [
        pd.Categorical.from_codes(NUMBERS, ["apple", "pear", "plum"]),
        pd.Series(pd.Categorical.from_codes(NUMBERS, ["apple", "pear", "plum"])),
        pd.Series(SORTED["strings"][NUMBERS], dtype="string"),
        pd.Series(SORTED["strings"][NUMBERS], dtype=object),
        pd.Index(SORTED["strings"][NUMBERS]),
    ],
    ids=["categorical", "series of categories", "string", "object", "index"],
)
def test_labels_of_pandas_are_their_values(y):
    model = small().fit(X, y)
    assert_same_model(model, small().fit(X, NUMBERS))
    assert model.classes_.tolist() == ["apple", "pear", "plum"]


@pytest.mark.parametrize("container", [pd.array, pd.Series, pd.Index])
@pytest.mark.parametrize(
    ("nullable", "labels"),
    [
        ("Int64", np.array([0, 1, 2])),
        ("Int64", np.array([-(2**63), 2**53, 2**53 + 1])),
        ("UInt64", np.array([2**53, 2**53 + 1, 2**64 - 1], np.uint64)),
        ("Int8", np.array([-3, 0, 7], np.int8)),
        ("boolean", np.array([False, True, True])),
    ],
    ids=str,
)
def test_nullable_labels_without_a_missing_one_keep_their_type(nullable, labels, container):
    y = labels[NUMBERS]
    model = small().fit(X, container(y, dtype=nullable))
    assert model.classes_.dtype == model.predict(X).dtype == labels.dtype
    assert model.classes_.tolist() == np.unique(labels).tolist()
    assert_same_model(model, small().fit(X, y))


FRUIT = SORTED["strings"][NUMBERS]
ARROW_FRUIT = pa.array(FRUIT)
SERIES = {
    "polars String": pl.Series(FRUIT),
    "polars Categorical": pl.Series(FRUIT).cast(pl.Categorical),
    "polars Enum": pl.Series(FRUIT).cast(pl.Enum(["plum", "pear", "apple"])),
    "pyarrow string": ARROW_FRUIT,
    "pyarrow large string": ARROW_FRUIT.cast(pa.large_string()),
    "pyarrow string view": ARROW_FRUIT.cast(pa.string_view()),
    "pyarrow dictionary": ARROW_FRUIT.dictionary_encode(),
    "pyarrow chunks": pa.chunked_array([ARROW_FRUIT[:7], ARROW_FRUIT[7:]]),
    "pyarrow chunks of dictionaries": pa.chunked_array(
        [ARROW_FRUIT[:7].dictionary_encode(), ARROW_FRUIT[7:].dictionary_encode()]
    ),
    "pandas Arrow string": pd.Series(FRUIT, dtype=pd.ArrowDtype(pa.string())),
    "pandas Arrow dictionary": pd.Series(
        FRUIT.tolist(), dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
    ),
}


@pytest.mark.parametrize("y", SERIES.values(), ids=SERIES)
def test_strings_of_polars_and_arrow_are_labels(y):
    model, plain = small().fit(X, y, X_val=X, y_val=y), small().fit(X, NUMBERS)
    assert_same_model(model, plain)
    assert model.classes_.tolist() == ["apple", "pear", "plum"]
    assert model.predict(X).tolist() == SORTED["strings"][plain.predict(X)].tolist()
    np.testing.assert_array_equal(model.validation_loss_, plain.train_loss_)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32", "float64", "bool"])
def test_numbers_of_polars_and_arrow_are_labels_of_their_type(dtype):
    y = (NUMBERS > 0 if dtype == "bool" else NUMBERS * 3).astype(dtype)
    arrow = pa.array(y)
    for given_y in (pl.Series(y), arrow, pa.chunked_array([arrow[:7], arrow[7:]])):
        model = small().fit(X, given_y)
        assert model.classes_.dtype == model.predict(X).dtype == y.dtype
        assert_same_model(model, small().fit(X, y))


@pytest.mark.parametrize(
    "y",
    [
        pl.Series([*FRUIT[:-1].tolist(), None]),
        pl.Series([*NUMBERS[:-1].tolist(), None]),
        pa.array([*FRUIT[:-1].tolist(), None]),
        pa.array([*NUMBERS[:-1].tolist(), None]),
        pa.array([*FRUIT[:-1].tolist(), None]).dictionary_encode(),
    ],
    ids=["polars String", "polars Int64", "pyarrow string", "pyarrow int64", "pyarrow dictionary"],
)
def test_missing_labels_of_polars_and_arrow_are_refused(y):
    with pytest.raises(ValueError, match=r"y contains NaN or None at 1 row\(s\), first at 89"):
        small().fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_answers_have_one_row_each_and_probabilities_are_double(n_classes, dtype):
    model = small().fit(X.astype(dtype), np.minimum(NUMBERS, n_classes - 1))
    assert model.predict(X[:5].astype(dtype)).shape == (5,)
    proba = model.predict_proba(X[:5].astype(dtype))
    assert (proba.shape, proba.dtype) == ((5, n_classes), np.float64)


def test_fold_that_lacks_a_class_has_its_column():
    fold = NUMBERS != 1
    model = small(classes=[0, 1, 2]).fit(pd.DataFrame(X[fold]), NUMBERS[fold])
    assert model.predict_proba(pd.DataFrame(X)).shape == (90, 3)
    assert set(model.predict(pd.DataFrame(X))) == {0, 2}
    assert small().fit(X[fold], NUMBERS[fold]).predict_proba(X).shape == (90, 2)


def test_validation_label_that_training_lacks_is_named_unless_it_is_a_class():
    fold = NUMBERS != 1
    with pytest.raises(ValueError, match=r"y_val has labels .* not among the classes: 1;"):
        small().fit(X[fold], NUMBERS[fold], X_val=X, y_val=NUMBERS)
    model = small(classes=[0, 1, 2]).fit(X[fold], NUMBERS[fold], X_val=X, y_val=NUMBERS)
    assert np.isfinite(model.validation_loss_).all()


def test_column_of_labels_is_taken_with_a_warning():
    with pytest.warns(UserWarning, match="column-vector y"):
        model = small().fit(X, NUMBERS[:, None])
    assert_same_model(model, small().fit(X, NUMBERS))


def test_category_without_rows_is_no_class():
    y = pd.Categorical.from_codes(NUMBERS, ["apple", "pear", "plum", "quince"])
    assert small().fit(X, y).classes_.tolist() == ["apple", "pear", "plum"]


def test_order_of_labels_orders_the_columns():
    reversed_labels = np.array(["c", "b", "a"])[NUMBERS]
    model = small("mart").fit(X, reversed_labels)
    assert model.classes_.tolist() == ["a", "b", "c"]
    proba = small("mart").fit(X, NUMBERS).predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X), proba[:, ::-1], rtol=1e-12)


MISSING = {
    "NaN": np.array([0.0, 1.0, np.nan]),
    "None": np.array(["a", "b", None], object),
    "NaN among strings": np.array(["a", "b", np.nan], object),
    "pandas.NA": np.array(["a", "b", pd.NA], object),
    "pandas.NaT": np.array(["2001-01-01", "2002-02-02", "NaT"], "M8[D]"),
}


@pytest.mark.parametrize("labels", MISSING.values(), ids=MISSING)
def test_missing_labels_are_refused(labels):
    with pytest.raises(ValueError, match="y contains NaN"):
        small().fit(X, labels[NUMBERS])


def test_missing_label_is_told_by_its_row_among_all():
    names = np.array(["a", "b", "c"], object)[NUMBERS]
    names[[3, 70]] = None
    with pytest.raises(ValueError, match=r"y contains NaN or None at 1 row\(s\), first at 70"):
        small().fit(X, names, np.arange(90) > 10)


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(MISSING["pandas.NA"][NUMBERS], dtype="string"),
        pd.Series([0, 1, None] * 30, dtype="Int64"),
        pd.array([False, True, None] * 30, dtype="boolean"),
        pd.Categorical(["a", "b", None] * 30),
        pd.Series(["a", "b", None] * 30),
    ],
    ids=["string", "Int64", "boolean", "categorical", "str"],
)
def test_missing_labels_of_pandas_are_refused(y):
    with pytest.raises(ValueError, match="y contains NaN"):
        small().fit(X, y)


@pytest.mark.parametrize("mixture", [["a", 1, "b"], [1, "a", 2], [1, (2, 3), "a"]], ids=repr)
def test_mixed_types_of_labels_are_named(mixture):
    y = np.empty(90, object)
    y[:] = mixture * 30
    with pytest.raises(TypeError, match=r"y mixes labels of types .*int.*str.*expected one type"):
        small().fit(X, y)


@pytest.mark.parametrize(
    ("labels", "types"),
    [
        ([1, "1", 2], "int, str"),
        ([True, 1, 2], "bool, int"),
        (["a", b"a", "b"], "bytes, str"),
        ([1.5, "1.5", 2.0], "float, str"),
        ([np.int64(1), "1", 2], "int, int64, str"),
    ],
    ids=str,
)
def test_lists_of_mixed_types_are_looked_at_before_they_are_unified(labels, types):
    for y in (labels * 30, tuple(labels * 30), np.array(labels * 30, object)):
        with pytest.raises(TypeError, match=f"y mixes labels of types {types}; expected one type"):
            small().fit(X, y)


def test_missing_label_among_strings_in_a_list_is_refused():
    with pytest.raises(ValueError, match=r"y contains NaN or None at 30 row\(s\), first at 1"):
        small().fit(X, ["a", np.nan, "b"] * 30)


def test_integers_beside_floats_are_told_from_each_other_or_refused():
    with pytest.raises(TypeError, match="y mixes floats with the integer 9007199254740993"):
        small().fit(X, [2**53, 2**53 + 1, 1.0] * 30)
    model = small().fit(X, [0, 1, 2.0] * 30)
    assert model.classes_.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "labels", [[-1, 2**63, 5], [2**53, 2**53 + 1, -1], [10**400, 1, 2]], ids=len
)
def test_integers_of_any_size_in_a_list_are_labels(labels):
    model = small().fit(X, labels * 30)
    assert model.classes_.tolist() == sorted(labels)


def test_strings_that_numpy_would_make_equal_are_told_from_each_other():
    assert small().fit(X, ["a", "a\0", "b"] * 30).classes_.tolist() == ["a", "a\0", "b"]


class Tree(enum.Enum):
    ASH = 1
    FIR = 2
    OAK = 3


@pytest.mark.parametrize(
    "labels",
    [
        [frozenset({1}), frozenset({2}), frozenset({3})],
        list(Tree),
        [(1, 2), (3, 4), (5, 6)],
        [Fraction(1, 3), Fraction(2, 3), Fraction(4, 3)],
        [1j, 2j, 3j],
    ],
    ids=lambda labels: type(labels[0]).__name__,
)
def test_labels_of_other_types_are_named_with_those_that_are_allowed(labels):
    name = type(labels[0]).__name__
    y = np.empty(90, object)
    for row in range(90):
        y[row] = labels[row % 3]
    for form in (y, y.tolist()):
        with pytest.raises(
            TypeError, match=f"y has labels of type {name}, such as .*; expected str"
        ):
            small().fit(X, form)


def test_array_of_complex_labels_is_refused():
    with pytest.raises(TypeError, match="y is an array of type complex128; expected strings"):
        small().fit(X, NUMBERS * 1j)


def test_dates_as_objects_are_labels():
    days = [datetime.date(2024, 1, 3), datetime.date(2023, 1, 1), datetime.date(2024, 1, 1)]
    assert small().fit(X, days * 30).classes_.tolist() == sorted(days)
    stamps = [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)]
    with pytest.raises(TypeError, match="y has labels of types datetime that cannot be sorted"):
        small().fit(X, stamps * 45)


def test_numbers_that_are_no_classes_are_refused():
    with pytest.raises(ValueError, match="continuous"):
        small().fit(X, NUMBERS + 0.5)


def test_infinite_labels_are_refused():
    with pytest.raises(ValueError, match="infinity"):
        small().fit(X, np.where(NUMBERS == 0, np.inf, NUMBERS))


@pytest.mark.parametrize("label", ["only", 3, False], ids=repr)
def test_single_class_is_named(label):
    with pytest.raises(ValueError, match=rf"1 class, {label!r}; expected at least 2"):
        small().fit(X, [label] * 90)


# ------------------------------------------------------------------------------- a list of classes


@pytest.mark.parametrize("labels", SORTED.values(), ids=SORTED)
def test_list_of_the_classes_that_occur_changes_nothing(labels):
    y = labels[NUMBERS]
    model, plain = small(classes=labels[::-1]).fit(X, y), small().fit(X, y)
    assert_same_model(model, plain)
    assert model.classes_.tolist() == plain.classes_.tolist()
    assert model.classes_.dtype == plain.classes_.dtype


@pytest.mark.parametrize(
    "container", [list, tuple, set, frozenset, np.array, pd.Series, pd.Categorical, pa.array]
)
def test_list_of_classes_may_have_any_form(container):
    model = small(classes=container(["plum", "apple", "pear"])).fit(X, SORTED["strings"][NUMBERS])
    assert model.classes_.tolist() == ["apple", "pear", "plum"]


ALGORITHMS = ["mart", "abc-mart", "logitboost", "abc-logitboost"]


@pytest.mark.parametrize("baseline", ["zero", "prior"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_class_without_rows_has_its_column(algorithm, baseline):
    names = np.array(["apple", "pear", "quince"])[NUMBERS]
    known = ["apple", "pear", "plum", "quince"]
    parameters = with_fields({"algorithm": algorithm}, baseline=baseline)
    model = small(**parameters, classes=known, max_iter=40).fit(X, names)
    assert model.classes_.tolist() == known
    proba = model.predict_proba(X)
    assert proba.shape == (90, 4)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    assert proba.mean(axis=0).argmin() == 2
    assert (model.predict(X) != "plum").all()
    assert (model.class_losses_[:, 2] == 0).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_only_one_class_with_rows_is_almost_certain(algorithm, n_classes):
    known = ["apple", "pear", "plum"][:n_classes]
    with pytest.warns(UserWarning, match="no tree can be split, so every row has the same prob"):
        model = small(algorithm, classes=known).fit(X, ["pear"] * 90)
    expected = np.full(n_classes, 0.5)
    expected[1] = 90
    np.testing.assert_allclose(model.predict_proba(X), [expected / expected.sum()] * 90, rtol=1e-9)
    assert (model.predict(X) == "pear").all()


def test_label_outside_the_list_is_named():
    with pytest.raises(ValueError, match=r"not among the classes: 2; expected some of 0, 1"):
        small(classes=[0, 1]).fit(X, NUMBERS)
    with pytest.raises(ValueError, match=r"not among the classes: 0, 1, 2; .* '0', '1', '2'"):
        small(classes=["0", "1", "2"]).fit(X, NUMBERS)


def test_many_labels_outside_the_list_are_named_in_part():
    with pytest.raises(ValueError, match=r"2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 18 more; expected"):
        small(classes=[0, 1]).fit(X, np.arange(90) % 30)


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ([0], ValueError, r"classes=\[0\]; expected at least 2 classes"),
        ([], ValueError, "at least 2 classes"),
        ([0, 1, 2, 1], ValueError, r"classes=\[0, 1, 2, 1\]; expected each label once"),
        ([0, 1, None], ValueError, "classes contains NaN or None"),
        ([0, 1, np.nan], ValueError, "classes contains NaN or None"),
        ([0, "a"], TypeError, "classes mixes labels of types int, str"),
        ([frozenset({0}), frozenset({1})], TypeError, "classes has labels of type frozenset"),
        (np.array([0, "a"], object), TypeError, "classes mixes labels of types int, str"),
        (3, TypeError, "classes=3; expected a list of labels"),
        ("012", TypeError, "classes='012'; expected a list of labels"),
        ({0: "a", 1: "b"}, TypeError, "classes={0: 'a', 1: 'b'}; expected a list of labels"),
        ([[0, 1], [2, 3]], ValueError, "classes should be a 1d array"),
        ({0}, ValueError, r"classes=\[0\]; expected at least 2 classes"),
    ],
    ids=str,
)
def test_bad_list_of_classes_is_described(bad, error, message):
    with pytest.raises(error, match=message):
        small(classes=bad).fit(X, NUMBERS)


# ---------------------------------------------------------------------------------- the functions


@given(st.lists(st.integers(-5, 5), min_size=2).filter(lambda y: len(set(y)) > 1))
def test_encoding_is_undone_by_the_classes(y):
    classes, class_of_row = encode_labels(np.array(y))
    assert classes.tolist() == sorted(set(y))
    assert classes[class_of_row].tolist() == y
    assert class_of_row.dtype == np.int32


def test_labels_are_counted_against_rows():
    table = BinMapper().fit(X).transform(X)
    with pytest.raises(ValueError, match="y has 2 labels; X has 90 rows"):
        small().fit(table, ["a", "b"])


def test_strings_of_numpys_own_type_are_labels():
    labels = SORTED["strings"].astype(np.dtypes.StringDType())[NUMBERS]
    assert_same_model(small().fit(X, labels), small().fit(X, NUMBERS))


def test_masked_labels_are_missing():
    masked = np.ma.array(NUMBERS, mask=np.arange(90) == 5)
    with pytest.raises(ValueError, match=r"y contains NaN or None at 1 row\(s\), first at 5"):
        small().fit(X, masked)
    unmasked = np.ma.array(NUMBERS, mask=False)
    assert_same_model(small().fit(X, unmasked), small().fit(X, NUMBERS))


@pytest.mark.parametrize("kind", [object, str, int, "datetime64[D]"])
@pytest.mark.parametrize("n_rows", [0, 1, 6, 7, 40])
def test_labels_are_the_same_however_many_are_sorted_at_once(kind, n_rows, monkeypatch):
    labels = np.random.default_rng(n_rows).integers(0, 9, n_rows).astype(kind)
    labels = labels.astype(str).astype(object) if kind is object else labels
    known, which = np.unique(labels, return_inverse=True)
    monkeypatch.setattr(labels_module, "_MAX_AT_ONCE", 6)
    found, number = labels_module._unique(labels, "y")
    assert found.dtype == known.dtype
    assert found.tolist() == known.tolist()
    assert number.tolist() == which.tolist()
