"""Training from files that are larger than memory, beside LightGBM and XGBoost in the same limit.

    python -m benchmarks.large_files make FOLDER     # 12.5 million x 200, 25 Parquet files, 20 GB
    python -m benchmarks.large_files read FOLDER     # reading and binning beside pyarrow's own scan
    python -m benchmarks.large_files train FOLDER --system abcgbm --limit 6

The table is drawn: half of the columns are continuous (every value another), a quarter has three
digits, a quarter 100 whole numbers; five classes follow from some of them. ``train`` runs in a child
process inside a control group of so many GB where that can be made (Linux, root), else with a limit
of addresses, and prints the time of reading and binning, that of a step, and the peak of memory.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from abcgbm import ABCBoostClassifier, LargeTable
from abcgbm.data.reading import read_large, read_to_learn
from abcgbm.data.row_bins import Binning, bin_rows
from abcgbm.data.rows import GivenRows, rows_to_learn
from abcgbm.settings.threads import effective_n_threads

N_FILES, ROWS_OF_A_FILE, N_COLUMNS = 25, 500_000, 200
N_CLASSES = 5
GROUP = Path("/sys/fs/cgroup/memory/abcgbm_large_files")


# ----------------------------------------------------------------------------------------- the table


def drawn(number: int, n_rows: int, n_columns: int) -> Any:
    """Return the table of one file."""
    rng = np.random.default_rng(number)
    columns = {f"x{c}": _column(rng, c, n_rows) for c in range(n_columns)}
    score = np.stack([columns[f"x{k}"] + 0.5 * columns[f"x{k + 1}"] for k in range(N_CLASSES)])
    columns["y"] = (score + rng.gumbel(size=score.shape)).argmax(axis=0).astype(np.int8)
    return pa.table(columns)


def _column(rng: np.random.Generator, c: int, n_rows: int) -> np.ndarray:
    if c % 4 == 3:
        return rng.integers(0, 100, n_rows).astype(np.float64)
    values = rng.standard_normal(n_rows)
    return values.round(3) if c % 4 == 1 else values


def make(folder: Path, n_files: int, n_rows: int, n_columns: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(n_files):
        path = folder / f"part-{number:03d}.parquet"
        pq.write_table(drawn(number, n_rows, n_columns), path, row_group_size=250_000)
    size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    print(f"{n_files * n_rows:,} rows x {n_columns} columns, {size / 1e9:.1f} GB in {folder}")


# ------------------------------------------------------------------------------ reading and binning


def scan(folder: Path) -> float:
    """Return the seconds of pyarrow's own scan of all columns."""
    began = time.perf_counter()
    n_rows = sum(batch.num_rows for batch in ds.dataset(folder).to_batches())
    assert n_rows > 0
    return time.perf_counter() - began


def read(folder: Path, memory: str) -> float:
    """Return the seconds of reading and binning."""
    began = time.perf_counter()
    X, y, _ = read_large((LargeTable(folder, memory=memory), "y", None))
    rows, _ = rows_to_learn(GivenRows(read_to_learn(X, "auto", "benchmark"), y), None, None)
    bin_rows(rows, None, Binning(255, "missing", effective_n_threads(None)))
    return time.perf_counter() - began


def compare_reading(folder: Path, memory: str, repeats: int) -> None:
    for _ in range(repeats):
        whole, ours = scan(folder), read(folder, memory)
        print(
            f"scan {whole:.1f} s, reading and binning {ours:.1f} s: {whole / ours:.2f} of its speed"
        )


# ------------------------------------------------------------------------------------------ training


def train_abcgbm(folder: Path, steps: int, memory: int, cache: str | None) -> dict[str, float]:
    at: list[float] = []
    model = ABCBoostClassifier(
        max_iter=steps,
        max_leaf_nodes=64,
        learning_rate=0.1,
        callbacks=lambda _: at.append(time.perf_counter()),
    )
    began = time.perf_counter()
    model.fit(LargeTable(folder, memory=memory, cache_dir=cache), "y")
    return {"before the first step": at[0] - began, "a step": (at[-1] - at[0]) / (len(at) - 1)}


SYSTEMS = ("abcgbm", "lightgbm", "xgboost")


def train(arguments: argparse.Namespace) -> None:
    """Run a training in a child whose memory is limited; print what came of it."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.large_files",
        "child",
        *map(str, _words(arguments)),
    ]
    began = time.perf_counter()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    lines = done.stdout.strip().splitlines()
    found = json.loads(lines[-1]) if done.returncode == 0 and lines else {"failed": done.returncode}
    if done.returncode:
        found["error"] = done.stderr.strip().splitlines()[-1:]
    print(json.dumps({"system": arguments.system, "seconds": round(seconds, 1), **found}))


def _words(arguments: argparse.Namespace) -> Iterator[object]:
    yield arguments.folder
    yield from (
        "--system",
        arguments.system,
        "--limit",
        arguments.limit,
        "--steps",
        arguments.steps,
    )
    if arguments.cache_dir:
        yield from ("--cache-dir", arguments.cache_dir)


def _trainer(system: str) -> Any:
    """Import no other package than the one that is measured."""
    if system == "abcgbm":
        return train_abcgbm
    return importlib.import_module(f"benchmarks.large_peers.{system}_files").train


def child(arguments: argparse.Namespace) -> None:
    limit = int(arguments.limit * 1e9)
    how = _enter_group(limit)
    memory = int(limit * 0.9)
    found = _trainer(arguments.system)(
        arguments.folder, arguments.steps, memory, arguments.cache_dir
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    rounded = {name: round(value, 2) for name, value in found.items()}
    print(json.dumps({**rounded, "peak_gb": round(peak / 1e9, 2), "limit": how}))


def _enter_group(limit: int) -> str:
    """Bound the memory of this process, files that are mapped included."""
    try:
        GROUP.mkdir(exist_ok=True)
        (GROUP / "memory.limit_in_bytes").write_text(str(limit))
        (GROUP / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        return "addresses"
    return "control group"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["make", "read", "train", "child"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=N_FILES)
    parser.add_argument("--rows", type=int, default=ROWS_OF_A_FILE, help="of a file")
    parser.add_argument("--columns", type=int, default=N_COLUMNS)
    parser.add_argument("--system", choices=SYSTEMS, default="abcgbm")
    parser.add_argument("--limit", type=float, default=6.0, help="GB of memory")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--cache-dir")
    parser.add_argument("--repeats", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.task == "make":
        make(arguments.folder, arguments.files, arguments.rows, arguments.columns)
    elif arguments.task == "read":
        compare_reading(arguments.folder, f"{arguments.limit}GB", arguments.repeats)
    else:
        {"train": train, "child": child}[arguments.task](arguments)


if __name__ == "__main__":
    main()
