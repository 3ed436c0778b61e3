"""The progress line."""

import io
import re
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from rich.cells import cell_len

from abcgbm import TimeLimit
from abcgbm.training.progress import ProgressLine
from models import HANGS_AFTER, assert_same_model, base_labels, noisy_data, small


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("abcgbm.training.progress.sys", SimpleNamespace(stderr=stream))
    return stream


def test_log_has_a_first_and_a_last_line_with_mean_losses(capfd):
    X, y = noisy_data()
    weight = np.arange(len(y)) % 3
    model = small(verbose=1).fit(X, y, weight)
    first, last = (f"{loss:.6g}" for loss in model.train_loss_[[1, -1]])
    bases = [f"base class {base_labels(model)[step]}" for step in (0, -1)]
    expected = f"iteration 1/8  loss {first}  {bases[0]}\n"
    expected += f"iteration 8/8  loss {last}  {bases[1]}  stopped: max_iter\n"
    assert capfd.readouterr() == ("", expected)


def test_mean_validation_loss_is_shown_too(capfd):
    X, y = noisy_data()
    model = small(verbose=1, early_stopping=False).fit(X, y, X_val=X[:40], y_val=y[:40])
    losses = model.train_loss_[-1], model.validation_loss_[-1]
    shown = "loss {:.6g}  validation loss {:.6g}".format(*losses)
    base = f"base class {base_labels(model)[-1]}"
    assert f"iteration 8/8  {shown}  {base}  stopped: max_iter\n" in capfd.readouterr().err


def test_log_has_a_line_at_time_intervals(capfd, monkeypatch):
    times = iter(range(0, 1000, 4))  # seconds, one iteration in four
    monkeypatch.setattr("abcgbm.training.progress.time.monotonic", lambda: next(times))
    with ProgressLine(8, verbose=1) as line:
        for step in range(1, 9):
            line.show(step, 1.0)
    steps = re.findall(r"iteration (\d)/8", capfd.readouterr().err)
    assert steps == ["1", "4", "7", "8"]


@pytest.mark.parametrize("verbose", [2, 3, 8, 10])
def test_larger_verbose_logs_every_n_iterations(verbose, capfd):
    model = small(verbose=verbose).fit(*noisy_data())
    every = range(verbose, 9, verbose)

    def line(step):
        loss, base = model.train_loss_[step], base_labels(model)[step - 1]
        return f"iteration {step}/8  loss {loss:.6g}  base class {base}"

    lines = [line(step) for step in every]
    end = f"{line(8)}  stopped: max_iter"
    assert capfd.readouterr().err.splitlines() == [*lines, end]


def test_larger_verbose_logs_lines_in_a_terminal(terminal):
    with ProgressLine(6, verbose=2) as line:
        for step in range(1, 7):
            line.show(step, 1.0)
    assert terminal.getvalue() == "".join(f"iteration {step}/6  loss 1\n" for step in (2, 4, 6))


def test_further_trainings_of_a_fit_are_labelled(capfd):
    given = {"verbose": 1, "early_stopping": True, "refit": True, "max_iter": 4}
    model = small(**given).fit(*noisy_data())
    *_, first, last = capfd.readouterr().err.splitlines()
    assert first.startswith(f"refit: iteration 1/{model.best_iteration_}  loss")
    assert last.endswith("stopped: max_iter")


def test_unbounded_iterations_are_counted_without_a_bar(terminal):
    model = small(verbose=1, max_iter=None, callbacks=[lambda r: r.iteration == 3, TimeLimit(1e9)])
    model.fit(*noisy_data())
    loss, base = model.train_loss_[-1], base_labels(model)[-1]
    expected = f"iteration 3  loss {loss:.6g}  base class {base}  stopped: callback\n"
    assert terminal.getvalue().endswith("\r\x1b[K" + expected)


def test_warm_start_counts_all_iterations(capfd):
    model = small(max_iter=3, warm_start=True).fit(*noisy_data())
    model.set_params(max_iter=8, verbose=1).fit(*noisy_data())
    assert "iteration 8/8" in capfd.readouterr().err


@pytest.mark.parametrize(("verbose", "as_number"), [(True, 1), (False, 0)])
def test_verbose_may_be_boolean(verbose, as_number, capfd):
    small(verbose=verbose).fit(*noisy_data())
    written = capfd.readouterr()
    small(verbose=as_number).fit(*noisy_data())
    assert written == capfd.readouterr()


def test_nothing_is_written_by_default(capfd):
    small().fit(*noisy_data())
    assert capfd.readouterr() == ("", "")


def test_early_end_shows_the_iteration_and_the_reason(capfd):
    X = [[0.0], [1.0]] * 20
    model = small(verbose=1, max_iter=1000, learning_rate=1.0).fit(X, [0, 1] * 20)
    assert model.stop_reason_ == "machine_accuracy"
    err = capfd.readouterr().err
    assert f"iteration {model.n_iter_}/1000" in err
    assert err.endswith("  stopped: machine_accuracy\n")


def test_training_without_iterations_is_reported(capfd):
    with pytest.warns(UserWarning, match="no tree can be split"):
        small(verbose=1).fit([[0.0]] * 40, [0, 1] * 20)
    assert capfd.readouterr() == ("", "iteration 0/8  stopped: no_progress\n")


def test_terminal_shows_a_line_before_the_first_iteration(terminal):
    with ProgressLine(7, verbose=1):
        assert terminal.getvalue().removeprefix("\r\x1b[K") == f"[{'-' * 30}] iteration 0/7"


def test_terminal_shows_one_changing_line(terminal, monkeypatch):
    monkeypatch.setattr("abcgbm.training.progress._EVERY", 0.0)
    with ProgressLine(2, verbose=1) as line:
        line.show(1, 5.0)
        line.show(2, 3.25)
        line.finish("max_iter")
    none, half, full = "-" * 30, "#" * 15 + "-" * 15, "#" * 30
    assert terminal.getvalue().replace("\x1b[K", "").split("\r")[1:] == [
        f"[{none}] iteration 0/2",
        f"[{half}] iteration 1/2  loss 5",
        f"[{full}] iteration 2/2  loss 3.25",
        f"[{full}] iteration 2/2  loss 3.25  stopped: max_iter\n",
    ]


def test_shorter_text_overwrites_the_longer_one(terminal, monkeypatch):
    monkeypatch.setattr("abcgbm.training.progress._EVERY", 0.0)
    with ProgressLine(2, verbose=1) as line:
        line.show(1, 123.456)
        line.show(2, 7.0)
    _, longer, *rest = terminal.getvalue().rstrip("\n").split("\r")[1:]
    assert all(len(text) >= len(longer) or "\x1b[K" in text for text in rest)


def test_terminal_is_not_updated_in_every_iteration(terminal):
    with ProgressLine(1000, verbose=1) as line:
        for step in range(1, 1001):
            line.show(step, 1.0)
    assert terminal.getvalue().count("\r") < 1000
    assert terminal.getvalue().endswith("iteration 1000/1000  loss 1\n")


@pytest.mark.parametrize("label", ["oak", "long" * 30, "\u6a39" * 30, "two\nlines\r"])
def test_live_line_fits_a_narrow_terminal(terminal, monkeypatch, label):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("abcgbm.training.progress._EVERY", 0.0)
    with ProgressLine(2, verbose=1) as line:
        line.show(1, 5.0, 4.0, base_class=label)
    live = terminal.getvalue().replace("\x1b[K", "").split("\r")[1:-1]
    assert len(live) == 2
    assert all("\n" not in text and cell_len(text) < 60 for text in live)
    assert "validation loss 4" in live[1]


def test_line_is_ended_when_training_is_interrupted(terminal):
    def train(line):
        line.show(1, 2.0)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), ProgressLine(2, verbose=1) as line:
        train(line)
    assert terminal.getvalue().endswith("iteration 1/2  loss 2\n")


def test_disabled_line_writes_nothing(terminal):
    with ProgressLine(2, verbose=0) as line:
        line.show(1, 2.0)
        line.finish("max_iter")
    assert terminal.getvalue() == ""


def test_pace_and_remaining_time_are_shown_once_reliable(terminal, monkeypatch):
    seconds = iter([0.0, 0.5, 2.0, 7200.0])
    monkeypatch.setattr("abcgbm.training.progress.time.monotonic", lambda: next(seconds))
    with ProgressLine(4, 1) as line:
        for step in (1, 2, 3):
            line.show(step, 1.0)
    first, second, third = terminal.getvalue().split("\r\x1b[K")[2:5]
    assert "iterations/s" not in first
    assert second.endswith("1 iterations/s  0:02 left")
    assert third.endswith("0.000417 iterations/s  40:00 left")


# --------------------------------------------------------------------------- failing standard error


class Unwritable(io.StringIO):
    """A stream that fails after a few writes."""

    def __init__(self, error, n_texts=0):
        super().__init__()
        self.error, self.n_texts, self.n_failures = error, n_texts, 0

    def write(self, text):
        self.n_texts -= 1
        if self.n_texts < 0:
            self.n_failures += 1
            raise self.error
        return len(text)


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


STREAMS = {
    "None": lambda: None,
    "closed": closed,
    "no stream": object,
    "broken pipe": lambda: Unwritable(BrokenPipeError(32, "Broken pipe")),
    "full disk": lambda: Unwritable(OSError(28, "No space left on device"), 1),
    "user": lambda: Unwritable(RuntimeError("no")),
}
VALIDATED = {"max_iter": 4, "early_stopping": True, "refit": True}


@pytest.mark.parametrize("verbose", [1, 2])
@pytest.mark.parametrize("name", STREAMS)
def test_fit_warns_once_if_progress_cannot_be_written_and_continues(name, verbose, monkeypatch):
    X, y = noisy_data()
    expected = small(**VALIDATED).fit(X, y)
    stream = STREAMS[name]()
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.warns(
        UserWarning, match="progress cannot be written to standard error: "
    ) as caught:
        model = small(**VALIDATED, verbose=verbose).fit(X, y)
    assert len(caught) == 1
    assert getattr(stream, "n_failures", 1) == 1
    assert_same_model(model, expected)


@pytest.mark.parametrize("name", STREAMS)
def test_fit_continues_where_warnings_are_errors(name, monkeypatch):
    X, y = noisy_data()
    monkeypatch.setattr(sys, "stderr", STREAMS[name]())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert small(verbose=1).fit(X, y).n_iter_ == 8


def test_live_line_needs_no_descriptor(monkeypatch):
    class Live:
        text = ""

        def isatty(self):
            return True

        def write(self, text):
            self.text += text

        def flush(self):
            pass

    live = Live()
    monkeypatch.setattr(sys, "stderr", live)
    small(verbose=1).fit(*noisy_data())
    assert "iteration 8/8" in live.text


FITTING = """
import sys
from abcgbm import ABCBoostClassifier, TimeLimit
X, y = [[float(i)] for i in range(40)], [0, 1] * 20
print(ABCBoostClassifier(max_iter=3, early_stopping=False, verbose=1).fit(X, y).n_iter_)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the shell is another one there")
@pytest.mark.parametrize("error", ["2>&-", "2>/dev/full", "2> >(true)"])
def test_fit_works_with_any_standard_error(error):
    if "full" in error and sys.platform != "linux":
        pytest.skip("there is no /dev/full")
    done = subprocess.run(
        ["bash", "-c", f'exec "$0" -c "$1" {error}', sys.executable, FITTING],
        stdout=subprocess.PIPE,
        text=True,
        timeout=HANGS_AFTER,
        check=True,
    )
    assert done.stdout == "3\n"
