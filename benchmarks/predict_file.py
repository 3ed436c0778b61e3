"""Measure memory and time of `abcgbm predict` on a CSV file: `python -m benchmarks.predict_file 5`.

The argument is the size in GB. The file is generated in a temporary folder and removed.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

N_COLUMNS, N_ROWS, N_CLASSES, N_STEPS = 50, 100_000, 5, 20
PREDICT = [sys.executable, "-m", "abcgbm", "predict", "model.abc", "large.csv", "-o", "out.parquet"]


def write_files(folder: Path, n_bytes: float) -> int:
    """Write a model, and a file that repeats its training rows; return the number of rows."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(N_ROWS, N_COLUMNS)).round(6)).add_prefix("x")
    table["label"] = (table["x0"] + table["x1"]).rank(pct=True).mul(N_CLASSES).sub(1e-9).astype(int)
    table.to_csv(folder / "train.csv", index=False)
    head, rows = (folder / "train.csv").read_bytes().split(b"\n", 1)
    n_times = int(n_bytes / len(rows)) + 1
    with (folder / "large.csv").open("wb") as file:
        file.write(head + b"\n")
        for _ in range(n_times):
            file.write(rows)
    return n_times * N_ROWS


def main() -> None:
    n_bytes = float(sys.argv[1]) * 1e9
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n_rows = write_files(folder, n_bytes)
        train = f"train train.csv --label label --model model.abc --steps {N_STEPS} --quiet"
        command = [sys.executable, "-m", "abcgbm", *train.split()]
        subprocess.run(command, cwd=folder, check=True)
        began = time.monotonic()
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        subprocess.run(PREDICT, cwd=folder, check=True)
        seconds = time.monotonic() - began
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        size = (folder / "large.csv").stat().st_size
    bound = "" if peak > before else " (no more than training took)"
    print(f"{size / 1e9:.2f} GB, {n_rows:,} rows: {seconds:.0f} s, {size / seconds / 1e6:.0f} MB/s")
    print(f"peak memory {peak / 1e6:.2f} GB{bound}")


if __name__ == "__main__":
    main()
