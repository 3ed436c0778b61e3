"""The line that shows how far training is."""

import io
import re
from types import SimpleNamespace

import pytest

from abcgbm.training.progress import ProgressLine
from models import noisy_data, small


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("abcgbm.training.progress.sys", SimpleNamespace(stderr=stream))
    return stream


def test_verbose_writes_one_line_to_standard_error(capfd):
    model = small(verbose=1).fit(*noisy_data())
    out, err = capfd.readouterr()
    assert out == ""
    loss = re.escape(f"{model.train_loss_[-1]:.6g}")
    assert re.fullmatch(rf"\[#{{30}}\] step 8/8  loss {loss}  stopped: max_iter\n", err)


def test_validation_loss_is_shown_too(capfd):
    X, y = noisy_data()
    model = small(verbose=1, early_stopping=False).fit(X, y, X_val=X[:40], y_val=y[:40])
    shown = f"loss {model.train_loss_[-1]:.6g}  validation loss {model.validation_loss_[-1]:.6g}"
    assert f"step 8/8  {shown}  stopped: max_iter\n" in capfd.readouterr().err


def test_steps_without_end_are_counted_without_a_bar(capfd):
    model = small(verbose=1, max_iter=None, callbacks=lambda r: r.step == 3, max_time=1e9)
    model.fit(*noisy_data())
    expected = f"step 3  loss {model.train_loss_[-1]:.6g}  stopped: callback\n"
    assert capfd.readouterr() == ("", expected)


def test_warm_start_shows_all_steps(capfd):
    model = small(max_iter=3, warm_start=True).fit(*noisy_data())
    model.set_params(max_iter=8, verbose=1).fit(*noisy_data())
    assert "step 8/8" in capfd.readouterr().err


@pytest.mark.parametrize(("verbose", "as_number"), [(True, 1), (False, 0)])
def test_verbose_may_be_a_truth_value(verbose, as_number, capfd):
    small(verbose=verbose).fit(*noisy_data())
    written = capfd.readouterr()
    small(verbose=as_number).fit(*noisy_data())
    assert written == capfd.readouterr()


def test_nothing_is_written_by_default(capfd):
    small().fit(*noisy_data())
    assert capfd.readouterr() == ("", "")


def test_training_that_ends_early_shows_where_and_why(capfd):
    X = [[0.0], [1.0]] * 20
    model = small(verbose=1, max_iter=1000, learning_rate=1.0).fit(X, [0, 1] * 20)
    assert model.stop_reason_ == "machine_accuracy"
    err = capfd.readouterr().err
    assert f"step {model.n_iter_}/1000" in err
    assert err.endswith("  stopped: machine_accuracy\n")


def test_training_without_a_step_tells_so(capfd):
    with pytest.warns(UserWarning, match="no tree can be split"):
        small(verbose=1).fit([[0.0]] * 40, [0, 1] * 20)
    assert capfd.readouterr() == ("", f"[{'-' * 30}] step 0/8  stopped: no_progress\n")


def test_terminal_sees_the_line_before_the_first_step(terminal):
    with ProgressLine(7, enabled=True):
        assert terminal.getvalue().removeprefix("\r\x1b[K") == f"[{'-' * 30}] step 0/7"


def test_terminal_sees_one_line_that_changes(terminal, monkeypatch):
    monkeypatch.setattr("abcgbm.training.progress._EVERY", 0.0)
    with ProgressLine(2, enabled=True) as line:
        line.show(1, 5.0)
        line.show(2, 3.25)
        line.finish("max_iter")
    none, half, full = "-" * 30, "#" * 15 + "-" * 15, "#" * 30
    assert terminal.getvalue().replace("\x1b[K", "").split("\r")[1:] == [
        f"[{none}] step 0/2",
        f"[{half}] step 1/2  loss 5",
        f"[{full}] step 2/2  loss 3.25",
        f"[{full}] step 2/2  loss 3.25  stopped: max_iter\n",
    ]


def test_shorter_text_leaves_nothing_of_the_longer_one(terminal, monkeypatch):
    monkeypatch.setattr("abcgbm.training.progress._EVERY", 0.0)
    with ProgressLine(2, enabled=True) as line:
        line.show(1, 123.456)
        line.show(2, 7.0)
    _, longer, *rest = terminal.getvalue().rstrip("\n").split("\r")[1:]
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
        line.finish("max_iter")
    assert terminal.getvalue() == ""
