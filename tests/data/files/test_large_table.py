"""Tables in parts as strangers give them: the model of the whole table, or an error that says why."""

import os

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.dataset
import pyarrow.parquet

from abcgbm import ABCBoostClassifier, Categorical, Checkpoint, LargeTable
from abcgbm.data.files import batched_table as parted_table
from large_files import (
    BATCHES,
    FEW,
    N_ROWS,
    TABLE,
    WRITERS,
    assert_same,
    fit,
    fit_in_memory,
    made_table,
    model_bytes,
    raised,
    replaced,
    written,
)

# ------------------------------------------------------------------------------ what is taken together

TEXT, NUMBERS = BATCHES[1]["s"], BATCHES[1]["b"]
OTHER_TYPES = {
    "nothing among numbers": ("b", pa.nulls(20)),
    "nothing among strings": ("s", pa.nulls(20)),
    "narrow": ("b", NUMBERS.cast(pa.int8())),
    "floats": ("b", BATCHES[1]["a"]),
    "decimals": ("b", NUMBERS.cast(pa.decimal128(20, 1))),
    "large strings": ("s", TEXT.cast(pa.large_string())),
    "views": ("s", TEXT.cast(pa.string_view())),
    "dictionary": ("s", TEXT.dictionary_encode()),
    "dictionary of labels": ("y", BATCHES[1]["y"].dictionary_encode()),
}


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("source", ["parquet", "feather", "batches"])
@pytest.mark.parametrize("name", OTHER_TYPES)
def test_columns_of_one_kind_are_one_column_whatever_their_types(name, source, place, tmp_path):
    column, values = OTHER_TYPES[name]
    parts, plain = [BATCHES[0], BATCHES[2]], [BATCHES[0], BATCHES[2]]
    parts.insert(place, replaced(BATCHES[1], column, values))
    is_same = values.null_count == 0 and name != "floats"
    plain.insert(place, BATCHES[1] if is_same else parts[place])
    given = LargeTable(parts) if source == "batches" else written(tmp_path, parts, source)
    assert_same(given, pa.concat_tables(plain, promote_options="permissive"))


LABELS = {
    "int8 and int64": (pa.array([1] * 20, pa.int8()), pa.array([300] * 20)),
    "integers and floats": (pa.array([1] * 20), pa.array([2.0] * 20)),
    "dictionaries": (pa.array(["p"] * 20).dictionary_encode(), BATCHES[1]["y"].dictionary_encode()),
    "booleans": (pa.array([True] * 20), pa.array([False] * 20)),
}


@pytest.mark.parametrize("source", ["parquet", "batches"])
@pytest.mark.parametrize("labels", LABELS)
def test_labels_of_all_files_are_the_classes(labels, source, tmp_path):
    parts = [replaced(p, "y", y) for p, y in zip(BATCHES[:2], LABELS[labels], strict=True)]
    given = LargeTable(parts) if source == "batches" else written(tmp_path, parts)
    assert_same(given, pa.concat_tables(parts, promote_options="permissive"))


def with_hidden_files(folder):
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "p.parquet").write_bytes(b"half a file")
    (folder / "_SUCCESS").touch()
    return folder


SOURCES = {
    "list of paths": lambda folder: sorted(folder.iterdir()),
    "list of texts": lambda folder: [str(path) for path in sorted(folder.iterdir())],
    "tables": lambda folder: BATCHES,
    "record batches": lambda folder: tuple(TABLE.to_batches(max_chunksize=20)),
    "without hidden ones": with_hidden_files,
}


@pytest.mark.parametrize("source", SOURCES)
def test_fit_and_predict_take(source, tmp_path):
    given = SOURCES[source](written(tmp_path, BATCHES))
    assert_same(given, TABLE)
    model = fit(given)
    assert model.predict(given).tolist() == model.predict(TABLE.drop(["y"])).tolist()


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("place", [0, 3])
def test_files_without_rows_and_columns_in_another_order_play_no_part(ending, place, tmp_path):
    parts = [BATCHES[0], BATCHES[1].select(["y", "b", "s", "a"]), BATCHES[2]]
    parts.insert(place, TABLE.slice(0, 0))
    assert_same(written(tmp_path, parts, ending), TABLE)


@pytest.mark.filterwarnings("ignore:no iteration improves the validation score")
@pytest.mark.parametrize(
    "settings",
    [
        {"early_stopping": True, "validation_fraction": 0.3, "refit": True},
        {"class_weight": {"p": 0.0}},
        {"class_weight": "balanced", "early_stopping": True, "scoring": "error"},
    ],
    ids=str,
)
def test_model_is_that_of_memory_with(settings, tmp_path):
    assert_same(written(tmp_path, BATCHES), TABLE, **settings)


def test_warm_start_from_files_keeps_that_there_were_no_names(tmp_path):
    numbers = TABLE.select(["a", "b"]).to_pandas().to_numpy()

    def grown(X, y):
        model = ABCBoostClassifier(**FEW, warm_start=True).fit(numbers, TABLE["y"])
        return model_bytes(model.set_params(max_iter=6).fit(X, y))

    large = LargeTable(written(tmp_path, BATCHES), ignore="s")
    assert grown(large, "y") == grown(numbers, TABLE["y"])


@pytest.mark.parametrize(("first", "second"), [("files", "memory"), ("memory", "files")])
def test_checkpoint_of_files_is_that_of_memory(first, second, tmp_path):
    folder = tmp_path / "table"
    folder.mkdir()
    data = {
        "files": (written(folder, BATCHES), "y"),
        "memory": (TABLE.drop(["y"]), TABLE["y"]),
    }
    path = tmp_path / "checkpoint"
    fit(*data[first], settings={"max_iter": 2, "callbacks": [Checkpoint(path, every=1)]})
    model = fit(*data[second], resume_from=path)
    assert model_bytes(model) == model_bytes(fit_in_memory(TABLE))


# ------------------------------------------------------------------------------------ what is refused


FILES_THAT_DIFFER = {
    "b is gone": (replaced(BATCHES[1], "b", None), "no column 'b'"),
    "labels are gone": (replaced(BATCHES[1], "y", None), "no column 'y'"),
    "one more": (BATCHES[1].append_column("z", TEXT), "a column 'z'"),
    "strings for numbers": (
        replaced(BATCHES[1], "b", TEXT),
        "string in column 'b'; expected int64",
    ),
    "numbers for labels": (
        replaced(BATCHES[1], "y", NUMBERS),
        "int64 in column 'y'; expected string",
    ),
    "booleans": (replaced(BATCHES[1], "b", pa.array([True] * 20)), "bool in column 'b'"),
}


@pytest.mark.parametrize("ending", ["parquet", "feather"])
@pytest.mark.parametrize("name", FILES_THAT_DIFFER)
def test_file_that_differs_is_named(name, ending, tmp_path):
    part, _ = FILES_THAT_DIFFER[name]
    message = raised(ValueError, fit, written(tmp_path, [BATCHES[0], part, BATCHES[2]], ending))
    assert message.startswith(str(tmp_path / f"p1.{ending}"))
    assert "expected" in message


@pytest.mark.parametrize("name", FILES_THAT_DIFFER)
def test_batch_that_differs_is_named(name):
    part, what = FILES_THAT_DIFFER[name]
    message = raised((ValueError, TypeError), fit, LargeTable([BATCHES[0], part, BATCHES[2]]))
    assert message.startswith(f"batch 1 has {what}")
    assert "expected" in message


DAMAGES = {
    "no bytes": lambda path: os.truncate(path, 0),
    "half of it": lambda path: os.truncate(path, path.stat().st_size // 2),
    "other bytes": lambda path: overwritten(path, 50, b"\xff" * 250),
}


def overwritten(path, place, data):
    content = bytearray(path.read_bytes())
    content[place : place + len(data)] = data
    path.write_bytes(content)


@pytest.mark.parametrize("memory", [None, 10])
@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_named(damage, ending, memory, tmp_path):
    path = written(tmp_path, BATCHES, ending) / f"p1.{ending}"
    DAMAGES[damage](path)
    assert str(path) in raised(ValueError, lambda: fit(LargeTable(tmp_path, memory=memory)))


def test_damaged_file_of_a_data_set_is_named(tmp_path):
    dataset = pyarrow.dataset.dataset(written(tmp_path, BATCHES))
    overwritten(tmp_path / "p1.parquet", 50, b"\xff" * 250)
    assert str(tmp_path / "p1.parquet") in raised(ValueError, fit, dataset)


def test_folder_that_names_a_value_is_refused_since_that_would_be_lost(tmp_path):
    for name in ("k=1", "k=2"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, BATCHES)
    assert "partitioning='hive'" in raised(ValueError, fit, tmp_path)
    dataset = pyarrow.dataset.dataset(tmp_path, partitioning="hive")
    assert "k" in fit(dataset).feature_names_in_


NO_LABELS = {
    "list": pa.array([[1]] * N_ROWS),
    "struct": pa.array([{"k": 1}] * N_ROWS),
    "decimal": pa.array([1] * N_ROWS).cast(pa.decimal128(20)),
}
NO_WEIGHTS = {
    "string": pa.array(["1"] * N_ROWS),
    "date": pa.array([1] * N_ROWS, pa.date32()),
    "list": pa.array([[1]] * N_ROWS),
}


@pytest.mark.parametrize(
    ("role", "of"),
    [*(("y", of) for of in NO_LABELS), *(("w", of) for of in NO_WEIGHTS)],
)
def test_column_that_holds_no_labels_or_weights_is_named(role, of, tmp_path):
    columns = {"y": NO_LABELS.get(of)} if role == "y" else {"w": NO_WEIGHTS[of]}
    folder = written(tmp_path, [made_table(**columns)])
    message = raised(TypeError, fit, folder, "y", "w" if role == "w" else None)
    assert f"column {role!r}" in message
    assert of in message
    assert "expected" in message


WEIGHTS = {"null": None, "nan": float("nan"), "-1.0": -1.0, "inf": float("inf")}


@pytest.mark.parametrize("shown", WEIGHTS)
def test_weight_that_is_none_names_its_row(shown, tmp_path):
    weights = pa.array([1.0] * 41 + [WEIGHTS[shown]] + [1.0] * 18)
    whole = made_table(w=weights)
    folder = written(tmp_path, [whole.slice(0, 40), whole.slice(40)])
    assert "at row 41" in raised(ValueError, fit, folder, "y", "w")


def test_label_that_is_missing_names_its_row(tmp_path):
    labels = pa.array([*["p", "q"] * 20, None, *["p"] * 19])
    whole = made_table(y=labels)
    assert "first at 40" in raised(
        ValueError, fit, written(tmp_path, [whole.slice(0, 30), whole.slice(30)])
    )


def beside(folder, table):
    path = folder.parent / "other.parquet"
    pyarrow.parquet.write_table(table, path)
    return path


def fit_with_unknown_category(folder):
    other = beside(folder, replaced(TABLE, "s", pa.array(["zz"] * N_ROWS)))
    fit(folder, X_val=other, settings={"categorical_features": Categorical(handle_unknown="error")})


def fit_with_scorer(folder):
    fit(folder, settings={"early_stopping": True, "scoring": lambda model, X, y: 0.0})


ARGUMENTS = {
    "y unknown": (lambda X: fit(X, "label"), "y='label'; expected the name of a column"),
    "y array": (lambda X: fit(X, np.zeros(10**5)), "y=array([0., 0., "),
    "y none": (lambda X: fit(X, None), "y=None; expected the name of a column"),
    "weight unknown": (lambda X: fit(X, "y", "w"), "sample_weight='w'; expected the name of"),
    "weight is y": (lambda X: fit(X, "y", "y"), "sample_weight='y' is also y; expected another"),
    "y name of a frame": (lambda X: fit(TABLE, "y"), "y='y'; expected one label for each row"),
    "no features": (
        lambda X: fit(LargeTable(X, ignore=["a", "b", "s"])),
        "expected at least one feature",
    ),
    "ignored": (lambda X: LargeTable(X, ignore="label"), "ignore='label'; expected the name of"),
    "missing": (lambda X: LargeTable(X, missing=[3]), "missing=[3]; expected strings"),
    "memory": (lambda X: LargeTable(X, memory="abc"), "memory='abc'; expected a number of bytes"),
    "no memory": (lambda X: LargeTable(X, memory=0), "memory=0; expected a number of bytes"),
    "no folder": (lambda X: LargeTable(X, cache_dir=X / "none"), "expected an existing folder"),
    "number for folder": (lambda X: LargeTable(X, cache_dir=3), "cache_dir=3; expected the path"),
    "no such file": (lambda X: fit(X / "none.parquet"), "none.parquet: no such file"),
    "address": (lambda X: fit("s3://bucket/x"), "s3://bucket/x: a URL, not a path; expected"),
    "no such pattern": (lambda X: fit(str(X / "*.csv")), "*.csv: no table file found; expected"),
    "generator": (
        lambda X: LargeTable(p for p in BATCHES),
        "generator, which can be iterated only once",
    ),
    "table": (lambda X: LargeTable(TABLE), "X is of type Table, a table in memory"),
    "number": (lambda X: LargeTable(3), "X is of type int; expected a path"),
    "nothing": (lambda X: LargeTable([]), "X has no batches; expected at least one"),
    "batch": (lambda X: LargeTable([3]), "batch 0 is of type int; expected one of"),
    "no iterable": (lambda X: LargeTable(lambda: None), "the function returned NoneType; expected"),
    "names": (lambda X: LargeTable([named_twice()]), "batch 0 has duplicate column names: 'a'"),
    "X_val": (lambda X: fit(X, X_val=without_b(X)), "has no column 'b', which the model was"),
    "unknown category": (fit_with_unknown_category, "column 's' has unknown categories 'zz'"),
    "predict": (lambda X: fit(X).predict(without_b(X)), "has no column 'b', which the model was"),
    "predict nothing": (lambda X: fit(X).predict(no_rows(X)), "which has no rows; expected"),
    "scorer": (fit_with_scorer, "scoring='loss' or 'error' is required"),
}


def named_twice():
    return pa.Table.from_arrays([pa.array([1, 2])] * 3, names=["a", "a", "y"])


def without_b(folder):
    return beside(folder, TABLE.drop(["b"]))


def no_rows(folder):
    return beside(folder, TABLE.slice(0, 0))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_argument_is_refused(name, tmp_path):
    folder = tmp_path / "table"
    folder.mkdir()
    act, expected = ARGUMENTS[name]
    message = raised((ValueError, TypeError), act, written(folder, BATCHES))
    assert expected in message
    assert len(message) < 600


def test_memory_is_a_number_with_a_unit():
    found = [LargeTable(BATCHES, memory=m).memory for m in ("4 GB", "4gb", "1.5MB", "2 GiB", 77)]
    assert found == [4 * 10**9, 4 * 10**9, 1_500_000, 2**31, 77]


def test_codes_that_fit_nowhere_are_an_error_before_anything_is_coded(tmp_path, monkeypatch):
    monkeypatch.setattr(parted_table, "available_bytes", lambda: 100)
    large = LargeTable(written(tmp_path, BATCHES), memory=200)
    message = raised(MemoryError, fit, large)
    assert "60 rows x 3 features" in message
    assert "with a cache_dir" in message
    fit(LargeTable(tmp_path, memory=200, cache_dir=tmp_path))


def test_column_that_one_text_file_makes_text_is_told(tmp_path):
    written(tmp_path, [BATCHES[0], replaced(BATCHES[1], "b", TEXT), BATCHES[2]], "csv")
    with pytest.warns(
        UserWarning, match=r"column .b. is treated as text.*p1\.csv; in .*p0\.csv it only holds"
    ):
        model = fit(tmp_path)
    assert model.model_.encoding.schema.is_categorical.tolist() == [False, True, True]
