"""The memory estimate of training, and the error if less is available."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from abcgbm import MultiOutputTrees
from abcgbm.parameters.machine import available_bytes
from abcgbm.training import training_run as training
from abcgbm.training.memory import TrainingSize, check
from models import noisy_data, run_python, small

SIZE = TrainingSize(
    n_rows=1_000_000,
    n_validation_rows=0,
    n_classes=100,
    total_bins=5000,
    max_leaf_nodes=20,
    n_threads=2,
    n_candidates=1,
    has_hessian=False,
)


@pytest.mark.parametrize(
    "field",
    [
        *("n_rows", "n_validation_rows", "n_classes", "total_bins"),
        *("max_leaf_nodes", "n_threads"),
    ],
)
def test_memory_increases_with_every_size(field):
    totals = [replace(SIZE, **{field: n}).total() for n in (2, 10, 1000, 32_000)]
    assert totals == sorted(totals)
    assert totals[0] < totals[-1]


def test_scores_take_two_numbers_per_row_and_class():
    assert SIZE.parts()["scores of the rows"] == 1_000_000 * (2 * 8 * 100 + 8)


def test_search_keeps_every_thread_busy():
    """With one candidate there are no more trees than classes."""
    size = replace(SIZE, n_classes=5, n_threads=8)
    alone, searched = size.parts(), replace(size, n_candidates=2).parts()
    for part in ("rows by node", "histograms"):
        assert searched[part] * 5 == alone[part] * 8


def test_search_needs_more_up_to_a_bound():
    parts = [replace(SIZE, n_candidates=n).parts() for n in (1, 2, 3, 99)]
    leaves = [part["leaves of the rows"] for part in parts]
    assert leaves == [200_000_000, 400_000_000, 400_000_000, 400_000_000]
    losses = [part["losses of the candidates"] for part in parts]
    assert losses == [0, 16_000_000, 16_000_000, 16_000_000]


def test_ranks_keep_the_rows_of_all_trees():
    """As many trees grow at once as fit into memory."""
    few, many = (replace(SIZE, n_classes=5, n_rows=n, has_ranks=True) for n in (10**6, 10**9))
    assert few.parts()["rows by node"] == 5 * 9 * 10**6
    assert many.parts()["rows by node"] == 9 * 10**9


def test_fewer_projections_need_no_more_memory():
    shared = replace(SIZE, multi_output=True, has_hessian=True)
    totals = [replace(shared, n_projections=n).total() for n in (1, 7, 50, 99, 100)]
    assert totals == sorted(totals)
    assert totals[0] < totals[-1]
    assert replace(shared, n_projections=10**6).total() == totals[-1]  # the maximum


def test_error_names_projections_that_would_fit():
    shared = replace(SIZE, n_rows=1000, total_bins=10**6, multi_output=True, has_hessian=True)
    available = replace(shared, n_projections=7).total()
    with pytest.raises(MemoryError, match=r"or 7 projections \(see n_projections\)$"):
        check(replace(shared, n_projections=100), available)


def test_warm_start_needs_the_scores_of_the_earlier_model_too():
    for n_validation_rows, n_rows in ((0, 10**6), (10**5, 10**6), (10**7, 10**7)):
        cold = replace(SIZE, n_validation_rows=n_validation_rows)
        warm = replace(cold, is_warm_start=True)
        assert warm.total() - cold.total() == 8 * n_rows * 100


def test_scorer_receives_copies_of_the_scores():
    validated = replace(SIZE, n_validation_rows=1000)
    asked = replace(validated, has_scorer=True)
    assert asked.total() - validated.total() == 16 * 1000 * 100


def test_page_shows_the_current_error():
    page = (Path(__file__).parents[2] / "docs" / "tables.md").read_text("utf-8")
    size = TrainingSize(
        n_rows=2_000_000,
        n_validation_rows=200_000,
        n_classes=1000,
        total_bins=50 * 256,
        max_leaf_nodes=1024,
        n_threads=8,
        n_candidates=1,
        has_hessian=True,
        multi_output=True,
        n_projections=7,
    )
    with pytest.raises(MemoryError) as raised:
        check(size, 16 * 10**9)
    assert f"\nMemoryError: {raised.value}\n" in page


def test_histogram_memory_is_bounded_for_any_number_of_leaves():
    wide = replace(SIZE, total_bins=100_000, max_leaf_nodes=30_000)
    assert wide.parts()["histograms"] <= 2**24
    assert replace(wide, total_bins=10**8).parts()["histograms"] == 2 * 3 * 16 * 10**8


def test_enough_memory_and_unknown_memory_are_fine():
    check(SIZE, SIZE.total())
    check(SIZE, None)


def test_too_little_memory_is_an_error_with_parts_and_remedies():
    with pytest.raises(MemoryError) as raised:
        check(SIZE, SIZE.total() // 2)
    message = str(raised.value)
    assert re.search(r"training needs about 1\.9 GB .*scores of the rows 1\.6 GB", message)
    assert f"{SIZE.total() / 2e6:.1f} MB are available" in message
    n_rows, n_classes = map(int, re.search(r"(\d+) rows, or (\d+) classes", message).groups())
    for field, fitting in {"n_rows": n_rows, "n_classes": n_classes}.items():
        assert replace(SIZE, **{field: fitting}).total() <= SIZE.total() // 2
        assert replace(SIZE, **{field: fitting + 1}).total() > SIZE.total() // 2
    assert "bins" not in message  # no number of bins would fit


def test_minimal_memory_error_suggests_every_remedy():
    with pytest.raises(MemoryError, match="Less of everything would fit"):
        check(SIZE, 10)


def test_fit_refuses_what_cannot_fit(monkeypatch):
    X, y = noisy_data(n_rows=4000)
    monkeypatch.setattr(training, "available_bytes", lambda: 300_000)
    with pytest.raises(MemoryError, match=r"training needs about .* these would fit: \d+ rows"):
        small().fit(X, y)
    monkeypatch.setattr(training, "available_bytes", lambda: 10**9)
    assert small().fit(X, y).n_iter_ == 8


def test_size_does_not_depend_on_the_values_of_labels(monkeypatch):
    X, y = noisy_data()
    monkeypatch.setattr(training, "available_bytes", lambda: 2_000_000)
    assert small().fit(X, y.astype(np.int64) * 10**12).n_iter_ == 8


# ---------------------------------------------------------------------------- available memory


def write(root, **files):
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


MEMINFO = "MemTotal: 9000 kB\nMemAvailable:    5000 kB\nSwapFree: 1000 kB\nHugePages_Free: 0\n"


def test_memory_of_the_system_is_what_is_available_and_free_swap(tmp_path):
    write(tmp_path, proc__meminfo=MEMINFO)
    assert available_bytes(tmp_path) == 6000 * 1024


def test_unavailable_system_memory_is_unknown(tmp_path):
    assert available_bytes(tmp_path) is None
    write(tmp_path, proc__meminfo="MemTotal: 9000 kB\n")
    assert available_bytes(tmp_path) is None


@pytest.mark.parametrize("own", ["/", "/user/job"])
def test_limit_of_a_container_counts(tmp_path, own):
    write(tmp_path, proc__meminfo=MEMINFO, proc__self__cgroup=f"0::{own}\n")
    group = tmp_path / "sys/fs/cgroup" / own.lstrip("/")
    group.mkdir(parents=True)
    (group / "memory.max").write_text("2000000\n")
    (group / "memory.current").write_text("1500000\n")
    (group / "memory.stat").write_text("anon 7\ninactive_file 100000\nactive_file 20000\n")
    assert available_bytes(tmp_path) == 620_000
    (group / "memory.max").write_text("max\n")
    assert available_bytes(tmp_path) == 6000 * 1024


def test_limit_of_a_parent_cgroup_counts(tmp_path):
    write(tmp_path, proc__self__cgroup="0::/user/job\n")
    (tmp_path / "sys/fs/cgroup/user/job").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/user/memory.max").write_text("1000")
    (tmp_path / "sys/fs/cgroup/user/memory.current").write_text("400")
    assert available_bytes(tmp_path) == 600


def test_limit_of_a_cgroup_v1_container_counts(tmp_path):
    write(tmp_path, proc__self__cgroup="5:cpu:/\n4:memory:/box\n")
    group = tmp_path / "sys/fs/cgroup/memory/box"
    group.mkdir(parents=True)
    (group / "memory.limit_in_bytes").write_text("1000")
    (group / "memory.usage_in_bytes").write_text("1400")
    assert available_bytes(tmp_path) == 0


# ----------------------------------------------------------------------- comparison with a fit

PEAK = """
import re, sys
from pathlib import Path
import numpy as np
from abcgbm import ABCBoostClassifier, BinMapper, MultiOutputTrees
from abcgbm.training import memory

def peak():  # of this program only; getrusage includes the parent's peak
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

rng = np.random.default_rng(0)
X = rng.normal(size=({n_rows}, 4))
y = rng.integers(0, {n_classes}, len(X))
asked = []
memory.check = lambda size, available: asked.append(size.total())
table = BinMapper(n_jobs=2).fit(X).transform(X)
before = peak()
ABCBoostClassifier(**{parameters}, max_iter=2, learning_rate=0.1, n_jobs=2).fit(table, y)
grown = peak() - before
sys.stdout.write(f"{{asked[0]}} {{grown}}")
"""


@pytest.mark.parametrize(
    "parameters",
    [
        {"algorithm": "abc-mart"},
        {"algorithm": "logitboost"},
        {"algorithm": "multi-output"},
        {"algorithm": MultiOutputTrees(n_projections="all", baseline="zero")},
    ],
    ids=str,
)
def test_estimate_is_close_to_measured_memory(parameters):
    """Within a fifth and 40 MB: the estimate omits small allocations, and the system rounds."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs Linux's /proc to know the peak of a program's memory")
    out = run_python(PEAK.format(n_rows=200_000, n_classes=60, parameters=parameters))
    needed, grown = map(int, out.split())
    assert np.isclose(needed, grown, rtol=0.2, atol=4e7)
