"""Training resumes from the checkpoint of a killed process and gives the same bytes.

`python tests/promises/test_kill.py <fit> <checkpoint>` is such a process.
"""

import io
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from abcgbm import ABCBoostClassifier, AdaptiveBaseClass, Checkpoint, MultiOutputTrees, TreePerClass
from abcgbm.model.file import load
from models import HANGS_AFTER, noisy_data

ROWS, LABELS = noisy_data(n_rows=1500, n_features=6, n_classes=6)
LEARNED, VALIDATED = slice(0, 1000), slice(1000, 1500)
DATA = {"X": ROWS[LEARNED], "y": LABELS[LEARNED]}
VALIDATION = {"X_val": ROWS[VALIDATED], "y_val": LABELS[VALIDATED]}
PATIENT = {"early_stopping": True, "n_iter_no_change": 30}
FITS = {
    "soon done": (
        {
            "algorithm": AdaptiveBaseClass(n_candidates=2, gap=1),
            "max_iter": 40,
            "max_leaf_nodes": 4,
        },
        {"X": ROWS[:200], "y": LABELS[:200]},
    ),
    "search": (
        {
            "algorithm": AdaptiveBaseClass("logitboost", n_candidates=3, gap=2, warmup=2),
            "max_iter": 60,
            "subsample": 0.7,
        },
        DATA,
    ),
    "shared": (
        {
            "algorithm": MultiOutputTrees(n_projections=3, baseline="zero"),
            "learning_rate": 0.3,
            **PATIENT,
        },
        DATA | VALIDATION,
    ),
    "refit": (
        {"algorithm": "abc-mart", "refit": True, "max_iter": 20, "learning_rate": 0.1, **PATIENT},
        DATA,
    ),
    "weights": (
        {
            "algorithm": TreePerClass("mart", sequential_residuals=True),
            "max_iter": 60,
            "class_weight": "balanced",
        },
        DATA | {"sample_weight": np.arange(1000) % 3},
    ),
}


def fit(name: str, resume_from: Path | None = None, **parameters: object) -> ABCBoostClassifier:
    """Fit, from a checkpoint if it is there."""
    known, data = FITS[name]
    found = resume_from if resume_from is not None and resume_from.exists() else None
    return ABCBoostClassifier(**known, **parameters).fit(**data, resume_from=found)


def file_of(model: ABCBoostClassifier) -> bytes:
    file = io.BytesIO()
    model.save_model(file)
    return file.getvalue()


@cache
def whole(name: str) -> ABCBoostClassifier:
    """Return the model of an uninterrupted fit."""
    return fit(name)


def kill_once(name: str, checkpoint: Path, n_iter: int, seconds: float) -> bool:
    """Kill a process after some iterations and seconds; return whether it was still training."""
    command = [sys.executable, __file__, name, str(checkpoint)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(1 + n_iter):  # the first line announces the start
            process.stdout.readline()
        time.sleep(seconds)
        process.kill()  # SIGKILL: no cleanup code runs
        return process.wait(HANGS_AFTER) < 0


def check_what_is_left(name: str, checkpoint: Path) -> int:
    """Check that a killed fit leaves a complete checkpoint or none and resumes to the same bytes.

    Return the iterations of the checkpoint. There is at most one more file, a partial one.
    """
    others = [path.name for path in checkpoint.parent.iterdir() if path != checkpoint]
    assert len(others) <= 1
    assert all(other.startswith(".abcgbm-") for other in others)
    assert file_of(fit(name, checkpoint)) == file_of(whole(name))
    return n_iter_of(checkpoint)


def n_iter_of(checkpoint: Path) -> int:
    if not checkpoint.exists():
        return 0
    saved = load(checkpoint)
    return saved.history.n_iter + (saved.refit_model.n_iter if saved.refit_model else 0)


def kill_often(name: str, n_kills: int, folder: Path) -> None:
    """Kill a fit repeatedly, resume it after each kill, and restart it when it has ended."""
    rng = np.random.default_rng(list(FITS).index(name))
    checkpoint, second = folder / "checkpoint", whole(name).refit_history_
    n_iter = whole(name).n_iter_ + (second.n_iter if second else 0)
    killed: list[int] = []
    while len(killed) < n_kills:
        if not kill_once(name, checkpoint, rng.integers(n_iter // 2), rng.uniform(0, 0.05)):
            checkpoint.unlink()
            continue
        killed.append(check_what_is_left(name, checkpoint))
        for half_written in folder.glob(".abcgbm-*"):
            half_written.unlink()
    sys.stdout.write(f"{name} was killed after {killed} of {n_iter} steps ")


def test_killed_fit_resumes_to_the_same_bytes(tmp_path):
    assert kill_once("soon done", tmp_path / "checkpoint", 3, 0.0)
    assert 3 <= check_what_is_left("soon done", tmp_path / "checkpoint") < 40


@pytest.mark.slow
@pytest.mark.parametrize("name", ["search", "shared", "refit", "weights"])
def test_repeatedly_killed_fit_ends_in_the_same_bytes(name, tmp_path):
    """`pytest -s` shows the iterations; training on all rows of "refit" begins after 20."""
    kill_often(name, 5, tmp_path)


def say(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    say("begun")
    path = Path(sys.argv[2])
    fit(sys.argv[1], path, callbacks=[lambda r: say(r.iteration), Checkpoint(path, every=1)])
