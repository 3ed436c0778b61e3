"""Convert rows for the systems: to arrays, or to data frames with categories."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.defaults.rows import Rows

Floats = NDArray[np.float64]
AnyTable = pd.DataFrame | Floats
CategoryMap = dict[int, Floats]  # categories of each categorical column in the training rows
AsTable = Callable[[Rows, CategoryMap], AnyTable]

MAX_CATEGORIES = 255  # the maximum of HistGradientBoosting
NO_LEVEL = -1


def levels_of(rows: Rows) -> CategoryMap:
    """Return the categories that occur."""
    columns = np.flatnonzero(rows.is_category)
    return {int(i): np.unique(rows.X[~np.isnan(rows.X[:, i]), i]) for i in columns}


def with_categories(rows: Rows, levels: CategoryMap) -> AnyTable:
    """Return an array, or a data frame with categories; unknown categories become missing values."""
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
    """Make missing values a category, because CatBoost refuses them in categorical columns."""
    table = with_categories(rows, levels)
    if not isinstance(table, pd.DataFrame):
        return table
    return table.assign(**{f"x{i}": table[f"x{i}"].cat.codes for i in levels})


def few_levels(rows: Rows, levels: CategoryMap) -> AnyTable:
    """Pass columns with too many categories for HistGradientBoosting as numbers."""
    table = with_categories(rows, levels)
    if not isinstance(table, pd.DataFrame):
        return table
    long = [f"x{i}" for i, of in levels.items() if len(of) > MAX_CATEGORIES]
    codes = {name: table[name].cat.codes.astype(float) for name in long}
    return table.assign(**{name: of.where(of >= 0) for name, of in codes.items()})
