"""Commands on table files: the same models and predictions as in Python, and clear errors."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.metrics import log_loss, precision_recall_fscore_support

from abcgbm import ABCBoostClassifier, AdaptiveBaseClass, MultiOutputTrees
from abcgbm.cli import main
from abcgbm.data.files.file_source import open_table
from abcgbm.data.files.formats import Reading
from abcgbm.report import report_html

pytest.importorskip("pyarrow")
pytest.importorskip("typer")


def frame(n_rows=300, seed=0):
    """A table with numbers, text, booleans and missing values."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=n_rows).round(3),
            "soil": rng.choice(["clay", "sand", "loam, wet"], n_rows),
            "north": rng.random(n_rows) < 0.5,
            "count": rng.integers(0, 9, n_rows),
        }
    )
    tall = table["size"] + (table["soil"] == "sand") > 0.5
    table["tree"] = np.select([tall, table["north"]], ["pine", "oak"], "fir")
    table.loc[::7, "size"] = np.nan
    table.loc[::11, "soil"] = None
    return table


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame().to_csv("train.csv", index=False)
    frame(seed=1).to_csv("test.csv", index=False)
    return tmp_path


@pytest.fixture
def trained(folder):
    assert (
        main(
            [
                "train",
                "train.csv",
                "--label",
                "tree",
                "--model",
                "m.abc",
                "--max-iter",
                "5",
                "--learning-rate",
                "0.15",
                "-q",
            ]
        )
        == 0
    )
    return ABCBoostClassifier.load_model("m.abc")


def saved(model, path="python.abc"):
    model.save_model(path)
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


def read(path):
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


# -------------------------------------------------------------------------------------------- train


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ([], {}),
        (
            ["--algorithm", "abc-mart", "--max-leaf-nodes", "5"],
            {"algorithm": "abc-mart", "max_leaf_nodes": 5},
        ),
        (
            ["--learning-rate", "0.2", "--random-state", "3"],
            {"learning_rate": 0.2, "random_state": 3},
        ),
        (
            ["--set", "subsample=0.5", "--set", "algorithm=MultiOutputTrees(baseline='zero')"],
            {"algorithm": MultiOutputTrees(baseline="zero"), "subsample": 0.5},
        ),
        (
            ["--algorithm", "AdaptiveBaseClass(n_candidates=2, gap=1)"],
            {"algorithm": AdaptiveBaseClass(n_candidates=2, gap=1)},
        ),
        (
            ["--n-iter-no-change", "3"],
            {"early_stopping": True, "n_iter_no_change": 3},
        ),
    ],
)
def test_command_and_python_give_the_same_model_bytes(folder, options, parameters):
    line = [
        "train",
        "train.csv",
        "-l",
        "tree",
        "-m",
        "m.abc",
        "--max-iter",
        "6",
        "--learning-rate",
        "0.15",
        "--quiet",
    ]
    assert main([*line, *options]) == 0
    table = pd.read_csv("train.csv")
    model = ABCBoostClassifier(max_iter=6, **{"learning_rate": 0.15} | parameters)
    model.fit(table.drop(columns="tree"), table["tree"])
    assert read("m.abc") == saved(model)


@pytest.mark.parametrize("ending", ["tsv", "csv.gz", "parquet", "feather"])
def test_every_format_gives_the_same_model(folder, trained, ending):
    table = pd.read_csv("train.csv")
    if ending == "parquet":
        table.to_parquet("t.parquet")
    elif ending == "feather":
        table.to_feather("t.feather")
    else:
        table.to_csv(f"t.{ending}", index=False, sep="\t" if ending == "tsv" else ",")
    line = [
        "train",
        f"t.{ending}",
        "-l",
        "-1",
        "-m",
        "t.abc",
        "--max-iter",
        "5",
        "--learning-rate",
        "0.15",
        "-q",
    ]
    assert main(line) == 0
    assert read("t.abc") == read("m.abc")


def test_sparse_files_are_read_as_in_scikit_learn(folder):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (200, 6)), rng.integers(0, 3, 200)
    dump_svmlight_file(X, y, "t.svm", zero_based=False)
    assert (
        main(["train", "t.svm", "-m", "m.abc", "--max-iter", "3", "--learning-rate", "0.15", "-q"])
        == 0
    )
    model = ABCBoostClassifier(max_iter=3, learning_rate=0.15).fit(*load_svmlight_file("t.svm"))
    assert read("m.abc") == saved(model)
    assert main(["predict", "m.abc", "t.svm", "-o", "p.csv"]) == 0
    predicted = pd.read_csv("p.csv")["prediction"]
    np.testing.assert_array_equal(predicted, model.predict(load_svmlight_file("t.svm")[0]))


def test_label_weight_and_ignored_columns_are_no_features(folder):
    line = [
        "train",
        "train.csv",
        "-l",
        "tree",
        "-m",
        "m.abc",
        "--max-iter",
        "3",
        "--learning-rate",
        "0.15",
        "-q",
    ]
    assert main([*line, "--weight", "count", "--ignore", "north", "--categorical", "size"]) == 0
    table = pd.read_csv("train.csv")
    model = ABCBoostClassifier(
        max_iter=3, learning_rate=0.15, categorical_features=["size", "soil"]
    )
    model.fit(table[["size", "soil"]], table["tree"], table["count"])
    assert read("m.abc") == saved(model)


def test_command_line_takes_precedence_over_the_parameter_file(folder):
    (folder / "p.toml").write_text('max_iter = 9\nlearning_rate = 0.2\nalgorithm = "mart"\n')
    line = ["train", "train.csv", "-l", "tree", "-m", "m.abc", "-q", "--params", "p.toml"]
    assert main([*line, "--max-iter", "2"]) == 0
    model = ABCBoostClassifier.load_model("m.abc")
    assert (model.max_iter, model.learning_rate, model.algorithm) == (2, 0.2, "mart")


def test_validation_file_has_the_column_types_of_the_training_file(folder):
    table = pd.read_csv("train.csv")
    table["soil"] = ["x", *map(str, np.arange(1, len(table)) % 4)]
    table.to_csv("train.csv", index=False)
    table.iloc[1:100].to_csv("valid.csv", index=False)  # its soil alone would be numbers
    line = [
        "train",
        "train.csv",
        "-l",
        "tree",
        "-m",
        "m.abc",
        "-q",
        "--max-iter",
        "4",
        "--learning-rate",
        "0.15",
    ]
    assert main([*line, "--valid", "valid.csv", "--n-iter-no-change", "2"]) == 0
    X = table.drop(columns="tree")
    model = ABCBoostClassifier(
        max_iter=4, learning_rate=0.15, early_stopping=True, n_iter_no_change=2
    )
    model.fit(X, table["tree"], X_val=X.iloc[1:100], y_val=table["tree"].iloc[1:100])
    assert read("m.abc") == saved(model)


def test_training_logs_to_standard_error_only(folder, capsys):
    assert (
        main(
            [
                "train",
                "train.csv",
                "-l",
                "tree",
                "-m",
                "m.abc",
                "--max-iter",
                "2",
                "--learning-rate",
                "0.15",
            ]
        )
        == 0
    )
    captured = capsys.readouterr()
    assert captured.out == ""
    first, *_, last = captured.err.splitlines()
    assert first == "abcgbm: train.csv: 300 rows, 4 features; categorical: 'soil'"
    assert last.startswith("abcgbm: m.abc: 3 classes, 2 iterations (max_iter), ")


def test_interrupted_training_resumes_from_its_checkpoint(folder, trained):
    line = ["train", "train.csv", "-l", "tree", "-q"]
    assert (
        main(
            [
                *line,
                "-m",
                "a.abc",
                "--max-iter",
                "2",
                "--checkpoint",
                "c.abc",
                "--set",
                "learning_rate=0.15",
            ]
        )
        == 0
    )
    assert (
        main(
            [
                *line,
                "-m",
                "b.abc",
                "--max-iter",
                "5",
                "--resume",
                "c.abc",
                "--set",
                "learning_rate=0.15",
            ]
        )
        == 0
    )
    assert main([*line, "-m", "d.abc", "--max-iter", "5", "--set", "learning_rate=0.15"]) == 0
    assert read("b.abc") == read("d.abc")


# ------------------------------------------------------------------------- predict, evaluate, explain


def test_predictions_match_those_of_python(folder, trained):
    table = pd.read_csv("test.csv")
    X = table.drop(columns="tree")
    assert (
        main(["predict", "m.abc", "test.csv", "--proba", "--keep", "tree", "-o", "p.parquet"]) == 0
    )
    found = pd.read_parquet("p.parquet")
    assert found.columns.tolist() == ["tree", "prediction", "proba_fir", "proba_oak", "proba_pine"]
    assert found["tree"].tolist() == table["tree"].tolist()
    assert found["prediction"].tolist() == trained.predict(X).tolist()
    np.testing.assert_array_equal(found.filter(like="proba_"), trained.predict_proba(X))


@pytest.mark.parametrize("ending", ["tsv", "csv.gz", "csv.zst", "feather"])
def test_predictions_are_the_same_in_every_format(folder, trained, ending):
    assert main(["predict", "m.abc", "test.csv", "--proba", "-o", "p.parquet"]) == 0
    assert main(["predict", "m.abc", "test.csv", "--proba", "-o", f"p.{ending}"]) == 0
    expected = open_table("p.parquet", Reading()).read().to_pylist()
    assert open_table(f"p.{ending}", Reading()).read().to_pylist() == expected


@pytest.mark.parametrize("size", [50, 1000])
def test_prediction_is_the_same_for_any_read_block_size(folder, trained, monkeypatch, size):
    assert main(["predict", "m.abc", "test.csv", "--proba", "-o", "whole.csv"]) == 0
    monkeypatch.setattr("abcgbm.data.files.csv.BLOCK_BYTES", size)
    monkeypatch.setattr("abcgbm.data.files.csv.DelimitedFile.__init__.__defaults__", (size,))
    assert main(["predict", "m.abc", "test.csv", "--proba", "-o", "cut.csv"]) == 0
    assert read("cut.csv") == read("whole.csv")


def test_files_without_a_header_are_read_by_position(folder):
    table = pd.read_csv("train.csv")[["tree", "size", "soil", "north", "count"]]
    table.to_csv("t.csv", index=False, header=False)
    table.iloc[:, 1:].to_csv("x.csv", index=False, header=False)
    line = [
        "train",
        "t.csv",
        "--no-header",
        "-l",
        "0",
        "-m",
        "m.abc",
        "--max-iter",
        "3",
        "--learning-rate",
        "0.15",
        "-q",
    ]
    assert main(line) == 0
    assert main(["predict", "m.abc", "t.csv", "--no-header", "-o", "a.csv"]) == 0
    assert main(["predict", "m.abc", "x.csv", "--no-header", "-o", "b.csv"]) == 0
    assert read("a.csv") == read("b.csv")


def test_evaluate_matches_scikit_learn(folder, trained, capsys):
    table = pd.read_csv("test.csv")
    table.loc[0, "tree"] = "palm"
    table.to_csv("test.csv", index=False)
    assert main(["evaluate", "m.abc", "test.csv", "--label", "tree", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    X, y = table.drop(columns="tree"), table["tree"]
    predicted = trained.predict(X)
    assert found["errors"] == int((predicted != y).sum())
    assert found["rows_of_unknown_labels"] == 1
    loss = log_loss(y[1:], trained.predict_proba(X[1:]), labels=trained.classes_)
    assert found["log_loss"] == pytest.approx(loss, rel=1e-12)
    expected = precision_recall_fscore_support(y, predicted, labels=trained.classes_)
    for name, values in zip(("precision", "recall", "f1", "rows"), expected, strict=True):
        assert [row[name] for row in found["classes"]] == pytest.approx(values.tolist())
    assert main(["evaluate", "m.abc", "test.csv", "--label", "tree"]) == 0
    assert f"{found['errors']} errors" in capsys.readouterr().out


def test_explanations_match_those_of_python(folder, trained):
    X = pd.read_csv("test.csv").drop(columns="tree")
    explained = trained.explain(X)
    assert main(["explain", "m.abc", "test.csv", "--class", "oak", "-o", "e.parquet"]) == 0
    found = pd.read_parquet("e.parquet")
    np.testing.assert_array_equal(found.iloc[:, 2:], explained.values[:, :, 1])
    assert main(["explain", "m.abc", "test.csv", "-o", "own.parquet"]) == 0
    own = pd.read_parquet("own.parquet")
    assert own["class"].tolist() == trained.predict(X).tolist()
    scores = trained.decision_function(X).max(axis=1)
    np.testing.assert_allclose(own.iloc[:, 1:].sum(axis=1), scores, atol=1e-9)


# ------------------------------------------------------------------------------------ inspect, convert


def test_inspect_shows_the_contents_of_the_file(folder, trained, capsys):
    assert main(["inspect", "m.abc", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["classes"] == ["fir", "oak", "pine"]
    assert (found["iterations"], found["features"], found["categories"]) == (5, 4, 1)
    assert found["parameters"] == {"max_iter": 5, "learning_rate": 0.15}
    assert main(["inspect", "m.abc"]) == 0
    assert "3: fir, oak, pine" in capsys.readouterr().out
    assert main(["inspect", "m.abc", "--tree", "1", "--class", "oak"]) == 0
    assert capsys.readouterr().out == f"{trained.tree(1, 'oak')}\n"


@pytest.mark.parametrize("ending", ["c", "json", "txt"])
def test_converted_models_match_those_of_python(folder, trained, ending):
    name = {"c": "to_c", "json": "to_json", "txt": "to_text"}[ending]
    assert main(["convert", "m.abc", "-o", f"out.{ending}"]) == 0
    assert read(f"out.{ending}").decode() == getattr(trained, name)()


def test_models_are_converted_to_onnx_and_treelite(folder, trained):
    onnx = pytest.importorskip("onnx")
    treelite = pytest.importorskip("treelite")
    assert main(["convert", "m.abc", "-o", "out.onnx"]) == 0
    assert onnx.load("out.onnx") == trained.to_onnx()
    assert main(["convert", "m.abc", "-o", "out.bin", "--to", "treelite"]) == 0
    assert treelite.Model.deserialize("out.bin").num_tree == trained.to_treelite().num_tree


def test_report_matches_that_of_python(folder, trained):
    pytest.importorskip("jinja2")
    line = ["report", "m.abc", "test.csv", "--label", "tree", "--output", "r.html"]
    assert main(line) == 0
    table = pd.read_csv("test.csv")
    html = report_html(
        trained, table.drop(columns="tree"), table["tree"],
        title="m.abc on test.csv", command="abcgbm " + " ".join(line),
    )  # fmt: skip
    assert read("r.html").decode() == html


# ------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["train", "no.csv", "-l", "a", "-m", "x.abc"], "no.csv: no such file"),
        (["train", ".", "-l", "a", "-m", "x.abc"], "empty.csv: the file is empty"),
        (["train", "empty.csv", "-l", "a", "-m", "x.abc"], "empty.csv: the file is empty"),
        (
            ["train", "ragged.csv", "-l", "b", "-m", "x.abc"],
            "ragged.csv, line 3: 3 cells; expected 2",
        ),
        (
            ["train", "train.csv", "-l", "kind", "-m", "x.abc"],
            "no column 'kind' for the label; expected one of 'size', 'soil', 'north', 'count', 'tree'",
        ),
        (
            ["train", "train.csv", "-l", "tree", "-m", "m.abc"],
            "m.abc: the file exists; --force",
        ),
        (["train", "train.csv", "-l", "tree", "-m", "no/m.abc"], "the folder 'no' does not exist"),
        (["train", "train.csv", "-l", "tree", "-m", "x.abc", "--set", "leaf=3"], "leaf"),
        (
            ["train", "train.csv", "-l", "tree", "-m", "x.abc", "--max-leaf-nodes", "1"],
            "max_leaf_nodes=1",
        ),
        (
            ["train", "train.csv", "-l", "tree", "-m", "x.abc", "--params", "bad.toml"],
            "bad.toml: not a TOML",
        ),
        (
            ["predict", "m.abc", "other.csv", "-o", "o.csv"],
            "columns of the model are missing: 'soil'",
        ),
        (
            ["predict", "m.abc", "words.csv", "-o", "o.csv"],
            "words.csv, line 3, column 'size': 'big'; expected a number",
        ),
        (["predict", "train.csv", "train.csv"], "train.csv"),
        (
            ["predict", "m.abc", "test.csv", "-o", "train.csv"],
            "train.csv: the file exists",
        ),
        (["predict", "m.abc", "test.csv", "-o", "out.dat"], "a name without a known suffix"),
        (["evaluate", "m.abc", "latin.csv", "-l", "tree"], "is not UTF-8"),
    ],
)
def test_bad_input_is_a_one_line_error_and_leaves_no_file(folder, trained, capsys, line, message):
    table = pd.read_csv("test.csv")
    (folder / "empty.csv").touch()
    (folder / "ragged.csv").write_text("a,b\n1,2\n1,2,3\n")
    (folder / "bad.toml").write_text("a = = 1")
    table.drop(columns="soil").to_csv("other.csv", index=False)
    table.iloc[:2].astype({"size": object}).assign(size=[1.0, "big"]).to_csv(
        "words.csv", index=False
    )
    (folder / "latin.csv").write_bytes(b"size,soil,north,count,tree\n1,s\xe9,true,1,oak\n")
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert main(line) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    last = captured.err.splitlines()[-1]
    assert last.startswith("abcgbm: error: ")
    assert message in last
    assert "Traceback" not in captured.err
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_debug_shows_the_traceback_of_an_error(folder, capsys):
    assert main(["train", "no.csv", "-l", "a", "-m", "x.abc", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_force_replaces_a_file(folder, trained):
    assert (
        main(
            [
                "train",
                "train.csv",
                "-l",
                "tree",
                "-m",
                "m.abc",
                "--max-iter",
                "2",
                "--learning-rate",
                "0.15",
                "-q",
                "-f",
            ]
        )
        == 0
    )
    assert ABCBoostClassifier.load_model("m.abc").n_iter_ == 2


def test_failure_while_writing_keeps_the_old_file(folder, trained, capsys):
    good = read("test.csv").decode().splitlines()
    (folder / "bad.csv").write_text("\n".join([*good, "1,2"]))
    (folder / "out.csv").write_text("old")
    assert main(["predict", "m.abc", "bad.csv", "-o", "out.csv", "--force"]) == 1
    assert read("out.csv") == b"old"
    assert [path.name for path in folder.iterdir() if path.name.startswith(".abcgbm")] == []


def run(line, **options):
    command = [sys.executable, "-m", "abcgbm", *line]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_data_go_to_standard_output(folder, trained):
    done = run(["predict", "m.abc", "test.csv"])
    assert (done.returncode, done.stderr) == (0, "")
    X = pd.read_csv("test.csv").drop(columns="tree")
    assert done.stdout == "".join(f"{line}\n" for line in ["prediction", *trained.predict(X)])


def test_closed_pipe_ends_the_command_quietly(folder, trained):
    pd.concat([pd.read_csv("test.csv")] * 200).to_csv("long.csv", index=False)
    command = f"{sys.executable} -m abcgbm predict m.abc long.csv --proba | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 141
    assert done.stderr == ""


def test_shell_completion_knows_the_commands():
    environment = os.environ | {
        "_ABCGBM_COMPLETE": "complete_bash", "COMP_WORDS": "abcgbm ev", "COMP_CWORD": "1",
    }  # fmt: skip
    done = run([], env=environment)
    assert done.stdout.split() == ["evaluate"]
