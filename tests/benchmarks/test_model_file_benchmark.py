"""The benchmark of model files: its counts and its page."""

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

if not (Path(__file__).parents[2] / "benchmarks").is_dir():
    pytest.skip("benchmarks/ is not in the source distribution", allow_module_level=True)

from benchmarks import model_files
from benchmarks.model_files import OUTCOMES, SYSTEMS, flips, in_child


def fail(error):
    raise error


@pytest.mark.parametrize(
    ("work", "outcome"),
    [
        (lambda: OUTCOMES.index("other"), OUTCOMES.index("other")),
        (lambda: fail(ValueError("damaged")), OUTCOMES.index("error")),
        (lambda: fail(MemoryError()), OUTCOMES.index("memory")),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "crash"),
        (lambda: time.sleep(60), "hang"),
    ],
    ids=["other", "error", "memory", "crash", "hang"],
)
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of forks beside threads
def test_result_of_a_child_process_is_reported(work, outcome):
    assert in_child(work, seconds=1) == outcome


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("file", [file for file in SYSTEMS if file.endswith(".abcgbm")])
def test_no_bit_flip_gives_another_model(file, tmp_path, monkeypatch):
    monkeypatch.setattr(model_files, "SECONDS_TO_HANG", 60)
    found = flips(file, SYSTEMS[file], tmp_path, 20)
    assert found["same"] + found["error"] == 20
    assert found["error"] > 0


def test_synthetic_table_has_all_classes():
    task = model_files.drawn(*model_files.FLIPPED)
    assert task.n_classes == 5
    assert np.unique(task.y).tolist() == [0, 1, 2, 3, 4]


def test_page_shows_the_measurements():
    results = json.loads(model_files.RESULTS.read_text())
    _, _, rest = model_files.PAGE.read_text().partition(f"<!-- {model_files.MARKER} -->\n")
    shown = rest.partition(f"<!-- end of {model_files.MARKER} -->")[0]
    assert shown == "\n".join(model_files.tables(results))
    ours = [results["flips"][file] for file in SYSTEMS if file.endswith(".abcgbm")]
    assert all(found["same"] + found["error"] == results["n_flips"] >= 1000 for found in ours)


def test_our_file_is_no_larger_than_that_of_xgboost():
    files = json.loads(model_files.RESULTS.read_text())["files"]
    for kind in ("model", "shared"):
        assert files[f"{kind}.abcgbm"]["bytes"] <= files[f"{kind}.ubj"]["bytes"]
