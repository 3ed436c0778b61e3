"""Generated tables shaped like Letter, Isolet and Covertype, and a trainer for each."""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from abcgbm import _bench, _core
from benchmarks.generated import Shape, generate

NAMES = ("letter", "isolet", "covertype")
MAX_BINS = 255


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and their classes, 0 to K-1; all weights are 1."""

    X: np.ndarray
    y: np.ndarray

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    @cached_property
    def weight(self) -> np.ndarray:
        return np.ones(len(self.y), np.int64)

    @cached_property
    def thresholds(self) -> list[np.ndarray]:
        return _core.find_thresholds(self.X, self.weight, MAX_BINS, 1)

    @cached_property
    def binned(self) -> _core.Binned:
        return code(self)

    @cached_property
    def codes(self) -> np.ndarray:
        return self.binned.codes()

    @cached_property
    def trainer(self) -> _core.Trainer:
        """Return a trainer after its first iteration."""
        trainer = _core.Trainer(
            self.binned,
            _core.Labels(self.y.astype(np.int32), self.weight, 1.0, self.n_classes),
            _core.TrainParams(),
            n_threads=1,
        )
        trainer.train_iteration(range(self.n_classes), [-1], False, 1.0)
        return trainer

    def stages(self) -> _bench.Stages:
        return _bench.Stages(self.binned, self.trainer)


def code(table: Table) -> _core.Binned:
    """Bin all columns of a table."""
    n_rows, n_features = table.X.shape
    builder = _core.BinnedBuilder(n_rows, table.thresholds, np.zeros(n_features, np.uint8))
    builder.add_block(np.arange(n_features, dtype=np.int32), table.X, 1)
    return builder.finish()


@cache
def table_of(name: str, is_small: bool) -> Table:
    """Generate a table of the size of the real one, or a small one."""
    return {"letter": _letter, "isolet": _isolet, "covertype": _covertype}[name](is_small)


def _letter(is_small: bool) -> Table:
    """16 columns of 16 values."""
    data = generate(Shape(500 if is_small else 16_000, 16, 26))
    return Table(np.clip(np.rint(2 * data.X_train + 8), 0, 15), data.y_train)


def _isolet(is_small: bool) -> Table:
    """More columns than fit into a cache, all with the maximum number of bins."""
    data = generate(Shape(300, 40, 26) if is_small else Shape(6_238, 617, 26))
    return Table(data.X_train, data.y_train)


def _covertype(is_small: bool) -> Table:
    """10 columns of many values, and two categorical features as 4 and 40 columns of 0 and 1."""
    n_rows = 600 if is_small else 100_000
    data = generate(Shape(n_rows, 10, 7))
    generator = np.random.default_rng(n_rows)
    area = generator.choice(4, n_rows, p=[0.45, 0.43, 0.07, 0.05])
    soil = (40 * generator.random(n_rows) ** 2).astype(int)
    X = np.hstack([data.X_train, np.eye(4)[area], np.eye(40)[soil]])
    return Table(np.ascontiguousarray(X), data.y_train)
