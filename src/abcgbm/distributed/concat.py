"""Concatenation of the partitions that one worker holds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse

from abcgbm.data.arrays import REAL_KINDS
from abcgbm.data.frames import Frame, FrameColumns, Series, as_frame, sparse_columns_of
from abcgbm.data.shard_schema import is_categorical_everywhere

Numbered = Sequence[tuple[int, Any]]  # partitions with their numbers


def concat_partitions(partitions: Numbered, name: str, *, is_label: bool = False) -> Any:
    """Concatenate the partitions of a table or column.

    Parameters
    ----------
    partitions : sequence of (int, object)
        Partitions with their numbers.
    name : str
        Name of the argument in errors.
    is_label : bool, default=False
        Whether the values are labels, which are never converted to other numbers.
    """
    _check_types(partitions, name)
    nonempty = [numbered for numbered in partitions if numbered[1].shape[0]] or partitions[:1]
    first = nonempty[0][1]
    _check_columns(nonempty, name)
    if len(nonempty) == 1:
        return first
    library = type(first).__module__.partition(".")[0]
    return _CONCAT.get(library, np.concatenate)(
        _with_common_types(nonempty, name, is_label=is_label)
    )


def without_rows(table: Any) -> Any:
    """Return an empty table with the same columns."""
    if type(table).__module__.startswith("scipy"):
        table = table.tocsr()
    return table.slice(0, 0) if type(table).__module__.startswith("pyarrow") else table[:0]


def describe_table(table: Any) -> str:
    """Return the type and the columns of a table for error messages."""
    return f"a {_type(table).__name__} with {_describe_columns(table)}"


# -------------------------------------------------------------------------------------------- checks


def _check_types(partitions: Numbered, name: str) -> None:
    number, first = partitions[0]
    for other, partition in partitions:
        if _type(partition) is not _type(first):
            raise TypeError(
                f"partition {other} of {name} is a {type(partition).__name__}, partition {number} a "
                f"{type(first).__name__}; expected one type"
            )


def _type(table: Any) -> type:
    # Sparse matrices of different formats can be concatenated.
    return sparse.spmatrix if sparse.issparse(table) else type(table)


def _check_columns(partitions: Numbered, name: str) -> None:
    number, first = partitions[0]
    for other, partition in partitions:
        if _columns(partition) != _columns(first):
            raise ValueError(
                f"partition {other} of {name} has {_describe_columns(partition)}, partition "
                f"{number} {_describe_columns(first)}; expected the same"
            )


def _columns(table: Any) -> list[Any] | tuple[int, ...]:
    """Return the names of the columns; of an array their number, as a shape."""
    if hasattr(table, "column_names"):  # Arrow, where `columns` are the values
        return list(table.column_names)
    names = getattr(table, "columns", None)
    return tuple(table.shape[1:]) if names is None else list(names)


def _describe_columns(table: Any) -> str:
    columns = _columns(table)
    if isinstance(columns, list):
        return f"the columns {columns}"
    return f"{columns[0]} column(s)" if len(columns) == 1 else f"{len(table.shape)} dimension(s)"


# --------------------------------------------------------------------------------------- common types


def _with_common_types(partitions: Numbered, name: str, *, is_label: bool) -> list[Any]:
    """Convert partitions to common types, so that concatenation changes no value."""
    tables, first = [table for _, table in partitions], partitions[0][1]
    if sparse.issparse(first):
        return tables
    if hasattr(first, "columns"):
        return tables if is_label else _frames_of_one_type(partitions, name)
    kinds = set(map(_kind, tables))
    # NumPy would turn numbers and labels of different types into strings.
    if len(kinds) == 1 or (not is_label and kinds <= {*REAL_KINDS}):
        return tables
    return list(map(_to_objects, tables))


def _kind(column: Any) -> str:
    categories = getattr(column.dtype, "categories", None)
    if categories is not None:
        return f"categories of {getattr(categories, 'dtype', '')}"
    kind = getattr(column.dtype, "kind", None)
    return str(column.dtype) if kind is None else kind


def _to_objects(column: Any) -> Any:
    if hasattr(column, "astype"):
        return column.astype(object)
    return _object_array(column.to_list())


def _object_array(values: list[Any]) -> Any:
    return np.fromiter(values, dtype=object, count=len(values))


def _frames_of_one_type(partitions: Numbered, name: str) -> list[Any]:
    """Return data frames whose columns have the same types; raise TypeError where there are none."""
    frames = [_frame(table, name) for _, table in partitions]
    for column in frames[0].columns:
        if len({_type_name(frame.get_column(column)) for frame in frames}) == 1:
            continue
        schemas = [
            _partial_schema(frame, column, number, name)
            for frame, (number, _) in zip(frames, partitions, strict=True)
        ]
        is_categorical = _is_categorical(
            schemas, [f"in partition {number} of {name}" for number, _ in partitions]
        )
        convert = _as_categories if is_categorical else _as_numbers
        frames = [
            frame.with_columns(convert(schema))
            for frame, schema in zip(frames, schemas, strict=True)
        ]
    return [frame.to_native() for frame in frames]


def _frame(table: Any, name: str) -> Frame:
    frame = as_frame(table, name)
    assert frame is not None, "a data frame"
    return frame


def _type_name(series: Series) -> str:
    """Return the type of a column; it is the same for all sets of categories."""
    if not isinstance(series.dtype, nw.Categorical):
        return str(getattr(series.to_native(), "dtype", series.dtype))
    categories = getattr(getattr(series.to_native(), "dtype", None), "categories", None)
    return f"categories of {getattr(categories, 'dtype', 'strings')}"


def _partial_schema(frame: Any, column: str, number: int, name: str) -> FrameColumns:
    label = f"column {column!r} of partition {number} of {name}"
    selected = frame.get_column(column).to_frame()
    if sparse_columns_of(selected).all():
        native = selected.to_native()
        selected = nw.from_native(native.sparse.to_dense(), eager_only=True)
    return FrameColumns.from_frame(selected, [label])


def _is_categorical(schemas: Sequence[FrameColumns], where: Sequence[str]) -> bool:
    known = [
        (schema.holds_categories(0), at)
        for schema, at in zip(schemas, where, strict=True)
        if schema.has_values(0)
    ]
    column = schemas[0].frame.columns[0]
    return is_categorical_everywhere(
        f"column {column!r}", known or [(schemas[0].holds_categories(0), "")]
    )


def _as_numbers(schema: FrameColumns) -> Series:
    """Return a column as floats, as training reads it."""
    return _series(schema, schema.floats(np.array([0]))[:, 0], nw.Float64)


def _as_categories(schema: FrameColumns) -> Series:
    """Return a column as strings or objects."""
    values = [value for chunk in schema.categories(0) for value in chunk]
    if schema.frame.implementation.is_pandas():
        return _series(schema, _object_array(values), None)
    return _series(schema, values, nw.String)


def _series(schema: FrameColumns, values: Any, dtype: Any) -> Series:
    frame = schema.frame
    series = nw.new_series(frame.columns[0], values, dtype, backend=frame.implementation)
    if frame.implementation.is_pandas():
        native = series.to_native()
        native.index = frame.to_native().index
        return nw.from_native(native, series_only=True)
    return series


# ----------------------------------------------------------------------------------------- by library


def _concat_sparse(tables: list[Any]) -> Any:
    return sparse.vstack(tables, format="csr")


def _concat_pandas(tables: list[Any]) -> Any:
    pandas: Any = sys.modules["pandas"]
    if isinstance(tables[0], pandas.DataFrame):
        return pandas.concat(_with_common_categories(tables), ignore_index=True)
    if isinstance(tables[0].dtype, pandas.CategoricalDtype):
        united = pandas.api.types.union_categoricals(tables)
        return pandas.Series(united, name=tables[0].name)
    return pandas.concat(tables, ignore_index=True)


def _with_common_categories(frames: list[Any]) -> list[Any]:
    # pandas concatenates categorical columns with different categories as objects.
    pandas: Any = sys.modules["pandas"]
    for index, dtype in enumerate(frames[0].dtypes):
        columns = [frame.iloc[:, index] for frame in frames]
        if isinstance(dtype, pandas.CategoricalDtype) and any(c.dtype != dtype for c in columns):
            categories = pandas.api.types.union_categoricals(columns).categories
            frames = [frame.copy(deep=False) for frame in frames]
            for frame, column in zip(frames, columns, strict=True):
                frame.isetitem(index, column.cat.set_categories(categories))
    return frames


def _concat_polars(tables: list[Any]) -> Any:
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    polars: Any = sys.modules["polars"]
    how = "vertical_relaxed" if isinstance(tables[0], polars.DataFrame) else "vertical"
    return polars.concat(tables, how=how)


def _concat_arrow(tables: list[Any]) -> Any:
    pyarrow: Any = sys.modules["pyarrow"]
    return pyarrow.concat_tables(tables, promote_options="permissive")


_CONCAT = {
    "scipy": _concat_sparse,
    "pandas": _concat_pandas,
    "polars": _concat_polars,
    "pyarrow": _concat_arrow,
}
