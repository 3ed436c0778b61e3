import os
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import abcgbm
from abcgbm import ABCBoostClassifier
from abcgbm import demo as comparison
from abcgbm.cli import main
from abcgbm.demo import Reading, Readings
from models import run_python


@pytest.fixture
def in_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def forbid_training(monkeypatch):
    def fit(*_):
        pytest.fail("training began before the arguments were checked")

    monkeypatch.setattr(ABCBoostClassifier, "_fit", fit)


def hide_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)


def final_errors(algorithm, max_iter):
    """Return the errors of the demo's model on the second half of the digits."""
    X, y = load_digits(return_X_y=True)
    half = len(y) // 2
    model = ABCBoostClassifier(
        algorithm,
        max_iter=max_iter,
        max_leaf_nodes=comparison.LEAVES,
        learning_rate=comparison.LEARNING_RATE,
    )
    return int(np.sum(model.fit(X[:half], y[:half]).predict(X[half:]) != y[half:]))


def test_demo_prints_the_errors_of_both_algorithms(in_empty_folder, monkeypatch, capsys):
    hide_matplotlib(monkeypatch)
    assert main(["demo", "--max-iter", "4"]) == 0
    (line,) = [text for text in capsys.readouterr().out.splitlines() if "after the last" in text]
    mart, abc = final_errors("mart", 4), final_errors("abc-mart", 4)
    cells = line.removeprefix("after the last iteration").split()
    assert cells[:6] == [str(mart), "(iter.", "4)", str(abc), "(iter.", "4)"]


def test_demo_writes_its_figure_to_the_given_path(in_empty_folder, capsys):
    pytest.importorskip("matplotlib")
    assert main(["demo", "--max-iter", "2", "--output", "curves.png"]) == 0
    assert (in_empty_folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert "curves written to curves.png" in capsys.readouterr().out


def test_demo_without_matplotlib_prints_the_table_and_names_the_extra(
    in_empty_folder, monkeypatch, capsys
):
    hide_matplotlib(monkeypatch)
    assert main(["demo", "--max-iter", "2"]) == 0
    captured = capsys.readouterr()
    assert "at an iteration chosen by validation" in captured.out
    assert 'pip install "abcgbm[plot]"' in captured.err
    assert list(in_empty_folder.iterdir()) == []


def test_demo_is_reproducible(in_empty_folder, monkeypatch, capsys):
    hide_matplotlib(monkeypatch)
    outputs = []
    for _ in range(2):
        main(["demo", "--max-iter", "3"])
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


def test_demo_shows_the_default_model_before_the_comparison(in_empty_folder, monkeypatch, capsys):
    hide_matplotlib(monkeypatch)
    main(["demo", "--max-iter", "2"])
    out = capsys.readouterr().out
    train, (X, y) = comparison._digits()
    n_wrong = (ABCBoostClassifier().fit(*train).predict(X) != y).sum()
    assert f"ABCBoostClassifier(): {n_wrong} errors on {len(y)} test rows" in out
    assert out.index("ABCBoostClassifier()") < out.index("The comparison of the paper")


def test_summary_table_shows_errors_improvement_and_p_value():
    mart = Readings(Reading(7, 56), Reading(9, 60), Reading(8, 57))
    abc = Readings(Reading(5, 41), Reading(9, 66), Reading(6, 57))
    lines = [
        " ".join(text.split()) for text in comparison.summary_table(mart, abc, 1797).splitlines()
    ]
    assert lines[1].endswith(" 56 (iter. 7) 41 (iter. 5) 26.8 0.061")
    assert lines[2].endswith(" 60 (iter. 9) 66 (iter. 9) -10.0 0.707")
    assert lines[3].endswith(" 57 (iter. 8) 57 (iter. 6) 0.0 0.500")


def test_tiny_p_value_is_not_printed_as_zero():
    mart, abc = Reading(1, 11133), Reading(1, 10203)
    table = comparison.summary_table(Readings(mart, mart, mart), Readings(abc, abc, abc), 290506)
    assert table.splitlines()[1].endswith("8.4  4.4e-11")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trains"], "No such command 'trains'"),
        (["demo", "--max-iter", "0"], "'--max-iter': Input should be greater than or equal to 1"),
        (["demo", "--max-iter", "many"], "'--max-iter': Input should be a valid integer"),
        (["demo", "--output", "demo.txt"], "'demo.txt'; expected a name ending in .png"),
        (["demo", "--colour", "red"], "--colour"),
        (["train", "t.csv"], "'--model'"),
        (["train", "t.csv", "--model", "m.abc", "--set", "leaves"], "expected NAME=VALUE"),
        (["convert", "m.abc"], "--output is missing; expected a file"),
    ],
)
def test_bad_arguments_are_one_line_errors_before_training(
    in_empty_folder, monkeypatch, capsys, arguments, message
):
    forbid_training(monkeypatch)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("abcgbm: error: ")
    assert message in line


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["demo"], "demo.png: a folder; expected a file to write"),
        (["demo", "-o", "nowhere/a.png"], "nowhere/a.png: the folder 'nowhere' does not exist"),
        (["demo", "-o", "closed/a.png"], "closed/a.png: the folder 'closed' cannot be written to"),
    ],
)
def test_unwritable_figure_path_is_refused_before_training(
    in_empty_folder, monkeypatch, capsys, line, message
):
    forbid_training(monkeypatch)
    (in_empty_folder / "demo.png").mkdir()
    (in_empty_folder / "closed").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "closed")
    assert main(line) == 1
    assert capsys.readouterr().err == f"abcgbm: error: {message}\n"


def test_interrupt_prints_one_line_and_exits_with_130(in_empty_folder, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(ABCBoostClassifier, "fit", interrupted)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "abcgbm: interrupted"


def test_version_is_that_of_the_package(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"abcgbm {abcgbm.__version__}\n"


def test_missing_typer_names_the_extra():
    code = "import sys; sys.modules['typer'] = None; from abcgbm.cli import main; print(main(['demo']))"
    assert run_python(code) == "1\n"
