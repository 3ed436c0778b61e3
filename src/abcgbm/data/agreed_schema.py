"""The columns that the tables of all ranks have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.columns import ArrayColumns
from abcgbm.data.frames import NOTHING, FrameColumns
from abcgbm.data.tables import Schema, Table


class Look(NamedTuple):
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
        if isinstance(table.dense, FrameColumns):
            is_known[~table.is_sparse] = [of not in NOTHING for of in table.dense.contents]
        return cls(table.schema, is_known)


def agreed_schema(looks: Sequence[Look | None], name: str = "X") -> Schema:
    """Return the columns of all ranks, by rank; None stands for one that has no rows.

    What a column is say those ranks that have a value of it.
    """
    seen = [(rank, look) for rank, look in enumerate(looks) if look is not None]
    if not seen:
        raise ValueError(f"{name} has 0 rows on every rank; expected at least 1 on some")
    first_rank, first = seen[0]
    for rank, look in seen[1:]:
        _check_columns(look.schema, rank, first.schema, first_rank)
    n_features = len(first.is_known)
    is_categorical = np.array([_is_categorical(seen, f) for f in range(n_features)], dtype=bool)
    return Schema(is_categorical, first.schema.feature_names)


def _check_columns(mine: Schema, rank: int, first: Schema, first_rank: int) -> None:
    shown, expected = _shown(mine), _shown(first)
    if shown != expected:
        raise ValueError(
            f"the columns of rank {rank} are {shown}; expected those of rank {first_rank}: {expected}"
        )


def _shown(schema: Schema) -> str:
    names = schema.feature_names
    return f"{len(schema.is_categorical)} without names" if names is None else str(names.tolist())


def _is_categorical(seen: Sequence[tuple[int, Look]], feature: int) -> bool:
    said = [(bool(look.schema.is_categorical[feature]), rank) for rank, look in seen]
    known = [of for of, (_, look) in zip(said, seen, strict=True) if look.is_known[feature]]
    if len({of for of, _ in known}) < 2:  # noqa: PLR2004
        return any(of for of, _ in known or said)
    levels, numbers = (next(rank for of, rank in known if of is wanted) for wanted in (True, False))
    raise TypeError(
        f"{seen[0][1].schema.label(feature)} holds strings or categories on rank {levels}, and "
        f"numbers on rank {numbers}; expected one of the two"
    )


def empty_table(schema: Schema) -> Table:
    """Return a table of these columns without rows."""
    n_features = len(schema.is_categorical)
    nowhere = np.zeros(n_features, dtype=bool)
    return Table(schema, 0, nowhere, ArrayColumns(np.empty((0, n_features))))
