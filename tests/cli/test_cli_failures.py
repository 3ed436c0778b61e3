"""How commands end when something goes wrong outside: disks, pipes, keys, files that are none."""

import importlib.metadata
import os
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from abcgbm import ABCBoostClassifier
from abcgbm.cli import main
from abcgbm.cli.options import TableOptions
from models import end_of

pytest.importorskip("pyarrow")
pytest.importorskip("typer")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    table["y"] = np.where(table["a"] > 0, "up", "down")
    table.to_csv("t.csv", index=False)
    ABCBoostClassifier(max_iter=2, learning_rate=0.15).fit(
        table[["a", "b", "c"]], table["y"]
    ).save_model("m.abc")
    return tmp_path


def run(line, **options):
    command = [sys.executable, "-m", "abcgbm", *line]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(command, text=True, check=False, **options)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# --------------------------------------------------------------------------------------------- disks

COMMANDS = {
    "train": [
        "train",
        "t.csv",
        "-l",
        "y",
        "-m",
        "out",
        "--max-iter",
        "2",
        "--learning-rate",
        "0.15",
        "-q",
    ],
    "predict": ["predict", "m.abc", "t.csv", "--proba", "-o", "out.csv"],
    "parquet": ["predict", "m.abc", "t.csv", "--proba", "-o", "out.parquet"],
    "packed": ["predict", "m.abc", "t.csv", "--keep", "a", "-o", "out.csv.gz"],
    "explain": ["explain", "m.abc", "t.csv", "-o", "out.csv"],
    "convert": ["convert", "m.abc", "-o", "out.json"],
    "report": ["report", "m.abc", "t.csv", "-l", "y", "-o", "out.html"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_disk_that_is_full_is_told_and_leaves_the_old_file(folder, name):
    resource = pytest.importorskip("resource")
    line = [*COMMANDS[name], "--force"]
    target = folder / line[line.index("-m" if name == "train" else "-o") + 1]
    target.write_bytes(b"the old one")
    before = contents(folder)

    def leave_little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))

    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = run(line, preexec_fn=leave_little_room, env=environment)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"abcgbm: error: {target.name}: File too large"
    assert contents(folder) == before


@pytest.mark.parametrize(
    "line",
    [
        ["train", "t.csv", "-l", "y", "-m", "t.csv"],
        ["train", "t.csv", "-l", "y", "--valid", "v.csv", "-m", "v.csv"],
        ["train", "t.csv", "-l", "y", "--params", "p.toml", "-m", "p.toml"],
        ["predict", "m.abc", "t.csv", "-o", "t.csv"],
        ["predict", "m.abc", "t.csv", "-o", "other_name.csv"],
        ["explain", "m.abc", "t.csv", "-o", "m.abc"],
        ["report", "m.abc", "t.csv", "-l", "y", "-o", "t.csv"],
        ["convert", "m.abc", "-o", "m.abc", "--to", "json"],
    ],
    ids=" ".join,
)
def test_file_that_is_read_is_not_written_over(folder, capsys, line):
    (folder / "v.csv").write_bytes((folder / "t.csv").read_bytes())
    (folder / "p.toml").write_text("max_iter = 2\n")
    (folder / "other_name.csv").symlink_to("t.csv")
    before = contents(folder)
    assert main([*line, "--force"]) == 1
    told = capsys.readouterr().err
    target = line[line.index("-m" if line[0] == "train" else "-o") + 1]
    assert told == f"abcgbm: error: {target}: is an input file; expected another file to write\n"
    assert contents(folder) == before


# ---------------------------------------------------------------------- standard output and error

PRINTING = pytest.mark.parametrize(
    "line",
    [
        [],
        ["--help"],
        ["--version"],
        ["--show-completion", "bash"],
        ["train", "--help"],
        ["predict", "m.abc", "t.csv"],
        ["explain", "m.abc", "t.csv"],
        ["evaluate", "m.abc", "t.csv", "-l", "y"],
        ["evaluate", "m.abc", "t.csv", "-l", "y", "--json"],
        ["inspect", "m.abc"],
        ["inspect", "m.abc", "--json"],
        ["inspect", "m.abc", "--tree", "0"],
        ["demo", "--max-iter", "1"],
    ],
    ids=" ".join,
)
needs_bash = pytest.mark.skipif(os.name == "nt", reason="the shell is another one there")


@contextmanager
def full_disk():
    if not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("there is no /dev/full")
    with open("/dev/full", "w") as full:  # noqa: PTH123
        yield full


@contextmanager
def broken_pipe():
    reads, writes = os.pipe()
    os.close(reads)
    yield writes
    os.close(writes)


def run_with(redirections, line):
    """Run a command by the shell, which can close streams."""
    command = ["bash", "-c", f'exec "$@" {redirections}', "bash", sys.executable, "-m", "abcgbm"]
    return subprocess.run([*command, *line], capture_output=True, text=True, check=False)


@PRINTING
def test_standard_output_that_is_full_is_told_in_one_line(folder, line):
    with full_disk() as full:
        done = run(line, stdout=full)
    assert (done.returncode, done.stderr) == (1, "abcgbm: error: No space left on device\n")


@PRINTING
def test_pipe_without_a_reader_ends_a_command_quietly(folder, line):
    with broken_pipe() as pipe:
        done = run(line, stdout=pipe)
    assert (done.returncode, done.stderr) == (141, "")


@needs_bash
@PRINTING
def test_closed_standard_output_ends_a_command_quietly(folder, line):
    done = run_with(">&-", line)
    assert (done.returncode, done.stderr) == (141, "")


def test_debug_shows_where_a_full_output_was_written(folder):
    with full_disk() as full:
        done = run(["--version", "--debug"], stdout=full)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.endswith("\nabcgbm: error: No space left on device\n")


@needs_bash
@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&-", "<&- >&- 2>&-", "2>/dev/full"])
@pytest.mark.parametrize(
    ("line", "code", "output"),
    [
        (
            ["train", "t.csv", "-l", "y", "-m", "x.abc", "--max-iter", "2", "--learning-rate", "1"],
            0,
            "x.abc",
        ),
        (["predict", "m.abc", "t.csv", "-o", "x.csv"], 0, "x.csv"),
        (["convert", "m.abc", "-o", "x.json"], 0, "x.json"),
        (["inspect", "no.abc"], 1, None),
        (["inspect", "no.abc", "--debug"], 1, None),
        (["inspect", "--bogus"], 2, None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_messages_that_cannot_be_written_go_nowhere(folder, closed, line, code, output):
    if "full" in closed and not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("there is no /dev/full")
    done = run_with(closed, line)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
    if output is not None:
        written = (folder / output).read_bytes()
        assert main([*line, "--force"]) == 0
        assert (folder / output).read_bytes() == written


@needs_bash
def test_data_are_printed_though_standard_error_is_closed(folder, capfd):
    assert main(["predict", "m.abc", "t.csv"]) == 0
    assert run_with("2>&-", ["predict", "m.abc", "t.csv"]).stdout == capfd.readouterr().out


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_caller_keeps_the_stream_that_it_closed(folder, monkeypatch, capfd, name):
    monkeypatch.setattr(sys, name, None)
    assert main(["--version"]) == (141 if name == "stdout" else 0)
    assert main(["inspect", "no.abc"]) == 1
    assert getattr(sys, name) is None
    told = capfd.readouterr()
    assert "no.abc" not in told.out
    assert ("no.abc" in told.err) == (name == "stdout")


# ---------------------------------------------------------------------------------------------- keys


@pytest.mark.parametrize(
    ("package", "module"), [("abcgbm_command", "abcgbm"), ("abcgbm.cli", "abcgbm.cli.app")]
)
def test_interrupt_while_the_command_is_imported_is_told_in_one_line(package, module):
    code = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        f"from {package} import main\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.argv = ['abcgbm', '--version']\n"
        "sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "abcgbm: interrupted\n")


def test_script_is_the_command_that_minds_interrupts():
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="abcgbm")
    assert script.value == "abcgbm_command:main"


@pytest.mark.parametrize(("path", "code"), [("t.csv", 0), ("no.csv", 1)])
def test_command_ends_at_once_without_taking_threads_of_others_apart(folder, path, code):
    """Python's way to end aborts now and then, while threads of pyarrow are at work."""
    program = (
        "import atexit, sys; from abcgbm_command import main\n"
        "atexit.register(print, 'taken apart')\n"
        f"sys.argv = ['abcgbm', 'predict', 'm.abc', {path!r}]\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert len(done.stdout.splitlines()) == (201 if code == 0 else 0)
    assert "taken apart" not in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="signals are others there")
@pytest.mark.usefixtures("heeds_interrupts")
def test_interrupted_training_leaves_no_file(folder):
    before = contents(folder)
    line = [
        "train",
        "t.csv",
        "-l",
        "y",
        "-m",
        "x.abc",
        "--max-iter",
        "1000000",
        "--set",
        "verbose=1",
    ]
    command = [sys.executable, "-m", "abcgbm", *line]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if "iteration 1/" in line:
                break
        process.send_signal(signal.SIGINT)
        _, told = end_of(process)
    assert process.returncode == 130
    assert told.splitlines()[-1] == "abcgbm: interrupted"
    assert "Traceback" not in told
    assert contents(folder) == before


# --------------------------------------------------------------------------------- options in errors


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        (b"1,2\n3,4\n", [], "(--no-header or --header)"),
        (b"a,y\n\xe9,1\n", [], "(--encoding)"),
        (b"a;y\n1;2\n", [], "expected one of 'a;y', or a position from 0 to 0 (-1 is the last) (--delimiter)"),
        (b"a,y\n1,2\n", ["--delimiter", "xx"], "(--delimiter)"),
        (b"a,y\n1,2\n", ["--encoding", "no"], "(--encoding)"),
        (b"a,y\n1,2\n", ["--format", "xls"], "(--format)"),
        (b'"a,y\n' + b"1,2\n" * 50_000, [], "line 1: a quoted cell is never closed"),
        (b"a,y\n\0,1\n", [], ""),
    ],
)  # fmt: skip
def test_errors_of_reading_name_the_option_that_may_help(folder, capsys, content, options, told):
    (folder / "bad.csv").write_bytes(content)
    assert main(["train", "bad.csv", "-l", "y", "-m", "x.abc", *options]) == 1
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    assert line.startswith("abcgbm: error: ")
    assert told in line


def test_libsvm_file_that_is_counted_from_0_names_the_option(folder, capsys):
    (folder / "bad.svm").write_text("1 0:3\n")
    assert main(["train", "bad.svm", "-m", "x.abc"]) == 1
    assert capsys.readouterr().err.endswith(
        "unless the file is declared zero-based (--zero-based)\n"
    )


@pytest.mark.parametrize(
    "path",
    ["t.csv", "empty", "folder", "nothing", "cut.abc", "zeros"],
)
@pytest.mark.parametrize("command", [["inspect"], ["predict"], ["convert", "-o", "x.json"]])
def test_file_that_is_no_model_is_told_in_one_line(folder, capsys, path, command):
    (folder / "empty").touch()
    (folder / "folder").mkdir()
    (folder / "cut.abc").write_bytes((folder / "m.abc").read_bytes()[:-50])
    (folder / "zeros").write_bytes(bytes(5000))
    line = [command[0], path, *(["t.csv"] if command == ["predict"] else []), *command[1:]]
    assert main(line) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("abcgbm: error: ")
    assert path in told


def test_cell_that_is_no_text_is_shown_in_part(folder, capsys):
    (folder / "bad.csv").write_bytes(b"a,y\n" + b"x" * 999 + b"\xe9" + b"x" * 999 + b",1\n")
    assert main(["train", "bad.csv", "-l", "y", "-m", "x.abc"]) == 1
    told = capsys.readouterr().err
    assert "bad.csv, line 2, column 'a': b'xxx" in told
    assert "x\\xe9x" in told
    assert len(told) < 200


def test_warning_is_told_in_one_line_without_the_place_in_the_code(folder):
    pd.read_csv("t.csv").iloc[:8].to_csv("few.csv", index=False)
    done = run(["train", "few.csv", "-l", "y", "-m", "x.abc", "-q"])
    (line,) = done.stderr.splitlines()
    assert line.startswith("abcgbm: warning: no tree can be split, ")


# ------------------------------------------------------------------------------------- reproduction


def test_line_in_the_report_has_the_options_of_reading_and_works(folder):
    table = pd.read_csv("t.csv")
    table.loc[0, "a"] = None
    table.to_csv("é.txt", index=False, header=False, sep="|", encoding="latin-1", na_rep="?")
    given = ["--no-header", "--format", "csv", "--delimiter", "|", "--encoding", "latin-1",
             "--missing", "?", "--title", "My page"]  # fmt: skip
    line = ["report", "m.abc", "é.txt", "--label", "-1", *given, "--output", "r.html"]
    assert main(line) == 0
    page = (folder / "r.html").read_text(encoding="utf-8")
    command = "abcgbm " + shlex.join(line)
    shown = command.replace("&", "&amp;").replace("'", "&#39;").replace('"', "&#34;")
    assert shown in page


def test_options_of_reading_are_given_back_as_they_were():
    assert TableOptions().as_given() == []
    options = TableOptions("csv", True, ";", ",", "latin-1", ["?", "-"], True)
    assert options.as_given() == [
        "--header", "--format", "csv", "--delimiter", ";", "--decimal", ",", "--encoding", "latin-1",
        "--missing", "?", "--missing", "-", "--zero-based",
    ]  # fmt: skip


# --------------------------------------------------------------------------------- before the reading


@pytest.mark.parametrize(
    "options",
    [["--algorithm", "gbm"], ["--set", "subsample=7"], ["--max-leaf-nodes", "1"]],
    ids=" ".join,
)
def test_parameters_are_checked_before_the_file_is_read(folder, capsys, options):
    assert main(["train", "no.csv", "-l", "y", "-m", "x.abc", *options]) == 1
    assert "; expected " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("max_leaves", "no parameter 'max_leaves'; did you mean max_leaf_nodes?"),
        ("zzzz", "no parameter 'zzzz'; expected one of algorithm, "),
    ],
)
def test_parameter_that_is_none_is_told_with_those_that_are_like_it(folder, capsys, name, told):
    (folder / "p.toml").write_text(f"{name} = 3\n")
    line = ["train", "t.csv", "-l", "y", "-m", "x.abc"]
    for options in (["--set", f"{name}=3"], ["--params", "p.toml"]):
        assert main([*line, *options]) == 1
        assert told in capsys.readouterr().err


def test_output_of_unknown_format_is_told_without_an_option_for_it(folder, capsys):
    assert main(["predict", "m.abc", "t.csv", "-o", "out.dat"]) == 1
    told = capsys.readouterr().err
    assert "out.dat: a name without a known suffix; expected .csv" in told
    assert "--format" not in told


def test_standard_input_is_refused_with_what_is_expected(folder, capsys):
    assert main(["predict", "m.abc", "-", "-o", "out.csv"]) == 1
    assert "-: standard input; expected a file" in capsys.readouterr().err


def test_command_alone_shows_help(capsys):
    main([])
    assert "train" in capsys.readouterr().out
