"""What the columns of partitions hold, so that they can be joined on one worker as they train on two.

The rule is that of ``agreed_schema``: a column holds numbers everywhere, or levels everywhere; of one
that has no values in a partition the others say what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from abcgbm.data.agreed_schema import are_levels
from abcgbm.data.cells import REAL_KINDS
from abcgbm.data.frames import Frame, FrameColumns, Series, as_frame, sparse_columns_of

Numbered = Sequence[tuple[int, Any]]


def alike_frames(parts: Numbered, name: str) -> list[Any]:
    """Return data frames whose columns have the same types, if they may be joined; else raise."""
    frames = [_frame(part, name) for _, part in parts]
    differ = [column for column in frames[0].columns if _differs(column, frames)]
    for column in differ:
        looks = [_look(frame, column, number, name) for frame, (number, _) in _with(frames, parts)]
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


def _look(frame: Any, column: str, number: int, name: str) -> FrameColumns:
    label = f"column {column!r} of partition {number} of {name}"
    selected = frame.get_column(column).to_frame()
    if sparse_columns_of(selected).all():
        native = selected.to_native()
        selected = nw.from_native(native.sparse.to_dense(), eager_only=True)
    return FrameColumns.from_frame(selected, [label])


def _holds_levels(looks: Sequence[FrameColumns], where: Sequence[str]) -> bool:
    known = [(look.holds_levels(0), at) for look, at in _with(looks, where) if look.has_values(0)]
    column = looks[0].frame.columns[0]
    return are_levels(f"column {column!r}", known or [(looks[0].holds_levels(0), "")])


def _as_numbers(look: FrameColumns) -> Series:
    """Return a column as the floats that training makes of it."""
    return _series(look, look.floats(np.array([0]))[:, 0], nw.Float64)


def _as_levels(look: FrameColumns) -> Series:
    """Return a column as strings, or as objects that are levels; one without values is missing."""
    levels = [level for chunk in look.levels(0) for level in chunk]
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
