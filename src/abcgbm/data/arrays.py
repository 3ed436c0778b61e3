"""Numeric columns of NumPy, masked and object arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abcgbm.errors import shorten

Floats = NDArray[np.float64]
Rows = slice | NDArray[np.int64]
RowNumbers = NDArray[np.int32] | NDArray[np.uint32]
Category = str | float | None  # None is missing
OBJECT_KINDS = tuple("OUST")  # objects and strings, which are converted value by value
REAL_KINDS = ("b", "i", "u", "f")
CHUNK = 65_536  # rows converted to Python objects at a time: bounds memory
_MAX_SIGNED = 2**31  # number of rows that int32 can index
_STRINGS = (
    ": strings are accepted in data frames, where they are categories (a ColumnTransformer returns a "
    "data frame after set_output(transform='pandas')), or in columns named by categorical_features"
)


# ---------------------------------------------------------------------------------------- columns


@dataclass(frozen=True)
class ArrayColumns:
    """Columns of a real-valued array.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns)
        The array, of any real type.
    """

    values: NDArray[Any]

    def take(self, rows: Rows) -> ArrayColumns:
        """Return some of the rows."""
        return ArrayColumns(self.values[rows])

    def floats(self, columns: NDArray[np.intp]) -> Floats:
        """Return columns as floats of shape (n_rows, len(columns)), without a copy if possible."""
        with np.errstate(over="ignore"):  # values beyond the range of floats become infinite
            return np.require(self.values[:, _as_slice(columns)], np.float64, "A")

    def write(self, values: Floats, places: NDArray[np.intp], columns: NDArray[np.intp]) -> None:
        """Write columns into the given columns (``places``) of an array."""
        with np.errstate(over="ignore"):
            values[:, _as_slice(places)] = self.values[:, _as_slice(columns)]

    def categories(self, column: int) -> Iterator[list[Category]]:
        """Yield the categories of a column, one chunk of rows at a time."""
        return categories_of_floats(self.floats(np.array([column]))[:, 0])


@dataclass(frozen=True)
class ObjectColumns(ArrayColumns):
    """Columns of an object array with at least one categorical column.

    Attributes
    ----------
    values : ndarray of float64 of shape (n_rows, n_columns)
        Numeric columns; NaN in categorical ones.
    objects : ndarray of object of the same shape
        All columns as given.
    labels : tuple of str
        Name of each column in errors.
    """

    objects: NDArray[Any]
    labels: tuple[str, ...]

    def take(self, rows: Rows) -> ObjectColumns:
        """Return some of the rows."""
        return ObjectColumns(self.values[rows], self.objects[rows], self.labels)

    def categories(self, column: int) -> Iterator[list[Category]]:
        """Yield the categories of a column, one chunk of rows at a time."""
        category_of = CategoryNormalizer(self.labels[column])
        for rows in chunks(len(self.objects)):
            yield category_of.all(self.objects[rows, column].tolist())


def _as_slice(columns: NDArray[np.intp]) -> Any:
    """Return consecutive columns as a slice, because slicing does not copy."""
    if len(columns) and (np.diff(columns) == 1).all():
        return slice(int(columns[0]), int(columns[-1]) + 1)
    return columns


def row_numbers(indices: NDArray[Any], n_rows: int) -> RowNumbers:
    """Return row numbers of sparse columns as int32 or uint32, whichever the core expects."""
    if n_rows <= _MAX_SIGNED:
        return indices.astype(np.int32, copy=False)
    return indices.astype(np.uint32, copy=False)


def chunks(n_rows: int, size: int = CHUNK) -> Iterator[slice]:
    """Yield slices of at most ``size`` rows."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def as_array(X: Any, name: str) -> Any:
    """Prepare an array for scikit-learn's checks; missing values become NaN.

    Parameters
    ----------
    X : array or sparse matrix
        The table.
    name : str
        Name of the table in errors.
    """
    values = X
    kind = getattr(values.dtype, "kind", "")
    if kind in ("m", "M"):
        raise TypeError(
            f"{name} is an array of type {values.dtype}; convert its times to numbers first, such as "
            "seconds since a date"
        )
    if isinstance(values, np.ma.MaskedArray) and kind not in OBJECT_KINDS:
        return np.ma.filled(values.astype(np.float64), np.nan)
    if kind in OBJECT_KINDS and not sparse.issparse(values):
        objects = np.ma.filled(values.astype(object), np.nan)
        return floats_of(objects, name, _STRINGS)
    return values


def to_table_array(X: Any, name: str) -> Any:
    """Convert a table-like without a dtype to an array; a scalar is an error."""
    if hasattr(X, "dtype"):
        return X
    array = to_array(X)
    if array.dtype.kind in OBJECT_KINDS and array.ndim == 0:
        raise TypeError(
            f"{name} is of type {type(X).__name__}; expected an array of numbers, a data frame, an "
            "Arrow table or a sparse matrix"
        )
    return array


# ---------------------------------------------------------------------------------------- numbers


def as_reals(values: Any, name: str) -> NDArray[np.float64]:
    """Convert an array-like of real numbers to floats; missing values become NaN.

    Object arrays are converted value by value, because NumPy would parse strings as numbers.
    """
    if isinstance(values, np.ma.MaskedArray):
        masked = np.flatnonzero(np.ma.getmaskarray(values))
        if len(masked):
            raise ValueError(
                f"{name} is masked at {len(masked)} row(s), first at {masked[0]}; expected no "
                "masked values"
            )
        values = values.data
    with naming(name):
        array = np.asarray(values) if hasattr(values, "dtype") else to_array(values)
    if array.dtype.kind in OBJECT_KINDS:
        return floats_of(array.astype(object), name)
    if array.dtype.kind not in REAL_KINDS:
        raise TypeError(f"{name} is an array of type {array.dtype}; expected real numbers")
    with np.errstate(over="ignore"):  # values beyond the range of floats become infinite
        return array.astype(np.float64, copy=False)


def to_array(values: Any) -> NDArray[Any]:
    """Convert anything to an array; numbers beside strings stay numbers."""
    array = np.asarray(values)
    return np.asarray(values, dtype=object) if array.dtype.kind in OBJECT_KINDS else array


def floats_of(objects: Any, name: str, hint: str = "") -> NDArray[np.float64]:
    """Convert an array of Python objects to floats, each by `_float_reader`."""
    read = np.frompyfunc(_float_reader(name, hint), 1, 1)
    # Comparing NaN sets the CPU's invalid flag, and NumPy 2.5 warns if it is set afterwards.
    with np.errstate(invalid="ignore"):
        return np.asarray(read(objects), dtype=np.float64)


def _float_reader(name: str, hint: str = "") -> Callable[[Any], float]:
    """Return a function that converts one Python value to a float, NaN if it is missing.

    Parameters
    ----------
    name : str
        Name of the source in errors.
    hint : str
        Added to the error that strings cause.
    """

    def read(value: Any) -> float:
        if isinstance(value, str | bytes):
            raise ValueError(  # noqa: TRY004 (as scikit-learn does)
                f"{name} holds strings, such as {value!r}; expected numbers{hint}"
            )
        if is_missing(value):
            return math.nan
        if not isinstance(value, Real | Decimal | np.bool_):
            raise TypeError(
                f"{name} holds values of type {type(value).__name__}, such as {shorten(value)}; "
                # scikit-learn's estimator checks match "argument must be .* string.* number".
                "expected numbers (the argument must be free of strings and hold only numbers)"
            )
        return as_float(value)

    return read


def as_float(value: Any) -> float:
    """Return a number as a float; integers beyond the range of floats become infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_missing(value: Any) -> bool:
    """Whether a Python value is missing: None, NaN, NA or NaT."""
    # pandas.NA cannot be compared to itself, so it is recognised by the name of its type.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):  # comparing a signalling NaN raises
        return value.is_nan()
    return isinstance(value, Real | np.generic) and bool(value != value)  # noqa: PLR0124


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Name the source of the values in conversion errors of a library.

    Libraries name the value at most, not the column.

    Parameters
    ----------
    what : str
        Name of the source in errors, for example ``column 'a'``.
    """
    try:
        yield
    except Exception as error:
        is_arrow = type(error).__module__.startswith("pyarrow")
        if not is_arrow and not isinstance(error, ValueError | OverflowError):
            raise
        raise ValueError(f"{what} has values that cannot be converted: {error}") from error


# ------------------------------------------------------------------------------------- categories


def categories_of_floats(column: Floats) -> Iterator[list[Category]]:
    """Yield the values of a column of floats as categories; NaN is missing."""
    for rows in chunks(len(column)):
        values = (column[rows] + 0.0).astype(object)  # -0.0 + 0.0 is 0.0
        values[np.isnan(column[rows])] = None
        yield values.tolist()


class CategoryNormalizer(dict[Any, Category]):
    """Map from Python values to categories: strings stay strings, numbers become floats.

    Results are cached, as most values occur many times.

    Parameters
    ----------
    column : str
        Name of the column in errors.
    """

    def __init__(self, column: str) -> None:
        super().__init__()
        self.column = column

    def __missing__(self, value: Any) -> Category:
        if is_missing(value):  # not cached: NaN keys differ, so the cache would grow
            return None
        self[value] = category = self._category(value)
        return category

    def all(self, values: Sequence[Any]) -> list[Category]:
        """Return the categories of a sequence of values."""
        try:
            return list(map(self.__getitem__, values))
        except TypeError as error:
            if "signaling NaN" in str(error):  # a Decimal that cannot be hashed
                return self.all([None if is_missing(value) else value for value in values])
            for value in values:
                if not _is_hashable(value):
                    raise self._refusal(value) from None
            raise

    def _category(self, value: Any) -> Category:
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, Real | Decimal | np.bool_):
            return as_float(value) + 0.0
        raise self._refusal(value)

    def _refusal(self, value: Any) -> TypeError:
        return TypeError(
            f"{self.column} has values of type {type(value).__name__}, such as {shorten(value)}; "
            "expected strings or numbers: convert them first"
        )


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
