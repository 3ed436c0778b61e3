"""Partitions of one worker concatenated, and kinds of columns over all workers."""

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

Numbered = Sequence[tuple[int, Any]]


def alike_frames(parts: Numbered, name: str) -> list[Any]:
    """Return data frames whose columns have the same types, if they may be joined; else raise."""
    frames = [_frame(part, name) for _, part in parts]
    differ = [column for column in frames[0].columns if _differs(column, frames)]
    for column in differ:
        looks = [
            _partial_schema(frame, column, number, name)
            for frame, (number, _) in _with(frames, parts)
        ]
        is_levels = _holds_levels(
            looks, [f"in partition {number} of {name}" for number, _ in parts]
        )
        frames = [
            frame.with_columns(_as_levels(look) if is_levels else _as_numbers(look))
            for frame, look in _with(frames, looks)
        ]
    return [frame.to_native() for frame in frames]


def alike_labels(parts: Sequence[Any]) -> list[Any]:
    """Return labels as objects where their types differ, so that each stays what it is."""
    return list(parts) if len(set(map(_kind, parts))) == 1 else list(map(_objects, parts))


def alike_arrays(parts: Sequence[Any]) -> list[Any]:
    """Return arrays as objects where NumPy would make strings of numbers."""
    return list(parts) if set(map(_kind, parts)) <= {*REAL_KINDS} else alike_labels(parts)


# ----------------------------------------------------------------------------------------- data frames


def _frame(part: Any, name: str) -> Frame:
    frame = as_frame(part, name)
    assert frame is not None, "a data frame"
    return frame


def _with(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(zip(one, other, strict=True))


def _differs(column: str, frames: Sequence[Any]) -> bool:
    """Whether a column has types that cannot be joined as they are."""
    return len({_type_of(frame.get_column(column)) for frame in frames}) > 1


def _type_of(series: Series) -> str:
    """Say what a column is made for; categories of other levels are the same."""
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


def _holds_levels(looks: Sequence[FrameColumns], where: Sequence[str]) -> bool:
    known = [
        (look.holds_categories(0), at) for look, at in _with(looks, where) if look.has_values(0)
    ]
    column = looks[0].frame.columns[0]
    return is_categorical_everywhere(
        f"column {column!r}", known or [(looks[0].holds_categories(0), "")]
    )


def _as_numbers(look: FrameColumns) -> Series:
    """Return a column as the floats that training makes of it."""
    return _series(look, look.floats(np.array([0]))[:, 0], nw.Float64)


def _as_levels(look: FrameColumns) -> Series:
    """Return a column as strings, or as objects that are levels; one without values is missing."""
    levels = [level for chunk in look.categories(0) for level in chunk]
    is_pandas = look.frame.implementation.is_pandas()
    values = _object_array(levels) if is_pandas else levels
    return _series(look, values, None if is_pandas else nw.String)


def _series(look: FrameColumns, values: Any, dtype: Any) -> Series:
    frame = look.frame
    made = nw.new_series(frame.columns[0], values, dtype, backend=frame.implementation)
    if frame.implementation.is_pandas():
        native = made.to_native()
        native.index = frame.to_native().index
        return nw.from_native(native, series_only=True)
    return made


# ---------------------------------------------------------------------------------------------- labels


def _kind(labels: Any) -> str:
    kind = getattr(labels.dtype, "kind", None)
    categories = getattr(labels.dtype, "categories", None)
    if categories is not None:
        return f"categories of {getattr(categories, 'dtype', '')}"
    return str(labels.dtype) if kind is None else kind


def _objects(labels: Any) -> Any:
    if hasattr(labels, "astype"):
        return labels.astype(object)
    return _object_array(labels.to_list())


def _object_array(values: list[Any]) -> Any:
    return np.fromiter(values, dtype=object, count=len(values))


def join(parts: Numbered, name: str) -> Any:
    """Put parts of a table or column together, each given with the number of its partition."""
    _check_types(parts, name)
    full = [numbered for numbered in parts if numbered[1].shape[0]] or list(parts[:1])
    first = full[0][1]
    _check_columns(full, name)
    if len(full) == 1:
        return first
    library = type(first).__module__.partition(".")[0]
    return _JOIN.get(library, _joined_arrays)(_alike(full, name))


def _alike(parts: Numbered, name: str) -> list[Any]:
    """Return parts of types that can be joined to what all of them would be on ranks of their own."""
    tables, first = [part for _, part in parts], parts[0][1]
    if sparse.issparse(first):
        return tables
    if hasattr(first, "columns"):
        return tables if name.startswith("y") else alike_frames(parts, name)
    return alike_labels(tables) if name.startswith("y") else alike_arrays(tables)


def no_rows_of(table: Any) -> Any:
    """Return a table without rows that is otherwise like another."""
    if type(table).__module__.startswith("scipy"):
        table = table.tocsr()
    return table.slice(0, 0) if type(table).__module__.startswith("pyarrow") else table[:0]


def table_kind_of(table: Any) -> str:
    """Say what a table is, and which columns it has."""
    return f"a {_type(table).__name__} with the columns {_columns(table)}"


def _check_types(parts: Numbered, name: str) -> None:
    number, first = parts[0]
    for other, part in parts:
        if _type(part) is not _type(first):
            raise TypeError(
                f"partition {other} of {name} is a {type(part).__name__}, partition {number} a "
                f"{type(first).__name__}; expected one type"
            )


def _type(part: Any) -> type:
    """Sparse matrices of all forms are joined."""
    return sparse.spmatrix if sparse.issparse(part) else type(part)


def _check_columns(parts: Numbered, name: str) -> None:
    number, first = parts[0]
    for other, part in parts:
        if _columns(part) != _columns(first):
            raise ValueError(
                f"partition {other} of {name} has the columns {_columns(part)}, partition {number} "
                f"{_columns(first)}; expected the same"
            )


def _columns(part: Any) -> Any:
    if hasattr(part, "column_names"):  # of Arrow, whose columns are the values
        return list(part.column_names)
    names = getattr(part, "columns", None)
    return list(range(_width(part))) if names is None else list(names)


def _width(part: Any) -> int:
    return int(part.shape[1]) if len(part.shape) > 1 else 0


# ------------------------------------------------------------------------------------- kinds of tables


def _joined_arrays(parts: list[Any]) -> Any:
    return np.concatenate(parts)


def _joined_sparse(parts: list[Any]) -> Any:
    return sparse.vstack(parts, format="csr")


def _joined_pandas(parts: list[Any]) -> Any:
    pandas: Any = sys.modules["pandas"]
    if isinstance(parts[0], pandas.DataFrame):
        return pandas.concat(_with_common_levels(parts), ignore_index=True)
    if isinstance(parts[0].dtype, pandas.CategoricalDtype):
        united = pandas.api.types.union_categoricals(parts)
        return pandas.Series(united, name=parts[0].name)
    return pandas.concat(parts, ignore_index=True)


def _with_common_levels(frames: list[Any]) -> list[Any]:
    """Give categories the same levels in all frames: else they would be joined as objects."""
    pandas: Any = sys.modules["pandas"]
    for place, dtype in enumerate(frames[0].dtypes):
        columns = [frame.iloc[:, place] for frame in frames]
        if isinstance(dtype, pandas.CategoricalDtype) and any(c.dtype != dtype for c in columns):
            levels = pandas.api.types.union_categoricals(columns).categories
            frames = [frame.copy(deep=False) for frame in frames]
            for frame, column in zip(frames, columns, strict=True):
                frame.isetitem(place, column.cat.set_categories(levels))
    return frames


def _joined_polars(parts: list[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    polars: Any = sys.modules["polars"]
    how = "vertical_relaxed" if isinstance(parts[0], polars.DataFrame) else "vertical"
    return polars.concat(parts, how=how)


def _joined_arrow(parts: list[Any]) -> Any:
    pyarrow: Any = sys.modules["pyarrow"]
    return pyarrow.concat_tables(parts, promote_options="permissive")


_JOIN = {
    "scipy": _joined_sparse,
    "pandas": _joined_pandas,
    "polars": _joined_polars,
    "pyarrow": _joined_arrow,
}
