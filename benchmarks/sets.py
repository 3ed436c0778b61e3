"""Data sets by name, and as files that a measured process reads without side effects."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from experiments import datasets
from experiments.datasets import Split

from benchmarks import generated


def load(name: str) -> Split:
    """Return one of the paper's sets or a generated one: C-order float64, classes 0 to K-1."""
    shape = generated.parse(name)
    data = datasets.load(name) if shape is None else generated.generate(shape)
    classes = np.unique(data.y_train)
    return Split(
        np.ascontiguousarray(data.X_train, dtype=np.float64),
        np.searchsorted(classes, data.y_train),
        np.ascontiguousarray(data.X_test, dtype=np.float64),
        np.searchsorted(classes, data.y_test),
    )


def write(data: Split, folder: Path) -> None:
    """Write the arrays; unlike parsing text, reading them leaves no garbage in memory."""
    for name, array in data._asdict().items():
        np.save(folder / f"{name}.npy", array)


def read(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y of one part, ``train`` or ``test``."""
    return np.load(folder / f"X_{part}.npy"), np.load(folder / f"y_{part}.npy")


def in_order(names: Iterable[str]) -> list[str]:
    """Sort the paper's sets as in the paper, then generated ones by shape."""

    def rank(name: str) -> tuple[int, generated.Shape | tuple[()]]:
        if name in datasets.NAMES:
            return datasets.NAMES.index(name), ()
        return len(datasets.NAMES), generated.parse(name) or ()

    return sorted(names, key=rank)
