"""From the shards of several ranks to bins that all ranks have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.communication.collectives import allgather_results, raise_together, split_by_feature
from abcgbm.communication.shard import Shard
from abcgbm.data.arrays import Floats
from abcgbm.data.binned_table import ColumnEncoder, seen_categories
from abcgbm.data.categories import CategoryMap, category_weights
from abcgbm.data.schema import Kind, Schema
from abcgbm.data.table import Table

_MAX_VALUES = 2**24  # that a rank counts at a time, but for what makes groups even

Run = tuple[Floats, NDArray[np.int64]]  # distinct values, ascending, and their weights


class FeatureBins(NamedTuple):
    """What is learned of a feature.

    Attributes
    ----------
    levels : CategoryMap or None
        Its levels, if it is a category.
    thresholds : ndarray
        Between its bins.
    common : int
        The heaviest code.
    """

    levels: CategoryMap | None
    thresholds: Floats
    common: int
    n_listed: int  # what all others weigh

    @classmethod
    def of(
        cls, levels: CategoryMap | None, thresholds: Floats, weight: NDArray[np.int64]
    ) -> FeatureBins:
        """Look for the common code by the weight of each."""
        common = int(np.argmax(weight))
        return cls(levels, thresholds, common, int(weight.sum() - weight[common]))


@dataclass(frozen=True)
class ShardedLayout:
    """How the codes of all ranks are stored: alike, whatever rows a rank has.

    Attributes
    ----------
    shard : Shard
        The rank.
    features : list of FeatureBins
        What is known of each feature.
    total : int
        What the rows of all ranks weigh.
    """

    shard: Shard
    features: list[FeatureBins]
    total: int

    def tell(self, builder: _core.BinnedBuilder) -> None:
        """Say which features are sparse."""
        for number, of in enumerate(self.features):
            builder.set_common_code(number, of.common, of.n_listed, self.total)

    def finish(self, builder: _core.BinnedBuilder, n_rows: int) -> _core.Binned:
        """Return the table, with bundles of features that meet on no rank.

        They are those that the rank with most rows finds, without what meets elsewhere.
        """
        rows = self.shard.communicator.allgather(n_rows)
        asked = self.shard.communicator.rank == rows.index(max(rows))
        found = allgather_results(self.shard, lambda: builder.bundles() if asked else [])
        bundles = found[rows.index(max(rows))]
        meets = raise_together(self.shard, lambda: builder.conflicts(bundles))
        self.shard.communicator.allreduce(meets, "sum")
        kept = [[f for f in bundle if not meets[f]] for bundle in bundles]
        return raise_together(self.shard, lambda: builder.finish(kept))


@dataclass(frozen=True)
class ShardedBinning:
    """What is learned of which rows of all ranks.

    Attributes
    ----------
    shard : Shard
        The rank.
    weight : ndarray of int64 of shape (n_rows,)
        Weights of its rows; 0 for those that are not learned from.
    total : int
        What those of all ranks weigh.
    max_bins, most_codes : int
        Most bins of a number, and most codes of a category.
    n_threads : int
        Number of threads.
    known : ColumnEncoder or None
        Levels that are known already.
    """

    shard: Shard
    weight: NDArray[np.int64]
    total: int
    max_bins: int
    most_codes: int
    n_threads: int
    known: ColumnEncoder | None = None

    def learn(self, table: Table) -> ShardedLayout:
        """Learn the bins of all features, some at a time."""
        features: list[FeatureBins] = []
        for group in self._groups(*table.shape):
            pieces = raise_together(self.shard, lambda: self._counted(table, group))  # noqa: B023
            finisher = _Finisher(self, table.schema, group)
            features += split_by_feature(self.shard, pieces, finisher.finish)
        return ShardedLayout(self.shard, features, self.total)

    def _groups(self, n_rows: int, n_features: int) -> Iterator[NDArray[np.intp]]:
        max_rows = np.array([float(n_rows)])
        self.shard.communicator.allreduce(max_rows, "maximum")
        size = max(1, _MAX_VALUES // max(1, int(max_rows[0])))
        size += -size % self.shard.communicator.n_ranks  # or some would wait while others merge
        for start in range(0, n_features, size):
            yield np.arange(start, min(start + size, n_features))

    def _counted(self, table: Table, group: NDArray[np.intp]) -> list[Any]:
        """Return what the rows of this rank have of each feature: a run, or weights by level."""
        dense = group[table.kind[group] == Kind.NUMERIC]
        counted = dict(zip(dense.tolist(), self._runs(table, dense), strict=True))
        counted |= _sparse_runs(table, group, self.weight)
        is_seen = self.weight > 0
        for feature in group[table.schema.is_categorical[group]].tolist():
            counted[feature] = category_weights(
                seen_categories(table, feature, is_seen), self.weight
            )
        return [counted[feature] for feature in group.tolist()]

    def _runs(self, table: Table, features: NDArray[np.intp]) -> list[Run]:
        counts = _core.ValueCounts(len(features))
        counts.add(table.floats(features), self.weight, 0, self.n_threads)
        return counts.take(self.n_threads)


def _sparse_runs(
    table: Table, group: NDArray[np.intp], weight: NDArray[np.int64]
) -> dict[int, Run]:
    """Return the runs of the sparse features of a group."""
    wanted = group[table.kind[group] == Kind.SPARSE]
    part = table.sparse_part() if len(wanted) else None
    if part is None:
        return {}
    total, runs = int(weight.sum()), {}
    for place in np.flatnonzero(np.isin(part.features, wanted)).tolist():
        stored = slice(part.indptr[place], part.indptr[place + 1])
        of_stored = weight[part.indices[stored]]
        values = np.append(part.data[stored], part.fill[place])
        run = _run(values, np.append(of_stored, total - of_stored.sum()))
        runs[int(part.features[place])] = run
    return runs


def _run(values: Floats, weight: NDArray[np.int64]) -> Run:
    """Return distinct values and their weights; 0.0 is added so that -0.0 is 0.0."""
    counts = ~np.isnan(values) & (weight > 0)
    found, place = np.unique(values[counts] + 0.0, return_inverse=True)
    of_found = np.zeros(len(found), dtype=np.int64)
    np.add.at(of_found, place, weight[counts])
    return found, of_found


@dataclass(frozen=True)
class _Finisher:
    """Merges what all ranks have counted of some features."""

    how: ShardedBinning
    schema: Schema
    group: NDArray[np.intp]

    def finish(self, places: range, pieces: list[list[Any]]) -> list[FeatureBins]:
        is_category = [bool(self.schema.is_categorical[self.group[place]]) for place in places]
        runs = [of for of, is_one in zip(pieces, is_category, strict=True) if not is_one]
        counts, how = _core.ValueCounts(len(runs)), self.how
        cut = iter(counts.thresholds(runs, how.max_bins, how.n_threads) if runs else [])
        return [
            self._of_levels(int(self.group[place]), of_ranks)
            if is_one
            else self._of_numbers(next(cut), of_ranks)
            for place, is_one, of_ranks in zip(places, is_category, pieces, strict=True)
        ]

    def _of_numbers(self, thresholds: Floats, runs: list[Run]) -> FeatureBins:
        weight = np.zeros(len(thresholds) + 2, dtype=np.int64)
        for values, of_values in runs:
            n_up_to = np.cumsum(np.concatenate([[0], of_values]))
            ends = np.searchsorted(values, thresholds, side="right")
            weight[:-1] += np.diff(n_up_to[[0, *ends, len(values)]])
        weight[-1] = self.how.total - weight.sum()
        return FeatureBins.of(None, thresholds, weight)

    def _of_levels(self, feature: int, of_ranks: list[dict[Any, int]]) -> FeatureBins:
        total: dict[Any, int] = {}
        for weights in of_ranks:
            for level, of_level in weights.items():
                total[level] = total.get(level, 0) + of_level
        how = self.how
        if how.known is not None:
            levels = how.known.levels[feature]
        else:
            levels = CategoryMap.from_weights(self.schema.label(feature), total, how.most_codes)
        weight = np.zeros(len(levels.thresholds()) + 2, dtype=np.int64)
        for level, of_level in total.items():
            weight[levels.code_of.get(level, -1)] += of_level
        weight[-1] += how.total - weight.sum()
        return FeatureBins.of(levels, levels.thresholds(), weight)


def encoding_of(
    layout: ShardedLayout, schema: Schema, how: ShardedBinning, unknown: str
) -> ColumnEncoder:
    """Return the levels that were learned, or those known before."""
    if how.known is not None:
        return replace(how.known, handle_unknown=unknown)
    found = enumerate(layout.features)
    levels = {feature: of.levels for feature, of in found if of.levels is not None}
    return ColumnEncoder(schema, levels, unknown)
