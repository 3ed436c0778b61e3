"""`abcgbm train` on tables read in batches: when this happens, its messages, and the same model."""

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")
from abcgbm.cli import main
from abcgbm.cli import train as large
from large_files import BATCHES, TABLE, WRITERS, written

FEW = (
    "--set",
    "max_leaf_nodes=5",
    "--set",
    "min_samples_leaf=1",
    "--max-iter",
    "3",
    "--learning-rate",
    "0.15",
)


def run(capsys, *words):
    """Return the exit code and the text on standard error."""
    code = main([*map(str, words)])
    return code or 0, capsys.readouterr().err


def trained(capsys, file, model, *words):
    code, said = run(capsys, "train", file, "--label", "y", "--model", model, *FEW, *words)
    assert code == 0, said
    return model.read_bytes(), said


@pytest.fixture(params=["parquet", "csv"])
def table(request, tmp_path):
    """A file of all rows, and a folder of partial files."""
    (tmp_path / "parts").mkdir()
    WRITERS[request.param](TABLE, tmp_path / f"table.{request.param}")
    return tmp_path / f"table.{request.param}", written(tmp_path / "parts", BATCHES, request.param)


@pytest.mark.parametrize("categorical", [(), ("--categorical", "b")])
def test_several_files_give_the_model_of_one_file_and_are_reported(
    table, categorical, tmp_path, capsys
):
    file, folder = table
    expected, said = trained(capsys, file, tmp_path / "whole.abc", *categorical)
    assert "read in batches" not in said
    pattern = folder / f"*{file.suffix}"
    for number, (given, *words) in enumerate(
        [(folder,), (pattern,), (file, "--memory", "1MB"), (file, "--cache-dir", tmp_path)]
    ):
        model = tmp_path / f"{number}.abc"
        found, said = trained(capsys, given, model, *categorical, *words)
        assert found == expected
        assert f"{given}: a table of " in said
        assert "read in batches; categorical: " in said


def test_file_beyond_a_quarter_of_the_memory_is_read_in_batches(
    table, tmp_path, monkeypatch, capsys
):
    file, _ = table
    size = max(file.stat().st_size, 8 * 4 * len(TABLE) if file.suffix == ".parquet" else 0)
    for number, (free, in_batches) in enumerate([(4 * size, False), (4 * size - 1, True)]):
        monkeypatch.setattr(large, "available_bytes", lambda free=free: free)
        _, said = trained(capsys, file, tmp_path / f"{number}.abc")
        assert ("read in batches" in said) == in_batches


def test_validation_weights_and_ignored_columns_are_those_of_one_file(table, tmp_path, capsys):
    file, folder = table
    words = ("--valid", file, "--n-iter-no-change", "2", "--weight", "b", "--ignore", "s")
    expected, _ = trained(capsys, file, tmp_path / "whole.abc", *words)
    found, _ = trained(capsys, folder, tmp_path / "parts.abc", *words)
    assert found == expected


MISTAKES = {
    "no label": (("--ignore", "a"), "--label is missing"),
    "unknown label": (("--label", "z"), "no column 'z'"),
    "unknown weight": (("--label", "y", "--weight", "z"), "no column 'z'"),
    "unknown category": (("--label", "y", "--categorical", "z"), "--categorical z"),
    "no memory": (("--label", "y", "--memory", "much"), "memory='much'"),
    "no folder": (("--label", "y", "--cache-dir", "none"), "expected an existing folder"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_told_and_no_model_is_written(name, tmp_path, capsys):
    (tmp_path / "parts").mkdir()
    words, expected = MISTAKES[name]
    folder = written(tmp_path / "parts", BATCHES)
    code, said = run(capsys, "train", folder, "--model", tmp_path / "m.abc", *words)
    assert code != 0
    assert expected in " ".join(said.split())
    assert not (tmp_path / "m.abc").exists()
