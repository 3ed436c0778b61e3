"""Columns of pandas, polars and Arrow data frames, through narwhals, as floats or categories."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from scipy import sparse

from abcgbm.data.arrays import (
    REAL_KINDS,
    Category,
    CategoryNormalizer,
    Floats,
    Rows,
    categories_of_floats,
    chunks,
    naming,
)
from abcgbm.data.once import lazy
from abcgbm.data.sparse import SparseColumns

Frame = nw.DataFrame[Any]
Series = nw.Series[Any]
_FEW_ROWS = 64  # up to which it is faster to convert all columns at once, used or not


# -------------------------------------------------------------------------------------- data frames


def as_frame(X: Any, name: str = "X") -> Frame | None:
    """Return X as a narwhals data frame, or None if it is not a data frame or an Arrow table.

    Lazy frames are collected.
    """
    if type(X) is np.ndarray:  # the common case, for which narwhals is slow
        return None
    try:
        frame = nw.from_native(X, pass_through=True)
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    except DuplicateError as error:
        names = ", ".join(line[2:] for line in str(error).splitlines()[1:])
        raise ValueError(
            f"{name} has duplicate column names: {names}; expected unique names"
        ) from None
    if isinstance(frame, nw.DataFrame):
        return _without_views(frame)
    return _without_views(_from_arrow(X, name)) if _is_arrow_table(X) else None


def _is_arrow_table(X: Any) -> bool:
    arrow = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")
    return arrow and not nw.dependencies.is_into_series(X)


def _from_arrow(X: Any, name: str) -> Frame:
    """Convert an object with the Arrow PyCapsule interface, with whichever library is installed."""
    for library, reader in (("pyarrow", "table"), ("polars", "DataFrame")):
        if importlib.util.find_spec(library) is not None:
            read = getattr(importlib.import_module(library), reader)
            try:
                return nw.from_native(read(X), eager_only=True)
            except Exception as error:
                raise TypeError(
                    f"{name} of type {type(X).__name__} is not an Arrow table: {error}"
                ) from error
    raise ImportError(
        f"{name} of type {type(X).__name__} is read through the Arrow interface, which requires "
        "pyarrow or polars: pip install 'abcgbm[arrow]'"
    )


def _without_views(frame: Frame) -> Frame:
    """Convert string views to plain strings, because pyarrow cannot take rows of views."""
    if not frame.implementation.is_pyarrow():
        return frame
    table = frame.to_native()
    for place, field in enumerate(table.schema):
        if str(field.type) == "string_view":
            table = table.set_column(place, field.name, table.column(place).cast("large_string"))
    return nw.from_native(table, eager_only=True)


# ------------------------------------------------------------------------------------------ content


class Content(Enum):
    """What a column holds."""

    NUMBERS = "numbers"
    OBJECTS = "numbers as Python objects"
    STRINGS = "strings"
    CATEGORIES = "categories"
    NO_NUMBERS = "missing values only, in a column of a numeric or time type"
    NO_CATEGORIES = "missing values only, in a column that could hold categories"


NOTHING = (Content.NO_NUMBERS, Content.NO_CATEGORIES)
_CATEGORICAL = (Content.STRINGS, Content.CATEGORIES, Content.NO_CATEGORIES)
_TO_NUMBERS = "convert it to numbers first, such as"
_NESTED = ("nested", "split it into one column per element first")
_BINARY = ("binary", "decode it to strings first")
_ADVICE: tuple[tuple[tuple[Any, ...], tuple[str, str]], ...] = (
    (
        (nw.Datetime, nw.Date),
        ("a datetime", f"{_TO_NUMBERS} its year, month or seconds since a date"),
    ),
    ((nw.Duration,), ("a duration", f"{_TO_NUMBERS} its seconds")),
    ((nw.Time,), ("a time of day", f"{_TO_NUMBERS} seconds since midnight")),
    ((nw.List, nw.Array, nw.Struct), _NESTED),
    ((nw.Binary,), _BINARY),
)
# Types unknown to narwhals, by the prefix of their native name.
_ADVICE_BY_NAME: tuple[tuple[tuple[str, ...], tuple[str, str]], ...] = (
    (("fixed_size_binary", "large_binary", "binary_view"), _BINARY),
    (("map<", "list_view", "large_list_view"), _NESTED),
    (("period[",), ("a period", "convert it to strings by astype(str), or to numbers, first")),
    (("interval[",), ("an interval", "convert it to strings by astype(str), or to numbers, first")),
    (("complex",), ("complex", "split it into its real and imaginary parts first")),
)


def holds_plain_numbers(frame: Frame) -> bool:
    """Whether a frame is of pandas and all columns have real NumPy types."""
    if not frame.implementation.is_pandas():
        return False
    return {_kind(dtype) for dtype in frame.to_native().dtypes.array} <= set(REAL_KINDS)


def _kind(dtype: Any) -> str:
    return dtype.kind if isinstance(dtype, np.dtype) else ""


def content_of(series: Series, label: str) -> Content:
    """Return what a column holds; unsupported types are errors that name the column."""
    kind = _numpy_kind(series)
    if kind in REAL_KINDS:
        return Content.NUMBERS
    dtype = series.dtype
    if kind == "O" or dtype == nw.Object:  # narwhals may report objects as strings
        return _content_of_objects(series, label)
    if dtype.is_numeric() or dtype == nw.Boolean or _is_decimal(series):
        return Content.NUMBERS
    if series.null_count() == len(series):
        return Content.NO_CATEGORIES if _may_hold_categories(series) else Content.NO_NUMBERS
    if dtype == nw.String:
        return Content.STRINGS
    if dtype in (nw.Categorical, nw.Enum):
        return Content.CATEGORIES
    raise _refusal(series, label)


def _is_decimal(series: Series) -> bool:
    """Whether a column holds decimal numbers; narwhals only knows those of 128 bits."""
    is_unknown = series.dtype == nw.Unknown
    return series.dtype == nw.Decimal or (is_unknown and _native_type(series).startswith("decimal"))


def _may_hold_categories(series: Series) -> bool:
    """Whether the type of a column allows strings: string types, or the null type."""
    is_null = _native_type(series).lower() in ("null", "null[pyarrow]")
    return is_null or series.dtype in (nw.String, nw.Categorical, nw.Enum)


def _numpy_kind(series: Series) -> str:
    """Return the kind of the NumPy type of a pandas column; an empty string for other columns."""
    return _kind(getattr(series.to_native(), "dtype", None))


def _content_of_objects(series: Series, label: str) -> Content:
    types = categorical_types(series, label)
    if types == {str, float}:
        raise TypeError(f"{label} holds both strings and numbers; expected one of the two")
    if types == {str}:
        return Content.STRINGS
    return Content.OBJECTS if types == {float} else Content.NO_CATEGORIES


def categorical_types(series: Series, label: str) -> set[type]:
    """Return the types of a column's categories: str, float, both or neither."""
    types: set[type] = set()
    for chunk in _categories_of_objects(series, label):
        types |= set(map(type, chunk))
    return types - {type(None)}


def _refusal(series: Series, label: str) -> TypeError:
    dtype, native = series.dtype, _native_type(series)
    for kinds, (name, advice) in _ADVICE:
        if dtype in kinds:
            return TypeError(f"{label} is {name} ({dtype!r}); {advice}")
    for prefixes, (name, advice) in _ADVICE_BY_NAME:
        if native.startswith(prefixes):
            return TypeError(f"{label} is {name} ({native}); {advice}")
    return TypeError(
        f"{label} is of type {native}; expected numbers, booleans, strings or categories"
    )


def _native_type(series: Series) -> str:
    """Return the name of a column's type in its own library."""
    native = series.to_native()
    return str(getattr(native, "dtype", getattr(native, "type", series.dtype)))


# ------------------------------------------------------------------------------------------ columns


@dataclass(frozen=True)
class FrameColumns:
    """Columns of a data frame.

    Attributes
    ----------
    frame : narwhals.DataFrame
        The frame.
    contents : tuple of Content
        What each column holds.
    labels : tuple of str
        Name of each column in errors.
    is_plain : bool
        Whether it is a pandas frame of real NumPy types only.
    """

    frame: Frame
    contents: tuple[Content, ...]
    labels: tuple[str, ...]
    is_plain: bool = False

    @classmethod
    def from_frame(cls, frame: Frame, labels: Sequence[str]) -> FrameColumns:
        """Determine what each column of a frame holds."""
        series: tuple[Any, ...] = tuple(frame.iter_columns())
        return cls(frame, tuple(map(content_of, series, labels)), tuple(labels))

    @classmethod
    def from_plain_numbers(cls, frame: Frame, labels: Sequence[str]) -> FrameColumns:
        """Wrap a frame for which `holds_plain_numbers` is true."""
        return cls(frame, (Content.NUMBERS,) * len(labels), tuple(labels), is_plain=True)

    @lazy
    def series(self) -> tuple[Series, ...]:
        """The columns, created on first access because that takes longer than predicting a row."""
        series: tuple[Any, ...] = tuple(self.frame.iter_columns())
        return series

    def take(self, rows: Rows) -> FrameColumns:
        """Return some of the rows."""
        return replace(self, frame=self.frame[rows])

    def holds_strings(self, column: int) -> bool:
        """Whether a column holds strings, plain or categorical."""
        if self.contents[column] is Content.CATEGORIES:
            return str in categorical_types(self.series[column], self.labels[column])
        return self.contents[column] is Content.STRINGS

    def holds_categories(self, column: int) -> bool:
        """Whether a column holds strings or categories, or is missing everywhere and may hold them.

        Otherwise a column that is missing everywhere would be numeric in one fold of a
        cross-validation, and its strings in the next fold would be errors.
        """
        return self.contents[column] in _CATEGORICAL

    def has_values(self, column: int) -> bool:
        """Whether any value of a column is not missing."""
        if self.contents[column] is not Content.NUMBERS:
            return self.contents[column] not in NOTHING
        for rows in chunks(len(self)):  # the first chunk mostly suffices
            values = _all_real_values(self.series[column][rows])
            if not np.isnan(np.asarray(values, dtype=np.float64)).all():
                return True
        return False

    def __len__(self) -> int:
        return self.frame.shape[0]

    def floats(self, columns: NDArray[np.intp]) -> Floats:
        """Return columns as floats of shape (n_rows, len(columns)); only these are converted."""
        values = np.empty((self.frame.shape[0], len(columns)), order="F")
        self.write(values, np.arange(len(columns)), columns)
        return values

    def write(self, values: Floats, places: NDArray[np.intp], columns: NDArray[np.intp]) -> None:
        """Write columns into the given columns (``places``) of an array."""
        if self.is_plain and self.frame.shape[0] <= _FEW_ROWS:
            with np.errstate(over="ignore"):  # values beyond the range of floats become infinite
                values[:, places] = self.frame.to_native().to_numpy(np.float64)[:, columns]
            return
        for place, column in zip(places.tolist(), columns.tolist(), strict=True):
            self._fill(values[:, place], column)

    def categories(self, column: int) -> Iterator[list[Category]]:
        """Yield the categories of a column, one chunk of rows at a time."""
        if self.contents[column] in (Content.NUMBERS, *NOTHING):
            return categories_of_floats(self.floats(np.array([column]))[:, 0])
        return _categories_of_objects(self.series[column], self.labels[column])

    def _fill(self, target: Floats, column: int) -> None:
        series = self.series[column]
        if self.contents[column] is Content.NUMBERS:
            start = 0
            for values in _real_values(series):
                with np.errstate(over="ignore"):  # large values become infinite
                    target[start : start + len(values)] = values
                start += len(values)
        elif self.contents[column] in NOTHING:
            target[:] = np.nan
        else:
            categories = _categories_of_objects(series, self.labels[column])
            for rows, chunk in zip(chunks(len(series)), categories, strict=True):
                target[rows] = chunk


def _real_values(series: Series) -> Iterator[NDArray[Any]]:
    """Yield the numbers of a column; pyarrow floats by chunk, which avoids a copy of the column."""
    if series.implementation.is_pyarrow() and series.dtype in (nw.Float64, nw.Float32):
        for chunk in series.to_native().chunks:
            yield chunk.to_numpy(zero_copy_only=False)
    else:
        yield _all_real_values(series)


def _all_real_values(series: Series) -> NDArray[Any]:
    if _numpy_kind(series):
        values: NDArray[Any] = series.to_native().to_numpy()
        return values
    # Arrow refuses to cast integers above 2^53 to floats; NumPy has no missing boolean.
    if series.dtype in (nw.Boolean, nw.Int128, nw.UInt128) or _is_decimal(series):
        series = series.cast(nw.Float64)
    return series.to_numpy()


def _categories_of_objects(series: Series, label: str) -> Iterator[list[Category]]:
    for rows in chunks(len(series)):
        with naming(label):
            values = _python_values(series[rows])
        yield CategoryNormalizer(label).all(values)


def _python_values(series: Series) -> list[Any]:
    """Return the values as a list of Python objects."""
    native = series.to_native()
    if series.implementation.is_pyarrow() and series.dtype == nw.Categorical:
        values: list[Any] = native.cast(native.type.value_type).to_pylist()
        return values
    # Only for strings: to_numpy of pandas categories would turn dates into integers.
    if series.implementation.is_pandas_like() and series.dtype == nw.String:
        return series.to_numpy().tolist()
    return series.to_list()


# ------------------------------------------------------------------------- sparse columns of pandas


def sparse_columns_of(frame: Frame) -> NDArray[np.bool_]:
    """Return the mask of the sparse numeric columns of a pandas frame."""
    if not frame.implementation.is_pandas():
        return np.zeros(frame.shape[1], dtype=bool)
    return np.array([_is_sparse(dtype) for dtype in frame.to_native().dtypes], dtype=bool)


def _is_sparse(dtype: Any) -> bool:
    return type(dtype).__name__ == "SparseDtype" and dtype.subtype.kind in REAL_KINDS


def sparse_frame(frame: Frame) -> SparseColumns:
    """Return the columns of an all-sparse pandas frame, without making them dense."""
    arrays = [column.array for _, column in frame.to_native().items()]
    stored = [array.sp_index.to_int_index().indices for array in arrays]
    start = np.concatenate([[0], np.cumsum([len(rows) for rows in stored])])
    data = np.concatenate([array.sp_values.astype(np.float64) for array in arrays])
    matrix = sparse.csc_array((data, np.concatenate(stored), start), shape=frame.shape)
    matrix.check_format(full_check=True)
    return SparseColumns(matrix, np.array([float(array.fill_value) for array in arrays]))
