"""The paper's six data sets in their standard splits, and tables with categories.

The six are searched in the folder ``ABCGBM_DATA``, then in the cache, and else downloaded into the cache. Their
digests are always checked.
"""

import hashlib
import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments import public

CATALOGUE = Path(__file__).parent / "datasets.toml"
NAMES = ("covertype", "letter", "pendigits", "zipcode", "optdigits", "isolet")
TABLES = ("soybean", "nursery", "krkopt", "kddcup99_10pct")
NUMBER_TABLES = ("drybean",)  # without categorical columns


class Split(NamedTuple):
    """Training rows and test rows."""

    X_train: NDArray[np.float64]
    y_train: NDArray[Any]
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]


class TableSplit(NamedTuple):
    """Training and test rows as data frames with column names and dtype category."""

    X_train: pd.DataFrame
    y_train: NDArray[Any]
    X_test: pd.DataFrame
    y_test: NDArray[Any]


def load(name: str) -> Split:
    """Read one of ``NAMES``; download it if necessary."""
    _check(name, NAMES)
    source, folder = describe(name), locate(name)
    data = _read_split(folder, source.n_features)
    found = digest(data)
    if found != source.digest:
        raise ValueError(f"{folder}: digest {found}; expected {source.digest}: other data")
    return data


def locate(name: str) -> Path:
    """Return the folder of one of ``NAMES``; download it if necessary."""
    return _find(name) or _download(name, describe(name))


def describe(name: str) -> public.Source:
    """Return the description of one of ``NAMES`` without reading it."""
    return public.Source(**tomllib.loads(CATALOGUE.read_text())[name])


def validation_rows(name: str, n_rows: int) -> NDArray[np.bool_]:
    """Mark the tenth of the training rows that chooses an iteration."""
    row = np.arange(n_rows)
    if describe(name).held_out == "every tenth":
        return row % 10 == 9
    return row >= n_rows - n_rows // 10


def digest(data: Split) -> str:
    """Return the SHA-256 of the parsed rows, independent of the file layout and the row order.

    A row is its class number (labels sorted as text) and its values as big-endian doubles; rows are
    sorted as bytes, those to train on come first.
    """
    classes = np.unique(data.y_train.astype(str))
    answer = hashlib.sha256()
    for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
        numbers = np.searchsorted(classes, y.astype(str))
        # Adding 0 makes -0 equal to 0.
        rows = np.column_stack([numbers, X + 0.0]).astype(">f8", order="C")
        answer.update(f"{rows.shape}".encode())
        answer.update(np.sort(rows.view(f"S{rows.itemsize * rows.shape[1]}").ravel()).tobytes())
    return answer.hexdigest()


def _find(name: str) -> Path | None:
    folders = _folders(name)
    return next((folder for folder in folders if (folder / "test.csv.gz").exists()), None)


def _folders(name: str) -> list[Path]:
    roots = [Path(root) for root in (os.environ.get("ABCGBM_DATA"), _cache()) if root]
    return [root / name for root in roots]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "abcgbm"


def _download(name: str, source: public.Source) -> Path:
    """Download a set into the cache, in the layout of ``ABCGBM_DATA``, if its digest is right."""
    folder = _cache() / name
    is_set = "" if os.environ.get("ABCGBM_DATA") else " (ABCGBM_DATA is not set)"
    looked = " or ".join(map(str, _folders(name)))
    print(f"{name} is not in {looked}{is_set}", file=sys.stderr)
    try:
        train, test = public.fetch(source)
    except public.FAILURES as error:
        raise OSError(
            f"{name} cannot be downloaded from {' and '.join(source.files)}: {error}. Expected there, or "
            f"as train.csv.gz and test.csv.gz (label first, no header) in $ABCGBM_DATA/{name}"
        ) from error
    found = digest(Split(*train, *test))
    if found != source.digest:
        raise ValueError(f"{source.files}: digest {found}; expected {source.digest}: other data")
    folder.mkdir(parents=True, exist_ok=True)
    for X, y, file in ((*train, "train.csv.gz"), (*test, "test.csv.gz")):
        table = pd.DataFrame(X)
        table.insert(0, "label", y)
        part = folder / f"{os.getpid()}.{file}"  # renamed when complete
        gzip = {"method": "gzip", "compresslevel": 1}
        table.to_csv(part, header=False, index=False, compression=gzip)
        part.replace(folder / file)
    return folder


def load_table(name: str) -> TableSplit:
    """Read a table that has ``columns.json``; categories only in test rows become missing values."""
    _check(name, (*TABLES, *NUMBER_TABLES))
    folder = extra_folder(name)
    features = json.loads((folder / "columns.json").read_text())["features"]
    train, test = _read_parts(folder, ["label", *(feature["name"] for feature in features)])
    for column in (feature["name"] for feature in features if feature["kind"] == "cat"):
        levels = sorted(train[column].dropna().unique())
        train[column] = pd.Categorical(train[column], categories=levels)
        # Set to missing first, because pandas warns of values that are no category.
        test[column] = pd.Categorical(
            test[column].where(test[column].isin(levels)), categories=levels
        )
    return TableSplit(*_without_label(train), *_without_label(test))


def _check(name: str, allowed: tuple[str, ...]) -> None:
    if name not in allowed:
        raise ValueError(f"data set {name!r}; expected one of {', '.join(allowed)}")


def extra_folder(name: str) -> Path:
    """Return the folder of a set that cannot be downloaded."""
    folder = os.environ.get("ABCGBM_DATA")
    if not folder:
        raise FileNotFoundError("ABCGBM_DATA is not set; it names the folder with the data sets")
    return Path(folder) / "extra" / name


def _read_split(folder: Path, n_features: int) -> Split:
    """Read gzipped CSV without a header, label first."""
    files = (folder / "train.csv.gz", folder / "test.csv.gz")
    train, test = (public.columns(file, ",", "first", n_features) for file in files)
    return Split(*train, *test)


def _read_parts(folder: Path, names: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the two files of a set, or its file and the list of test rows."""
    if (folder / "train.csv.gz").exists():
        return _read_table(folder / "train.csv.gz", names), _read_table(
            folder / "test.csv.gz", names
        )
    table = _read_table(folder / "all.csv.gz", names)
    rows = pd.read_csv(folder / "test_index.csv.gz", header=None)[0].to_numpy()
    is_test = np.isin(np.arange(len(table)), rows)
    return table[~is_test].copy(), table[is_test].copy()


def _read_table(path: Path, names: list[str]) -> pd.DataFrame:
    """Read a table in which only ``?`` is a missing value; "none" and the like are categories."""
    return pd.read_csv(path, header=None, names=names, na_values=["?"], keep_default_na=False)


def _without_label(table: pd.DataFrame) -> tuple[pd.DataFrame, NDArray[Any]]:
    return table.drop(columns="label").reset_index(drop=True), table["label"].to_numpy(object)
