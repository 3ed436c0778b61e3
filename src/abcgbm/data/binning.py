"""Binning of training and validation rows: learn the bins, then encode the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.communication.collectives import raise_together
from abcgbm.data.arrays import Floats, row_numbers
from abcgbm.data.batched_binning import BatchedBinning, bin_like, learn_and_bin
from abcgbm.data.binned_table import (
    BinnedTable,
    ColumnEncoder,
    add_all,
    bin_table,
    builder_of,
    column_blocks,
    masked_categories,
)
from abcgbm.data.categories import CategoryMap
from abcgbm.data.files.batched_table import BatchedTable
from abcgbm.data.samples import LabelledRows
from abcgbm.data.schema import Kind
from abcgbm.data.sharded_binning import ShardedBinning, encoding_of
from abcgbm.data.sparse import SparsePart
from abcgbm.data.table import Table

_CODES_PER_BIN = 16  # neighbouring numbers can share a bin, unrelated categories cannot
_MAX_CODES = 65534  # one of the 16-bit codes 0 to 65534 is that of missing values


def max_codes(max_bins: int) -> int:
    """Return the maximum number of codes of a categorical feature, which fits into 16 bits."""
    return min(_CODES_PER_BIN * max_bins, _MAX_CODES)


def learn_encoding(
    table: Table, weight: NDArray[np.int64], max_bins: int, handle_unknown: str
) -> ColumnEncoder:
    """Learn the categories of a table and their codes.

    Parameters
    ----------
    table : Table
        The table.
    weight : ndarray of int64 of shape (n_rows,)
        Weights; rows of weight 0 are ignored.
    max_bins : int
        Maximum number of bins of a numeric feature; a categorical one may have
        ``max_codes(max_bins)`` codes.
    handle_unknown : {"missing", "error"}
        How unknown categories are treated later.
    """
    is_learned = None if weight.all() else weight > 0
    categories = {
        feature: CategoryMap.learn(
            table.schema.label(feature),
            masked_categories(table, feature, is_learned),
            weight,
            max_codes(max_bins),
        )
        for feature in table.features(Kind.CATEGORICAL).tolist()
    }
    return ColumnEncoder(table.schema, categories, handle_unknown)


def learn_thresholds(
    table: Table,
    weight: NDArray[np.int64],
    encoding: ColumnEncoder,
    max_bins: int,
    n_threads: int,
) -> tuple[Floats, ...]:
    """Learn the thresholds between the bins of each feature.

    Those of categorical features follow from ``encoding``. Rows of weight 0 are ignored.
    """
    found = {f: categories.thresholds() for f, categories in encoding.categories.items()}
    rows = None if weight.all() else np.flatnonzero(weight)
    part = table.sparse_part()
    weight = weight if rows is None else weight[rows]
    for features, values in column_blocks(table, n_threads, rows):
        block_thresholds = _core.find_thresholds(values, weight, max_bins, n_threads)
        found.update(zip(features.tolist(), block_thresholds, strict=True))
    if part is not None:
        part = part if rows is None else _part_of_rows(part, rows, len(table))
        columns = part.columns(len(weight))
        sparse_thresholds = _core.find_sparse_thresholds(columns, weight, max_bins, n_threads)
        found.update(zip(part.features.tolist(), sparse_thresholds, strict=True))
    return tuple(found[feature] for feature in range(table.shape[1]))


def _part_of_rows(part: SparsePart, rows: NDArray[np.int64], n_rows: int) -> SparsePart:
    """Return some rows of sparse columns, renumbered from 0."""
    is_row = np.zeros(n_rows, dtype=np.bool_)
    is_row[rows] = True
    is_selected = is_row[part.indices]
    indptr = np.concatenate([[0], np.cumsum(is_selected)])[part.indptr]
    new_number = np.cumsum(is_row, dtype=np.uint32) - np.uint32(1)
    indices = row_numbers(new_number[part.indices[is_selected]], len(rows))
    return replace(part, indptr=indptr, indices=indices, data=part.data[is_selected])


class BinnedRows(NamedTuple):
    """Rows with their labels and weights, and a table of the codes of exactly these rows."""

    rows: LabelledRows
    table: BinnedTable

    @classmethod
    def from_table(cls, rows: LabelledRows, table: BinnedTable) -> Self:
        """Take the rows out of an encoded table."""
        return cls(rows, table if len(rows) == len(table) else table.take(rows.row_numbers))


@dataclass(frozen=True)
class Binning:
    """How rows are binned.

    Attributes
    ----------
    max_bins : int
        Maximum number of bins of a feature.
    handle_unknown : {"missing", "error"}
        How unknown categories are treated.
    n_threads : int
        Number of threads.
    known : ColumnEncoder or None
        Categories of the previous fit, for a warm start; no others are learned then.
    """

    max_bins: int
    handle_unknown: str
    n_threads: int
    known: ColumnEncoder | None = None

    def known_encoding(self) -> ColumnEncoder | None:
        """Return the encoding of the previous fit, with this treatment of unknown categories."""
        if self.known is None:
            return None
        return replace(self.known, handle_unknown=self.handle_unknown)


def bin_rows(
    training: LabelledRows, validation: LabelledRows | None, binning: Binning
) -> tuple[BinnedRows, BinnedRows | None]:
    """Learn bins from the training rows, and encode the training and the validation rows.

    Validation rows held out of the training table are encoded together with it. Categories that
    occur only in them are missing.
    """
    if validation is None:
        return BinnedRows.from_table(training, _learn_and_bin([training], binning)), None
    if validation.table is training.table:
        table = _learn_and_bin([training, validation], binning)
        return BinnedRows.from_table(training, table), BinnedRows.from_table(validation, table)
    table = _learn_and_bin([training], binning)
    shard = validation.shard
    other = raise_together(shard, lambda: _bin_like(table, validation, binning.n_threads))
    return BinnedRows.from_table(training, table), BinnedRows.from_table(validation, other)


def _learn_and_bin(samples: list[LabelledRows], binning: Binning) -> BinnedTable:
    """Learn from the first of several subsets of a table, and encode all of the table once."""
    training = samples[0]
    table = training.table
    if isinstance(table, BinnedTable):
        return table
    weight = _weight_in_table(training)
    is_encoded = _is_among(samples, len(table))
    if isinstance(table, BatchedTable):
        # `read_together` refuses tables out of core on several ranks.
        assert training.shard.is_single
        return _learn_and_bin_batched(table, weight, is_encoded, binning)
    if training.shard.is_single:
        return _learn_and_bin_in_memory(table, weight, is_encoded, binning)
    return _learn_and_bin_sharded(training, weight, is_encoded, binning)


def _learn_and_bin_batched(
    table: BatchedTable,
    weight: NDArray[np.int64],
    is_encoded: NDArray[np.bool_] | None,
    binning: Binning,
) -> BinnedTable:
    """Learn and encode out of core."""
    encoded = learn_and_bin(table, _batched_binning(weight, is_encoded, binning))
    known = binning.known_encoding()
    # Feature names, or their absence, stay those of the previous fit.
    return encoded if known is None else replace(encoded, encoding=known)


def _learn_and_bin_in_memory(
    table: Table,
    weight: NDArray[np.int64],
    is_encoded: NDArray[np.bool_] | None,
    binning: Binning,
) -> BinnedTable:
    """Learn from the rows with weight, and encode the table."""
    encoding = binning.known_encoding()
    if encoding is None:
        encoding = learn_encoding(table, weight, binning.max_bins, binning.handle_unknown)
    thresholds = learn_thresholds(table, weight, encoding, binning.max_bins, binning.n_threads)
    # Held-out rows may have categories that no training row has.
    lenient = replace(encoding, handle_unknown="missing")
    encoded = bin_table(table, thresholds, lenient, binning.n_threads, is_encoded)
    return replace(encoded, encoding=encoding)


def _learn_and_bin_sharded(
    training: LabelledRows,
    weight: NDArray[np.int64],
    is_encoded: NDArray[np.bool_] | None,
    binning: Binning,
) -> BinnedTable:
    """Learn from the rows of all ranks, and encode those of this rank."""
    table = cast(Table, training.table)
    shard = training.shard
    learning = ShardedBinning(
        shard,
        weight,
        training.integer_weights.n_units,
        binning.max_bins,
        max_codes(binning.max_bins),
        binning.n_threads,
        binning.known,
    )
    layout = learning.learn(table)
    encoding = encoding_of(layout, table.schema, learning, binning.handle_unknown)
    thresholds = tuple(feature.thresholds for feature in layout.features)

    def encode() -> _core.BinnedBuilder:
        builder = builder_of(len(table), thresholds, encoding)
        layout.set_common_codes(builder)
        # Held-out rows may have categories that no training row has.
        lenient = replace(encoding, handle_unknown="missing")
        add_all(builder, table, lenient, binning.n_threads, is_encoded)
        return builder

    binned = layout.finish(raise_together(shard, encode), len(table))
    return BinnedTable(binned, thresholds, encoding)


def _batched_binning(
    weight: NDArray[np.int64], is_encoded: NDArray[np.bool_] | None, binning: Binning
) -> BatchedBinning:
    """Return the settings for a table that is read in batches."""
    return BatchedBinning(
        weight,
        is_encoded,
        binning.max_bins,
        max_codes(binning.max_bins),
        binning.handle_unknown,
        binning.n_threads,
        None if binning.known is None else binning.known.categories,
    )


def _weight_in_table(rows: LabelledRows) -> NDArray[np.int64]:
    """Return an integer weight for each row of the table, 0 outside the given rows."""
    weight = np.zeros(len(rows.table), dtype=np.int64)
    weight[rows.which] = rows.integer_weights.weight
    return weight


def _bin_like(table: BinnedTable, rows: LabelledRows, n_threads: int) -> BinnedTable:
    """Encode the table of validation rows with the bins of the training table."""
    other = rows.table
    if isinstance(other, Table):
        is_encoded = _is_among([rows], len(other))
        return bin_table(other, table.thresholds, table.encoding, n_threads, is_encoded)
    if isinstance(other, BatchedTable):
        is_encoded = _is_among([rows], len(other))
        return bin_like(other, table, n_threads, is_encoded)
    if not other.has_bins_of(table):
        raise ValueError("X_val is a BinnedTable with other bins than X; expected the same bins")
    return other


def _is_among(samples: Iterable[LabelledRows], n_rows: int) -> NDArray[np.bool_] | None:
    """Return the mask of rows of the table that are in any of the subsets; None if all are."""
    mask = np.zeros(n_rows, dtype=bool)
    for rows in samples:
        mask[rows.which] = True
    return None if mask.all() else mask
