"""The paper's six data sets, in their standard splits."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

NAMES = ("covertype", "letter", "pendigits", "zipcode", "optdigits", "isolet")


class Split(NamedTuple):
    """Rows to train on and rows to test on."""

    X_train: NDArray[np.float64]
    y_train: NDArray[Any]
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]


def load(name: str) -> Split:
    """Read a data set from the folder that ``ABCGBM_DATA`` names."""
    if name not in NAMES:
        raise ValueError(f"data set {name!r}; expected one of {', '.join(NAMES)}")
    folder = os.environ.get("ABCGBM_DATA")
    if not folder:
        raise FileNotFoundError("ABCGBM_DATA is not set; it names the folder with the data sets")
    return Split(
        *_read(Path(folder) / name / "train.csv.gz"), *_read(Path(folder) / name / "test.csv.gz")
    )


def _read(path: Path) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Gzipped CSV without a header, label first."""
    table = pd.read_csv(path, header=None)
    return table.iloc[:, 1:].to_numpy(np.float64), table.iloc[:, 0].to_numpy()
