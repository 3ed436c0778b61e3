"""Real tables: the paper's six sets, tables with categories, others, and scikit-learn's."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import Bunch

from experiments import datasets
from experiments.defaults.rows import Parts, Rows, common_classes, few, numbers

MIN_ROWS = 6  # of a class in the training part
MAX_TEST_ROWS = 20_000
TEST_SHARE = 0.3  # where there is no standard test part
SEED = 17


def paper_set(name: str, n_rows: int) -> Parts:
    """Return a number of training rows of one of the six sets."""
    return _subset(*_paper_set(name), n_rows)


@lru_cache(maxsize=1)
def _paper_set(name: str) -> tuple[Rows, Rows]:
    data = datasets.load(name)
    y_train, y_test = _class_numbers(data.y_train, data.y_test)
    return numbers(data.X_train, y_train), numbers(data.X_test, y_test)


def every_third_feature(name: str, n_rows: int) -> Parts:
    """Return a set with a third of its features, because a fit with all takes minutes."""
    parts = paper_set(name, n_rows)
    return Parts(
        *(rows._replace(X=rows.X[:, ::3], is_category=rows.is_category[::3]) for rows in parts)
    )


def covertype_as_categories(n_rows: int) -> Parts:
    """Return Covertype with its 4 and 40 boolean columns as two categorical ones."""
    parts = paper_set("covertype", n_rows)
    return Parts(*(_with_two_categories(rows) for rows in parts))


def _with_two_categories(rows: Rows) -> Rows:
    area, soil = rows.X[:, 10:14].argmax(axis=1), rows.X[:, 14:].argmax(axis=1)
    X = np.column_stack([rows.X[:, :10], area, soil])
    return rows._replace(X=X, is_category=np.arange(12) >= 10)


def extra_table(name: str, n_rows: int) -> Parts:
    """Return a number of training rows of a table of ``extra`` that has ``columns.json``."""
    data = datasets.load_table(name)
    is_category = (data.X_train.dtypes == "category").to_numpy()
    y_train, y_test = _class_numbers(data.y_train, data.y_test)
    train = Rows(_codes(data.X_train, is_category), is_category, y_train)
    test = Rows(_codes(data.X_test, is_category), is_category, y_test)
    return _subset(train, test, n_rows)


def _codes(X: pd.DataFrame, is_category: NDArray[np.bool_]) -> NDArray[np.float64]:
    columns = [
        np.where(X[name].isna(), np.nan, X[name].cat.codes) if is_one else X[name].to_numpy(float)
        for name, is_one in zip(X, is_category, strict=True)
    ]
    return np.column_stack(columns)


def extra_numbers(name: str, test_file: str, n_rows: int) -> Parts:
    """Return a number of training rows of a numeric table of ``extra``."""
    folder = datasets.extra_folder(name)
    train, test = (
        pd.read_csv(folder / file, header=None).to_numpy(float)
        for file in ("train.csv.gz", test_file)
    )
    return _subset(numbers(train[:, 1:], train[:, 0]), numbers(test[:, 1:], test[:, 0]), n_rows)


def shipped(load: Callable[[], Bunch]) -> Parts:
    """Return one of the tables that come with scikit-learn."""
    data = load()
    return common_classes(*numbers(data.data, data.target).parted(TEST_SHARE, SEED), MIN_ROWS)


def _subset(train: Rows, test: Rows, n_rows: int) -> Parts:
    return common_classes(few(train, n_rows, SEED), few(test, MAX_TEST_ROWS, SEED), MIN_ROWS)


def _class_numbers(
    y_train: NDArray[np.generic], y_test: NDArray[np.generic]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the labels of the training part; -1 is a label that it does not have."""
    classes = pd.Index(np.unique(y_train))
    return classes.get_indexer(y_train), classes.get_indexer(y_test)
