"""Numeric columns of SciPy sparse matrices and arrays.

Sparse columns are passed to the core as lists of rows and values, and never made dense.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abcgbm import _core
from abcgbm.data.arrays import (
    Category,
    Floats,
    RowNumbers,
    Rows,
    categories_of_floats,
    row_numbers,
)
from abcgbm.data.once import lazy

_MAX_ROWS = 2**32 - 1  # row numbers of sparse columns are 32-bit
_TABLE_NDIM = 2


def compressed(X: Any, name: str) -> Any:
    """Convert a SciPy matrix of any format to a csr or csc array with its own, validated indices.

    SciPy's own conversions do not validate indices. They are copied first, so that they cannot
    change afterwards; values may be shared with X.
    """
    if X.ndim != _TABLE_NDIM:
        raise ValueError(f"{name} is a sparse array of {X.ndim} dimension(s); expected 2")
    try:
        if X.format in ("csr", "csc", "bsr"):
            return _copied(X)
        data, row, column = _TRIPLES[X.format](X)
        return _from_triples(data, row, column, X.shape)
    except (ValueError, IndexError, TypeError, OverflowError) as error:
        raise ValueError(f"{name} is an invalid {X.format} matrix: {error}") from error


def _copied(X: Any) -> Any:
    make = {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array}[X.format]
    indices, indptr = (_as_indices(array) for array in (X.indices, X.indptr))
    matrix = make((X.data, indices, indptr), shape=X.shape)
    matrix.check_format(full_check=True)
    return matrix.tocsr() if X.format == "bsr" else matrix


def _as_indices(array: Any) -> NDArray[Any]:
    """Return a copy of indices, which must be integers."""
    indices = np.array(array, copy=True)
    if indices.dtype.kind not in "iu" and indices.size:
        raise TypeError(f"indices of type {indices.dtype}; expected integers")
    return indices


def _from_triples(data: Any, row: Any, column: Any, shape: tuple[int, int]) -> Any:
    """Return the csr array of (row, column, value) triples, after checking their ranges."""
    row, column = _as_indices(row), _as_indices(column)
    if not len(data) == len(row) == len(column):
        raise ValueError(f"{len(data)} values at {len(row)} rows and {len(column)} columns")
    for what, index, size in (("row", row, shape[0]), ("column", column, shape[1])):
        if len(index) and (index.min() < 0 or index.max() >= size):
            bad = index[(index < 0) | (index >= size)][0]
            raise ValueError(f"{what} {bad}; expected 0 to {size - 1}")
    return sparse.coo_array((data, (row, column)), shape=shape).tocsr()


def _triples_of_coo(X: Any) -> tuple[Any, Any, Any]:
    return X.data, X.row, X.col


def _triples_of_dok(X: Any) -> tuple[Any, Any, Any]:
    items = list(X.items())
    places = np.array([place for place, _ in items], dtype=np.int64).reshape(-1, 2)
    return np.array([value for _, value in items], dtype=X.dtype), places[:, 0], places[:, 1]


def _triples_of_lil(X: Any) -> tuple[Any, Any, Any]:
    # Copies, which cannot change between the checks and their use.
    columns = [list(c) for c in X.rows]
    values = [list(v) for v in X.data]
    lengths = [len(entries) for entries in columns]
    if len(columns) != X.shape[0] or lengths != [len(entries) for entries in values]:
        raise ValueError("rows and data of different length")
    data = np.array(list(chain.from_iterable(values)), dtype=X.dtype)
    column = np.array(list(chain.from_iterable(columns)), dtype=np.int64)
    return data, np.repeat(np.arange(X.shape[0]), lengths), column


def _triples_of_dia(X: Any) -> tuple[Any, Any, Any]:
    """Return the entries of the diagonals inside the matrix, without zeros."""
    offsets, data = np.array(X.offsets, dtype=np.int64), np.asarray(X.data)
    if (
        data.ndim != _TABLE_NDIM
        or len(offsets) != len(data)
        or len(np.unique(offsets)) != len(offsets)
    ):
        raise ValueError(f"diagonals of shape {data.shape} at {len(offsets)} offsets")
    which, column = np.nonzero(data[:, : X.shape[1]])
    row = column - offsets[which]
    inside = (row >= 0) & (row < X.shape[0])
    return data[which, column][inside], row[inside], column[inside]


_TRIPLES = {
    "coo": _triples_of_coo,
    "dok": _triples_of_dok,
    "lil": _triples_of_lil,
    "dia": _triples_of_dia,
}


def sparse_columns(matrix: Any, name: str = "X") -> SparseColumns:
    """Return the columns of a csr or csc array returned by `compressed`."""
    if matrix.shape[0] > _MAX_ROWS:
        raise ValueError(
            f"{name} is sparse and has {matrix.shape[0]} rows; expected 1 to {_MAX_ROWS}"
        )
    with np.errstate(over="ignore"):
        matrix = matrix.astype(np.float64, copy=False)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return SparseColumns(matrix, np.zeros(matrix.shape[1]))


@dataclass(frozen=True)
class SparsePart:
    """Sparse columns in the format of the core.

    Attributes
    ----------
    features : ndarray of int32 of shape (n_columns,)
        Numbers of the features in the table.
    fill : ndarray of float64 of shape (n_columns,)
        Value of the rows that are not stored.
    indptr, indices, data : ndarray of int64, int32, float64
        As in SciPy's csc format, with ascending rows and no duplicates; uint32 indices from 2^31
        rows.
    """

    features: NDArray[np.int32]
    fill: Floats
    indptr: NDArray[np.int64]
    indices: RowNumbers
    data: Floats

    def columns(self, n_rows: int) -> _core.SparseColumns:
        """Return the columns as the core's object, for a table of ``n_rows`` rows."""
        return _core.SparseColumns(n_rows, self.fill, self.indptr, self.indices, self.data)


@dataclass(frozen=True)
class SparseColumns:
    """Columns with few values stored.

    Attributes
    ----------
    matrix : SciPy sparse array, csr or csc, of shape (n_rows, n_columns)
        The stored values as float64, without duplicates.
    fill : ndarray of float64 of shape (n_columns,)
        Value of all others.
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
        """Return some of the rows."""
        return SparseColumns(self._by_row[rows], self.fill)

    def floats(self, columns: NDArray[np.intp]) -> Floats:
        """Return columns as dense floats of shape (n_rows, len(columns))."""
        values = np.empty((self.matrix.shape[0], len(columns)))
        self.write(values, np.arange(len(columns)), columns)
        return values

    def write(self, values: Floats, places: NDArray[np.intp], columns: NDArray[np.intp]) -> None:
        """Write columns into the given columns (``places``) of an array."""
        stored = self.matrix[:, columns].tocoo()
        values[:, places] = self.fill[columns]
        values[stored.row, places[stored.col]] = stored.data

    def categories(self, column: int) -> Iterator[list[Category]]:
        """Yield the categories of a column, one chunk of rows at a time."""
        return categories_of_floats(self.floats(np.array([column]))[:, 0])

    def part(self, columns: NDArray[np.intp], features: NDArray[np.intp]) -> SparsePart:
        """Return some columns in the format of the core, as the given features of the table."""
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
