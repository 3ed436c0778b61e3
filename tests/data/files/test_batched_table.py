"""While a table is read in parts: rows that change, signals, full disks, and what is shown of it."""

import errno
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.feather
import pyarrow.parquet

from abcgbm import LargeTable
from abcgbm.training import progress
from large_files import (
    BATCHES,
    N_ROWS,
    TABLE,
    WRITERS,
    assert_same,
    fit,
    fit_in_memory,
    model_bytes,
    raised,
    replaced,
    written,
)
from models import end_of

# ---------------------------------------------------------------------------- what changes meanwhile


class Changing:
    """Batches that are others after some readings; the first is that of the names."""

    def __init__(self, then, n_same):
        self._then, self._n_left = then, n_same

    def __call__(self):
        self._n_left -= 1
        return iter(BATCHES if self._n_left >= 0 else self._then)


OTHER_ROWS = {
    "fewer": BATCHES[:2],
    "none": [],
    "more": [*BATCHES, BATCHES[0]],
    "other order": [BATCHES[1], BATCHES[0], BATCHES[2]],
    "permuted": [TABLE.take(np.random.default_rng(1).permutation(N_ROWS))],
    "other labels": [replaced(TABLE, "y", TABLE["y"].take(np.arange(N_ROWS)[::-1]))],
}


@pytest.mark.parametrize("memory", [None, 10])
@pytest.mark.parametrize("rows", OTHER_ROWS)
def test_batches_of_other_rows_are_detected_when_features_are_read(rows, memory):
    large = LargeTable(Changing(OTHER_ROWS[rows], n_same=2), memory=memory)
    message = raised(ValueError, fit, large)
    assert "had 60 rows" in message or "other rows, or in another order" in message


@pytest.mark.parametrize("column", ["a", "s"])
def test_batches_of_other_values_are_detected_when_they_are_read_twice(column):
    other = replaced(TABLE, column, TABLE[column].take(np.arange(N_ROWS)[::-1]))
    large = LargeTable(Changing([other], n_same=3), memory=10)
    assert f"column '{column}'" in raised(ValueError, fit, large)


def test_batches_of_other_rows_are_detected_for_validation_and_refit():
    permuted = OTHER_ROWS["permuted"]
    validated = LargeTable(Changing(permuted, n_same=2))
    assert "other rows" in raised(ValueError, lambda: fit(BATCHES, X_val=validated))
    refitted = LargeTable(Changing(permuted, n_same=3))
    settings = {"early_stopping": True, "refit": True}
    assert "other rows" in raised(ValueError, lambda: fit(refitted, settings=settings))


def test_batches_that_are_cut_in_another_way_are_the_same_rows():
    assert_same(LargeTable(Changing([TABLE.slice(0, 7), TABLE.slice(7)], n_same=2)), TABLE)


def test_function_that_returns_one_iterator_twice_is_told():
    batches = iter(BATCHES)
    assert "the same iterator twice" in raised(TypeError, fit, LargeTable(lambda: batches))


CHANGES = {
    "vanished": lambda path: path.unlink(),
    "changed": lambda path: WRITERS[path.suffix[1:]](BATCHES[1].take(np.arange(20)[::-1]), path),
}


@pytest.mark.parametrize("memory", [None, 10])
@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("change", CHANGES)
def test_file_that_changes_between_readings_is_named(change, ending, memory, tmp_path, monkeypatch):
    path = written(tmp_path, BATCHES, ending) / f"p1.{ending}"
    large = LargeTable(tmp_path, memory=memory)
    batches, readings = large.source.batches, []

    def changing(columns):
        if len(readings) == 1:
            CHANGES[change](path)
        readings.append(columns)
        return batches(columns)

    monkeypatch.setattr(large.source, "batches", changing)
    assert f"{path}: the file has {change} since" in raised(ValueError, fit, large)


@pytest.mark.parametrize("write", [pyarrow.parquet.write_table, pyarrow.feather.write_feather])
def test_file_that_is_cut_short_while_it_is_read_is_named(write, tmp_path):
    path = tmp_path / f"p.{write.__name__.partition('_')[2].replace('table', 'parquet')}"
    write(pa.table({"a": np.random.default_rng(0).normal(size=500_000)}), path)
    batches = LargeTable(path).batches(["a"])
    next(batches)
    os.truncate(path, 1000)
    assert str(path) in raised(ValueError, list, batches)


# ------------------------------------------------------------------------------- folders and signals

CHILD = """
import sys
import pyarrow
from abcgbm import ABCBoostClassifier, LargeTable

def batches():
    number = pyarrow.array(range({n_rows}))
    table = pyarrow.table({{"a": number, "y": pyarrow.array([0, 1] * ({n_rows} // 2))}})
    print("reading", flush=True)
    return (table for _ in range({n_batches}))

large = LargeTable(batches, memory=100_000, cache_dir=sys.argv[1])
try:
    ABCBoostClassifier(max_iter=1).fit(large, "y")
except (KeyboardInterrupt, OSError) as error:
    sys.exit(f"{{type(error).__name__}}: {{error}}")
"""


LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))"


def child(folder, n_batches, before=""):
    code = before + CHILD.format(n_rows=100_000, n_batches=n_batches)
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdout=pipe, stderr=pipe, text=True
    )


@pytest.mark.usefixtures("heeds_interrupts")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_broken_off_reading_leaves_nothing(stop, tmp_path):
    with child(tmp_path, 100) as process:
        for _ in range(3):  # names, labels, and values that are sorted in the folder
            process.stdout.readline()
        time.sleep(0.3)
        process.send_signal(stop)
        _, errors = end_of(process)
    assert process.returncode == -signal.SIGKILL or "KeyboardInterrupt" in errors
    assert list(tmp_path.iterdir()) == []


def test_full_disk_names_the_folder_and_leaves_nothing(tmp_path):
    with child(tmp_path, 3, before=LIMITED) as process:
        _, errors = process.communicate(timeout=60)
    assert f"OSError: [Errno {errno.EFBIG}]" in errors
    assert str(tmp_path) in errors
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------ progress


class Terminal:
    """Standard error that says that it is a terminal."""

    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def fileno(self):
        raise OSError

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.mark.parametrize(
    ("ending", "is_size_told"), [("parquet", True), ("csv", True), ("feather", False)]
)
def test_reading_tells_rows_and_bytes(ending, is_size_told, tmp_path, capsys):
    fit(written(tmp_path, BATCHES, ending), settings={"verbose": 1})
    lines = capsys.readouterr().err.splitlines()
    rows = "60 of 60 rows, " if is_size_told else "60 rows"
    assert lines[0].startswith(f"reading 1 column: {rows}")
    assert lines[1].startswith(f"reading 3 columns: {rows}")
    assert lines[2].startswith("iteration 1/3")
    assert (" KB of " in lines[0]) == is_size_told


def test_reading_is_one_line_that_changes_in_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    fit(BATCHES, settings={"verbose": 1})
    labels = terminal.text.split("\n")[0]
    drawn = ["20 rows", "40 rows", "60 rows", "60 rows"]  # and once more at the end
    assert labels == "".join(f"\r\x1b[Kreading 1 column: {rows}" for rows in drawn)


@pytest.mark.parametrize("stream", [None, io.TextIOWrapper(io.BytesIO())], ids=["None", "closed"])
def test_reading_warns_once_if_it_cannot_be_shown_and_continues(stream, tmp_path, monkeypatch):
    if stream is not None:
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_LOG_EVERY", 0.0)
    path = written(tmp_path, BATCHES)
    with pytest.warns(UserWarning, match="progress cannot be written") as caught:
        model = fit(path, settings={"verbose": 1})
    assert len(caught) == 1
    model.set_params(verbose=0)
    assert model_bytes(model) == model_bytes(fit(path))


def test_reading_is_quiet_by_default(tmp_path, capsys):
    fit(written(tmp_path, BATCHES)).predict(tmp_path)
    assert capsys.readouterr().err == ""


# ------------------------------------------------------------------------- what does not fit into memory


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_codes_and_scores_lie_in_a_folder_and_the_model_is_that_of_memory(tmp_path):
    n_rows, folder = 1_100_000, tmp_path / "cache"
    folder.mkdir()
    x = np.random.default_rng(0).integers(0, 300, n_rows).astype(float)
    sparse = np.where(x < 7, x, 0.0)
    whole = pa.table({"x": x, "s": sparse, "y": (x > 100).astype(int) + (sparse > 3)})
    n_mapped = []

    def look(_):
        n_mapped.append(Path("/proc/self/maps").read_text().count(f"{folder}/"))

    large = LargeTable(whole.to_batches(100_000), memory=100_000, cache_dir=folder)
    model = fit(large, settings={"callbacks": look})
    assert min(n_mapped) > 5
    assert list(folder.iterdir()) == []
    model.set_params(callbacks=None)
    assert model_bytes(model) == model_bytes(fit_in_memory(whole))
