"""The line that shows how far training is."""

import io
import re
from types import SimpleNamespace

import pytest

from abcgbm.progress import ProgressLine
from models import noisy_data, small


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("abcgbm.progress.sys", SimpleNamespace(stderr=stream))
    return stream


def test_verbose_writes_one_line_to_standard_error(capfd):
    model = small(verbose=1).fit(*noisy_data())
    out, err = capfd.readouterr()
    assert out == ""
    assert re.fullmatch(r"\[#{30}\] step 8/8  loss [0-9.]+\n", err)
    assert f"{model.train_loss_[-1]:.6g}" in err


def test_nothing_is_written_by_default(capfd):
    small().fit(*noisy_data())
    assert capfd.readouterr() == ("", "")


def test_training_that_ends_early_shows_where(capfd):
    X = [[0.0], [1.0]] * 20
    model = small(verbose=1, max_iter=1000, learning_rate=1.0).fit(X, [0, 1] * 20)
    assert model.stop_reason_ == "machine_accuracy"
    assert f"step {model.n_iter_}/1000" in capfd.readouterr().err


def test_training_without_a_step_writes_nothing(capfd):
    small(verbose=1).fit([[0.0]] * 40, [0, 1] * 20)
    assert capfd.readouterr() == ("", "")


def test_terminal_sees_one_line_that_changes(terminal, monkeypatch):
    monkeypatch.setattr("abcgbm.progress._EVERY", 0.0)
    with ProgressLine(2, enabled=True) as line:
        line.show(1, 5.0)
        line.show(2, 3.25)
    half, full = "#" * 15 + "-" * 15, "#" * 30
    first, *rest = terminal.getvalue().replace("\x1b[K", "").split("\r")[1:]
    assert first == f"[{half}] step 1/2  loss 5"
    assert rest == [f"[{full}] step 2/2  loss 3.25", f"[{full}] step 2/2  loss 3.25\n"]


def test_shorter_text_leaves_nothing_of_the_longer_one(terminal, monkeypatch):
    monkeypatch.setattr("abcgbm.progress._EVERY", 0.0)
    with ProgressLine(2, enabled=True) as line:
        line.show(1, 123.456)
        line.show(2, 7.0)
    longer, *rest = terminal.getvalue().rstrip("\n").split("\r")[1:]
    assert all(len(text) >= len(longer) or "\x1b[K" in text for text in rest)


def test_terminal_is_not_drawn_at_every_step(terminal):
    with ProgressLine(1000, enabled=True) as line:
        for step in range(1, 1001):
            line.show(step, 1.0)
    assert terminal.getvalue().count("\r") < 1000
    assert terminal.getvalue().endswith("step 1000/1000  loss 1\n")


def test_line_is_ended_when_training_is_broken_off(terminal):
    def train(line):
        line.show(1, 2.0)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), ProgressLine(2, enabled=True) as line:
        train(line)
    assert terminal.getvalue().endswith("step 1/2  loss 2\n")


def test_line_that_is_off_writes_nothing(terminal):
    with ProgressLine(2, enabled=False) as line:
        line.show(1, 2.0)
    assert terminal.getvalue() == ""
