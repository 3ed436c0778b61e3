"""Rows to bins: learned from some rows, and the codes of these and others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.data.binned_table import BinnedTable, add_all, bin_table, builder_of
from abcgbm.data.binning import learn_encoding, learn_thresholds, most_codes
from abcgbm.data.encoding import Encoding
from abcgbm.data.parts.learning import Learning, bin_like, learn_and_bin
from abcgbm.data.parts.parted_table import PartedTable
from abcgbm.data.rows import LabelledRows
from abcgbm.data.shared_bins import SharedLearning, encoding_of
from abcgbm.data.tables import Table
from abcgbm.ranks.together import together


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
    known : Encoding or None
        The levels that the trees of an earlier fit know; no others are learned then.
    """

    max_bins: int
    handle_unknown: str
    n_threads: int
    known: Encoding | None = None


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
    share = validated.share
    other = together(share, lambda: _bin_like(table, validated, how.n_threads))
    return BinnedRows.from_table(learned, table), BinnedRows.from_table(validated, other)


def _learn_and_bin(parts: list[LabelledRows], how: Binning) -> BinnedTable:
    """Learn from the first of some parts of a table, and code all of it, once."""
    learned, table = parts[0], parts[0].table
    if isinstance(table, BinnedTable):
        return table
    weight, is_seen = _weight_in_table(learned), _is_among(parts, len(table))
    if isinstance(table, PartedTable):
        coded = learn_and_bin(table, _learning(weight, is_seen, how))
        if how.known is None:
            return coded
        # The model keeps the names that it knows, or that there are none.
        return replace(coded, encoding=replace(how.known, handle_unknown=how.handle_unknown))
    if not learned.share.is_alone:
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
    table, share = cast(Table, learned.table), learned.share
    total, most = learned.integer_weights.n_units, most_codes(how.max_bins)
    learning = SharedLearning(share, weight, total, how.max_bins, most, how.n_threads, how.known)
    layout = learning.learn(table)
    encoding = encoding_of(layout, table.schema, learning, how.handle_unknown)
    thresholds = tuple(of.thresholds for of in layout.features)

    def coded() -> _core.BinnedBuilder:
        builder = builder_of(len(table), thresholds, encoding)
        layout.tell(builder)
        lenient = replace(encoding, handle_unknown="missing")
        add_all(builder, table, lenient, how.n_threads, is_seen)
        return builder

    binned = layout.finish(together(share, coded), len(table))
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
    if isinstance(other, PartedTable):
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
