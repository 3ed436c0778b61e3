"""One schema for the tables of all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.arrays import ArrayColumns
from abcgbm.data.frames import FrameColumns
from abcgbm.data.schema import Schema
from abcgbm.data.table import Table


class PartialSchema(NamedTuple):
    """Schema of the table of one rank, where some columns may have no values.

    Attributes
    ----------
    schema : Schema
        Names and kinds of the columns.
    is_known : ndarray of bool of shape (n_features,)
        Mask of the columns with at least one value, whose kind is thus certain.
    """

    schema: Schema
    is_known: NDArray[np.bool_]

    @classmethod
    def of(cls, table: Table) -> Self:
        """Return the schema of a table."""
        is_known = np.ones(table.shape[1], dtype=bool)
        dense = table.dense
        if isinstance(dense, FrameColumns):
            is_known[~table.is_sparse] = list(map(dense.has_values, range(len(dense.contents))))
        return cls(table.schema, is_known)


def unite_schemas(schemas: Sequence[tuple[str, PartialSchema | None]], name: str = "X") -> Schema:
    """Return the schema of all ranks.

    The kind of a column is decided by the ranks that have a value of it.

    Parameters
    ----------
    schemas : sequence of (str, PartialSchema or None)
        Name and schema of each rank; None if the rank has no rows.
    name : str
        Name of the table in errors.
    """
    present = [(rank, partial) for rank, partial in schemas if partial is not None]
    if not present:
        raise ValueError(f"{name} has 0 rows on every rank; expected at least 1 on some")
    first_rank, first = present[0]
    for rank, partial in present[1:]:
        _check_columns(partial.schema, rank, first.schema, first_rank)
    n_features = len(first.is_known)
    is_categorical = np.array([_is_categorical(present, f) for f in range(n_features)], dtype=bool)
    return Schema(is_categorical, first.schema.feature_names)


def _check_columns(mine: Schema, rank: str, first: Schema, first_rank: str) -> None:
    given, expected = _described(mine), _described(first)
    if given != expected:
        raise ValueError(
            f"the columns of {rank} are {given}; expected those of {first_rank}: {expected}"
        )


def _described(schema: Schema) -> str:
    names = schema.feature_names
    return f"{len(schema.is_categorical)} without names" if names is None else str(names.tolist())


def _is_categorical(present: Sequence[tuple[str, PartialSchema]], feature: int) -> bool:
    found = [
        (bool(partial.schema.is_categorical[feature]), f"on {rank}") for rank, partial in present
    ]
    known = [
        of for of, (_, partial) in zip(found, present, strict=True) if partial.is_known[feature]
    ]
    if not known:
        return any(of for of, _ in found)
    return is_categorical_everywhere(present[0][1].schema.label(feature), known)


def is_categorical_everywhere(column: str, found: Sequence[tuple[bool, str]]) -> bool:
    """Return whether a column is categorical, which must be the same everywhere.

    Parameters
    ----------
    column : str
        Name of the column in errors.
    found : sequence of (bool, str)
        Whether it is categorical, and where (for errors).
    """
    if len({of for of, _ in found}) == 1:
        return found[0][0]
    categories, numbers = (next(at for of, at in found if of is wanted) for wanted in (True, False))
    raise TypeError(
        f"{column} holds strings or categories {categories}, but numbers {numbers}; expected one "
        "of the two"
    )


def empty_table(schema: Schema) -> Table:
    """Return a table without rows."""
    n_features = len(schema.is_categorical)
    nowhere = np.zeros(n_features, dtype=bool)
    return Table(schema, 0, nowhere, ArrayColumns(np.empty((0, n_features))))
