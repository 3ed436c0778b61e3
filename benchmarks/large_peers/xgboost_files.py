"""XGBoost's external memory: batches that are cached on disk."""

from __future__ import annotations

from math import log2
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import xgboost as xgb

from benchmarks.large_peers import LEAVES, N_CLASSES, N_THREADS, RATE, IterationTimes

PARAMETERS = {
    "objective": "multi:softprob",
    "num_class": N_CLASSES,
    "eta": RATE,
    "nthread": N_THREADS,
    "tree_method": "hist",
    "max_depth": int(log2(LEAVES)),  # depth-wise: leaf-wise would read the file once for each split
}


class Files(xgb.DataIter):
    """Parquet files, read one row group at a time."""

    def __init__(self, folder: Path, cache: str) -> None:
        files = [pq.ParquetFile(path) for path in sorted(folder.glob("*.parquet"))]
        self.groups = [(file, number) for file in files for number in range(file.num_row_groups)]
        self.at = 0
        super().__init__(cache_prefix=str(Path(cache) / "xgb"), release_data=True)

    def next(self, input_data: Any) -> bool:
        if self.at == len(self.groups):
            return False
        file, number = self.groups[self.at]
        table = file.read_row_group(number)
        input_data(data=table.drop(["y"]).to_pandas(), label=table["y"].to_numpy())
        self.at += 1
        return True

    def reset(self) -> None:
        self.at = 0


class IterationEnd(xgb.callback.TrainingCallback):
    """Record the end of each iteration."""

    def __init__(self, times: IterationTimes) -> None:
        super().__init__()
        self._times = times

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        self._times.end_iteration()
        return False


def train(folder: Path, steps: int, _: int, cache: str | None) -> IterationTimes:
    """Train, and record the times of iterations."""
    times = IterationTimes()
    data = xgb.ExtMemQuantileDMatrix(Files(folder, cache or "/tmp"), max_bin=256, nthread=N_THREADS)
    times.report("data")
    xgb.train(PARAMETERS, data, steps, callbacks=[IterationEnd(times)])
    return times
