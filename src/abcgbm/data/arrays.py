"""Numeric columns of arrays: NumPy, masked and object arrays."""

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

OBJECT_KINDS = tuple("OUST")  # kinds of arrays that are looked at one by one: objects, strings
REAL_KINDS = ("b", "i", "u", "f")  # kinds of real numbers


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Name the source of values that a library cannot convert: its own error names the value alone.

    Parameters
    ----------
    what : str
        What errors call the source, for example ``column 'a'``.
    """
    try:
        yield
    except Exception as error:
        is_arrow = type(error).__module__.startswith("pyarrow")
        if not is_arrow and not isinstance(error, ValueError | OverflowError):
            raise
        raise ValueError(f"{what} has values that cannot be converted: {error}") from error


def is_missing(value: Any) -> bool:
    """Whether a Python value stands for none: None, NaN, NA, NaT."""
    # NaN differs from itself; the NA of pandas answers neither yes nor no, and is asked by name.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):  # a signalling NaN may not be compared
        return value.is_nan()
    return isinstance(value, Real | np.generic) and bool(value != value)  # noqa: PLR0124


def as_float(value: Any) -> float:
    """Return a number as a float, infinite if it is an integer beyond all floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _float_reader(name: str, hint: str = "") -> Callable[[Any], float]:
    """Return a function that reads a number, NaN where it is missing; errors call its source by name.

    The hint follows in an error that was caused by strings.
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
                f"{name} holds values of type {type(value).__name__}, such as {shown(value)}; "
                "expected numbers (the argument must be free of strings and objects, of numbers alone)"
            )
        return as_float(value)

    return read


def floats_of(objects: Any, name: str, hint: str = "") -> NDArray[np.float64]:
    """Return objects as floats, each read by itself, as ``_float_reader`` has it."""
    read = np.frompyfunc(_float_reader(name, hint), 1, 1)
    # NumPy 2.5 warns if the CPU's flag is up afterwards, as it is where a NaN was compared.
    with np.errstate(invalid="ignore"):
        return np.asarray(read(objects), dtype=np.float64)


def shown(value: Any, most: int = 60) -> str:
    """Return a value as errors show it, cut short."""
    text = repr(value)
    return text if len(text) <= most else text[:most] + "..."


def as_reals(values: Any, name: str) -> NDArray[np.float64]:
    """Return an array-like of real numbers as floats, NaN where one is missing.

    Objects are looked at one by one, so that nothing is taken for a number that is none.
    """
    if isinstance(values, np.ma.MaskedArray):
        masked = np.flatnonzero(np.ma.getmaskarray(values))
        if len(masked):
            raise ValueError(
                f"{name} is masked at {len(masked)} row(s), first at {masked[0]}; expected a "
                "number for each row"
            )
        values = values.data
    with naming(name):
        array = np.asarray(values) if hasattr(values, "dtype") else made_array(values)
    if array.dtype.kind in OBJECT_KINDS:
        return floats_of(array.astype(object), name)
    if array.dtype.kind not in REAL_KINDS:
        raise TypeError(f"{name} is an array of type {array.dtype}; expected real numbers")
    with np.errstate(over="ignore"):  # what no float can hold is infinite
        return array.astype(np.float64, copy=False)


def made_array(values: Any) -> NDArray[Any]:
    """Return an array of what is none yet; numbers beside strings stay what they are."""
    array = np.asarray(values)
    return np.asarray(values, dtype=object) if array.dtype.kind in OBJECT_KINDS else array


Floats = NDArray[np.float64]
Rows = slice | NDArray[np.int64]
Level = str | float | None  # None is missing
CHUNK = 65_536  # rows that are Python objects at a time
_MAX_SIGNED = 2**31  # rows that int32 can number


def chunks(n_rows: int, size: int = CHUNK) -> Iterator[slice]:
    """Cut rows into slices of at most ``size``."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def categories_of_floats(column: Floats) -> Iterator[list[Level]]:
    """Yield floats as levels; NaN is missing."""
    for rows in chunks(len(column)):
        values = (column[rows] + 0.0).astype(object)  # 0.0 is added so that -0.0 is 0.0
        values[np.isnan(column[rows])] = None
        yield values.tolist()


class CategoryNormalizer(dict[Any, Level]):
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
        return categories_of_floats(self.floats(np.array([column]))[:, 0])


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
        level_of = CategoryNormalizer(self.labels[column])
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
    if n_rows <= _MAX_SIGNED:
        return indices.astype(np.int32, copy=False)
    return indices.astype(np.uint32, copy=False)
