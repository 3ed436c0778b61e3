"""Tables of every make are read as the plain array of their values, or refused by name."""

import re
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from abcgbm import BinMapper
from abcgbm.data.schema import Kind, Schema
from abcgbm.data.table import read_table, read_table_like
from inputs import (
    DATA,
    IN_BATCHES,
    NAMES,
    NO_CATEGORIES,
    NUMBER_CATEGORIES,
    NUMBERS,
    REFUSED,
    STRING_CATEGORIES,
    WORKS,
    Case,
    Stream,
    arrow_table,
    pandas_frame,
    pandas_with,
    polars_frame,
    words,
)

FRAMES = [case for case in NUMBERS if case.named]
ARRAYS = [case for case in NUMBERS if not case.named]
ROWS = np.array([5, 0, 59, 5, 17])
_MOMENT = pd.Timestamp("2001-02-03")
EVERY = np.arange(5)


def says(*parts: object) -> str:
    """A pattern that finds all parts, in this order."""
    return "(?s)" + ".*".join(re.escape(str(part)) for part in parts)


def each(cases: list[Any]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


def mapper_of(case: Case) -> BinMapper:
    """A mapper that learned the plain values."""
    return BinMapper(8, categorical_features=case.categorical_features).fit(case.plain())


def codes(mapper: BinMapper, X: Any) -> np.ndarray:
    return mapper.transform(X).binned.codes()


# -------------------------------------------------------------------------------------- what it is


@each(WORKS)
def test_any_form_of_a_table_has_the_bins_and_codes_of_the_plain_array(case):
    mapper, expected = BinMapper(8).fit(case.table()), mapper_of(case)
    for ours, theirs in zip(mapper.thresholds_, expected.thresholds_, strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)
    np.testing.assert_array_equal(codes(mapper, case.table()), codes(expected, case.plain()))


@each(WORKS)
def test_rows_of_any_table_have_the_codes_of_those_rows(case):
    mapper = BinMapper(8).fit(case.table())
    expected = codes(mapper_of(case), case.plain(ROWS))
    np.testing.assert_array_equal(codes(mapper, case.table(ROWS)), expected)
    table = read_table(case.table())
    for rows in (ROWS, slice(7, 40)):
        taken = table.take(rows)
        assert taken.shape == (len(case.plain()[rows]), 5)
        np.testing.assert_array_equal(
            codes(mapper, taken), codes(mapper_of(case), case.plain()[rows])
        )


@each(WORKS)
def test_zero_weight_equals_dropping_the_row_of_any_table(case):
    weight = np.arange(60) % 3
    kept = np.flatnonzero(weight)
    mapper = BinMapper(8).fit(case.table(), sample_weight=weight)
    expected = BinMapper(8, categorical_features=case.categorical_features)
    expected.fit(case.plain(kept), sample_weight=weight[kept])
    for ours, theirs in zip(mapper.thresholds_, expected.thresholds_, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@each(NUMBERS)
def test_numbers_of_any_table_are_those_of_the_plain_array(case):
    table = read_table(case.table())
    assert table.shape == (60, 5)
    for features in ([0, 1, 2, 3, 4], [4], [3, 1], []):
        numbers = table.floats(np.array(features, np.intp))
        assert numbers.dtype == np.float64
        np.testing.assert_array_equal(numbers, case.plain()[:, features])


@each(FRAMES)
def test_frame_is_found_by_a_mapper_that_learned_another_make_of_it(case):
    mapper = BinMapper(8).fit(pandas_frame(case.plain()))
    expected = codes(mapper_of(case), case.plain())
    np.testing.assert_array_equal(codes(mapper, case.table()), expected)


@each(ARRAYS)
def test_array_is_found_by_a_mapper_that_learned_floats(case):
    np.testing.assert_array_equal(
        codes(mapper_of(case), case.table()), codes(mapper_of(case), case.plain())
    )


@each(STRING_CATEGORIES)
def test_categories_are_found_by_value_whatever_their_type_was_in_fit(case):
    expected = codes(mapper_of(case), case.plain())
    for learned in STRING_CATEGORIES:
        if learned.data == case.data:
            mapper = BinMapper().fit(learned.table())
            np.testing.assert_array_equal(codes(mapper, case.table())[:, 4], expected[:, 4])


@each(NUMBER_CATEGORIES)
def test_categories_that_are_numbers_are_found_by_value_whatever_their_type_is(case):
    mapper, expected = BinMapper().fit(case.table()), codes(mapper_of(case), case.plain())
    for dtype in ("float64", "float32", "Int16", "object", "category"):
        last = pd.array(case.plain()[:, 4], dtype="Int64").astype("Float64").astype(dtype)  # fmt: skip
        X = pandas_with(lambda _, last=last: last)(case.plain())
        np.testing.assert_array_equal(codes(mapper, X)[:, 4], expected[:, 4])


@each(NUMBER_CATEGORIES)
def test_categories_of_numbers_can_be_read_as_numbers(case):
    table = read_table(case.table(), categorical_features=None)
    assert table.kind.tolist() == [Kind.NUMERIC] * 5
    np.testing.assert_array_equal(table.floats(EVERY), case.plain())


@each(NO_CATEGORIES)
def test_column_of_missing_categories_alone_has_no_category_and_all_that_comes_is_missing(case):
    mapper = BinMapper().fit(case.table())
    assert mapper.encoding_.categories[4].code_of == {}
    assert mapper.thresholds_[4].tolist() == []
    missing = codes(mapper, case.table())
    assert set(missing[:, 4]) == {1}
    for last in (words, lambda v: v, lambda v: v > 1):
        X = pandas_with(last)(DATA["level"])
        np.testing.assert_array_equal(codes(mapper, X)[:, 4], missing[:, 4])
    strict = BinMapper(handle_unknown="error").fit(case.table())
    np.testing.assert_array_equal(codes(strict, case.table()), missing)
    with pytest.raises(
        ValueError, match=says(f"column {NAMES[4]!r} has unknown categories 'apple'")
    ):
        strict.transform(pandas_with(words)(DATA["level"]))


@each(NO_CATEGORIES)
def test_column_of_missing_values_alone_is_numeric_where_nothing_is_categorical(case):
    table = read_table(case.table(), categorical_features=None)
    assert table.kind.tolist() == [Kind.NUMERIC] * 5
    np.testing.assert_array_equal(table.floats(EVERY), case.plain())


@each(NO_CATEGORIES)
def test_column_of_missing_values_alone_is_missing_numbers_where_fit_saw_numbers(case):
    mapper = BinMapper().fit(pandas_frame(DATA["floats"]))
    expected = codes(mapper, pandas_frame(case.plain()))
    np.testing.assert_array_equal(codes(mapper, case.table()), expected)


# ------------------------------------------------------------------------------------------ refused


@each(REFUSED)
def test_what_cannot_be_read_is_refused_with_its_name_and_what_to_do(case):
    with pytest.raises(case.error, match=says(*case.says)):
        BinMapper().fit(case.make())


@each(IN_BATCHES)
def test_mapper_refuses_what_is_read_in_parts(case, tmp_path):
    X = case.make(arrow_table(DATA["floats"]), tmp_path)
    expected = "expected an array of numbers, a data frame, an Arrow table or a sparse matrix"
    with pytest.raises(TypeError, match=says(f"X is of type {type(X).__name__}; {expected}")):
        BinMapper().fit(X)


@each([case for case in REFUSED if case.error is TypeError and NAMES[4] in str(case.says)])
def test_what_cannot_be_read_is_refused_in_transform_too(case):
    X = case.make()
    columns = list(X.columns) if hasattr(X, "columns") and not isinstance(X, pa.Table) else NAMES
    mapper = BinMapper().fit(pd.DataFrame(DATA["floats"][:, -len(columns) :], columns=columns))
    with pytest.raises((TypeError, ValueError), match=says(f"column {NAMES[4]!r}")):
        mapper.transform(X)


@each(STRING_CATEGORIES)
def test_strings_are_refused_where_nothing_is_categorical(case):
    with pytest.raises(ValueError, match=says(f"column {NAMES[4]!r} holds strings", "categorical")):
        BinMapper(categorical_features=None).fit(case.table())


@each(STRING_CATEGORIES)
def test_strings_are_refused_where_fit_saw_numbers(case):
    mapper = BinMapper().fit(pandas_frame(case.plain()))
    with pytest.raises(ValueError, match=says(f"column {NAMES[4]!r} holds strings", "in fit")):
        mapper.transform(case.table())


@each(STRING_CATEGORIES)
def test_numbers_are_refused_where_fit_saw_strings(case):
    mapper = BinMapper().fit(case.table())
    with pytest.raises(
        TypeError, match=says(f"column {NAMES[4]!r}", "'apple'", "given", "strings")
    ):
        mapper.transform(pandas_frame(case.plain()))


FORMATS = ["coo", "csr", "csc", "bsr", "dok", "lil", "dia"]


def stored():
    return sparse.random_array((40, 6), density=0.3, rng=np.random.default_rng(0)).tocsr()


def spoil(matrix, index):
    """Put an index into a matrix, wherever its format has one for it."""
    if matrix.format == "coo":
        matrix.row[0] = index
    elif matrix.format == "dok":
        matrix._dict[(index, 0)] = 1.0
    elif matrix.format == "lil":
        matrix.rows[0] = [index]
        matrix.data[0] = [1.0]
    else:
        matrix.indices[0] = index
    return matrix


@pytest.mark.parametrize("index", [10**6, -1, 2**31 - 1])
@pytest.mark.parametrize("form", [f for f in FORMATS if f != "dia"])
def test_index_out_of_range_is_refused_in_every_sparse_format(form, index):
    mapper = BinMapper().fit(stored())
    bad = spoil(stored().asformat(form).copy(), index)
    with pytest.raises(ValueError, match=f"X is an invalid {form} matrix: "):
        mapper.transform(bad)
    with pytest.raises(ValueError, match=f"X is an invalid {form} matrix: "):
        BinMapper().fit(bad)


def test_column_out_of_range_of_a_coo_matrix_is_refused():
    bad = stored().tocoo()
    bad.col[3] = 6
    with pytest.raises(ValueError, match="matrix: column 6; expected 0 to 5"):
        BinMapper().fit(bad)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_every_sparse_format_has_the_codes_of_the_dense_table(form, kind):
    make = sparse.csr_array if kind == "array" else sparse.csr_matrix
    mapper = BinMapper().fit(stored().toarray())
    codes = mapper.transform(stored().toarray()).binned.codes()
    np.testing.assert_array_equal(
        mapper.transform(make(stored()).asformat(form)).binned.codes(), codes
    )


def test_malformed_lists_and_pointers_are_refused():
    lil = stored().tolil()
    lil.rows[0] = [0, 1, 2, 3, 4, 5]
    csr, bsr, dia = stored().copy(), stored().tobsr(), stored().todia()
    csr.indptr[5] = 10**6
    bsr.indptr[5] = -3
    dia.offsets = dia.offsets[:-1]
    for bad in (lil, csr, bsr, dia):
        with pytest.raises(ValueError, match="X is an invalid"):
            BinMapper().fit(bad)


def test_diagonals_far_outside_a_matrix_are_not_there():
    dia = stored().todia()
    dia.offsets[[0, 1]] = [2**31 - 1, -(2**31)]
    expected = stored().toarray()  # the others stay
    for k in stored().todia().offsets[:2]:
        rows = np.arange(40)
        inside = (rows + k >= 0) & (rows + k < 6)
        expected[rows[inside], rows[inside] + k] = 0
    table = read_table(dia)
    np.testing.assert_array_equal(table.floats(np.arange(6)), expected)


def test_sparse_array_of_one_dimension_is_refused():
    with pytest.raises(ValueError, match=r"sparse array of 1 dimension\(s\); expected 2"):
        BinMapper().fit(sparse.coo_array(np.arange(5.0)))


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
def test_indices_of_a_sparse_table_are_its_own(make):
    """Changes of a matrix after it was checked have no effect."""
    matrix = make(stored())
    table = read_table(matrix)
    part = table.sparse_part()
    for theirs in (matrix.indices, matrix.indptr):
        for mine in (part.indices, part.indptr, table.sparse.matrix.indices):
            assert not np.shares_memory(mine, theirs)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (object(), "X holds values of type object, such as <object"),
        (1j, "X holds values of type complex, such as 1j; expected numbers"),
        ([1, 2], r"X holds values of type list, such as \[1, 2\]; expected numbers"),
        ({"a": 1}, "X holds values of type dict"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_object_that_is_no_number_is_named(cell, message):
    cells = np.full((4, 2), 1.0, object)
    cells[2, 1] = cell
    with pytest.raises(TypeError, match=message):
        read_table(cells)


def test_signalling_nan_and_all_that_stands_for_none_are_missing():
    nothing = [None, np.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT", "s")]
    column = np.empty((9, 1), object)
    column[:, 0] = [*nothing, Decimal("NaN"), Decimal("sNaN"), Decimal("1.5")]
    values = read_table(column).floats(np.array([0])).ravel()
    np.testing.assert_array_equal(values, [np.nan] * 8 + [1.5])
    frame = pd.DataFrame({"x": column[:, 0]})
    np.testing.assert_array_equal(read_table(frame).floats(np.array([0])).ravel(), values)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
def test_sparse_matrix_with_bad_indices_is_refused(make):
    matrix = make(np.eye(4))
    matrix.indices[2] = 1000
    with pytest.raises(ValueError, match="indices must be < 4"):
        BinMapper().fit(matrix)


def test_arrow_is_refused_without_a_library_that_reads_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ImportError, match=says("Stream", "pyarrow or polars", "abcgbm[arrow]")):
        BinMapper().fit(Stream(arrow_table(DATA["floats"])))


def test_numpy_strings_of_any_length_are_refused():
    dtypes = pytest.importorskip("numpy.dtypes")
    if not hasattr(dtypes, "StringDType"):
        pytest.skip("NumPy 2 has them")
    with pytest.raises(ValueError, match=says("X holds strings, such as 'a'", "data frames")):
        BinMapper().fit(np.array([["a"]], dtypes.StringDType()))


WORDS = pandas_with(words)(DATA["level"])


@pytest.mark.parametrize(
    ("X", "parts"),
    [
        (["a"], ("X_val holds strings",)),
        (np.ones((2, 3)), ("X_val has 3 features", "Owner", "expecting 5")),
        (np.array([["2001-01-01"]], "M8[D]"), ("X_val is an array of type datetime64",)),
        ({}, ("X_val is of type dict",)),
        (WORDS.assign(more=1), ("feature names of X_val", "unseen at fit time", "more")),
        (WORDS, (f"column {NAMES[4]!r} of X_val holds strings and was not categorical",)),
        (WORDS.assign(plain=_MOMENT), ("column 'plain' of X_val is a datetime",)),
        (WORDS[:0], ("Found X_val with 0 sample(s)", "Owner")),
        (pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]), ("X_val has duplicate column names",)),
        (pa.array([1.0]), ("X_val of type DoubleArray is not an Arrow table",)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_errors_call_the_table_by_its_name(X, parts):
    schema = Schema(np.zeros(5, dtype=bool), np.array(NAMES, dtype=object))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((TypeError, ValueError), match=says(*parts)):
            read_table_like(X, schema, "Owner", "X_val")


def test_warnings_call_the_table_by_its_name():
    named = Schema(np.zeros(5, dtype=bool), np.array(NAMES, dtype=object))
    with pytest.warns(UserWarning, match="X_val does not have valid feature names, but Owner"):
        read_table_like(DATA["floats"], named, "Owner", "X_val")
    with pytest.warns(UserWarning, match="X_val has feature names, but Owner"):
        read_table_like(
            pandas_frame(DATA["floats"]), Schema(np.zeros(5, dtype=bool)), "Owner", "X_val"
        )


def test_table_to_learn_from_may_have_a_name_too():
    with pytest.raises(ValueError, match="Z holds strings"):
        read_table([["a"]], name="Z")


# -------------------------------------------------------------------------------------------- names


MAKES = {"pandas": pandas_frame, "polars": polars_frame, "pyarrow": arrow_table}
makes = pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)


@makes
def test_columns_in_another_order_are_put_right_by_name(make):
    X = make(DATA["floats"])
    mapper = BinMapper().fit(X)
    assert mapper.feature_names_in_.tolist() == NAMES
    for order in (NAMES[::-1], NAMES[2:] + NAMES[:2]):
        shuffled = X.select(order) if hasattr(X, "select") else X[order]
        np.testing.assert_array_equal(codes(mapper, shuffled), codes(mapper, X))


def test_columns_of_mixed_kinds_in_another_order_are_put_right_by_name():
    values = DATA["level or missing"]
    X = pandas_with(words)(values)
    X[NAMES[1]] = X[NAMES[1]].astype(pd.SparseDtype(float, np.nan))
    mapper = BinMapper().fit(X)
    np.testing.assert_array_equal(codes(mapper, X[NAMES[::-1]]), codes(mapper, X))


@makes
def test_missing_and_extra_columns_are_named(make):
    X = make(DATA["floats"])
    mapper = BinMapper().fit(X)
    other = X.rename(columns={"plain": "fancy"}) if make is pandas_frame else None
    other = X.rename({"plain": "fancy"}) if make is polars_frame else other
    other = X.rename_columns(["fancy", *NAMES[1:]]) if make is arrow_table else other
    with pytest.raises(ValueError, match=says("unseen at fit", "- fancy", "missing:", "- plain")):
        mapper.transform(other)


def test_extra_column_is_named_even_if_it_could_not_be_read():
    X = pandas_frame(DATA["floats"])
    mapper = BinMapper().fit(X)
    X["when"] = pd.Timestamp("2001-02-03")
    with pytest.raises(ValueError, match=says("unseen at fit time", "- when")):
        mapper.transform(X)


def test_columns_without_names_go_by_place_with_a_warning():
    named, plain = pandas_frame(DATA["floats"]), DATA["floats"]
    mapper = BinMapper().fit(named)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but BinMapper"):
        by_place = codes(mapper, plain)
    np.testing.assert_array_equal(by_place, codes(mapper, named))
    with pytest.warns(UserWarning, match="X has feature names, but BinMapper"):
        by_place = codes(BinMapper().fit(plain), named)
    np.testing.assert_array_equal(by_place, codes(mapper, named))


def test_names_are_there_only_if_all_are_strings():
    X = pandas_frame(DATA["floats"])
    assert read_table(X).feature_names.tolist() == NAMES
    for columns in (range(5), ["a", 1, 2, 3, 4], pd.MultiIndex.from_product([["a"], range(5)])):
        assert read_table(X.set_axis(columns, axis=1)).feature_names is None


def test_wrong_number_of_columns_is_told():
    mapper = BinMapper().fit(DATA["floats"])
    for X in (DATA["floats"][:, :3], sparse.csr_array((4, 3)), pd.DataFrame(np.zeros((4, 3)))):
        with pytest.raises(ValueError, match=says("X has 3 features, but BinMapper", "5 features")):
            mapper.transform(X)


def test_refit_forgets_names():
    mapper = BinMapper().fit(pandas_frame(DATA["floats"])).fit(DATA["floats"])
    assert not hasattr(mapper, "feature_names_in_")


# --------------------------------------------------------------------------------------- categories

MIXED = pandas_with(words)(DATA["level"])


@pytest.mark.parametrize(
    "chosen",
    [["Größe", "plain"], [4, 0], np.array([4, 0]), ["Größe", 0], {0, 4}, [True, *[False] * 3, True],
     np.array([True, False, False, False, True]), pd.Index(["plain", "Größe"])],
    ids=repr,
)  # fmt: skip
def test_categories_are_chosen_by_names_indices_or_a_mask(chosen):
    table = read_table(MIXED, chosen)
    assert table.features(Kind.CATEGORICAL).tolist() == [0, 4]
    assert table.features(Kind.NUMERIC).tolist() == [1, 2, 3]


@pytest.mark.parametrize("chosen", [[], None, [False] * 5], ids=repr)
def test_nothing_is_a_category_if_none_is_chosen(chosen):
    assert not read_table(DATA["level"], chosen).schema.is_categorical.any()


@pytest.mark.parametrize(
    ("chosen", "error", "parts"),
    [
        (["plane"], ValueError, ("'plane'", "'plain'", "'two words'")),
        ([5], ValueError, ("has 5", "0 to 4")),
        ([-1], ValueError, ("has -1", "0 to 4")),
        ([True], ValueError, ("1 booleans", "5 features")),
        ("plain", TypeError, ("'plain'", "'auto', None, or a list")),
        (3, TypeError, ("=3", "'auto', None, or a list")),
        ([1.0], TypeError, ("1.0", "'auto', None, or a list")),
        ([0, True], TypeError, ("True", "'auto', None, or a list")),
        ([["plain"]], TypeError, ("['plain']", "'auto', None, or a list")),
    ],
    ids=repr,
)
def test_choice_that_no_column_fits_is_told(chosen, error, parts):
    with pytest.raises(error, match=says("categorical_features", *parts)):
        BinMapper(categorical_features=chosen).fit(MIXED)


def test_names_cannot_choose_among_columns_without_names():
    with pytest.raises(ValueError, match=says("categorical_features has 'plain'", "no names")):
        BinMapper(categorical_features=["plain"]).fit(DATA["level"])


@pytest.mark.parametrize(
    "make", [np.array, sparse.csr_array, sparse.csc_array, pd.DataFrame, polars_frame]
)
def test_chosen_numbers_are_categories_of_any_table(make):
    values = np.nan_to_num(DATA["level or missing"])
    mapper = BinMapper(categorical_features=[4, 1]).fit(make(values))
    assert list(mapper.encoding_.categories) == [1, 4]
    assert list(mapper.encoding_.categories[4].code_of) == [0.0, 1.0, 2.0, 3.0]
    np.testing.assert_array_equal(codes(mapper, make(values))[:, 4], values[:, 4])


def test_truth_values_are_numbers_unless_chosen():
    X = pd.DataFrame({"a": [True, False, True]})
    assert read_table(X).kind.tolist() == [Kind.NUMERIC]
    assert list(read_table(X, ["a"]).categories(0)) == [[1.0, 0.0, 1.0]]


def test_rows_are_counted_from_the_first_whatever_the_index_says():
    X = pandas_with(words)(DATA["level"]).set_index(np.arange(60)[::-1] // 2)
    X[NAMES[1]] = X[NAMES[1]].astype(pd.SparseDtype(float, np.nan))
    taken = read_table(X).take(ROWS)
    np.testing.assert_array_equal(taken.floats(EVERY[:4]), DATA["level"][ROWS, :4])
    assert list(taken.categories(4)) == [words(DATA["level"][ROWS, 4])]


def test_integer_names_of_columns_are_no_places():
    X = pd.DataFrame({2: [1.0, 2.0], 0: pd.arrays.SparseArray([0, 7], fill_value=0), 1: [5, 6]})
    table = read_table(X)
    np.testing.assert_array_equal(table.floats(np.arange(3)), [[1, 0, 5], [2, 7, 6]])


def test_name_that_looks_like_a_pattern_is_a_name():
    X = pl.DataFrame({"^a.*$": [1.0, 2.0], "ab": [3.0, 2.0]})
    mapper = BinMapper().fit(X)
    np.testing.assert_array_equal(codes(mapper, X[:, [1, 0]]), codes(mapper, X))


def test_integers_beyond_all_floats_are_infinite():
    values = [[10**400], [-(10**400)], [1]]
    for X in (pd.DataFrame(values, dtype=object), values, np.array(values, dtype=object)):
        assert read_table(X).floats(np.array([0])).ravel().tolist() == [np.inf, -np.inf, 1.0]


def test_mapper_refuses_a_table_that_is_binned():
    mapper = BinMapper().fit(DATA["floats"])
    table = mapper.transform(DATA["floats"])
    for method in (mapper.fit, mapper.transform):
        with pytest.raises(TypeError, match="X is a BinnedTable; expected a table of values"):
            method(table)


def test_missing_values_are_no_category():
    X = pd.DataFrame({"a": pd.Series(["x", None, np.nan, pd.NA, pd.NaT, ""], dtype=object)})
    assert list(read_table(X).categories(0)) == [["x", None, None, None, None, ""]]


def test_minus_zero_is_the_category_zero():
    (categories,) = read_table(np.array([[-0.0], [0.0], [1.0]]), [0]).categories(0)
    assert [np.signbit(category) for category in categories] == [False] * 3


def test_categories_come_in_chunks():
    n = 65_536 + 3
    for X in (np.arange(float(n))[:, None], pl.DataFrame({"a": np.arange(n).astype(str)})):
        sizes = [len(chunk) for chunk in read_table(X, [0]).categories(0)]
        assert sizes == [65_536, 3]


# ------------------------------------------------------------------------------------------- memory


def test_floats_are_not_copied():
    values = DATA["floats"].copy()
    for X in (values, np.asfortranarray(values), values[::2, 1:]):
        table = read_table(X)
        assert np.shares_memory(table.floats(np.arange(X.shape[1])), X)
        assert np.shares_memory(table.take(slice(3, 9)).floats(np.array([1, 2])), X)


@each([case for case in WORKS if sparse.issparse(case.table()) and hasattr(case.table(), "indptr")])
def test_reading_leaves_a_sparse_matrix_alone(case):
    X, before = case.table(), case.table()
    BinMapper().fit(X).transform(X)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, name), getattr(before, name), strict=True)


@pytest.mark.parametrize("fill", [0.0, 2.5, np.nan])
def test_sparse_columns_are_listed_with_their_fill(fill):
    X = pd.DataFrame(
        {"a": pd.arrays.SparseArray([fill, 7.0, fill, 9.0], fill_value=fill), "b": 1.0}
    )
    part = read_table(X[["b", "a"]]).sparse_part()
    assert part.features.tolist() == [1]
    np.testing.assert_array_equal(part.fill, [fill])
    assert (part.indptr.tolist(), part.indices.tolist()) == ([0, 2], [1, 3])
    assert part.data.tolist() == [7.0, 9.0]
    assert (part.features.dtype, part.indices.dtype) == (np.int32, np.int32)
    assert part.indptr.dtype == np.int64


def test_sparse_part_leaves_out_categories():
    table = read_table(sparse.csr_array(np.diag([1.0, 2.0, 3.0])), [1])
    assert table.sparse_part().features.tolist() == [0, 2]
    assert table.sparse_part().data.tolist() == [1.0, 3.0]
    assert read_table(sparse.csr_array(np.eye(2)), [0, 1]).sparse_part() is None
    assert read_table(np.eye(2)).sparse_part() is None


# ------------------------------------------------------------------------------------------- schema


def test_table_of_other_columns_is_refused():
    X = pandas_frame(DATA["floats"])
    mapper = BinMapper().fit(X)
    for other in (X[NAMES[::-1]], DATA["floats"], X.astype({"plain": "category"})):
        with pytest.raises(ValueError, match="Table with other columns"):
            mapper.transform(read_table(other))
    np.testing.assert_array_equal(codes(mapper, read_table(X)), codes(mapper, X))


def test_category_in_fit_is_a_category_of_whatever_comes():
    schema = Schema(np.array([True, False]))
    assert read_table_like(np.ones((3, 2)), schema).kind.tolist() == [2, 0]
    assert read_table_like(sparse.csr_array((3, 2)), schema).kind.tolist() == [2, 1]
    assert read_table_like(pd.DataFrame({0: ["a"], 1: [2]}), schema).kind.tolist() == [2, 0]


@each(WORKS)
def test_no_warning_leaks(case):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        X = case.table()
        del caught[:]
        BinMapper().fit(X)
    assert caught == []
