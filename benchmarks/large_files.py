"""Compare training from files larger than memory with LightGBM and XGBoost under the same memory limit.

    python -m benchmarks.large_files make FOLDER     # 12.5 million x 200, 25 Parquet files, 20 GB as floats
    python -m benchmarks.large_files read FOLDER     # reading and binning, and a scan by pyarrow
    python -m benchmarks.large_files train FOLDER --system abcgbm --cache-dir FOLDER
    python -m benchmarks.large_files report          # the results as in the page

The table is generated: half of the columns are continuous with distinct values, a quarter has three digits,
a quarter 100 integers; five classes depend on some of them. ``train`` runs in a child process inside a control
group of 6 GB where one can be created (Linux, root), which also counts mapped files and the page cache; else,
or with ``--limit-by addresses``, the address space is limited. ``read`` alternates between the two, each time in
a new process; on a busy machine, CPU seconds are more reliable than wall time. Results are appended to
``benchmarks/results/large_files.jsonl``; ``--files 3`` makes a smaller trial.
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
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from abcgbm import ABCBoostClassifier, LargeTable
from abcgbm.data.binning import Binning, bin_rows
from abcgbm.data.samples import GivenRows, read_large, read_to_learn, rows_to_learn
from abcgbm.parameters.machine import effective_n_threads
from benchmarks.large_peers import LEAVES, N_CLASSES, N_THREADS, RATE, IterationTimes
from benchmarks.report import Lines, markdown
from benchmarks.results import FOLDER, Line, Results, origin

N_FILES, ROWS_OF_A_FILE, N_COLUMNS = 25, 500_000, 200
GROUPS = Path("/sys/fs/cgroup/memory")
RESULTS = FOLDER / "large_files.jsonl"
SYSTEMS = ("abcgbm", "lightgbm", "xgboost")


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


def make(given: argparse.Namespace) -> None:
    given.folder.mkdir(parents=True, exist_ok=True)
    for number in range(given.files):
        path = given.folder / f"part-{number:03d}.parquet"
        pq.write_table(drawn(number, given.rows, given.columns), path, row_group_size=250_000)
    print(json.dumps(size(given.folder)))


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def size(folder: Path) -> Line:
    """Return the description of a table in the lines of results."""
    found = [pq.read_metadata(path) for path in files(folder)]
    n_bytes = sum(path.stat().st_size for path in files(folder))
    n_rows, n_columns = sum(of.num_rows for of in found), found[0].num_columns - 1
    return {"rows": n_rows, "columns": n_columns, "file_gb": _gb(n_bytes)}


def _gb(n_bytes: float) -> float:
    return round(n_bytes / 1e9, 2)


# ------------------------------------------------------------------------------ reading and binning


def scan(paths: list[Path]) -> None:
    """Scan all columns with pyarrow."""
    assert sum(batch.num_rows for batch in ds.dataset(paths).to_batches()) > 0


def bin_files(paths: list[Path], memory: str) -> None:
    """Read files and bin them, as fit does before the first iteration."""
    X, y, _ = read_large((LargeTable(paths, memory=memory), "y", None))
    rows, _ = rows_to_learn(GivenRows(read_to_learn(X, "auto", "benchmark"), y), None, None)
    bin_rows(rows, None, Binning(255, "missing", effective_n_threads(None)))


def once(given: argparse.Namespace) -> None:
    """Scan, or read and bin, in this process; print CPU seconds and seconds."""
    paths = files(given.folder)
    cpu, began = time.process_time(), time.perf_counter()
    if given.system == "pyarrow":
        scan(paths)
    else:
        bin_files(paths, f"{given.limit}GB")
    print(json.dumps([time.process_time() - cpu, time.perf_counter() - began]))


def timed(given: argparse.Namespace, system: str) -> list[float]:
    words = ["once", given.folder, "--system", system, "--limit", given.limit]
    command = [sys.executable, "-m", "benchmarks.large_files", *map(str, words)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [float(of) for of in json.loads(done.stdout.splitlines()[-1])]


def read(given: argparse.Namespace) -> None:
    """Measure reading and binning, and a scan, in turn; keep the best of each."""
    whole, ours = [], []
    for _ in range(given.repeats):
        whole.append(timed(given, "pyarrow"))
        ours.append(timed(given, "abcgbm"))
        print(f"scan {whole[-1]}, reading and binning {ours[-1]}", file=sys.stderr, flush=True)
    line = {"what": "read", **size(given.folder), "limit_gb": given.limit, "repeats": given.repeats}
    for name, pairs in (("scan", whole), ("binning", ours)):
        cpu, seconds = (min(of) for of in zip(*pairs, strict=True))
        line |= {f"{name}_cpu": round(cpu, 3), f"{name}_seconds": round(seconds, 3)}
    for unit in ("cpu", "seconds"):
        line[f"speed_{unit}"] = round(line[f"scan_{unit}"] / line[f"binning_{unit}"], 3)
    _add(given, line | origin("abcgbm"))


# ------------------------------------------------------------------------------------------ training


def train_abcgbm(folder: Path, steps: int, memory: int, cache: str | None) -> IterationTimes:
    times = IterationTimes()
    model = ABCBoostClassifier(
        max_iter=steps,
        max_leaf_nodes=LEAVES,
        learning_rate=RATE,
        callbacks=lambda _: times.end_iteration(),
        n_jobs=N_THREADS,
    )
    model.fit(LargeTable(folder, memory=memory, cache_dir=cache), "y")
    return times


def train(given: argparse.Namespace) -> None:
    """Train in a child process with limited memory; record the outcome."""
    group = _made_group(given)
    words = ["child", given.folder, "--system", given.system, "--limit", given.limit]
    words += ["--steps", given.steps, "--limit-by", "addresses" if group is None else group]
    words += [] if given.cache_dir is None else ["--cache-dir", given.cache_dir]
    command = [sys.executable, "-m", "benchmarks.large_files", *map(str, words)]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        said, _ = process.communicate(timeout=given.minutes * 60)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
    line = {"what": "train", "system": given.system, **size(given.folder), "steps": given.steps}
    line |= {"leaves": LEAVES, "limit_gb": given.limit, "seconds": time.perf_counter() - began}
    line["limit_by"] = "addresses" if group is None else "control group"
    if line["seconds"] > given.minutes * 60:
        line["reason"] = f"stopped after {given.minutes:g} minutes"
    elif process.returncode:
        line["reason"] = f"ended by signal or status {process.returncode}"
    else:
        line |= json.loads(said.splitlines()[-1])
    if group is not None:
        group.rmdir()
    rounded = {name: round(of, 2) if isinstance(of, float) else of for name, of in line.items()}
    _add(given, rounded | origin(given.system))


def child(given: argparse.Namespace) -> None:
    """Train under the limit; print time and memory."""
    trainer = train_abcgbm  # only the measured package is imported
    if given.system != "abcgbm":
        trainer = importlib.import_module(f"benchmarks.large_peers.{given.system}_files").train
    limit = int(given.limit * 1e9)
    if given.limit_by == "addresses":
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    else:
        (Path(given.limit_by) / "cgroup.procs").write_text(str(os.getpid()))
    times = trainer(given.folder, given.steps, int(limit * 0.9), given.cache_dir)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(times.summary() | {"peak_gb": _gb(peak), "written_gb": _gb(_written())}))


def _written() -> int:
    """Return the bytes that this process has written to disks."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))


def _made_group(given: argparse.Namespace) -> Path | None:
    """Create a control group with a memory limit; return None without the permission."""
    group = GROUPS / f"large_files_{os.getpid()}"
    if given.limit_by == "addresses":
        return None
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(int(given.limit * 1e9)))
    except OSError:
        return None
    return group


def _add(given: argparse.Namespace, line: Line) -> None:
    print(json.dumps(line))
    Results(given.results).add(line)


# -------------------------------------------------------------------------------------- results


def reading_table(lines: list[Line]) -> Lines:
    rows = [
        [
            f"{of['rows']:,} x {of['columns']}",
            *(
                f"{of[f'{name}_{unit}']:.1f}"
                for unit in ("cpu", "seconds")
                for name in ("scan", "binning")
            ),
            *(f"**{of[f'speed_{unit}']:.2f}**" for unit in ("cpu", "seconds")),
        ]
        for of in lines
    ]
    head = ["table", "scan, CPU s", "binning, CPU s", "scan, s", "binning, s"]
    return markdown([*head, "scan / binning, CPU", "scan / binning, clock"], rows)


def training_table(lines: list[Line]) -> Lines:
    units = ("before_cpu", "step_cpu", "before_seconds", "step_seconds", "peak_gb", "written_gb")
    rows = [
        [
            f"{of['system']} {of['version']}",
            f"{of['rows']:,} x {of['columns']}",
            f"{of['limit_gb']:g} GB, {of['limit_by']}",
            *([of[unit] for unit in units] if "reason" not in of else [of["reason"], *[""] * 5]),
        ]
        for of in lines
    ]
    head = ["", "table", "limit", "before the first iteration, CPU s", "per iteration, CPU s"]
    return markdown([*head, "before, s", "per iteration, s", "peak, GB", "written, GB"], rows)


def report(given: argparse.Namespace) -> None:
    results = Results(given.results)
    of_reading = [line for line in results.lines if line["what"] == "read"]
    of_training = [line for line in results.lines if line["what"] == "train"]
    print(*reading_table(of_reading), *training_table(of_training), sep="\n")


TASKS = {"make": make, "read": read, "train": train, "child": child, "once": once, "report": report}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("large_files"))
    parser.add_argument("--files", type=int, default=N_FILES)
    parser.add_argument("--rows", type=int, default=ROWS_OF_A_FILE, help="rows of a file")
    parser.add_argument("--columns", type=int, default=N_COLUMNS)
    parser.add_argument("--system", choices=[*SYSTEMS, "pyarrow"], default="abcgbm")
    parser.add_argument("--limit", type=float, default=6.0, help="memory limit in GB")
    parser.add_argument(
        "--limit-by", default="group", help="group (control group) or addresses (address space)"
    )
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=240.0, help="timeout of a training")
    parser.add_argument("--cache-dir", help="folder of scratch files of abcgbm and XGBoost")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    TASKS[given.task](given)


if __name__ == "__main__":
    main()
