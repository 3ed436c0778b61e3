"""Row numbers above 2^31 and more than 2^31 scores, where 32-bit integers overflow.

The model is bit for bit that of a small table whose row weights are the numbers of copies.
"""

import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import core
from abcgbm import _core
from abcgbm.parameters.machine import available_bytes

_bench = pytest.importorskip("abcgbm._bench", reason="the module of the benchmarks is in no wheel")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="files are reserved as on Linux"),
]

GB = 10**9
MAX_DISK = 20  # GB that a test writes unless ABCGBM_HUGE is set
LIMIT = 2**31


@contextmanager
def reserved(memory: int, disk: int, folder: Path) -> Iterator[None]:
    """Run one test at a time, and only with enough memory and disk."""
    if disk > MAX_DISK and "ABCGBM_HUGE" not in os.environ:
        pytest.skip(f"writes {disk} GB to the disk, for minutes; set ABCGBM_HUGE=1 to run it")
    with (Path(tempfile.gettempdir()) / "abcgbm-test-many-rows").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        available = available_bytes()
        if available is not None and available < memory * GB:
            pytest.skip(f"{available / GB:.0f} GB of memory; {memory} GB are needed")
        free = shutil.disk_usage(folder).free
        if free < disk * GB:
            pytest.skip(f"{free / GB:.0f} GB of disk at {folder}; {disk} GB are needed")
        yield


# --------------------------------------------------------------------------------- 2^31 rows and more

N_CODES = 7
N_ROWS = (LIMIT // N_CODES + 150) * N_CODES
EDGE = np.arange(LIMIT - 50, N_ROWS, dtype=np.uint32)  # rows on both sides of 2^31


def numbered_rows(code: int) -> tuple[int, int]:
    """Return the sum and the count of the rows i with i % N_CODES == code."""
    count = N_ROWS // N_CODES
    return code * count + N_CODES * (count * (count - 1) // 2), count


def dense_table() -> Any:
    """Return a table of one column with the codes 0, 1, ... repeated."""
    shape = (N_ROWS // N_CODES, N_CODES)
    codes = np.broadcast_to(np.arange(N_CODES, dtype=np.uint8), shape).reshape(1, N_ROWS)
    small = core.bin_table(np.arange(float(N_CODES))[:, None], [np.arange(N_CODES - 1) + 0.5])
    return _core.Binned.from_state(small.state() | {"n_rows": N_ROWS, "columns": codes})


def test_histograms_and_splits_handle_row_numbers_above_2_to_31(tmp_path):
    with reserved(memory=8, disk=0, folder=tmp_path):
        table = dense_table()
        np.testing.assert_array_equal(
            table.take(EDGE.astype(np.int64)).codes()[:, 0], EDGE % N_CODES
        )
        sums, counts = zip(*map(numbered_rows, range(N_CODES)), strict=True)
        assert _bench.root_weights(table, 2).tolist() == [*counts, 0]
        assert _bench.root_sums(table, 2).tolist() == [*sums, 0]
        assert_node(table, EDGE % N_CODES)


def assert_node(table: Any, codes: np.ndarray) -> None:
    """Check the histogram and the split of the rows around 2^31."""
    found = _bench.node_sums(table, EDGE)
    for code in range(len(found)):
        rows = EDGE[codes == code]
        assert found[code].tolist() == [int(rows.sum(dtype=np.int64)), len(rows)]
    for bin in range(3):
        np.testing.assert_array_equal(_bench.rows_left(table, EDGE, 0, bin), EDGE[codes <= bin])


def test_sparse_columns_handle_row_numbers_above_2_to_31(tmp_path):
    """Bundled columns store a code for each row."""
    listed = np.array([5, LIMIT - 1, LIMIT, LIMIT + 7, N_ROWS - 1], np.uint32)
    values, start = np.array([2.0, 1.0, 2.0, 1.0, 2.0]), np.array([0, len(listed)])
    with reserved(memory=8, disk=4, folder=tmp_path):
        columns = _core.SparseColumns(N_ROWS, np.zeros(1), start, listed, values)
        storage = _core.Storage(str(tmp_path))
        thresholds, features = [np.array([0.5, 1.5])], np.zeros(1, np.int32)
        builder = _core.BinnedBuilder(N_ROWS, thresholds, np.zeros(1, np.uint8), storage)
        builder.add_sparse(features, columns, 1)
        table = builder.finish()
        assert table.is_bundled == [True]
        assert list(tmp_path.iterdir()) == []
        assert _bench.root_weights(table, 2).tolist() == [N_ROWS - 5, 2, 3, 0]
        codes = np.zeros(len(EDGE))
        codes[np.searchsorted(EDGE, listed[1:])] = values[1:]
        assert_node(table, codes)


def test_signed_indices_are_refused_above_2_to_31_rows():
    indices = np.zeros(1, np.int32)
    with pytest.raises(ValueError, match="indices: uint32 if there are more than 2"):
        _core.SparseColumns(LIMIT + 1, np.zeros(1), np.array([0, 1]), indices, np.ones(1))


# -------------------------------------------------------------------------- 2^31 scores and more

N_CLASSES = 100
SMALL = 101
N_COPIES = LIMIT // ((N_CLASSES - 1) * SMALL) + 1  # all scores of the last class are beyond 2^31
PARAMS = {"min_weight": 10 * N_COPIES, "max_leaf_nodes": 4}
MULTI_OUTPUT = {"multi_output": True, "n_projections": 1, "hessian_split": True}


def rows_of(n_copies: int, storage: Any) -> dict[str, Any]:
    """Return the small table with weights, or with copies of its rows."""
    rng = np.random.default_rng(0)
    x = np.tile(rng.integers(0, 5, SMALL).astype(float), n_copies)
    y = rng.integers(0, N_CLASSES, SMALL).astype(np.int32)
    y[:2] = N_CLASSES - 1
    weight = np.broadcast_to(np.int64(N_COPIES // n_copies), len(x))
    thresholds, is_categorical = [np.arange(4) + 0.5], np.zeros(1, np.uint8)
    builder = _core.BinnedBuilder(len(x), thresholds, is_categorical, storage)
    builder.add_block(np.zeros(1, np.int32), x[:, None], 2)
    labels = _core.Labels(np.tile(y, n_copies), weight, 1.0, N_CLASSES, storage)
    return {"binned": builder.finish(), "labels": labels, "n_threads": 2, "storage": storage}


def trained(rows: dict[str, Any], classes: list[int], **params: Any) -> tuple[Any, Any]:
    trainer = _core.Trainer(**rows, params=core.train_params(**PARAMS, **params))
    return trainer.train_iteration(classes, [-1], False, 0.99), trainer


@pytest.mark.parametrize(
    ("classes", "params"),
    [([N_CLASSES - 1], {}), (list(range(N_CLASSES)), MULTI_OUTPUT)],
    ids=["tree of the last class", "multi-output tree"],
)
def test_training_with_more_than_2_to_31_scores(classes, params, tmp_path):
    result, trainer = trained(rows_of(1, _core.Storage()), classes, **params)
    with reserved(memory=6, disk=42, folder=tmp_path):
        storage = _core.Storage(str(tmp_path))
        of_copies, of_all = trained(rows_of(N_COPIES, storage), classes, **params)
        assert core.result_bytes(of_copies) == core.result_bytes(result)
        np.testing.assert_array_equal(of_all.class_losses(), trainer.class_losses())
        assert list(tmp_path.iterdir()) == []
