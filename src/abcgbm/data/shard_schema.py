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
    """What the columns of one rank's table are.

    Attributes
    ----------
    schema : Schema
        Their names, and which are categories.
    is_known : ndarray of bool of shape (n_features,)
        Of which columns the rank knows what they are: those that hold anything at all.
    """

    schema: Schema
    is_known: NDArray[np.bool_]

    @classmethod
    def of(cls, table: Table) -> Self:
        """Look at a table."""
        is_known = np.ones(table.shape[1], dtype=bool)
        dense = table.dense
        if isinstance(dense, FrameColumns):
            is_known[~table.is_sparse] = list(map(dense.has_values, range(len(dense.contents))))
        return cls(table.schema, is_known)


def unite_schemas(looks: Sequence[tuple[str, PartialSchema | None]], name: str = "X") -> Schema:
    """Return the columns of all ranks, each given with its name; None: it has no rows.

    What a column is say those ranks that have a value of it.
    """
    seen = [(rank, look) for rank, look in looks if look is not None]
    if not seen:
        raise ValueError(f"{name} has 0 rows on every rank; expected at least 1 on some")
    first_rank, first = seen[0]
    for rank, look in seen[1:]:
        _check_columns(look.schema, rank, first.schema, first_rank)
    n_features = len(first.is_known)
    is_categorical = np.array([_is_categorical(seen, f) for f in range(n_features)], dtype=bool)
    return Schema(is_categorical, first.schema.feature_names)


def _check_columns(mine: Schema, rank: str, first: Schema, first_rank: str) -> None:
    shown, expected = _shown(mine), _shown(first)
    if shown != expected:
        raise ValueError(
            f"the columns of {rank} are {shown}; expected those of {first_rank}: {expected}"
        )


def _shown(schema: Schema) -> str:
    names = schema.feature_names
    return f"{len(schema.is_categorical)} without names" if names is None else str(names.tolist())


def _is_categorical(seen: Sequence[tuple[str, PartialSchema]], feature: int) -> bool:
    said = [(bool(look.schema.is_categorical[feature]), f"on {rank}") for rank, look in seen]
    known = [of for of, (_, look) in zip(said, seen, strict=True) if look.is_known[feature]]
    if not known:
        return any(of for of, _ in said)
    return is_categorical_everywhere(seen[0][1].schema.label(feature), known)


def is_categorical_everywhere(column: str, said: Sequence[tuple[bool, str]]) -> bool:
    """Tell whether a column holds levels, not numbers; it must be the same at all places.

    ``said`` are pairs of whether it does, and where.
    """
    if len({of for of, _ in said}) == 1:
        return said[0][0]
    levels, numbers = (next(at for of, at in said if of is wanted) for wanted in (True, False))
    raise TypeError(
        f"{column} holds strings or categories {levels}, and numbers {numbers}; expected one of the "
        "two"
    )


def empty_table(schema: Schema) -> Table:
    """Return a table of these columns without rows."""
    n_features = len(schema.is_categorical)
    nowhere = np.zeros(n_features, dtype=bool)
    return Table(schema, 0, nowhere, ArrayColumns(np.empty((0, n_features))))
