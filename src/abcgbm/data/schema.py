"""Names and kinds of columns, and which are categorical."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.once import WarnsOnce
from abcgbm.errors import quoted_list
from abcgbm.parameters.validators import is_integer


def find_feature(item: Any, n_features: int, names: NDArray[Any] | None) -> int | None:
    """Return the number of a feature given by name or number; None if there is no such feature."""
    if isinstance(item, str):
        known: list[str] = [] if names is None else names.tolist()
        return known.index(item) if item in known else None
    if is_integer(item) and 0 <= int(item) < n_features:
        return int(item)
    return None


class Kind(IntEnum):
    """Kind of a feature."""

    NUMERIC = 0
    SPARSE = 1  # numeric, most values not stored
    CATEGORICAL = 2


@dataclass(frozen=True)
class Schema(WarnsOnce):
    """Names and kinds of the columns that a table must have.

    Attributes
    ----------
    is_categorical : ndarray of bool of shape (n_features,)
        Mask of the categorical features; the others are numeric.
    feature_names : ndarray of object of shape (n_features,), or None
        Names of the features, if all are strings.
    """

    is_categorical: NDArray[np.bool_]
    feature_names: NDArray[Any] | None = None

    def check(self) -> None:
        """Raise a ValueError unless names and kinds are consistent."""
        kinds, names = self.is_categorical, self.feature_names
        if not isinstance(kinds, np.ndarray) or kinds.dtype != bool or kinds.ndim != 1:
            raise ValueError("is_categorical is not an array of booleans")
        if names is None:
            return
        if len(names) != len(kinds) or {type(name) for name in names.tolist()} - {str}:
            raise ValueError(f"{len(names)} feature names; expected {len(kinds)} strings")
        twice = sorted(name for name, count in Counter(names.tolist()).items() if count > 1)
        if twice:
            raise ValueError(f"duplicate feature names: {twice}; expected unique names")

    def warn_of_names(self, message: str) -> None:
        """Warn once that the names of a table cannot be compared with these."""
        self._warn_once("names", message)

    def label(self, feature: int) -> str:
        """Return the name of a feature in errors."""
        return column_label(feature if self.feature_names is None else self.feature_names[feature])

    def categories_among(self, n_features: int) -> NDArray[np.bool_]:
        """Return the mask of categorical features; all False for another number of features."""
        is_mine = n_features == len(self.is_categorical)
        return self.is_categorical if is_mine else np.zeros(n_features, dtype=bool)

    def is_same(self, other: Schema) -> bool:
        """Whether two schemas have the same columns in the same order."""
        mine, theirs = self._names(), other._names()
        return mine == theirs and np.array_equal(self.is_categorical, other.is_categorical)

    def _names(self) -> list[str] | None:
        return None if self.feature_names is None else self.feature_names.tolist()


def names_of(columns: list[str]) -> NDArray[Any] | None:
    """Return column names as an array if all are strings; else None."""
    if not all(isinstance(name, str) for name in columns):  # pandas allows others
        return None
    plain = [str.__str__(name) for name in columns]  # subclasses of str cannot be stored
    return np.array(plain, dtype=object)


def column_label(name: object) -> str:
    """Return the name of a column in errors."""
    return f"column {name!r}"


def bulleted_names(title: str, names: set[str], max_items: int = 5) -> str:
    """Return names as scikit-learn lists them in errors."""
    lines = [f"- {name}\n" for name in sorted(names)]
    more = ["- ...\n"] if len(lines) > max_items else []
    return "".join([f"Feature names {title}:\n", *lines[:max_items], *more]) if lines else ""


def chosen_columns(given: Any, n_features: int, names: NDArray[Any] | None) -> NDArray[np.bool_]:
    """Return the mask of the columns selected by names, by indices or by a mask."""
    mask = np.zeros(n_features, dtype=bool)
    if given is None:
        return mask
    if isinstance(given, str) or not np.iterable(given):
        raise _no_choice(given)
    items = list(given)
    if items and all(isinstance(item, bool | np.bool_) for item in items):
        if len(items) != n_features:
            raise ValueError(
                f"categorical_features has {len(items)} booleans; X has {n_features} features"
            )
        return np.array(items, dtype=bool)
    for item in items:
        feature = find_feature(item, n_features, names)
        if feature is None:
            raise _no_feature(item, n_features, names)
        mask[feature] = True
    return mask


def _no_feature(item: Any, n_features: int, names: NDArray[Any] | None) -> Exception:
    """Return the error for an item that selects no feature."""
    if is_integer(item):
        allowed = f"0 to {n_features - 1}"
    elif not isinstance(item, str):
        return _no_choice(item)
    elif names is None:
        allowed = "indices: X has no names"
    else:
        allowed = f"names among {quoted_list(names.tolist(), 20)}"
    return ValueError(f"categorical_features has {item!r}; expected {allowed}")


def _no_choice(given: Any) -> TypeError:
    return TypeError(
        f"categorical_features={given!r}; expected 'auto', None, or a list of names, of indices or "
        "of one boolean per feature"
    )
