"""From samples to a binned table, in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.communication.collectives import raise_together
from abcgbm.data.arrays import Floats, row_numbers
from abcgbm.data.batched_binning import Learning, bin_like, learn_and_bin
from abcgbm.data.binned_table import (
    BinnedTable,
    ColumnEncoder,
    add_all,
    bin_table,
    builder_of,
    column_blocks,
    seen_categories,
)
from abcgbm.data.categories import CategoryMap
from abcgbm.data.files.batched_table import BatchedTable
from abcgbm.data.samples import LabelledRows
from abcgbm.data.schema import Kind
from abcgbm.data.sharded_binning import ShardedBinning, encoding_of
from abcgbm.data.sparse import SparsePart
from abcgbm.data.table import Table
from abcgbm.data.weights import IntegerWeights

_CODES_PER_BIN = 16  # levels in any order need more bins than values, which have one


def integer_weights(weight: Floats) -> NDArray[np.int64]:
    """Return weights as integers; 0 stays 0, all others are at least 1."""
    if weight.all():
        return np.array(IntegerWeights.from_rows(weight).weight)
    integers = np.zeros(len(weight), dtype=np.int64)
    kept = np.flatnonzero(weight)
    integers[kept] = IntegerWeights.from_rows(weight[kept]).weight
    return integers


def most_codes(max_bins: int) -> int:
    """Return how many codes a category may have: more than a number has bins, up to 16 bits of them."""
    return min(_CODES_PER_BIN * max_bins, 65534)


def learn_encoding(
    table: Table, weight: NDArray[np.int64], max_bins: int, handle_unknown: str
) -> ColumnEncoder:
    """Learn the levels of a table's categories, and their codes: 16 times ``max_bins`` at most.

    ``weight``, of shape (n_rows,), is 0 for rows that are not looked at.
    """
    is_seen, most = _mask_of(weight > 0), most_codes(max_bins)
    levels = {
        feature: CategoryMap.learn(
            table.schema.label(feature), seen_categories(table, feature, is_seen), weight, most
        )
        for feature in table.features(Kind.CATEGORICAL).tolist()
    }
    return ColumnEncoder(table.schema, levels, handle_unknown)


def learn_thresholds(
    table: Table,
    weight: NDArray[np.int64],
    encoding: ColumnEncoder,
    max_bins: int,
    n_threads: int,
) -> tuple[Floats, ...]:
    """Learn the thresholds between the bins of each feature; those of categories are known.

    ``weight``, of shape (n_rows,), is 0 for rows that are not looked at.
    """
    found = {f: levels.thresholds() for f, levels in encoding.levels.items()}
    rows = None if weight.all() else np.flatnonzero(weight)
    weight, part = weight if rows is None else weight[rows], table.sparse_part()
    for features, values in column_blocks(table, n_threads, rows):
        of_block = _core.find_thresholds(values, weight, max_bins, n_threads)
        found.update(zip(features.tolist(), of_block, strict=True))
    if part is not None:
        part = part if rows is None else _part_of_rows(part, rows, len(table))
        columns = part.columns(len(weight))
        of_part = _core.find_sparse_thresholds(columns, weight, max_bins, n_threads)
        found.update(zip(part.features.tolist(), of_part, strict=True))
    return tuple(found[feature] for feature in range(table.shape[1]))


def _mask_of(is_seen: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    return None if is_seen.all() else is_seen


def _part_of_rows(part: SparsePart, rows: NDArray[np.int64], n_rows: int) -> SparsePart:
    """Return some rows of sparse columns, numbered anew."""
    is_row = np.zeros(n_rows, dtype=np.bool_)
    is_row[rows] = True
    is_kept = is_row[part.indices]
    start = np.concatenate([[0], np.cumsum(is_kept)])[part.indptr]
    number = np.cumsum(is_row, dtype=np.uint32)
    indices = row_numbers(number[part.indices[is_kept]] - 1, len(rows))
    return replace(part, indptr=start, indices=indices, data=part.data[is_kept])


class BinnedRows(NamedTuple):
    """Rows, and a table of their codes alone."""

    rows: LabelledRows
    table: BinnedTable

    @classmethod
    def from_table(cls, rows: LabelledRows, table: BinnedTable) -> Self:
        """Take the rows out of a coded table."""
        return cls(rows, table if len(rows) == len(table) else table.take(rows.row_numbers))


@dataclass(frozen=True)
class Binning:
    """How rows are binned.

    Attributes
    ----------
    max_bins : int
        Most bins of a feature.
    handle_unknown : {"missing", "error"}
        What a level is that was not learned.
    n_threads : int
        Number of threads.
    known : ColumnEncoder or None
        The levels that the trees of an earlier fit know; no others are learned then.
    """

    max_bins: int
    handle_unknown: str
    n_threads: int
    known: ColumnEncoder | None = None


def bin_rows(
    learned: LabelledRows, validated: LabelledRows | None, how: Binning
) -> tuple[BinnedRows, BinnedRows | None]:
    """Learn bins from rows, and code these and those to validate on.

    Rows that were held out of the same table are coded with it; levels that they alone have are
    missing.
    """
    if validated is None:
        return BinnedRows.from_table(learned, _learn_and_bin([learned], how)), None
    if validated.table is learned.table:
        table = _learn_and_bin([learned, validated], how)
        return BinnedRows.from_table(learned, table), BinnedRows.from_table(validated, table)
    table = _learn_and_bin([learned], how)
    shard = validated.shard
    other = raise_together(shard, lambda: _bin_like(table, validated, how.n_threads))
    return BinnedRows.from_table(learned, table), BinnedRows.from_table(validated, other)


def _learn_and_bin(parts: list[LabelledRows], how: Binning) -> BinnedTable:
    """Learn from the first of some parts of a table, and code all of it, once."""
    learned, table = parts[0], parts[0].table
    if isinstance(table, BinnedTable):
        return table
    weight, is_seen = _weight_in_table(learned), _is_among(parts, len(table))
    if isinstance(table, BatchedTable):
        coded = learn_and_bin(table, _learning(weight, is_seen, how))
        if how.known is None:
            return coded
        # The model keeps the names that it knows, or that there are none.
        return replace(coded, encoding=replace(how.known, handle_unknown=how.handle_unknown))
    if not learned.shard.is_single:
        return _with_all_ranks(learned, weight, is_seen, how)
    if how.known is None:
        encoding = learn_encoding(table, weight, how.max_bins, how.handle_unknown)
    else:
        encoding = replace(how.known, handle_unknown=how.handle_unknown)
    thresholds = learn_thresholds(table, weight, encoding, how.max_bins, how.n_threads)
    lenient = replace(encoding, handle_unknown="missing")
    coded = bin_table(table, thresholds, lenient, how.n_threads, is_seen)
    return replace(coded, encoding=encoding)


def _with_all_ranks(
    learned: LabelledRows,
    weight: NDArray[np.int64],
    is_seen: NDArray[np.bool_] | None,
    how: Binning,
) -> BinnedTable:
    """Learn from the rows of all ranks, and code those of this one."""
    table, shard = cast(Table, learned.table), learned.shard
    total, most = learned.integer_weights.n_units, most_codes(how.max_bins)
    learning = ShardedBinning(shard, weight, total, how.max_bins, most, how.n_threads, how.known)
    layout = learning.learn(table)
    encoding = encoding_of(layout, table.schema, learning, how.handle_unknown)
    thresholds = tuple(of.thresholds for of in layout.features)

    def coded() -> _core.BinnedBuilder:
        builder = builder_of(len(table), thresholds, encoding)
        layout.tell(builder)
        lenient = replace(encoding, handle_unknown="missing")
        add_all(builder, table, lenient, how.n_threads, is_seen)
        return builder

    binned = layout.finish(raise_together(shard, coded), len(table))
    return BinnedTable(binned, thresholds, encoding)


def _learning(
    weight: NDArray[np.int64], is_seen: NDArray[np.bool_] | None, how: Binning
) -> Learning:
    """Say what is learned of a table that is read in parts."""
    return Learning(
        weight,
        is_seen,
        how.max_bins,
        most_codes(how.max_bins),
        how.handle_unknown,
        how.n_threads,
        None if how.known is None else how.known.levels,
    )


def _weight_in_table(rows: LabelledRows) -> NDArray[np.int64]:
    """Return the weight of each row of the table as an integer, 0 where it is not among these."""
    weight = np.zeros(len(rows.table), dtype=np.int64)
    weight[rows.which] = rows.integer_weights.weight
    return weight


def _bin_like(table: BinnedTable, rows: LabelledRows, n_threads: int) -> BinnedTable:
    """Code the table of other rows by the bins of a table."""
    other = rows.table
    if isinstance(other, Table):
        is_seen = _is_among([rows], len(other))
        return bin_table(other, table.thresholds, table.encoding, n_threads, is_seen)
    if isinstance(other, BatchedTable):
        is_seen = _is_among([rows], len(other))
        return bin_like(other, table, n_threads, is_seen)
    if not other.has_bins_of(table):
        raise ValueError("X_val is a BinnedTable with other bins than X; expected the same")
    return other


def _is_among(parts: Iterable[LabelledRows], n_rows: int) -> NDArray[np.bool_] | None:
    """Tell which rows of a table are in some part of it; None if all are."""
    mask = np.zeros(n_rows, dtype=bool)
    for part in parts:
        mask[part.which] = True
    return None if mask.all() else mask
