"""The numbers that trees compare: values as they are, and codes for the levels of categories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abcgbm.data.categories import Levels
from abcgbm.data.columns import ArrayColumns, Floats, chunks
from abcgbm.data.tables import Schema, Table, read_table_like

CHUNK_BYTES = 2**26  # of numbers made for prediction at a time


@dataclass(frozen=True)
class Encoding:
    """How a table becomes numbers, as learned from an earlier one.

    Attributes
    ----------
    schema : Schema
        The columns a table must have.
    levels : dict of int to Levels
        The levels of each categorical feature, and their codes.
    handle_unknown : {"missing", "error"}
        What a level is that was not learned.
    """

    schema: Schema
    levels: dict[int, Levels]
    handle_unknown: str = "missing"

    def check(self) -> None:
        """Raise a ValueError unless levels, names and kinds of features fit each other."""
        self.schema.check()
        if [*self.levels] != np.flatnonzero(self.schema.is_categorical).tolist():
            raise ValueError(
                f"levels of features {[*self.levels]}; expected those of the categorical ones"
            )
        for levels in self.levels.values():
            levels.check()
        if self.handle_unknown not in ("missing", "error"):
            raise ValueError(
                f"handle_unknown={self.handle_unknown!r}; expected 'missing' or 'error'"
            )

    def for_model(self) -> Encoding:
        """Return a copy that has not warned yet, because each model warns once."""
        levels = {feature: replace(of) for feature, of in self.levels.items()}
        return replace(self, schema=replace(self.schema), levels=levels)

    def n_codes(self) -> NDArray[np.int64]:
        """Return the number of codes of each feature; 0 for numbers."""
        n_codes = np.zeros(len(self.schema.is_categorical), dtype=np.int64)
        for feature, levels in self.levels.items():
            n_codes[feature] = levels.n_codes
        return n_codes

    def read(self, X: Any, owner: str, name: str = "X") -> Table:
        """Return a table of the learned columns; errors speak of its owner, and call it by name."""
        if not isinstance(X, Table):
            return read_table_like(X, self.schema, owner, name)
        if not X.schema.is_same(self.schema):
            raise ValueError(
                f"{name} is a Table of other columns; expected those that were learned"
            )
        return X

    def codes(self, table: Table, feature: int) -> Floats:
        """Return the codes of a categorical feature, of shape (n_rows,); NaN is missing."""
        return self.levels[feature].codes(table.levels(feature), self.handle_unknown)

    def check_unused(self, table: Table, used_features: NDArray[np.intp]) -> None:
        """Raise a TypeError if a category that is not coded has another type than the learned one."""
        for feature in sorted(self.levels.keys() - {*used_features.tolist()}):
            self.levels[feature].check_type(table.levels(feature))

    def matrix(self, table: Table, features: ArrayLike) -> Floats:
        """Return features as numbers, C-contiguous, of shape (n_rows, len(features))."""
        wanted = np.asarray(features, dtype=np.intp)
        categorical = self.schema.is_categorical[wanted]
        values = np.empty((len(table), len(wanted)))
        table.write(values, np.flatnonzero(~categorical), wanted[~categorical])
        for column in np.flatnonzero(categorical):
            values[:, column] = self.codes(table, int(wanted[column]))
        return values

    def is_matrix(self, table: Table) -> bool:
        """Whether a table is a C-contiguous array of floats already."""
        if not isinstance(table.dense, ArrayColumns) or self.schema.is_categorical.any():
            return False
        values = table.dense.values
        is_plain = values.flags.c_contiguous and values.flags.aligned
        return is_plain and values.dtype == np.float64 and values.shape == table.shape

    def chunks(
        self, table: Table, features: ArrayLike | None = None
    ) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of rows, and some or all features of them as ``matrix`` gives them.

        A chunk is of bounded size, but an array that needs no change comes in one piece.
        """
        if features is None and isinstance(table.dense, ArrayColumns) and self.is_matrix(table):
            yield slice(0, len(table)), table.dense.values
            return
        wanted = np.arange(table.shape[1]) if features is None else np.asarray(features, np.intp)
        for rows in row_chunks(len(table), len(wanted)):
            whole = rows == slice(0, len(table))
            yield rows, self.matrix(table if whole else table.take(rows), wanted)


def row_chunks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Cut rows into slices of which the numbers take about ``CHUNK_BYTES``."""
    return chunks(n_rows, max(1, CHUNK_BYTES // (8 * max(1, n_columns))))
