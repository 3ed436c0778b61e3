"""Tables in files and batches, for tests of training out of core."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from abcgbm import ABCBoostClassifier

FEW = {"max_iter": 3, "learning_rate": 0.15, "max_leaf_nodes": 5, "min_samples_leaf": 1}
N_ROWS = 60


def made_table(**others):
    """Return a table of numbers, strings and labels `y`; `others` replaces or adds columns."""
    rng = np.random.default_rng(0)
    columns = {
        "a": rng.normal(size=N_ROWS),
        "b": rng.integers(0, 9, N_ROWS),
        "s": rng.choice(["u", "v", "w"], N_ROWS),
        "y": rng.choice(["p", "q", "r"], N_ROWS),
    }
    return pa.table(columns | others)


TABLE = made_table()
BATCHES = [TABLE.slice(start, 20) for start in (0, 20, 40)]


def replaced(table, name, column):
    """Replace a column, or drop it if `column` is None."""
    place = table.column_names.index(name)
    return table.drop([name]) if column is None else table.set_column(place, name, column)


WRITERS = {
    "parquet": lambda table, path: pyarrow.parquet.write_table(table, path, row_group_size=7),
    "feather": pyarrow.feather.write_feather,
    "csv": pyarrow.csv.write_csv,
}


def written(folder, parts, ending="parquet"):
    for number, part in enumerate(parts):
        WRITERS[ending](part, folder / f"p{number}.{ending}")
    return folder


def fit(X, y="y", weight=None, settings=None, **others):
    return ABCBoostClassifier(**FEW | (settings or {})).fit(X, y, weight, **others)


def model_bytes(model) -> bytes:
    file = io.BytesIO()
    model.save_model(file)
    return file.getvalue()


def fit_in_memory(table, **settings):
    return fit(table.drop(["y"]), table["y"], settings=settings)


def assert_same(X, table, **settings):
    expected = fit_in_memory(table, **settings)
    assert model_bytes(fit(X, settings=settings)) == model_bytes(expected)


def raised(error, make, *args):
    with pytest.raises(error) as caught:
        make(*args)
    return " ".join(str(caught.value).split())
