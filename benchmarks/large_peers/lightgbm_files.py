"""LightGBM's sequences: rows are read on demand, and binned by a sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import pyarrow.parquet as pq

from benchmarks.large_peers import LEAVES, N_CLASSES, N_THREADS, RATE, IterationTimes

PARAMETERS = {
    "objective": "multiclass",
    "num_class": N_CLASSES,
    "learning_rate": RATE,
    "num_leaves": LEAVES,
    "num_threads": N_THREADS,
    "force_col_wise": True,  # row-wise would copy the table
    "verbose": -1,
}


class Group:
    """The row group that was read last, of any file."""

    of: tuple[Path, int] | None = None
    rows = np.empty((0, 0))


class File(lgb.Sequence):
    """A Parquet file with at most one row group in memory."""

    batch_size = 65_536

    def __init__(self, path: Path) -> None:
        self.path, self.file = path, pq.ParquetFile(path)
        groups = range(self.file.num_row_groups)
        sizes = [self.file.metadata.row_group(number).num_rows for number in groups]
        self.first = np.concatenate([[0], np.cumsum(sizes)])

    def __getitem__(self, rows: Any) -> np.ndarray:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            return self._between(start, stop)
        return self._between(int(rows), int(rows) + 1)[0]

    def _between(self, start: int, stop: int) -> np.ndarray:
        numbers = range(
            int(np.searchsorted(self.first, start, "right")) - 1,
            int(np.searchsorted(self.first, stop, "left")),
        )
        parts = [
            self._group(n)[max(0, start - self.first[n]) : stop - self.first[n]] for n in numbers
        ]
        return np.concatenate(parts)

    def _group(self, number: int) -> np.ndarray:
        if Group.of != (self.path, number):
            Group.of, Group.rows = None, np.empty((0, 0))
            columns = self.file.read_row_group(number).drop(["y"]).columns
            Group.rows = np.empty((len(columns[0]), len(columns)))
            for place, column in enumerate(columns):
                Group.rows[:, place] = column.to_numpy()
            Group.of = self.path, number
        return Group.rows

    def __len__(self) -> int:
        return int(self.first[-1])


def train(folder: Path, steps: int, _: int, __: str | None) -> IterationTimes:
    """Train, and record the times of iterations."""
    times, paths = IterationTimes(), sorted(folder.glob("*.parquet"))
    y = np.concatenate([pq.read_table(path, columns=["y"])["y"].to_numpy() for path in paths])
    data = lgb.Dataset([File(path) for path in paths], y, params=PARAMETERS).construct()
    times.report("data")
    lgb.train(PARAMETERS, data, steps, callbacks=[lambda _: times.end_iteration()])
    return times
