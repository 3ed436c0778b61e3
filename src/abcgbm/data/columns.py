"""Columns as NumPy and SciPy hold them, and what any column gives: floats, or levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abcgbm import _core
from abcgbm.data.cells import OBJECT_KINDS, as_float, floats_of, is_missing, made_array, shown
from abcgbm.data.lazy import lazy

Floats = NDArray[np.float64]
Rows = slice | NDArray[np.int64]
Level = str | float | None  # None is missing
CHUNK = 65_536  # rows that are Python objects at a time
_MOST_SIGNED = 2**31  # rows that int32 can number


def chunks(n_rows: int, size: int = CHUNK) -> Iterator[slice]:
    """Cut rows into slices of at most ``size``."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def levels_of_floats(column: Floats) -> Iterator[list[Level]]:
    """Yield floats as levels; NaN is missing."""
    for rows in chunks(len(column)):
        values = (column[rows] + 0.0).astype(object)  # 0.0 is added so that -0.0 is 0.0
        values[np.isnan(column[rows])] = None
        yield values.tolist()


class LevelOf(dict[Any, Level]):
    """The level that a Python value is; values seen once are looked up.

    Parameters
    ----------
    column : str
        What errors call the column.
    """

    def __init__(self, column: str) -> None:
        super().__init__()
        self.column = column

    def __missing__(self, value: Any) -> Level:
        if is_missing(value):  # not kept: any number of NaN differ from each other
            return None
        self[value] = level = self._level(value)
        return level

    def all(self, values: Sequence[Any]) -> list[Level]:
        """Return the levels of many values."""
        try:
            return list(map(self.__getitem__, values))
        except TypeError as error:
            if "signaling NaN" in str(error):  # of Decimal, which cannot be looked up
                return self.all([None if is_missing(value) else value for value in values])
            for value in values:
                if not _is_hashable(value):
                    raise self._refusal(value) from None
            raise

    def _level(self, value: Any) -> Level:
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, Real | Decimal | np.bool_):
            return as_float(value) + 0.0
        raise self._refusal(value)

    def _refusal(self, value: Any) -> TypeError:
        return TypeError(
            f"{self.column} has values of type {type(value).__name__}, such as {shown(value)}; "
            "expected strings or numbers: make one of these of them first"
        )


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


# ------------------------------------------------------------------------------------------- arrays


def as_array(X: Any, name: str) -> Any:
    """Return X as scikit-learn can check it, missing values as NaN; refuse what holds no numbers.

    Parameters
    ----------
    X : array or sparse matrix
        The table.
    name : str
        What errors call it.
    """
    values = X
    kind = getattr(values.dtype, "kind", "")
    if kind in ("m", "M"):
        raise TypeError(
            f"{name} is an array of type {values.dtype}; make numbers of its times first, such as "
            "the seconds since a date"
        )
    if isinstance(values, np.ma.MaskedArray) and kind not in OBJECT_KINDS:
        return np.ma.filled(values.astype(np.float64), np.nan)
    if kind in OBJECT_KINDS and not sparse.issparse(values):
        objects = np.ma.filled(values.astype(object), np.nan)
        return floats_of(objects, name, _STRINGS)
    return values


_STRINGS = (
    ": strings come from data frames, where they are categories (those that a ColumnTransformer makes "
    "after set_output(transform='pandas') are such), or from columns that categorical_features names"
)


def made_table(X: Any, name: str) -> Any:
    """Return an array of what is none yet; errors call it by name."""
    if hasattr(X, "dtype"):
        return X
    array = made_array(X)
    if array.dtype.kind in OBJECT_KINDS and array.ndim == 0:
        raise TypeError(
            f"{name} is of type {type(X).__name__}; expected an array of numbers, a data frame, an "
            "Arrow table or a sparse matrix"
        )
    return array


@dataclass(frozen=True)
class ArrayColumns:
    """The columns of an array.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns)
        Of any real type.
    """

    values: NDArray[Any]

    def take(self, rows: Rows) -> ArrayColumns:
        """Return some rows."""
        return ArrayColumns(self.values[rows])

    def floats(self, columns: NDArray[np.intp]) -> Floats:
        """Return columns as floats of shape (n_rows, len(columns)), not copied where they are."""
        with np.errstate(over="ignore"):  # what no float can hold is infinite
            return np.require(self.values[:, _as_slice(columns)], np.float64, "A")

    def write(self, values: Floats, places: NDArray[np.intp], columns: NDArray[np.intp]) -> None:
        """Write columns into those of an array, at the given places."""
        with np.errstate(over="ignore"):
            values[:, _as_slice(places)] = self.values[:, _as_slice(columns)]

    def levels(self, column: int) -> Iterator[list[Level]]:
        """Yield the levels of a column, a chunk of rows at a time."""
        return levels_of_floats(self.floats(np.array([column]))[:, 0])


@dataclass(frozen=True)
class ObjectColumns(ArrayColumns):
    """The columns of an array of objects, some of them categories.

    Attributes
    ----------
    values : ndarray of float64 of shape (n_rows, n_columns)
        The numbers; NaN in categories.
    objects : ndarray of object of the same shape
        All columns as they were given.
    labels : tuple of str
        What errors call each column.
    """

    objects: NDArray[Any]
    labels: tuple[str, ...]

    def take(self, rows: Rows) -> ObjectColumns:
        """Return some rows."""
        return ObjectColumns(self.values[rows], self.objects[rows], self.labels)

    def levels(self, column: int) -> Iterator[list[Level]]:
        """Yield the levels of a column, a chunk of rows at a time."""
        level_of = LevelOf(self.labels[column])
        for rows in chunks(len(self.objects)):
            yield level_of.all(self.objects[rows, column].tolist())


def _as_slice(columns: NDArray[np.intp]) -> Any:
    """Neighbours become a slice, which copies nothing."""
    if len(columns) and (np.diff(columns) == 1).all():
        return slice(int(columns[0]), int(columns[-1]) + 1)
    return columns


RowNumbers = NDArray[np.int32] | NDArray[np.uint32]


def row_numbers(indices: NDArray[Any], n_rows: int) -> RowNumbers:
    """Return the row numbers of sparse columns in the type that the core takes, copied if need be."""
    if n_rows <= _MOST_SIGNED:
        return indices.astype(np.int32, copy=False)
    return indices.astype(np.uint32, copy=False)


@dataclass(frozen=True)
class SparsePart:
    """Sparse columns as the core takes them.

    Attributes
    ----------
    features : ndarray of int32 of shape (n_columns,)
        Their numbers in the table.
    fill : ndarray of float64 of shape (n_columns,)
        The value of the rows that are not stored.
    indptr, indices, data : ndarray of int64, int32, float64
        As in scipy's csc, rows ascending and none twice; above 2^31 of them indices are uint32.
    """

    features: NDArray[np.int32]
    fill: Floats
    indptr: NDArray[np.int64]
    indices: RowNumbers
    data: Floats

    def columns(self, n_rows: int) -> _core.SparseColumns:
        """Hand them to the core, for a table of so many rows."""
        return _core.SparseColumns(n_rows, self.fill, self.indptr, self.indices, self.data)


@dataclass(frozen=True)
class SparseColumns:
    """Columns of which few values are stored.

    Attributes
    ----------
    matrix : scipy sparse array, csr or csc, of shape (n_rows, n_columns)
        The stored values as float64, none twice.
    fill : ndarray of float64 of shape (n_columns,)
        The value of all others.
    """

    matrix: Any
    fill: Floats

    @lazy
    def _by_row(self) -> Any:
        return self.matrix.tocsr()

    @lazy
    def _by_column(self) -> Any:
        by_column = self.matrix.tocsc()
        if not by_column.has_sorted_indices:
            by_column = by_column.copy()
            by_column.sort_indices()
        return by_column

    def take(self, rows: Rows) -> SparseColumns:
        """Return some rows."""
        return SparseColumns(self._by_row[rows], self.fill)

    def floats(self, columns: NDArray[np.intp]) -> Floats:
        """Return columns as dense floats of shape (n_rows, len(columns))."""
        values = np.empty((self.matrix.shape[0], len(columns)))
        self.write(values, np.arange(len(columns)), columns)
        return values

    def write(self, values: Floats, places: NDArray[np.intp], columns: NDArray[np.intp]) -> None:
        """Write columns into those of an array, at the given places."""
        stored = self.matrix[:, columns].tocoo()
        values[:, places] = self.fill[columns]
        values[stored.row, places[stored.col]] = stored.data

    def levels(self, column: int) -> Iterator[list[Level]]:
        """Yield the levels of a column, a chunk of rows at a time."""
        return levels_of_floats(self.floats(np.array([column]))[:, 0])

    def part(self, columns: NDArray[np.intp], features: NDArray[np.intp]) -> SparsePart:
        """Return some columns for the core, under their numbers in the table."""
        stored = self._by_column
        if len(columns) < stored.shape[1]:
            stored = stored[:, columns]
        return SparsePart(
            features.astype(np.int32),
            self.fill[columns],
            stored.indptr.astype(np.int64, copy=False),
            row_numbers(stored.indices, stored.shape[0]),
            stored.data,
        )
