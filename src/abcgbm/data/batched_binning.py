"""From batches to a binned table, out of core."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.data.arrays import Floats
from abcgbm.data.binned_table import BinnedTable, ColumnEncoder, seen_categories
from abcgbm.data.categories import CategoryMap
from abcgbm.data.counting import ColumnCounts, Scratch, category_digest
from abcgbm.data.files.batched_table import BatchedTable
from abcgbm.data.files.large_table import ChangedTableError
from abcgbm.data.schema import Kind
from abcgbm.data.table import Table

_SHARE = 4  # the part of the memory that the values of a group may take
_BYTES_OF_A_VALUE = 24  # read, as floats, and in buckets

Group = NDArray[np.intp]  # features that are read together


@dataclass(frozen=True)
class Learning:
    """What is learned of which rows.

    Attributes
    ----------
    weight : ndarray of int64 of shape (n_rows,)
        Weights of the rows; 0 for those that are not learned from.
    is_seen : ndarray of bool of shape (n_rows,), or None
        Of which rows levels are looked at when they are coded; None: of all.
    max_bins, most_codes : int
        Most bins of a number, and most codes of a category.
    handle_unknown : {"missing", "error"}
        What a level is that was not learned, once the model is asked.
    n_threads : int
        Number of threads.
    known : dict of int to CategoryMap, or None
        Levels that are known already; None: they are learned.
    """

    weight: NDArray[np.int64]
    is_seen: NDArray[np.bool_] | None
    max_bins: int
    most_codes: int
    handle_unknown: str
    n_threads: int
    known: dict[int, CategoryMap] | None = None

    def seen(self, rows: slice) -> NDArray[np.bool_] | None:
        """Tell which of some rows are seen; None: all."""
        return None if self.is_seen is None else self.is_seen[rows]


@dataclass
class _Bins:
    """The levels and thresholds that are known so far."""

    levels: dict[int, CategoryMap] = field(default_factory=dict)
    thresholds: dict[int, Floats] = field(default_factory=dict)

    def add_levels(self, levels: dict[int, CategoryMap]) -> None:
        self.levels |= levels
        self.thresholds |= {f: of.thresholds() for f, of in levels.items()}

    def tell(self, builder: _core.BinnedBuilder, group: Group) -> None:
        for feature in group.tolist():
            builder.set_thresholds(feature, self.thresholds[feature])


def learn_and_bin(table: BatchedTable, how: Learning) -> BinnedTable:
    """Learn bins from rows, and code all rows."""
    is_categorical = table.schema.is_categorical
    storage = table.storage_of_codes()
    builder = _core.BinnedBuilder(len(table), None, is_categorical.astype(np.uint8), storage)
    bins, free = _Bins(), table.large.free_bytes() // _SHARE
    for group in table.groups(free, _BYTES_OF_A_VALUE, how.n_threads):
        if table.fits(group, free, _BYTES_OF_A_VALUE):
            _read_once(table, group, how, bins, builder)
        else:
            _read_twice(table, group, how, bins, builder)
    encoding = ColumnEncoder(table.schema, dict(sorted(bins.levels.items())), how.handle_unknown)
    thresholds = tuple(bins.thresholds[feature] for feature in range(table.shape[1]))
    return BinnedTable(builder.finish(), thresholds, encoding)


def bin_like(
    table: BatchedTable,
    other: BinnedTable,
    n_threads: int,
    is_seen: NDArray[np.bool_] | None = None,
) -> BinnedTable:
    """Code a table by the bins of another; levels of rows that are not seen are missing."""
    is_categorical = other.schema.is_categorical.astype(np.uint8)
    storage = table.storage_of_codes()
    builder = _core.BinnedBuilder(len(table), other.thresholds, is_categorical, storage)
    free = table.large.free_bytes() // _SHARE
    for group in table.groups(free, _BYTES_OF_A_VALUE, n_threads):
        coder = _Coder(builder, group, other.encoding.levels, other.encoding.handle_unknown)
        for first_row, part in table.parts(group):
            rows = slice(first_row, first_row + len(part))
            coder.add(part, first_row, None if is_seen is None else is_seen[rows], n_threads)
        coder.settle(n_threads)
    return BinnedTable(builder.finish(), other.thresholds, other.encoding)


# ----------------------------------------------------------------------------------- whole columns


def _read_once(
    table: BatchedTable,
    group: Group,
    how: Learning,
    bins: _Bins,
    builder: _core.BinnedBuilder,
) -> None:
    """Learn and code columns that are in memory, all rows of them."""
    whole = table.whole(group)
    numeric = whole.features(Kind.NUMERIC)
    bins.add_levels(_levels_of(table, group, whole, how))
    values = whole.floats(numeric)
    found = _core.find_thresholds(values, how.weight, how.max_bins, how.n_threads)
    bins.thresholds |= dict(zip(group[numeric].tolist(), found, strict=True))
    bins.tell(builder, group)
    builder.add_block(group[numeric].astype(np.int32), values, how.n_threads)
    for column in whole.features(Kind.CATEGORICAL).tolist():
        codes = bins.levels[int(group[column])].codes(seen_categories(whole, column, how.is_seen))
        number = group[column : column + 1].astype(np.int32)
        builder.add_block(number, codes[:, None], how.n_threads)


def _levels_of(
    table: BatchedTable, group: Group, whole: Table, how: Learning
) -> dict[int, CategoryMap]:
    columns = whole.features(Kind.CATEGORICAL).tolist()
    if how.known is not None:
        return {int(group[c]): how.known[int(group[c])] for c in columns}
    is_learned = None if how.weight.all() else how.weight > 0
    return {
        int(group[c]): CategoryMap.learn(
            table.schema.label(int(group[c])),
            seen_categories(whole, c, is_learned),
            how.weight,
            how.most_codes,
        )
        for c in columns
    }


# ------------------------------------------------------------------------------------ part by part


def _read_twice(
    table: BatchedTable,
    group: Group,
    how: Learning,
    bins: _Bins,
    builder: _core.BinnedBuilder,
) -> None:
    """Count the values of columns part by part, then read them again and code them."""
    digests = _count(table, group, how, bins)
    bins.tell(builder, group)
    coder = _Coder(builder, group, bins.levels, "missing")
    for first_row, part in table.parts(group):
        rows = slice(first_row, first_row + len(part))
        coder.add(part, first_row, how.seen(rows), how.n_threads)
    for column, (now, before) in enumerate(zip(coder.settle(how.n_threads), digests, strict=True)):
        if now != before:
            raise ChangedTableError(
                f"{table.schema.label(int(group[column]))} of {table.large!r} had other values, or in "
                "another order, when it was read the second time; expected the same rows each time"
            )


def _count(table: BatchedTable, group: Group, how: Learning, bins: _Bins) -> list[int]:
    """Learn the bins of columns; return what the rows made of each of them."""
    with closing(Scratch(table.large.cache_dir)) as scratch:
        max_bytes = table.large.free_bytes() // _SHARE
        counts = ColumnCounts(table.kinds(group), how.n_threads, scratch, max_bytes)
        for first_row, part in table.parts(group):
            rows = slice(first_row, first_row + len(part))
            counts.add(part, how.weight[rows], first_row)
        names = {c: table.schema.label(int(feature)) for c, feature in enumerate(group)}
        levels = counts.levels(names, how.most_codes)
        bins.add_levels(
            {int(group[c]): (how.known or {}).get(int(group[c]), of) for c, of in levels.items()}
        )
        found = counts.thresholds(how.max_bins)
        bins.thresholds |= {int(group[c]): thresholds for c, thresholds in found.items()}
        digests = counts.digests()
    return [digests[column] for column in range(len(group))]


class _Coder:
    """Codes some features, part by part.

    Parameters
    ----------
    builder : _core.BinnedBuilder
        Where the codes go; it knows the thresholds.
    group : ndarray of int
        The features.
    levels : dict of int to CategoryMap
        The levels of those that are categories.
    handle_unknown : {"missing", "error"}
        What a level is that is not among these.
    """

    def __init__(
        self,
        builder: _core.BinnedBuilder,
        group: Group,
        levels: dict[int, CategoryMap],
        handle_unknown: str,
    ) -> None:
        self._builder, self._group = builder, group
        self._levels, self._handle_unknown = levels, handle_unknown
        self._numeric = np.array([c for c, f in enumerate(group) if int(f) not in levels], np.intp)
        self._digests = {c: 0 for c, f in enumerate(group) if int(f) in levels}

    def add(
        self, part: Table, first_row: int, is_seen: NDArray[np.bool_] | None, n_threads: int
    ) -> None:
        """Code rows from ``first_row`` on."""
        if len(self._numeric):
            features = self._group[self._numeric].astype(np.int32)
            self._builder.add_rows(features, part.floats(self._numeric), first_row, n_threads)
        for column in self._digests:
            self._digest(part, column, first_row)
            levels = self._levels[int(self._group[column])]
            codes = levels.codes(seen_categories(part, column, is_seen), self._handle_unknown)
            number = self._group[column : column + 1].astype(np.int32)
            self._builder.add_rows(number, codes[:, None], first_row, n_threads)

    def _digest(self, part: Table, column: int, first_row: int) -> None:
        for chunk in part.levels(column):
            self._digests[column] += category_digest(chunk, first_row)
            first_row += len(chunk)

    def settle(self, n_threads: int) -> list[int]:
        """Say that all rows have come; return what they made of each column."""
        found = self._builder.finish_features(self._group.astype(np.int32), n_threads).tolist()
        return [self._digests.get(c, of_codes) % 2**64 for c, of_codes in enumerate(found)]
