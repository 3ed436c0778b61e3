"""Rows as the systems want them: arrays, or data frames with categories."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.defaults.rows import Rows

Floats = NDArray[np.float64]
AnyTable = pd.DataFrame | Floats
CategoryMap = dict[int, Floats]  # of each column that is a category, as the rows to fit have them
AsTable = Callable[[Rows, CategoryMap], AnyTable]

MAX_LEVELS = 255  # that HistGradientBoosting takes
NO_LEVEL = -1


def levels_of(rows: Rows) -> CategoryMap:
    """Return the levels that occur."""
    columns = np.flatnonzero(rows.is_category)
    return {int(i): np.unique(rows.X[~np.isnan(rows.X[:, i]), i]) for i in columns}


def with_categories(rows: Rows, levels: CategoryMap) -> AnyTable:
    """An array, or a data frame if there are categories; a level that is none of these is missing."""
    if not levels:
        return rows.X
    columns = {f"x{i}": rows.X[:, i] for i in range(rows.X.shape[1])}
    for i, of in levels.items():
        categories = range(len(of))
        columns[f"x{i}"] = pd.Categorical.from_codes(_codes(rows.X[:, i], of), categories)
    return pd.DataFrame(columns)


def _codes(values: Floats, levels: Floats) -> NDArray[np.int64]:
    found = pd.Index(levels).get_indexer(values)
    return np.where(np.isnan(values), NO_LEVEL, found)


def missing_as_level(rows: Rows, levels: CategoryMap) -> AnyTable:
    """For CatBoost, which refuses missing values in a category: they are a level."""
    table = with_categories(rows, levels)
    if not isinstance(table, pd.DataFrame):
        return table
    return table.assign(**{f"x{i}": table[f"x{i}"].cat.codes for i in levels})


def few_levels(rows: Rows, levels: CategoryMap) -> AnyTable:
    """For HistGradientBoosting: a category of too many levels is given as numbers."""
    table = with_categories(rows, levels)
    if not isinstance(table, pd.DataFrame):
        return table
    long = [f"x{i}" for i, of in levels.items() if len(of) > MAX_LEVELS]
    codes = {name: table[name].cat.codes.astype(float) for name in long}
    return table.assign(**{name: of.where(of >= 0) for name, of in codes.items()})
