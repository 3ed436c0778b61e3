"""Binning of a `BatchedTable`, whose columns need not fit into memory."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.data.arrays import Floats
from abcgbm.data.binned_table import BinnedTable, ColumnEncoder, masked_categories
from abcgbm.data.categories import CategoryMap
from abcgbm.data.counting import ColumnCounts, Scratch, category_digest
from abcgbm.data.files.batched_table import BatchedTable
from abcgbm.data.files.large_table import ChangedTableError
from abcgbm.data.schema import Kind
from abcgbm.data.table import Table

_FRACTION = 4  # a group of columns may take one fourth of the memory budget
_BYTES_PER_VALUE = 24  # as read, as a float, and in a bucket of the quantile search

Group = NDArray[np.intp]  # features that are read in the same pass


@dataclass(frozen=True)
class BatchedBinning:
    """How a table is binned out of core.

    Attributes
    ----------
    weight : ndarray of int64 of shape (n_rows,)
        Weights of the rows; bins are learned from rows with a weight above 0.
    is_encoded : ndarray of bool of shape (n_rows,), or None
        Rows whose categories are encoded; they are missing in all others. None: all rows.
    max_bins, max_codes : int
        Maximum number of bins of a numeric feature, and of codes of a categorical one.
    handle_unknown : {"missing", "error"}
        How the fitted model treats unknown categories.
    n_threads : int
        Number of threads.
    known : dict of int to CategoryMap, or None
        Categories of an earlier fit, which are kept; None: learn them.
    """

    weight: NDArray[np.int64]
    is_encoded: NDArray[np.bool_] | None
    max_bins: int
    max_codes: int
    handle_unknown: str
    n_threads: int
    known: dict[int, CategoryMap] | None = None

    def encoded(self, rows: slice) -> NDArray[np.bool_] | None:
        """Return `is_encoded` of some rows."""
        return None if self.is_encoded is None else self.is_encoded[rows]


@dataclass
class _LearnedBins:
    """Categories and thresholds of the features binned so far."""

    categories: dict[int, CategoryMap] = field(default_factory=dict)
    thresholds: dict[int, Floats] = field(default_factory=dict)

    def add_categories(self, categories: dict[int, CategoryMap]) -> None:
        self.categories |= categories
        self.thresholds |= {f: of.thresholds() for f, of in categories.items()}

    def set_thresholds(self, builder: _core.BinnedBuilder, group: Group) -> None:
        for feature in group.tolist():
            builder.set_thresholds(feature, self.thresholds[feature])


def learn_and_bin(table: BatchedTable, binning: BatchedBinning) -> BinnedTable:
    """Learn the bins of all features, and encode all rows."""
    is_categorical = table.schema.is_categorical
    storage = table.storage_of_codes()
    builder = _core.BinnedBuilder(len(table), None, is_categorical.astype(np.uint8), storage)
    bins, max_bytes = _LearnedBins(), table.large.free_bytes() // _FRACTION
    for group in table.groups(max_bytes, _BYTES_PER_VALUE, binning.n_threads):
        if table.fits(group, max_bytes, _BYTES_PER_VALUE):
            _bin_in_memory(table, group, binning, bins, builder)
        else:
            _bin_in_two_passes(table, group, binning, bins, builder)
    encoding = ColumnEncoder(
        table.schema, dict(sorted(bins.categories.items())), binning.handle_unknown
    )
    thresholds = tuple(bins.thresholds[feature] for feature in range(table.shape[1]))
    return BinnedTable(builder.finish(), thresholds, encoding)


def bin_like(
    table: BatchedTable,
    other: BinnedTable,
    n_threads: int,
    is_encoded: NDArray[np.bool_] | None = None,
) -> BinnedTable:
    """Encode a table with the bins of another; rows outside ``is_encoded`` get missing categories."""
    is_categorical = other.schema.is_categorical.astype(np.uint8)
    storage = table.storage_of_codes()
    builder = _core.BinnedBuilder(len(table), other.thresholds, is_categorical, storage)
    max_bytes = table.large.free_bytes() // _FRACTION
    for group in table.groups(max_bytes, _BYTES_PER_VALUE, n_threads):
        encoder = _BatchEncoder(
            builder, group, other.encoding.categories, other.encoding.handle_unknown
        )
        for first_row, batch in table.batches(group):
            rows = slice(first_row, first_row + len(batch))
            encoder.add(
                batch, first_row, None if is_encoded is None else is_encoded[rows], n_threads
            )
        encoder.finish(n_threads)
    return BinnedTable(builder.finish(), other.thresholds, other.encoding)


# --------------------------------------------------------------------------- columns in memory


def _bin_in_memory(
    table: BatchedTable,
    group: Group,
    binning: BatchedBinning,
    bins: _LearnedBins,
    builder: _core.BinnedBuilder,
) -> None:
    """Learn and encode a group of columns that fits into memory."""
    whole = table.whole(group)
    numeric = whole.features(Kind.NUMERIC)
    bins.add_categories(_categories_of(table, group, whole, binning))
    values = whole.floats(numeric)
    found = _core.find_thresholds(values, binning.weight, binning.max_bins, binning.n_threads)
    bins.thresholds |= dict(zip(group[numeric].tolist(), found, strict=True))
    bins.set_thresholds(builder, group)
    builder.add_block(group[numeric].astype(np.int32), values, binning.n_threads)
    for column in whole.features(Kind.CATEGORICAL).tolist():
        codes = bins.categories[int(group[column])].codes(
            masked_categories(whole, column, binning.is_encoded)
        )
        number = group[column : column + 1].astype(np.int32)
        builder.add_block(number, codes[:, None], binning.n_threads)


def _categories_of(
    table: BatchedTable, group: Group, whole: Table, binning: BatchedBinning
) -> dict[int, CategoryMap]:
    columns = whole.features(Kind.CATEGORICAL).tolist()
    if binning.known is not None:
        return {int(group[c]): binning.known[int(group[c])] for c in columns}
    is_learned = None if binning.weight.all() else binning.weight > 0
    return {
        int(group[c]): CategoryMap.learn(
            table.schema.label(int(group[c])),
            masked_categories(whole, c, is_learned),
            binning.weight,
            binning.max_codes,
        )
        for c in columns
    }


# ------------------------------------------------------------------------------ batch by batch


def _bin_in_two_passes(
    table: BatchedTable,
    group: Group,
    binning: BatchedBinning,
    bins: _LearnedBins,
    builder: _core.BinnedBuilder,
) -> None:
    """Count the values of a group of columns batch by batch, then read it again to encode it."""
    digests = _count(table, group, binning, bins)
    bins.set_thresholds(builder, group)
    encoder = _BatchEncoder(builder, group, bins.categories, "missing")
    for first_row, batch in table.batches(group):
        rows = slice(first_row, first_row + len(batch))
        encoder.add(batch, first_row, binning.encoded(rows), binning.n_threads)
    digests_now = encoder.finish(binning.n_threads)
    for column, (now, before) in enumerate(zip(digests_now, digests, strict=True)):
        if now != before:
            raise ChangedTableError(
                f"{table.schema.label(int(group[column]))} of {table.large!r} had other values, or in "
                "another order, when it was read a second time; expected the same rows each time"
            )


def _count(
    table: BatchedTable, group: Group, binning: BatchedBinning, bins: _LearnedBins
) -> list[int]:
    """Learn the bins of a group of columns; return the digest of each column."""
    with closing(Scratch(table.large.cache_dir)) as scratch:
        max_bytes = table.large.free_bytes() // _FRACTION
        counts = ColumnCounts(table.kinds(group), binning.n_threads, scratch, max_bytes)
        for first_row, batch in table.batches(group):
            rows = slice(first_row, first_row + len(batch))
            counts.add(batch, binning.weight[rows], first_row)
        names = {c: table.schema.label(int(feature)) for c, feature in enumerate(group)}
        categories = counts.categories(names, binning.max_codes)
        bins.add_categories(
            {
                int(group[c]): (binning.known or {}).get(int(group[c]), of)
                for c, of in categories.items()
            }
        )
        found = counts.thresholds(binning.max_bins)
        bins.thresholds |= {int(group[c]): thresholds for c, thresholds in found.items()}
        digests = counts.digests()
    return [digests[column] for column in range(len(group))]


class _BatchEncoder:
    """Encodes a group of features batch by batch.

    Parameters
    ----------
    builder : _core.BinnedBuilder
        Receives the codes; it has the thresholds already.
    group : ndarray of int
        The features.
    categories : dict of int to CategoryMap
        Categories of the categorical ones.
    handle_unknown : {"missing", "error"}
        How unknown categories are treated.
    """

    def __init__(
        self,
        builder: _core.BinnedBuilder,
        group: Group,
        categories: dict[int, CategoryMap],
        handle_unknown: str,
    ) -> None:
        self._builder, self._group = builder, group
        self._categories, self._handle_unknown = categories, handle_unknown
        self._numeric = np.array(
            [c for c, f in enumerate(group) if int(f) not in categories], np.intp
        )
        self._digests = {c: 0 for c, f in enumerate(group) if int(f) in categories}

    def add(
        self, batch: Table, first_row: int, is_encoded: NDArray[np.bool_] | None, n_threads: int
    ) -> None:
        """Encode a batch that starts at row ``first_row``."""
        if len(self._numeric):
            features = self._group[self._numeric].astype(np.int32)
            self._builder.add_rows(features, batch.floats(self._numeric), first_row, n_threads)
        for column in self._digests:
            self._digest(batch, column, first_row)
            categories = self._categories[int(self._group[column])]
            codes = categories.codes(
                masked_categories(batch, column, is_encoded), self._handle_unknown
            )
            number = self._group[column : column + 1].astype(np.int32)
            self._builder.add_rows(number, codes[:, None], first_row, n_threads)

    def _digest(self, batch: Table, column: int, first_row: int) -> None:
        for chunk in batch.categories(column):
            self._digests[column] += category_digest(chunk, first_row)
            first_row += len(chunk)

    def finish(self, n_threads: int) -> list[int]:
        """Finish the features after the last batch; return the digest of each."""
        found = self._builder.finish_features(self._group.astype(np.int32), n_threads).tolist()
        return [self._digests.get(c, of_codes) % 2**64 for c, of_codes in enumerate(found)]
