"""Large arrays in scratch files: the same model, no files left, errors that name the folder."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import core
from abcgbm import _core
from models import HANGS_AFTER, run_python
from strategies import Problem, mixed_problem, random_problem

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="not supported on Windows yet")

KINDS: dict[str, dict[str, Any]] = {
    "mart": {},
    "abc-mart": {"bases": [1], "base_derivatives": True},
    "logitboost": {"hessian_split": True},
    "abc-logitboost with search": {"hessian_split": True, "bases": [0, 2, 3]},
    "line search of the base class": {
        "base_line_search": True,
        "bases": [1],
        "base_derivatives": True,
    },
    "subsampled rows": {"subsample": 0.6},
    "multi-output": {"multi_output": True, "hessian_split": True},
    "multi-output, subsampled": {"multi_output": True, "n_projections": 2, "subsample": 0.6},
}


def everything_in(folder: Path) -> Any:
    """Return a storage that puts even the smallest arrays into files."""
    return _core.Storage(str(folder), min_bytes=1)


def files_in_use(folder: Path) -> int:
    """Return the number of files in a folder that this process has mapped."""
    return Path("/proc/self/maps").read_text().count(f"{folder}/")


def table_of(problem: Problem, storage: Any) -> Any:
    thresholds = [np.array(t) for t in problem.thresholds()]
    is_categorical = problem.is_categorical().astype(np.uint8)
    builder = _core.BinnedBuilder(len(problem.y), thresholds, is_categorical, storage)
    builder.add_block(np.arange(len(thresholds), dtype=np.int32), problem.X, 2)
    return builder.finish()


def rows_of(problem: Problem, storage: Any) -> dict[str, Any]:
    labels = (problem.y.astype(np.int32), problem.weight, problem.unit, problem.n_classes)
    return {
        "binned": table_of(problem, storage),
        "labels": _core.Labels(*labels, storage=storage),
        "n_threads": 2,
        "raw": problem.raw,
        "storage": storage,
    }


def bytes_of_training(problem: Problem, storage: Any, **kind: Any) -> Iterator[bytes]:
    """Yield all outputs of a training and of its validation as bytes."""
    bases = kind.pop("bases", [-1])
    with_base = kind.pop("base_derivatives", len(bases) > 1)
    params = core.train_params(max_leaf_nodes=5, min_weight=3, seed=1, **kind)
    trainer = _core.Trainer(**rows_of(problem, storage), params=params)
    validation = _core.Validation(**rows_of(problem, storage))
    for iteration in range(3):
        made = trainer.train_iteration(range(problem.n_classes), bases, with_base, 0.75, iteration)
        validation.add(made)
        arrays = (trainer.raw(), trainer.residuals()[0], trainer.class_losses(), validation.raw())
        yield core.result_bytes(made)
        yield from (np.asarray(array).tobytes() for array in (*arrays, validation.leading()))
        yield np.array([trainer.loss(), validation.loss()]).tobytes()


def sparse_problem() -> Problem:
    """Return one dense column, and several that are mostly zero."""
    problem = random_problem(3, 300, 6, 4)
    X = np.where(np.random.default_rng(3).random(problem.X.shape) < 0.9, 0.0, problem.X)
    X[:, 0] = problem.X[:, 0]
    return replace(problem, X=X)


def weighted_problem() -> Problem:
    """Return rows with weights and initial scores."""
    rng = np.random.default_rng(4)
    raw = np.round(rng.normal(size=(4, 300)), 2)
    raw = np.rint(raw * 2**32) / 2**32
    return replace(random_problem(4, 300, 3, 4), weight=rng.integers(1, 9, 300), unit=0.5, raw=raw)


PROBLEMS = {
    "numbers": random_problem(1, 300, 4, 4),
    "all kinds of columns": mixed_problem(2, 300, 4),
    "sparse": sparse_problem(),
    "weights and scores": weighted_problem(),
}


# ------------------------------------------------------------------------------------ the same model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table", PROBLEMS)
def test_training_with_scratch_files_is_the_same(table, kind, tmp_path):
    in_memory = list(bytes_of_training(PROBLEMS[table], _core.Storage(), **KINDS[kind]))
    assert (
        list(bytes_of_training(PROBLEMS[table], everything_in(tmp_path), **KINDS[kind]))
        == in_memory
    )


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize("kind", KINDS)
def test_scratch_files_are_invisible(kind, tmp_path):
    made = bytes_of_training(
        PROBLEMS["all kinds of columns"], everything_in(tmp_path), **KINDS[kind]
    )
    next(made)
    assert files_in_use(tmp_path) > 10
    assert list(tmp_path.iterdir()) == []
    made.close()
    assert files_in_use(tmp_path) == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_small_arrays_stay_in_memory(tmp_path):
    made = bytes_of_training(PROBLEMS["numbers"], _core.Storage(str(tmp_path)))
    next(made)
    assert files_in_use(tmp_path) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_taken_rows_are_stored_in_the_folder_and_pickles_in_memory(tmp_path):
    problem = PROBLEMS["sparse"]
    table, same = table_of(problem, everything_in(tmp_path)), table_of(problem, _core.Storage())
    before = files_in_use(tmp_path)
    taken = table.take(np.arange(0, 300, 2))
    assert files_in_use(tmp_path) > before > 0
    np.testing.assert_array_equal(taken.codes(), same.take(np.arange(0, 300, 2)).codes())
    del taken
    loaded = _core.Binned.from_state(table.state())
    assert files_in_use(tmp_path) == before
    np.testing.assert_array_equal(loaded.codes(), same.codes())


@pytest.mark.parametrize("multi_output", [False, True])
def test_memory_does_not_grow_with_the_rows_if_a_folder_is_given(multi_output):
    def parts(n_rows: int, **given: Any) -> dict[str, int]:
        params = core.train_params(multi_output=multi_output)
        return _core.training_bytes(n_rows, 5, 1000, params, 1, 2, **given)

    assert parts(10**6, in_folder=True) == parts(10**9, in_folder=True)
    in_memory = parts(10**6)
    assert {*parts(10**6, in_folder=True)} == {
        name for name, n_bytes in parts(10**9).items() if n_bytes == in_memory[name]
    } - {"losses of the candidates"}


# ------------------------------------------------------------------------------- -----no files left


def test_no_file_is_left_after_an_error(tmp_path):
    rows = rows_of(PROBLEMS["numbers"], everything_in(tmp_path))
    with pytest.raises(ValueError, match="raw: of shape"):
        _core.Trainer(**rows | {"raw": np.zeros((1, 1))}, params=_core.TrainParams())
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys
import test_storage as this
from pathlib import Path
for _ in range(10**6):
    for made in this.bytes_of_training(this.PROBLEMS["numbers"], this.everything_in(Path(sys.argv[1]))):
        sys.stdout.write("x")
        sys.stdout.flush()
"""


@pytest.mark.parametrize("n_iter", [1, 3])
def test_no_file_is_left_by_a_killed_process(n_iter, tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(n_iter) == b"x" * n_iter
        process.kill()
        assert process.wait(HANGS_AFTER) == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------- errors


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """A file system of 4 MB in memory."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size=4m,{options}", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("not there", FileNotFoundError),
        ("a file", NotADirectoryError),
        ("", FileNotFoundError),
    ],
)
def test_unusable_folder_is_an_early_error(name, error, tmp_path):
    (tmp_path / "a file").touch()
    folder = str(tmp_path / name) if name else ""
    with pytest.raises(error, match=f"bytes in the folder '{folder}' for large arrays: "):
        _core.Storage(folder)


NOT_OURS = """
import os, sys
from abcgbm import _core

os.chmod({folder!r}, 0o500)
if os.geteuid() == 0:
    os.setuid(65534)  # root may write everywhere
try:
    _core.Storage({folder!r})
except PermissionError as error:
    sys.stdout.write(error.strerror)
"""


def test_folder_without_write_permission_is_an_early_error(tmp_path):
    said = run_python(NOT_OURS.format(folder=str(tmp_path)))
    assert said.endswith(f"bytes in the folder '{tmp_path}' for large arrays: Permission denied")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_folder_of_a_read_only_file_system_is_an_error(tmp_path):
    with mounted(tmp_path, "ro"), pytest.raises(OSError, match="Read-only file system"):
        _core.Storage(str(tmp_path))


def test_relative_folder_is_resolved_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage = _core.Storage(".", 1)
    monkeypatch.chdir("/")
    rows_of(PROBLEMS["numbers"], storage)


def test_no_folder_means_memory_and_min_bytes_is_at_least_one(tmp_path):
    assert list(bytes_of_training(PROBLEMS["numbers"], _core.Storage(None)))
    with pytest.raises(ValueError, match="min_bytes: at least 1"):
        _core.Storage(str(tmp_path), 0)


FULL = """
import resource, sys
import numpy as np
from abcgbm import _core

folder = sys.argv[1]
storage = _core.Storage(folder)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 21, 1 << 21))
try:
    _core.Labels(np.zeros(10**6, np.int32), np.ones(10**6, np.int64), 1.0, 2, storage)
except OSError as error:
    sys.stdout.write(str(error))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="file size limits are tested on Linux")
def test_file_size_limit_is_an_error_that_names_the_folder(tmp_path):
    said = run_python(f"import sys; sys.argv[1:] = [{str(tmp_path)!r}]" + FULL)
    expected = f"[Errno 27] reserving 4000000 bytes in the folder '{tmp_path}' for large arrays"
    assert said == f"{expected}: File too large"


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root")
def test_full_disk_is_an_error_that_names_the_folder_and_frees_the_space(tmp_path):
    y, weight = np.zeros(500_000, np.int32), np.ones(500_000, np.int64)
    with mounted(tmp_path, "rw"):
        storage = _core.Storage(str(tmp_path))
        labels = _core.Labels(y, weight, 1.0, 2, storage)  # 2 of 4 MB
        with pytest.raises(OSError, match=f"2400000 bytes in the folder '{tmp_path}' .* No space"):
            _core.Labels(np.zeros(600_000, np.int32), weight[:1].repeat(600_000), 1.0, 2, storage)
        del labels
        assert _core.Labels(
            np.zeros(600_000, np.int32), np.ones(600_000, np.int64), 1.0, 2, storage
        )
