"""The paper's six data sets in their standard splits, and tables with categories."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

NAMES = ("covertype", "letter", "pendigits", "zipcode", "optdigits", "isolet")
TABLES = ("soybean", "nursery", "krkopt", "kddcup99_10pct")


class Split(NamedTuple):
    """Rows to train on and rows to test on."""

    X_train: NDArray[np.float64]
    y_train: NDArray[Any]
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]


class TableSplit(NamedTuple):
    """The same as data frames: columns have names, categories are of dtype category."""

    X_train: pd.DataFrame
    y_train: NDArray[Any]
    X_test: pd.DataFrame
    y_test: NDArray[Any]


def load(name: str) -> Split:
    """Read one of ``NAMES`` from the folder that ``ABCGBM_DATA`` names."""
    _check(name, NAMES)
    folder = _root() / name
    return Split(*_read(folder / "train.csv.gz"), *_read(folder / "test.csv.gz"))


def load_table(name: str) -> TableSplit:
    """Read one of ``TABLES``; a level that only test rows have is missing there."""
    _check(name, TABLES)
    folder = _root() / "extra" / name
    features = json.loads((folder / "columns.json").read_text())["features"]
    train, test = _read_parts(folder, ["label", *(feature["name"] for feature in features)])
    for column in (feature["name"] for feature in features if feature["kind"] == "cat"):
        levels = sorted(train[column].dropna().unique())
        train[column] = pd.Categorical(train[column], categories=levels)
        # Made missing first: pandas warns of values that are no level.
        test[column] = pd.Categorical(
            test[column].where(test[column].isin(levels)), categories=levels
        )
    return TableSplit(*_without_label(train), *_without_label(test))


def _check(name: str, allowed: tuple[str, ...]) -> None:
    if name not in allowed:
        raise ValueError(f"data set {name!r}; expected one of {', '.join(allowed)}")


def _root() -> Path:
    folder = os.environ.get("ABCGBM_DATA")
    if not folder:
        raise FileNotFoundError("ABCGBM_DATA is not set; it names the folder with the data sets")
    return Path(folder)


def _read(path: Path) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Gzipped CSV without a header, label first."""
    table = pd.read_csv(path, header=None)
    return table.iloc[:, 1:].to_numpy(np.float64), table.iloc[:, 0].to_numpy()


def _read_parts(folder: Path, names: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the two files of a set, or its one file and the rows of that which are for testing."""
    if (folder / "train.csv.gz").exists():
        return _read_table(folder / "train.csv.gz", names), _read_table(
            folder / "test.csv.gz", names
        )
    table = _read_table(folder / "all.csv.gz", names)
    rows = pd.read_csv(folder / "test_index.csv.gz", header=None)[0].to_numpy()
    is_test = np.isin(np.arange(len(table)), rows)
    return table[~is_test].copy(), table[is_test].copy()


def _read_table(path: Path, names: list[str]) -> pd.DataFrame:
    """Read a table in which only ``?`` is missing: "none" and the like are levels."""
    return pd.read_csv(path, header=None, names=names, na_values=["?"], keep_default_na=False)


def _without_label(table: pd.DataFrame) -> tuple[pd.DataFrame, NDArray[Any]]:
    return table.drop(columns="label").reset_index(drop=True), table["label"].to_numpy(object)
