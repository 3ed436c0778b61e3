"""Partitions that lie on one worker, put together."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import sparse

from abcgbm.distributed.column_kinds import Numbered, alike_arrays, alike_frames, alike_labels


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


def form_of(table: Any) -> str:
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
