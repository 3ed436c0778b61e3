"""Labels of every type that fit accepts come back as they came; the others are refused first."""

import datetime
import enum
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from abcgbm import AdaptiveBaseClass, LargeTable, MultiOutputTrees
from abcgbm.cli import main
from model_files import content_of, loaded
from models import assert_same_model, noisy_data, small

X, CODE = noisy_data(n_rows=90, n_classes=2)
SMALL = {"max_iter": 2, "max_leaf_nodes": 3}
DAYS = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]
TIMES = [datetime.datetime(2024, 1, 1, 5), datetime.datetime(2024, 1, 2)]
DURATIONS = [datetime.timedelta(1), datetime.timedelta(2)]

# For each type: its two labels, the type of an Arrow column of them, and the NumPy type it becomes.
ARROW = {
    "bool": ([False, True], pa.bool_(), "?"),
    "int8": ([1, 2], pa.int8(), "i1"),
    "int64": ([-(2**53) - 1, 2**53 + 1], pa.int64(), "i8"),
    "uint64": ([1, 2**64 - 1], pa.uint64(), "u8"),
    "float16": ([np.float16(1), np.float16(2)], pa.float16(), "f2"),
    "float32": ([1.0, 2.0], pa.float32(), "f4"),
    "float64": ([1.0, 2.0], pa.float64(), "f8"),
    "string": (["a", "a\0"], pa.string(), "O"),
    "large string": (["a", "b"], pa.large_string(), "O"),
    "binary": ([b"a", b"b"], pa.binary(), "O"),
    "date32": (DAYS, pa.date32(), "M8[D]"),
    "date64": (DAYS, pa.date64(), "M8[ms]"),
    "timestamp[s]": (TIMES, pa.timestamp("s"), "M8[s]"),
    "timestamp[us]": (TIMES, pa.timestamp("us"), "M8[us]"),
    "timestamp[ns]": (TIMES, pa.timestamp("ns"), "M8[ns]"),
    "duration": (DURATIONS, pa.duration("us"), "m8[us]"),
}
KEPT_BY_POLARS = [name for name in ARROW if name != "timestamp[s]"]
NUMPY = {
    **{kind: np.array([0, 1], kind) for kind in ("i1", "u2", "i4", "u8", ">i4", "f2", "f4", ">f8")},
    "?": np.array([False, True]),
    "U": np.array(["a", "bc"]),
    **{f"M8[{unit}]": np.array([3, 5], f"M8[{unit}]") for unit in ("D", "h", "s", "ns")},
    "m8[s]": np.array([3, 5], "m8[s]"),
}
PANDAS = {
    "boolean": [False, True],
    "Int8": [1, 2],
    "UInt64": [1, 2**64 - 1],
    "Float32": [1.0, 2.0],
    "string": ["a", "b"],
    "datetime64[s]": TIMES,
    "datetime64[ns]": TIMES,
    "timedelta64[ms]": DURATIONS,
    "bool": [False, True],
    "int64": [1, 2],
    "float32": [1.0, 2.0],
    "object": DAYS,
}
NEVER_MISSING = ("bool", "int64")
LISTS = {
    "bool": ([False, True], "?"),
    "int": ([1, 2], "i8"),
    "large int": ([1, 2**64 - 1], "u8"),
    "float": ([1.0, 2.0], "f8"),
    "str": (["a", "b"], "<U1"),
    "bytes": ([b"a", b"b"], "O"),
    "date": (DAYS, "O"),
    "datetime": (TIMES, "O"),
    "UTC": ([time.replace(tzinfo=datetime.UTC) for time in TIMES], "O"),
    "timedelta": (DURATIONS, "O"),
    "np.int16": ([np.int16(1), np.int16(2)], "i2"),
    "np.bool": ([np.False_, np.True_], "?"),
    "np.datetime64": ([np.datetime64("2024-01-01"), np.datetime64("2024-01-02")], "M8[D]"),
}


def assert_come_back(y, expected):
    """The classes, the answers and a loaded model have these labels, of their very type."""
    expected = np.asarray(expected)
    model = small(**SMALL).fit(X, y)
    for found in (model.classes_, loaded(content_of(model)).classes_):
        assert found.dtype == expected.dtype
        assert found.tolist() == expected.tolist()
        assert [*map(type, found)] == [*map(type, expected)]
    predicted = model.predict(X)
    assert predicted.dtype == expected.dtype
    assert (predicted == expected[CODE]).mean() > 0.6


def numpy_of(labels, dtype):
    """The labels as NumPy has them; times of Python become those of a unit."""
    if np.dtype(dtype) != object:
        return np.array(labels, dtype)
    return np.fromiter(labels, dtype=object, count=len(labels))


def arrow_array(name):
    labels, of, _ = ARROW[name]
    return pa.array([labels[code] for code in CODE], type=of)


@pytest.mark.parametrize("name", ARROW)
def test_labels_of_arrow_come_back(name):
    array, expected = arrow_array(name), numpy_of(ARROW[name][0], ARROW[name][2])
    dictionary = array.dictionary_encode()
    for y in (array, pa.chunked_array([array[:7], array[7:]]), dictionary):
        assert_come_back(y, expected)
    for column in (array, dictionary):
        assert_come_back(pd.Series(pd.arrays.ArrowExtensionArray(column)), expected)


@pytest.mark.parametrize("name", [name for name in ARROW if name != "float16"])
def test_categories_of_arrow_come_back(name):
    series = pd.Series(pd.arrays.ArrowExtensionArray(arrow_array(name)))
    assert_come_back(series.astype("category"), numpy_of(ARROW[name][0], ARROW[name][2]))


@pytest.mark.parametrize("name", KEPT_BY_POLARS)
def test_labels_of_polars_come_back(name):
    labels, _, dtype = ARROW[name]
    dtype = "<U1" if name == "large string" else dtype  # which NumPy's strings hold, here
    assert_come_back(pl.from_arrow(arrow_array(name)), numpy_of(labels, dtype))


@pytest.mark.parametrize("labels", NUMPY.values(), ids=NUMPY)
def test_labels_of_numpy_come_back(labels):
    assert_come_back(labels[CODE], labels)
    assert_come_back(np.ma.array(labels[CODE]), labels)


def test_labels_that_are_numpy_strings_of_any_length_come_back_as_strings():
    labels = np.array(["a", "bc"], np.dtypes.StringDType())
    assert_come_back(labels[CODE], np.array(["a", "bc"], object))


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("name", PANDAS)
def test_labels_of_pandas_come_back_from_every_container(name):
    y = pd.Series([PANDAS[name][code] for code in CODE], dtype=name)
    numpy_type = getattr(y.dtype, "numpy_dtype", y.dtype if name != "string" else object)
    expected = numpy_of(PANDAS[name], numpy_type)
    for container in (y, y.array, pd.Index(y), y.to_frame()):
        assert_come_back(container, expected)
    for categories in (y.astype("category"), pd.Categorical(y), pd.CategoricalIndex(y)):
        assert_come_back(categories, expected)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32])
def test_sparse_labels_of_pandas_come_back(dtype):
    assert_come_back(pd.Series(pd.arrays.SparseArray(CODE.astype(dtype))), np.array([0, 1], dtype))


@pytest.mark.parametrize(("labels", "dtype"), LISTS.values(), ids=LISTS)
def test_labels_in_lists_and_arrays_of_objects_come_back(labels, dtype):
    y = [labels[code] for code in CODE]
    for form in (y, tuple(y)):
        assert_come_back(form, numpy_of(labels, dtype))
    objects = np.fromiter(y, dtype=object, count=len(y))
    expected = numpy_of(labels, "O" if dtype == "<U1" else dtype)
    assert_come_back(objects, expected)
    assert_come_back(pd.Series(objects, dtype=object), expected)


@pytest.mark.parametrize(
    ("name", "is_categorical"),
    [(name, True) for name in PANDAS]
    + [(name, False) for name in PANDAS if name not in NEVER_MISSING],
)
def test_labels_beside_a_missing_one_of_an_absent_row_come_back(name, is_categorical):
    y = pd.Series([PANDAS[name][code] for code in CODE], dtype=name)
    y = y.astype("category") if is_categorical else y
    with_one = pd.concat([y, pd.Series([None], dtype=y.dtype)], ignore_index=True)
    weight = np.append(np.ones(len(CODE)), 0.0)
    rows = np.vstack([X, X[:1]])
    found = small(**SMALL).fit(rows, with_one, weight).classes_
    expected = small(**SMALL).fit(X, y).classes_
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("name", ARROW)
def test_labels_of_arrow_beside_a_missing_one_of_an_absent_row_come_back(name):
    labels, of, dtype = ARROW[name]
    y = pa.array([*(labels[code] for code in CODE), None], type=of)
    weight, rows = np.append(np.ones(len(CODE)), 0.0), np.vstack([X, X[:1]])
    for form in (y, pl.from_arrow(y)) if name in KEPT_BY_POLARS else (y,):
        found = small(**SMALL).fit(rows, form, weight).classes_
        assert found.dtype == np.dtype(dtype)
        assert found.tolist() == numpy_of(labels, dtype).tolist()


def test_masked_times_of_an_absent_row_leave_times():
    y = np.ma.array(NUMPY["M8[ns]"][CODE], mask=np.arange(len(CODE)) == 3)
    found = small(**SMALL).fit(X, y, np.arange(len(CODE)) != 3).classes_
    assert found.dtype == np.dtype("M8[ns]")


def test_classes_may_be_categories_that_are_truth_values():
    model = small(classes=pd.Categorical([True, False]), **SMALL).fit(X, CODE == 1)
    assert model.classes_.dtype == bool
    model = small(**SMALL).fit(X, CODE == 1, X_val=X, y_val=pd.Categorical(CODE == 1))
    np.testing.assert_array_equal(model.validation_loss_, model.train_loss_)


# ---------------------------------------------------------------- refused before the first step


class Tree(str, enum.Enum):  # noqa: UP042 (not the StrEnum that str() writes as its value)
    ASH = "ash"
    FIR = "fir"


class Name(str):
    __slots__ = ()


class Other(AdaptiveBaseClass):
    pass


BERLIN = ZoneInfo("Europe/Berlin")
UNSAVABLE = {
    "Timestamp": [pd.Timestamp(2024, 1, 1), pd.Timestamp(2024, 1, 2)],
    "Timedelta": [pd.Timedelta(1), pd.Timedelta(2)],
    "Tree": [*Tree],
    "Name": [Name("a"), Name("b")],
    "zone": [time.replace(tzinfo=BERLIN) for time in TIMES],
    "longdouble": [np.longdouble(1), np.longdouble(2)],
}


def never(_):
    raise AssertionError("a step was made")


@pytest.mark.skipif(np.longdouble(0).itemsize == 8, reason="a long double is a double here")
@pytest.mark.parametrize("labels", UNSAVABLE.values(), ids=UNSAVABLE)
def test_labels_that_no_file_can_hold_are_refused_before_training(labels):
    y = np.fromiter((labels[code] for code in CODE), dtype=object, count=len(CODE))
    for form in (y, y.tolist()):
        message = (
            "y has labels such as .* cannot be held by a model file; expected strings, .*dates"
        )
        with pytest.raises(TypeError, match=message):
            small(callbacks=never).fit(X, form)


def zoned(zone):
    """Times of a zone in every container that has zones."""
    naive = pd.Series([TIMES[code] for code in CODE])
    series, array = naive.dt.tz_localize(zone), pa.array(naive, pa.timestamp("us", zone))
    return {
        "Series": series,
        "Index": pd.Index(series),
        "array": series.array,
        "Categorical": pd.Categorical(series),
        "Arrow": array,
        "Arrow chunks": pa.chunked_array([array]),
        "Arrow dictionary": array.dictionary_encode(),
        "pandas on Arrow": pd.Series(pd.arrays.ArrowExtensionArray(array)),
        "polars": pl.from_arrow(array),
        "with a missing one": series.where(np.arange(len(CODE)) != 3),
    }


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("container", zoned("UTC"))
def test_times_of_a_zone_are_refused_before_training(container, zone):
    with pytest.raises(
        TypeError, match=f"y has times in the zone '{zone}'; expected times without"
    ):
        small(callbacks=never).fit(X, zoned(zone)[container])


def test_times_of_a_zone_in_a_file_are_refused(tmp_path, capsys):
    table = pa.table({"x": X[:, 0], "when": zoned("UTC")["Arrow"]})
    path = tmp_path / "t.parquet"
    parquet.write_table(table, path)
    with pytest.raises(
        TypeError, match=r"column 'when' of LargeTable.* has times in the zone 'UTC'"
    ):
        small(callbacks=never).fit(LargeTable(path), "when")
    assert main(["train", str(path), "--label", "when", "--model", str(tmp_path / "m")]) != 0
    assert "the column of labels has times in the zone 'UTC'" in capsys.readouterr().err


def test_base_label_that_no_file_can_hold_is_refused_before_training():
    days = np.array(["2024-01-01", "2024-01-02"], "M8[ns]")
    fixed = AdaptiveBaseClass(base_label=pd.Timestamp(days[0]))
    with pytest.raises(TypeError, match=r"algorithm=AdaptiveBaseClass.*cannot be held by a model"):
        small(fixed, callbacks=never).fit(X, days[CODE])


def test_algorithm_of_another_class_trains_as_that_of_its_base():
    model = small(Other(gap=2), **SMALL).fit(X, CODE)
    assert_same_model(model, small(AdaptiveBaseClass(gap=2), **SMALL).fit(X, CODE))
    with pytest.warns(UserWarning, match=r"cannot hold the value of algorithm \(of type Other\)"):
        content = content_of(model)
    assert loaded(content).algorithm == "auto"


@pytest.mark.parametrize("kind", [np.str_, Name, Tree], ids=lambda kind: kind.__name__)
def test_names_of_features_that_are_a_kind_of_string_are_saved(kind):
    names = pd.Index(list(map(kind, ["ash", "fir"])), dtype=object)
    model = small(**SMALL).fit(pd.DataFrame(X[:, :2], columns=names), CODE)
    assert loaded(content_of(model)).feature_names_in_.tolist() == ["ash", "fir"]
    assert {*map(type, model.feature_names_in_)} == {str}


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("max_features", {"max_features": Name("sqrt")}),
        ("algorithm", {"algorithm": MultiOutputTrees(n_projections=Name("all"))}),
    ],
)
def test_choice_that_is_a_kind_of_string_is_saved(name, given):
    model = small(**given, **SMALL).fit(X, CODE)
    with pytest.warns(UserWarning, match=f"cannot hold the value of {name}"):
        content = content_of(model)
    assert loaded(content).resolved_params_ == model.resolved_params_
