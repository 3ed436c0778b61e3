"""Times to predict one row and to bin a cell of a column: the best of several repeats."""

import timeit
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from abcgbm import ABCBoostClassifier, BinMapper
from benchmarks.shape.trace import N_ROWS, drawn

N_CELLS = 200_000
N_CATEGORIES = 20
N_REPEATS = 5
ONE_ROW_CALLS = 200


def smallest_seconds(call: Callable[[], Any], n_calls: int = 1) -> float:
    """Return the seconds of a call, the smallest mean of several repeats."""
    return min(timeit.repeat(call, number=n_calls, repeat=N_REPEATS)) / n_calls


def one_row_tables() -> dict[str, Any]:
    table = drawn(N_ROWS).drop(columns="y")
    numbers = table.drop(columns="g")
    return {
        "pandas, a string column": table,
        "pandas, numbers": numbers,
        "NumPy": numbers.to_numpy(),
    }


def one_row_milliseconds() -> Iterator[tuple[str, float]]:
    """Yield the time of `predict_proba` of one row for each kind of table."""
    y = drawn(N_ROWS)["y"]
    for name, table in one_row_tables().items():
        model = ABCBoostClassifier(max_iter=50, learning_rate=0.04, n_jobs=1).fit(table, y)
        row = table[:1]
        model.predict_proba(row)
        seconds = smallest_seconds(lambda row=row, of=model: of.predict_proba(row), ONE_ROW_CALLS)
        yield name, 1e3 * seconds


def columns(n_rows: int = N_CELLS) -> dict[str, Any]:
    """Return a table of one column of each kind; missing packages are errors."""
    import polars as pl  # noqa: PLC0415 - only these columns need it
    import pyarrow as pa  # noqa: PLC0415

    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(n_rows, 1))
    levels = np.array([f"level {number}" for number in range(N_CATEGORIES)], object)
    text = rng.choice(levels, n_rows)
    return {
        "NumPy numbers": numbers,
        "pandas numbers": pd.DataFrame(numbers, columns=["a"]),
        "pandas category": pd.DataFrame({"a": pd.Categorical(text)}),
        "pandas strings": pd.DataFrame({"a": text}),
        "Arrow dictionary": pa.table({"a": pa.array(text).dictionary_encode()}),
        "polars categorical": pl.DataFrame({"a": pl.Series(text, dtype=pl.Categorical)}),
        "polars strings": pl.DataFrame({"a": pl.Series(text, dtype=pl.String)}),
    }


def cell_nanoseconds(n_rows: int = N_CELLS) -> Iterator[tuple[str, float, float]]:
    """Yield the times of `BinMapper.fit` and `transform` for a cell of each kind of column."""
    for name, table in columns(n_rows).items():
        mapper = BinMapper(n_jobs=1)
        fit = smallest_seconds(lambda of=mapper, table=table: of.fit(table))
        transform = smallest_seconds(lambda of=mapper, table=table: of.transform(table))
        yield name, 1e9 * fit / n_rows, 1e9 * transform / n_rows
