"""Columns and labels of table files: any type, batch size and name gives the result of Python."""

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from abcgbm import ABCBoostClassifier
from abcgbm.cli import main

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("typer")


def frame(n_rows=120, seed=0):
    """A table of two numbers, a category and the classes 1, 2 and 3."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "a": rng.normal(size=n_rows).round(3),
            "b": rng.integers(0, 9, n_rows),
            "c": rng.choice(["x", "y"], n_rows),
        }
    )
    table["y"] = 1 + (table["a"] > 0) + (table["b"] > 4)
    return table


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def trained(folder):
    frame().to_csv("t.csv", index=False)
    return train("t.csv")


def train(path, *options, label="y"):
    line = [
        "train",
        path,
        "-l",
        label,
        "-m",
        "m.abc",
        "--max-iter",
        "3",
        "--learning-rate",
        "0.15",
        "-q",
        "--force",
        *options,
    ]
    assert main(line) == 0
    return ABCBoostClassifier.load_model("m.abc")


def content(path):
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


def cut_into(monkeypatch, n_bytes):
    monkeypatch.setattr("abcgbm.data.files.csv.DelimitedFile.__init__.__defaults__", (n_bytes,))


def evaluated(capsys, path, *options):
    capsys.readouterr()
    assert main(["evaluate", "m.abc", path, "--label", "y", "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def last_line(capsys):
    return capsys.readouterr().err.splitlines()[-1]


# ----------------------------------------------------------------------------------------- features


def test_index_that_pandas_stored_is_no_feature(folder):
    table = frame()
    table.index = np.random.default_rng(1).permutation(len(table))
    table.to_parquet("t.parquet")
    table.rename_axis("id").to_parquet("named.parquet")
    for path in ("t.parquet", "named.parquet"):
        assert train(path).feature_names_in_.tolist() == ["a", "b", "c"]
        assert train(path, label="-1").feature_names_in_.tolist() == ["a", "b", "c"]
    assert main(["predict", "m.abc", "named.parquet", "--keep", "id", "-o", "p.csv"]) == 0
    assert pd.read_csv("p.csv")["id"].tolist() == table.index.tolist()


def test_model_that_learned_from_an_index_by_name_still_finds_it(folder):
    table = frame()
    table.index = pd.Index(np.random.default_rng(1).permutation(len(table)), name="id")
    model = ABCBoostClassifier(max_iter=2, learning_rate=0.15).fit(
        table.reset_index().drop(columns="y"), table["y"]
    )
    model.save_model("m.abc")
    table.to_parquet("t.parquet")
    assert main(["predict", "m.abc", "t.parquet", "-o", "p.csv"]) == 0


@pytest.mark.parametrize("command", ["predict", "evaluate", "report", "explain"])
def test_decimal_numbers_of_a_file_are_floats(folder, command):
    table = pa.Table.from_pandas(frame(), preserve_index=False)
    decimals = pa.array([Decimal(str(value)) for value in table["a"].to_pylist()])
    parquet.write_table(table, "floats.parquet")
    parquet.write_table(table.set_column(0, "a", decimals), "t.parquet", row_group_size=50)
    train("floats.parquet")
    expected = content("m.abc")
    train("t.parquet")
    assert content("m.abc") == expected
    label = ["--label", "y"] if command in ("evaluate", "report") else []
    output = [] if command == "evaluate" else ["-o", "o.html" if command == "report" else "o.csv"]
    assert main([command, "m.abc", "t.parquet", *label, *output]) == 0


def test_lines_of_decimal_commas_give_the_same_model(trained):
    expected = content("m.abc")
    frame().to_csv("comma.csv", index=False, decimal=",", sep=";")
    train("comma.csv", "--decimal", ",")
    assert content("m.abc") == expected


def test_training_reports_categorical_columns(folder, capsys):
    table = frame()
    for number in range(7):
        table[f"t{number}"] = "z"
    table.to_csv("t.csv", index=False)
    assert (
        main(
            [
                "train",
                "t.csv",
                "-l",
                "y",
                "-m",
                "m.abc",
                "--max-iter",
                "1",
                "--learning-rate",
                "0.15",
            ]
        )
        == 0
    )
    message = "t.csv: 120 rows, 10 features; categorical: 'c', 't0', 't1', 't2', 't3' and 3 more"
    assert message in capsys.readouterr().err


def test_narrow_sparse_files_are_padded_and_wide_ones_refused(folder, capsys):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (90, 6)), rng.integers(0, 3, 90)
    dump_svmlight_file(X, y, "t.svm", zero_based=False)
    dump_svmlight_file(X[:, :4], y, "few.svm", zero_based=False)
    dump_svmlight_file(np.c_[X, y + 1], y, "many.svm", zero_based=False)
    line = ["train", "t.svm", "-m", "m.abc", "--max-iter", "2", "--learning-rate", "0.15", "-q"]
    assert main([*line, "--valid", "few.svm"]) == 0
    padded = np.c_[X[:, :4], np.zeros((90, 2))]
    model = ABCBoostClassifier.load_model("m.abc")
    assert main(["predict", "m.abc", "few.svm", "-o", "p.csv"]) == 0
    np.testing.assert_array_equal(pd.read_csv("p.csv")["prediction"], model.predict(padded))
    for refused in (
        ["predict", "m.abc", "many.svm", "-o", "q.csv"],
        [*line, "-f", "--valid", "many.svm"],
    ):
        assert main(refused) == 1
        assert "many.svm, line 1: a value in column 7; expected at most 6" in last_line(capsys)


# ------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    "of", ["int8", "int16", "int32", "uint8", "uint64", "float32", "float64", "bool", "string"]
)
@pytest.mark.parametrize("is_dictionary", [False, True])
def test_labels_of_every_type_give_the_model_of_python(folder, capsys, of, is_dictionary):
    table = frame()
    if of == "bool":
        table["y"] = table["y"] > 1
    labels = pa.array(table["y"]).cast(of)
    arrow = pa.Table.from_pandas(table.drop(columns="y"), preserve_index=False)
    arrow = arrow.append_column("y", labels.dictionary_encode() if is_dictionary else labels)
    parquet.write_table(arrow, "t.parquet")
    found = train("t.parquet")
    read = pd.read_parquet("t.parquet")
    model = ABCBoostClassifier(max_iter=3, learning_rate=0.15).fit(
        read.drop(columns="y"), read["y"]
    )
    assert found.classes_.dtype == model.classes_.dtype
    model.save_model("python.abc")
    assert content("m.abc") == content("python.abc")
    expected = int((model.predict(read.drop(columns="y")) != np.asarray(read["y"])).sum())
    assert evaluated(capsys, "t.parquet")["errors"] == expected
    # and the same labels, spelled
    read.to_csv("t.csv", index=False)
    assert evaluated(capsys, "t.csv")["errors"] == expected


def test_decimal_labels_are_numbers(folder, capsys):
    table = pa.Table.from_pandas(frame(), preserve_index=False)
    decimals = pa.array([Decimal(value) for value in table["y"].to_pylist()])
    parquet.write_table(table.set_column(3, "y", decimals), "t.parquet")
    assert train("t.parquet").classes_.tolist() == [1.0, 2.0, 3.0]
    assert evaluated(capsys, "t.parquet")["rows_of_unknown_labels"] == 0


@pytest.mark.parametrize("n_bytes", [30, 300, 10**6])
def test_one_unknown_label_is_one_error_for_any_read_block_size(
    trained, capsys, monkeypatch, n_bytes
):
    table = frame(seed=1)
    X, y = table.drop(columns="y"), table["y"].astype(object)
    errors = int((trained.predict(X)[1:] != y[1:]).sum())
    table.assign(y=["x", *y[1:]]).to_csv("e.csv", index=False)
    cut_into(monkeypatch, n_bytes)
    found = evaluated(capsys, "e.csv")
    assert (found["rows"], found["errors"]) == (len(table), errors + 1)
    assert (found["rows_of_unknown_labels"], found["rows_without_label"]) == (1, 0)


def test_labels_match_by_numeric_value(trained, capsys):
    frame().to_csv("e.csv", index=False)
    expected = evaluated(capsys, "e.csv")
    table = frame()
    for spelled in ("+{}", " {}", "00{}", "{}.0", "{}e0"):
        table.assign(y=table["y"].map(spelled.format)).to_csv("e.csv", index=False)
        assert evaluated(capsys, "e.csv") == expected


def test_rows_without_a_label_are_dropped_and_reported(trained, capsys):
    table = frame()
    table.iloc[20:].to_csv("few.csv", index=False)
    expected = evaluated(capsys, "few.csv")
    table.astype({"y": object}).assign(y=[*[None] * 20, *table["y"][20:]]).to_csv(
        "e.csv", index=False
    )
    assert evaluated(capsys, "e.csv") == expected | {"rows_without_label": 20}
    assert main(["evaluate", "m.abc", "e.csv", "-l", "y"]) == 0
    assert "20 more rows have no label and are ignored\n" in capsys.readouterr().out
    assert main(["report", "m.abc", "e.csv", "-l", "y", "-o", "r.html"]) == 0
    assert "e.csv: 20 rows have no label and are ignored\n" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["evaluate", "report"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_column_without_labels_of_the_model_is_refused(trained, capsys, command, ending):
    table = frame()
    table.to_csv("e.csv", index=False)
    table.to_parquet("e.parquet")
    output = ["-o", "r.html"] if command == "report" else []
    assert main([command, "m.abc", f"e.{ending}", "--label", "c", *output]) == 1
    message = last_line(capsys)
    assert "'x'" in message
    assert "'y'" in message
    assert "expected some of 1, 2, 3" in message


@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_table_without_any_label_is_refused(trained, capsys, command):
    frame().assign(y=None).to_csv("e.csv", index=False)
    output = ["-o", "r.html"] if command == "report" else []
    assert main([command, "m.abc", "e.csv", "--label", "y", *output]) == 1
    assert "a label; expected a table with labels" in last_line(capsys)


def test_training_on_rows_without_a_label_is_refused(folder, capsys):
    table = frame().astype({"y": object})
    table.loc[[3, 4], "y"] = None
    table.to_csv("t.csv", index=False)
    assert main(["train", "t.csv", "-l", "y", "-m", "m.abc", "-q"]) == 1
    assert "t.csv, column 'y': 2 of 120 rows have no label" in last_line(capsys)


def test_missing_feature_of_the_validation_file_is_named(folder, capsys):
    pd.DataFrame({"a": range(40), "b": range(40), "y": [0, 1] * 20}).to_csv("t.csv", index=False)
    pd.DataFrame({"c": range(40), "a": range(40), "y": [0, 1] * 20}).to_csv("v.csv", index=False)
    line = ["train", "t.csv", "-l", "y", "-m", "m.abc", "-q", "--valid", "v.csv"]
    assert main(line) == 1
    message = "v.csv: columns of the training table are missing: 'b'; there are 'c', 'a', 'y'"
    assert message in last_line(capsys)


def test_error_names_only_the_non_numeric_validation_label(folder, capsys):
    table = frame().astype({"y": object})
    table.to_csv("t.csv", index=False)
    table.loc[5, "y"] = "x"
    table.to_csv("v.csv", index=False)
    line = ["train", "t.csv", "-l", "y", "-m", "m.abc", "-q", "--valid", "v.csv"]
    assert main(line) == 1
    assert "v.csv, column 'y': the labels 'x'; expected numbers" in last_line(capsys)


@pytest.mark.parametrize("command", ["evaluate", "inspect"])
def test_brackets_in_labels_and_names_are_printed_literally(folder, capsys, command):
    names = {1: "[red]", 2: "[/x]", 3: ":smile:"}
    table = frame().rename(columns={"a": "[/bold]"})
    table.assign(y=table["y"].map(names)).to_csv("t.csv", index=False)
    train("t.csv")
    line = [command, "m.abc", *(["t.csv", "-l", "y"] if command == "evaluate" else [])]
    assert main(line) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in names.values())
    assert command == "evaluate" or "[/bold]" in out


# ------------------------------------------------------------------------------------------- output


def test_kept_columns_are_written_unchanged(folder):
    table = frame()
    table.to_csv("t.csv", index=False)
    train("t.csv")
    (folder / "x.csv").write_text('a,b,c,id\n000,1e0,"x,""y""",007\n1.50,+2,NA,\n')
    assert main(["predict", "m.abc", "x.csv", "-o", "p.csv", *keep("id", "c", "b", "a")]) == 0
    lines = content("p.csv").decode().splitlines()
    assert lines[0] == "id,c,b,a,prediction"
    assert [line.rpartition(",")[0] for line in lines[1:]] == [
        '007,"x,""y""",1e0,000',
        ",NA,+2,1.50",
    ]


def keep(*names):
    return [part for name in names for part in ("--keep", name)]


@pytest.mark.parametrize("name", ["prediction", "proba_1"])
def test_kept_column_with_the_name_of_an_output_column_is_refused(trained, capsys, name):
    frame().assign(**{name: 1}).to_csv("x.csv", index=False)
    assert main(["predict", "m.abc", "x.csv", "--proba", "--keep", name, "-o", "p.csv"]) == 2
    assert f"--keep {name}: the output has a column of this name" in last_line(capsys)


def test_explained_features_may_have_names_of_output_columns(folder):
    table = frame().rename(columns={"a": "class", "b": "base"})
    table.to_csv("t.csv", index=False)
    model = train("t.csv")
    assert main(["explain", "m.abc", "t.csv", "-o", "e.parquet"]) == 0
    found = pd.read_parquet("e.parquet")
    assert found.columns.tolist() == ["class_", "base_", "class", "base", "c"]
    X = table.drop(columns="y")
    assert found["class_"].tolist() == model.predict(X).tolist()
    scores = model.decision_function(X).max(axis=1)
    np.testing.assert_allclose(found.iloc[:, 1:].sum(axis=1), scores, atol=1e-9)


@pytest.mark.parametrize("command", ["predict", "explain"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_empty_table_gives_an_empty_output(trained, command, ending):
    frame().to_csv("x.csv", index=False)
    frame()[:0].to_csv("none.csv", index=False)
    options = ["--proba", "--keep", "b"] if command == "predict" else []
    for name in ("x", "none"):
        assert main([command, "m.abc", f"{name}.csv", "-o", f"{name}-out.{ending}", *options]) == 0
    if ending == "csv":
        header, *_ = content("x-out.csv").splitlines(keepends=True)
        assert content("none-out.csv") == header
    else:
        full, none = parquet.read_table("x-out.parquet"), parquet.read_table("none-out.parquet")
        assert (none.schema, len(none)) == (full.schema, 0)


def test_written_cells_round_trip(trained):
    odd = ["a,b", 'say "x"', "two\nlines", "\r", "", "é", "\t", " x "]
    table = frame()[: len(odd)].assign(odd=odd)
    table.to_parquet("x.parquet")
    for ending, between in (("csv", ","), ("tsv", "\t")):
        path = f"p.{ending}"
        assert main(["predict", "m.abc", "x.parquet", "--keep", "odd", "-o", path]) == 0
        assert pd.read_csv(path, sep=between, keep_default_na=False)["odd"].tolist() == odd


@pytest.mark.filterwarnings("default:column 'c' has 300 values")
def test_column_of_unknown_categories_warns_and_numbers_for_text_are_refused(folder, capsys):
    table = frame(300)
    table["y"] = table["c"] + "!"
    table.to_csv("t.csv", index=False)
    train("t.csv")
    table.assign(c="z").to_csv("z.csv", index=False)
    capsys.readouterr()
    assert main(["predict", "m.abc", "z.csv", "--proba", "-o", "out.csv"]) == 0
    warned = "abcgbm: warning: column 'c' has 300 values and none is a category seen in fit"
    assert capsys.readouterr().err.count(warned) == 1
    table.assign(c=1).to_parquet("one.parquet")
    assert main(["predict", "m.abc", "one.parquet", "-o", "out.csv", "--force"]) == 1
    assert "column 'c' has categories such as 'x'" in capsys.readouterr().err
