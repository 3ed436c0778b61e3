"""Exit of commands after external failures: disks, pipes, interrupts, invalid files."""

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
def test_full_disk_is_an_error_and_keeps_the_old_file(folder, name):
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
def test_input_file_is_not_overwritten(folder, capsys, line):
    (folder / "v.csv").write_bytes((folder / "t.csv").read_bytes())
    (folder / "p.toml").write_text("max_iter = 2\n")
    (folder / "other_name.csv").symlink_to("t.csv")
    before = contents(folder)
    assert main([*line, "--force"]) == 1
    message = capsys.readouterr().err
    target = line[line.index("-m" if line[0] == "train" else "-o") + 1]
    assert message == f"abcgbm: error: {target}: is an input file; expected another file to write\n"
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


@pytest.fixture(autouse=True)
def without_shell_detection(monkeypatch):
    """``--show-completion bash`` then does not depend on the shell that started the tests."""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")


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
    """Run a command through the shell, which can close streams."""
    command = ["bash", "-c", f'exec "$@" {redirections}', "bash", sys.executable, "-m", "abcgbm"]
    return subprocess.run([*command, *line], capture_output=True, text=True, check=False)


@PRINTING
def test_full_standard_output_is_a_one_line_error(folder, line):
    with full_disk() as full:
        done = run(line, stdout=full)
    assert (done.returncode, done.stderr) == (1, "abcgbm: error: No space left on device\n")


@PRINTING
def test_broken_pipe_ends_a_command_quietly(folder, line):
    with broken_pipe() as pipe:
        done = run(line, stdout=pipe)
    assert (done.returncode, done.stderr) == (141, "")


@needs_bash
@PRINTING
def test_closed_standard_output_ends_a_command_quietly(folder, line):
    done = run_with(">&-", line)
    assert (done.returncode, done.stderr) == (141, "")


def test_debug_shows_the_traceback_of_a_full_output(folder):
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
def test_messages_to_a_closed_standard_error_are_dropped(folder, closed, line, code, output):
    if "full" in closed and not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("there is no /dev/full")
    done = run_with(closed, line)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
    if output is not None:
        written = (folder / output).read_bytes()
        assert main([*line, "--force"]) == 0
        assert (folder / output).read_bytes() == written


@needs_bash
def test_data_are_printed_with_standard_error_closed(folder, capfd):
    assert main(["predict", "m.abc", "t.csv"]) == 0
    assert run_with("2>&-", ["predict", "m.abc", "t.csv"]).stdout == capfd.readouterr().out


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_streams_closed_by_the_caller_stay_closed(folder, monkeypatch, capfd, name):
    monkeypatch.setattr(sys, name, None)
    assert main(["--version"]) == (141 if name == "stdout" else 0)
    assert main(["inspect", "no.abc"]) == 1
    assert getattr(sys, name) is None
    message = capfd.readouterr()
    assert "no.abc" not in message.out
    assert ("no.abc" in message.err) == (name == "stdout")


# --------------------------------------------------------------------------------------- interrupts


@pytest.mark.parametrize(
    ("package", "module"), [("abcgbm_command", "abcgbm"), ("abcgbm.cli", "abcgbm.cli.app")]
)
def test_interrupt_during_import_is_a_one_line_error(package, module):
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


def test_console_script_handles_interrupts():
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="abcgbm")
    assert script.value == "abcgbm_command:main"


@pytest.mark.parametrize(("path", "code"), [("t.csv", 0), ("no.csv", 1)])
def test_command_exits_without_finalizing_foreign_threads(folder, path, code):
    """Regression: finalizing Python aborted occasionally while pyarrow threads were running."""
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
        _, message = end_of(process)
    assert process.returncode == 130
    assert message.splitlines()[-1] == "abcgbm: interrupted"
    assert "Traceback" not in message
    assert contents(folder) == before


# --------------------------------------------------------------------------------- options in errors


@pytest.mark.parametrize(
    ("content", "options", "message"),
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
def test_read_errors_name_an_option_that_may_help(folder, capsys, content, options, message):
    (folder / "bad.csv").write_bytes(content)
    assert main(["train", "bad.csv", "-l", "y", "-m", "x.abc", *options]) == 1
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    assert line.startswith("abcgbm: error: ")
    assert message in line


def test_zero_based_libsvm_file_is_an_error_that_names_the_option(folder, capsys):
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
def test_foreign_file_is_a_one_line_error(folder, capsys, path, command):
    (folder / "empty").touch()
    (folder / "folder").mkdir()
    (folder / "cut.abc").write_bytes((folder / "m.abc").read_bytes()[:-50])
    (folder / "zeros").write_bytes(bytes(5000))
    line = [command[0], path, *(["t.csv"] if command == ["predict"] else []), *command[1:]]
    assert main(line) == 1
    (message,) = capsys.readouterr().err.splitlines()
    assert message.startswith("abcgbm: error: ")
    assert path in message


def test_invalid_utf8_cell_is_shown_in_part(folder, capsys):
    (folder / "bad.csv").write_bytes(b"a,y\n" + b"x" * 999 + b"\xe9" + b"x" * 999 + b",1\n")
    assert main(["train", "bad.csv", "-l", "y", "-m", "x.abc"]) == 1
    message = capsys.readouterr().err
    assert "bad.csv, line 2, column 'a': b'xxx" in message
    assert "x\\xe9x" in message
    assert len(message) < 200


def test_warning_is_one_line_without_source_location(folder):
    pd.read_csv("t.csv").iloc[:8].to_csv("few.csv", index=False)
    done = run(["train", "few.csv", "-l", "y", "-m", "x.abc", "-q"])
    (line,) = done.stderr.splitlines()
    assert line.startswith("abcgbm: warning: no tree can be split, ")


# ------------------------------------------------------------------------------------- reproduction


def test_command_line_in_the_report_has_the_read_options_and_works(folder):
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


def test_read_options_round_trip():
    assert TableOptions().as_given() == []
    options = TableOptions("csv", True, ";", ",", "latin-1", ["?", "-"], True)
    assert options.as_given() == [
        "--header", "--format", "csv", "--delimiter", ";", "--decimal", ",", "--encoding", "latin-1",
        "--missing", "?", "--missing", "-", "--zero-based",
    ]  # fmt: skip


# ----------------------------------------------------------------------------------- before reading


@pytest.mark.parametrize(
    "options",
    [["--algorithm", "gbm"], ["--set", "subsample=7"], ["--max-leaf-nodes", "1"]],
    ids=" ".join,
)
def test_parameters_are_checked_before_the_file_is_read(folder, capsys, options):
    assert main(["train", "no.csv", "-l", "y", "-m", "x.abc", *options]) == 1
    assert "; expected " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("max_leaves", "no parameter 'max_leaves'; did you mean max_leaf_nodes?"),
        ("zzzz", "no parameter 'zzzz'; expected one of algorithm, "),
    ],
)
def test_unknown_parameter_is_answered_with_similar_names(folder, capsys, name, message):
    (folder / "p.toml").write_text(f"{name} = 3\n")
    line = ["train", "t.csv", "-l", "y", "-m", "x.abc"]
    for options in (["--set", f"{name}=3"], ["--params", "p.toml"]):
        assert main([*line, *options]) == 1
        assert message in capsys.readouterr().err


def test_unknown_output_format_error_names_no_option(folder, capsys):
    assert main(["predict", "m.abc", "t.csv", "-o", "out.dat"]) == 1
    message = capsys.readouterr().err
    assert "out.dat: a name without a known suffix; expected .csv" in message
    assert "--format" not in message


def test_standard_input_is_refused(folder, capsys):
    assert main(["predict", "m.abc", "-", "-o", "out.csv"]) == 1
    assert "-: standard input; expected a file" in capsys.readouterr().err


def test_command_alone_shows_help(capsys):
    main([])
    assert "train" in capsys.readouterr().out
