"""Which files a fit or a command replaces; files are replaced atomically."""

import os
import stat
from contextlib import contextmanager

import numpy as np
import pytest

from abcgbm import Checkpoint, LargeTable
from abcgbm.cli import main
from abcgbm.data.files.atomic import write_whole
from abcgbm.model.file import load
from large_files import BATCHES, FEW, TABLE, WRITERS, fit, written
from models import noisy_data, small
from ranks_in_threads import on_ranks

dataset = pytest.importorskip("pyarrow.dataset")
pytest.importorskip("typer")

X, Y = noisy_data(n_rows=200, n_classes=3)
LINE = [
    "--label",
    "y",
    "--max-iter",
    "2",
    "--learning-rate",
    "0.15",
    "--set",
    "min_samples_leaf=1",
    "-q",
]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.abcgbm"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with tables, parameters, a model, checkpoints of two trainings, and hard links."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    written(tmp_path / "parts", BATCHES)
    for name in ("t.csv", "v.csv"):
        WRITERS["csv"](TABLE, name)
    (tmp_path / "p.toml").write_text("max_iter = 2\n")
    (tmp_path / "notes.txt").write_text("not for abcgbm")
    (tmp_path / "symbolic").symlink_to("t.csv")
    (tmp_path / "hard").hardlink_to("t.csv")
    (tmp_path / "hard_part").hardlink_to("parts/p0.parquet")
    assert main(["train", "t.csv", *LINE, "-m", "m.abc", "--checkpoint", "ck"]) == 0
    other = ["--checkpoint", "other_ck", "--max-leaf-nodes", "3"]
    assert main(["train", "t.csv", *LINE, "-m", "other.abc", *other]) == 0
    return tmp_path


# --------------------------------------------------------------------------------- checkpoints, Python


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"PK\x03\x04", b"\x00"])
@pytest.mark.parametrize("link", [None, "symlink_to", "hardlink_to"])
def test_checkpoint_does_not_replace_a_foreign_file(content, link, path, tmp_path):
    table = tmp_path / "table"
    table.write_bytes(content)
    if link is None:
        path = table
    else:
        getattr(path, link)(table)
    with pytest.raises(
        FileExistsError, match=r"run.abcgbm|table.*the file exists and is not a model"
    ):
        small(callbacks=[Checkpoint(path, every=1)]).fit(X, Y)
    assert table.read_bytes() == path.read_bytes() == content


def test_checkpoint_replaces_an_empty_file_and_a_model(path):
    path.touch()
    small(callbacks=[Checkpoint(path)]).fit(X, Y)
    assert load(path).checkpoint is not None
    small().fit(X, Y).save_model(path)
    small(callbacks=[Checkpoint(path)]).fit(X, Y)
    assert load(path).checkpoint is not None


def test_checkpoint_of_the_same_training_is_replaced(path):
    small(max_iter=3, callbacks=[Checkpoint(path)]).fit(X, Y)
    small(max_iter=5, callbacks=[Checkpoint(path)]).fit(X, Y)
    assert load(path).model.n_iter == 5
    relative = os.path.relpath(path)
    small(max_iter=7, callbacks=[Checkpoint(relative)]).fit(X, Y, resume_from=path)
    assert load(path).model.n_iter == 7
    with path.open("rb") as file:
        small(callbacks=[Checkpoint(path)]).fit(X, Y, resume_from=file)
    assert load(path).model.n_iter == 8


@pytest.mark.parametrize("resumes", [False, True])
def test_checkpoint_of_another_training_is_not_replaced(resumes, path, tmp_path):
    own = tmp_path / "own"
    small(max_leaf_nodes=5, callbacks=[Checkpoint(path)]).fit(X, Y)
    small(max_iter=3, callbacks=[Checkpoint(own)]).fit(X, Y)
    before = path.read_bytes()
    message = r"run.abcgbm.*another training: max_leaf_nodes was 5, is 6; expected a path without"
    with pytest.raises(FileExistsError, match=message):
        small(callbacks=[Checkpoint(path)]).fit(X, Y, resume_from=own if resumes else None)
    with pytest.raises(FileExistsError, match="another training: X differs"):
        small(max_leaf_nodes=5, callbacks=[Checkpoint(path)]).fit(X + 1, Y)
    assert path.read_bytes() == before


def test_warm_start_keeps_its_model_if_its_checkpoint_is_refused(path):
    path.write_text("notes")
    model = small(warm_start=True).fit(X, Y)
    before = model.model_
    with pytest.raises(FileExistsError):
        model.set_params(max_iter=9, callbacks=[Checkpoint(path)]).fit(X, Y)
    assert model.model_ is before


def test_all_ranks_refuse_a_checkpoint_that_rank_0_refuses(path):
    path.write_text("notes")

    def refused(communicator):
        rows = slice(communicator.rank, None, 2)
        with pytest.raises(OSError, match="is not a model file"):
            small(callbacks=[Checkpoint(path)]).fit(X[rows], Y[rows], communicator=communicator)
        return True

    assert on_ranks(2, refused) == [True, True]
    assert path.read_text() == "notes"


READ = {
    "file": lambda folder: str(folder / "p0.parquet"),
    "files": lambda folder: [folder / "p1.parquet", folder / "p0.parquet"],
    "pattern": lambda folder: str(folder / "p*.parquet"),
    "folder": lambda folder: folder,
    "large table": LargeTable,
    "large table of a data set": lambda folder: LargeTable(dataset.dataset(folder)),
    "data set": dataset.dataset,
    "union": lambda folder: dataset.dataset(
        [dataset.dataset(folder / f"p{n}.parquet") for n in (0, 1)]
    ),
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("argument", ["X", "X_val"])
def test_input_file_of_the_fit_is_never_replaced(name, argument, tmp_path):
    (tmp_path / "parts").mkdir()
    read = READ[name](written(tmp_path / "parts", BATCHES))
    before = contents(tmp_path)
    tables = {"X": read} if argument == "X" else {"X": [TABLE], "X_val": read}
    for link in ("p0", "symlink_to", "hardlink_to"):
        target = tmp_path / "parts" / "p0.parquet"
        if link != "p0":
            target = tmp_path / link
            getattr(target, link)(tmp_path / "parts" / "p0.parquet")
        with pytest.raises(FileExistsError, match=r"p0.parquet', which the fit reads"):
            fit(**tables, settings={"callbacks": [Checkpoint(target)]})
        if link != "p0":
            target.unlink()
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("link", [None, "symlink_to", "hardlink_to"])
def test_predictions_do_not_replace_an_input_file(name, link, tmp_path, model):
    folder = tmp_path / "parts"
    folder.mkdir()
    read, path = READ[name](written(folder, BATCHES)), folder / "p0.parquet"
    if link is not None:
        path = tmp_path / "link.parquet"
        getattr(path, link)(folder / "p0.parquet")
    before = contents(tmp_path)
    with pytest.raises(FileExistsError, match=r"p0.parquet', which X is read from"):
        model.predict_to_file(read, path)
    assert contents(tmp_path) == before


def test_files_other_than_inputs_may_be_replaced(tmp_path):
    (tmp_path / "parts").mkdir()
    path = written(tmp_path / "parts", BATCHES) / "_checkpoint"
    path.touch()
    for _ in range(2):
        fit(tmp_path / "parts", settings={"callbacks": [Checkpoint(path)]})
        assert load(path).model.n_iter == FEW["max_iter"]


# ------------------------------------------------------------------------------- checkpoints, the shell

GIVEN = {
    "option": lambda name: ["--checkpoint", name],
}


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("way", GIVEN)
@pytest.mark.parametrize(
    ("tables", "name"),
    [
        (["t.csv"], "t.csv"),
        (["t.csv"], "./parts/../t.csv"),
        (["t.csv"], "symbolic"),
        (["t.csv"], "hard"),
        (["symbolic"], "hard"),
        (["t.csv", "--memory", "1GB"], "t.csv"),
        (["t.csv", "--valid", "v.csv"], "v.csv"),
        (["t.csv", "--params", "p.toml"], "p.toml"),
        (["t.csv", "--resume", "ck"], "t.csv"),
        (["parts"], "parts/p1.parquet"),
        (["parts/p*.parquet"], "parts/p1.parquet"),
        (["parts/p*.parquet"], "hard_part"),
        (["t.csv", "--memory", "1GB", "--valid", "v.*"], "v.csv"),
    ],
)
def test_checkpoint_of_a_command_does_not_replace_its_inputs(
    folder, capsys, tables, name, way, force
):
    before = contents(folder)
    line = ["train", *tables, *LINE, "-m", "new.abc", *GIVEN[way](name)]
    assert main([*line, "--force"] if force else line) == 1
    message = capsys.readouterr().err
    assert "which the fit reads; expected another file" in message
    assert len(message.splitlines()) == 1
    assert contents(folder) == before


def test_parameter_file_cannot_set_a_checkpoint(folder, capsys):
    (folder / "p.toml").write_text("checkpoint = 't.csv'\n")
    before = contents(folder)
    assert main(["train", "t.csv", *LINE, "-m", "new.abc", "--params", "p.toml", "-f"]) == 1
    assert "no parameter 'checkpoint'; expected --checkpoint" in capsys.readouterr().err
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("name", "message"),
    [("notes.txt", "exists and is not a model file"), ("other_ck", "max_leaf_nodes was 3, is ")],
)
def test_checkpoint_replaces_other_files_only_with_force(folder, capsys, name, message):
    before = contents(folder)
    line = ["train", "t.csv", *LINE, "-m", "new.abc", "--checkpoint", name]
    assert main(line) == 1
    shown = capsys.readouterr().err
    assert message in shown
    assert "--force replaces" in shown
    assert contents(folder) == before
    assert main([*line, "--force"]) == 0
    assert load(folder / name).checkpoint is not None


def test_resumed_checkpoint_is_replaced_and_its_hard_links_stay_intact(folder):
    (folder / "second").hardlink_to("ck")
    line = ["train", "t.csv", "-l", "y", "-q", "--set", "min_samples_leaf=1"]
    steps = [
        "--max-iter",
        "4",
        "--set",
        f"learning_rate={load(folder / 'ck').history.chosen['learning_rate']}",
    ]
    assert main([*line, *steps, "-m", "a.abc", "--resume", "ck", "--checkpoint", "ck"]) == 0
    assert load(folder / "ck").model.n_iter == 4
    assert load(folder / "second").model.n_iter == 2
    assert main([*line, *steps, "-m", "b.abc"]) == 0
    assert (folder / "a.abc").read_bytes() == (folder / "b.abc").read_bytes()


def test_checkpoint_and_model_must_be_different_files(folder, capsys):
    before = contents(folder)
    for name in ("new.abc", "parts/../new.abc"):
        assert main(["train", "t.csv", *LINE, "-m", "new.abc", "--checkpoint", name]) == 2
        assert "are both new.abc; expected two files" in capsys.readouterr().err
    assert contents(folder) == before


# --------------------------------------------------------------------------------- outputs, the shell


@pytest.mark.parametrize(
    ("tables", "model"),
    [
        (["parts/p*.parquet"], "parts/p0.parquet"),
        (["parts/p*.parquet"], "hard_part"),
        (["parts"], "parts/p0.parquet"),
        (["parts"], "hard_part"),
        (["t.csv"], "hard"),
        (["t.csv", "--memory", "1GB", "--valid", "v.*"], "v.csv"),
        (["t.csv", "--memory", "1GB", "--valid", "parts"], "parts/p2.parquet"),
        (["t.csv", "--resume", "ck"], "ck"),
        (["t.csv", "--resume", "ck"], "parts/../ck"),
    ],
)
def test_model_does_not_replace_inputs_of_patterns_folders_and_options(
    folder, capsys, tables, model
):
    before = contents(folder)
    for force in ([], ["--force"]):
        assert main(["train", *tables, *LINE, "-m", model, *force]) == 1
        message = capsys.readouterr().err
        assert (
            message == f"abcgbm: error: {model}: is an input file; expected another file to write\n"
        )
    assert contents(folder) == before


def test_figure_of_the_demo_is_replaced_only_with_force(folder, capsys):
    pytest.importorskip("matplotlib")
    (folder / "demo.png").write_bytes(b"my own")
    line = ["demo", "--max-iter", "2"]
    assert main(line) == 1
    assert "demo.png: the file exists; --force replaces it" in capsys.readouterr().err
    assert (folder / "demo.png").read_bytes() == b"my own"
    assert main([*line, "--force"]) == 0
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["a.png", "b.svg", "c.PDF"])
def test_figure_has_the_format_of_its_suffix(folder, name):
    pytest.importorskip("matplotlib")
    assert main(["demo", "--max-iter", "1", "--output", name]) == 0
    start = {"a.png": b"\x89PNG", "b.svg": b"<?xml", "c.PDF": b"%PDF"}[name]
    assert (folder / name).read_bytes().startswith(start)


# ------------------------------------------------------------------------------------ atomic writes

EXPORTS = {
    "to_json": {},
    "to_text": {},
    "to_c": {},
    "to_onnx": {},
    "save_model": {},
    "predict_to_file": {"X": [TABLE]},
}


@pytest.fixture(scope="module")
def model():
    return fit(TABLE.drop(["y"]), TABLE["y"])


@contextmanager
def little_space(n_bytes=100):
    """Limit the file size of this process, as on an almost full disk."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def write(model, method, path):
    if method == "to_onnx":
        pytest.importorskip("onnx")
    name = "path" if method != "save_model" else "file"
    getattr(model, method)(**EXPORTS[method], **{name: path})


@pytest.mark.parametrize("method", EXPORTS)
def test_output_is_written_atomically(model, method, tmp_path):
    path = tmp_path / "out.csv"
    path.write_bytes(b"the old one")
    before = contents(tmp_path)
    with pytest.raises(OSError, match=r"File too large: .*out\.csv'"), little_space():
        write(model, method, path)
    assert contents(tmp_path) == before
    write(model, method, path)
    assert len(path.read_bytes()) > 100
    assert list(contents(tmp_path)) == [path]


@pytest.mark.parametrize("method", EXPORTS)
def test_output_follows_a_link_and_keeps_its_mode(model, method, tmp_path):
    target, path = tmp_path / "target.csv", tmp_path / "out.csv"
    target.write_bytes(b"the old one")
    target.chmod(0o640)
    path.symlink_to("target.csv")
    write(model, method, path)
    assert path.is_symlink()
    assert target.read_bytes() != b"the old one"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.parametrize("method", ["to_json", "to_text", "to_c", "to_onnx", "save_model"])
def test_full_device_is_an_error(model, method):
    if not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("there is no /dev/full")
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write(model, method, "/dev/full")


def test_full_disk_error_names_the_output(folder, capsys):
    for line in ("convert m.abc -o new.json", "predict m.abc t.csv -o new.csv"):
        with little_space():
            assert main(line.split()) == 1
        assert capsys.readouterr().err == f"abcgbm: error: {line.split()[-1]}: File too large\n"


def test_read_only_file_is_not_replaced(tmp_path, monkeypatch, capsys):
    path = tmp_path / "file"
    path.write_bytes(b"the old one")
    monkeypatch.setattr(os, "access", lambda of, mode: not (of == path and mode == os.W_OK))
    with pytest.raises(PermissionError, match="file"):
        write_whole(path, b"new")
    small().fit(X, Y).save_model(tmp_path / "m.abc")
    line = ["convert", str(tmp_path / "m.abc"), "--to", "json", "--force", "-o", str(path)]
    assert main(line) == 1
    assert "file: the file cannot be written to" in capsys.readouterr().err
    assert path.read_bytes() == b"the old one"
    with pytest.raises(PermissionError, match="file': the file cannot be written to"):
        small(callbacks=[Checkpoint(path)]).fit(X, Y)


def test_checkpoint_on_a_full_disk_keeps_the_previous_one(path):
    whole = small(max_iter=3, callbacks=[Checkpoint(path)]).fit(X, Y)
    before = path.read_bytes()
    with pytest.warns(UserWarning, match="could not be written"), little_space():
        model = small(max_iter=3, callbacks=[Checkpoint(path, every=1)]).fit(X, Y)
    assert path.read_bytes() == before
    assert np.array_equal(model.predict_proba(X), whole.predict_proba(X))
