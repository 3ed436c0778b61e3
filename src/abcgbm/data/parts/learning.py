"""Bins of a table that comes in parts: one reading to learn them, another to code the rows."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.data.binned_table import BinnedTable, seen_levels
from abcgbm.data.categories import Levels
from abcgbm.data.columns import Floats
from abcgbm.data.encoding import Encoding
from abcgbm.data.parts.counts import ColumnCounts, level_digest
from abcgbm.data.parts.parted_table import ChangedTableError, PartedTable
from abcgbm.data.parts.scratch import Scratch
from abcgbm.data.tables import Table

_SHARE = 4  # the part of the memory that the values of a group may take


@dataclass
class LearnedColumns:
    """What is known of the columns of a table.

    Attributes
    ----------
    levels : dict of int to Levels
        The levels of categories.
    thresholds : dict of int to ndarray
        Those between the bins of numbers.
    digests : dict of int to int
        What the first reading made of each column: the second must make the same.
    """

    levels: dict[int, Levels] = field(default_factory=dict)
    thresholds: dict[int, Floats] = field(default_factory=dict)
    digests: dict[int, int] = field(default_factory=dict)

    def encoding(self, table: PartedTable, handle_unknown: str) -> Encoding:
        """Return how such a table becomes numbers."""
        return Encoding(table.schema, dict(sorted(self.levels.items())), handle_unknown)

    def all_thresholds(self, n_features: int) -> tuple[Floats, ...]:
        """Return the thresholds of each feature; those of categories lie between their codes."""
        known = self.thresholds | {f: levels.thresholds() for f, levels in self.levels.items()}
        return tuple(known[feature] for feature in range(n_features))


def learn_columns(
    table: PartedTable,
    weight: NDArray[np.int64],
    max_bins: int,
    most_codes: int,
    n_threads: int,
) -> LearnedColumns:
    """Learn levels and thresholds from the rows of weight above 0, reading each column once."""
    learned, most_bytes = LearnedColumns(), table.large.free_bytes() // _SHARE
    for group in table.groups(most_bytes):
        with closing(Scratch(table.large.cache_dir)) as scratch:
            counts = ColumnCounts(table.kinds(group), n_threads, scratch, most_bytes)
            for first_row, part in table.parts(group):
                rows = slice(first_row, first_row + len(part))
                counts.add(part, weight[rows], first_row)
            _keep(learned, table, group, counts, (max_bins, most_codes))
    return learned


def _keep(
    learned: LearnedColumns,
    table: PartedTable,
    group: NDArray[np.intp],
    counts: ColumnCounts,
    most: tuple[int, int],
) -> None:
    """Cut what was counted of a group of features."""
    labels = {column: table.schema.label(int(feature)) for column, feature in enumerate(group)}
    for column, levels in counts.levels(labels, most[1]).items():
        learned.levels[int(group[column])] = levels
    for column, thresholds in counts.thresholds(most[0]).items():
        learned.thresholds[int(group[column])] = thresholds
    for column, digest in counts.digests().items():
        learned.digests[int(group[column])] = digest


def bin_parts(
    table: PartedTable,
    thresholds: tuple[Floats, ...],
    encoding: Encoding,
    n_threads: int,
    is_seen: NDArray[np.bool_] | None = None,
    digests: dict[int, int] | None = None,
) -> BinnedTable:
    """Code a table, reading each column once; levels of rows that are not seen are missing.

    ``digests`` are those of an earlier reading: other values are an error.
    """
    is_categorical = encoding.schema.is_categorical.astype(np.uint8)
    builder = _core.BinnedBuilder(len(table), thresholds, is_categorical)
    for group in table.groups(table.large.free_bytes() // _SHARE):
        coder = _GroupCoder(builder, encoding, group, n_threads)
        for first_row, part in table.parts(group):
            rows = slice(first_row, first_row + len(part))
            coder.add(part, first_row, None if is_seen is None else is_seen[rows])
        found = coder.settle()
        for feature in group.tolist() if digests else ():
            _check_digest(table, feature, found[feature], digests)
    return BinnedTable(builder.finish(), thresholds, encoding)


class _GroupCoder:
    """Codes some features, part by part."""

    def __init__(
        self,
        builder: _core.BinnedBuilder,
        encoding: Encoding,
        group: NDArray[np.intp],
        n_threads: int,
    ) -> None:
        self._builder, self._encoding, self._n_threads = builder, encoding, n_threads
        is_level = encoding.schema.is_categorical[group]
        self._numeric = np.flatnonzero(~is_level)
        self._categories = {int(c): int(group[c]) for c in np.flatnonzero(is_level)}
        self._features = group[self._numeric].astype(np.int32)
        self._group = group
        self._digests = dict.fromkeys(self._categories.values(), 0)

    def add(self, part: Table, first_row: int, is_seen: NDArray[np.bool_] | None) -> None:
        """Code rows from ``first_row`` on."""
        if len(self._numeric):
            values = part.floats(self._numeric)
            self._builder.add_rows(self._features, values, first_row, self._n_threads)
        for column, feature in self._categories.items():
            codes = self._codes(part, (column, feature), first_row, is_seen)
            number = np.array([feature], dtype=np.int32)
            self._builder.add_rows(number, codes[:, None], first_row, self._n_threads)

    def _codes(
        self,
        part: Table,
        which: tuple[int, int],
        first_row: int,
        is_seen: NDArray[np.bool_] | None,
    ) -> Floats:
        column, feature = which
        levels, unknown = self._encoding.levels[feature], self._encoding.handle_unknown
        row = first_row
        for chunk in part.levels(column):
            self._digests[feature] += level_digest(chunk, row)
            row += len(chunk)
        return levels.codes(seen_levels(part, column, is_seen), unknown)

    def settle(self) -> dict[int, int]:
        """Say that all rows have come; return the digest of each feature."""
        found = self._builder.settle(self._group.astype(np.int32), self._n_threads).tolist()
        digests = dict(zip(self._group.tolist(), found, strict=True))
        return digests | {f: digest % 2**64 for f, digest in self._digests.items()}


def _check_digest(table: PartedTable, feature: int, now: int, before: Any) -> None:
    if now != before[feature]:
        raise ChangedTableError(
            f"{table.schema.label(feature)} of {table.large!r} had other values, or in another "
            "order, when it was read the second time; expected the same rows each time"
        )
