"""Binning of the rows of several ranks, with the same bins on all of them."""

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
from abcgbm.data.binned_table import ColumnEncoder, masked_categories
from abcgbm.data.categories import CategoryMap, category_weights
from abcgbm.data.schema import Kind, Schema
from abcgbm.data.table import Table

_MAX_VALUES = 2**24  # values counted at a time on a rank: bounds memory

Run = tuple[Floats, NDArray[np.int64]]  # ascending distinct values and their weights


class FeatureBins(NamedTuple):
    """The bins of a feature.

    Attributes
    ----------
    categories : CategoryMap or None
        Its categories, if it is categorical.
    thresholds : ndarray
        Thresholds between its bins.
    common : int
        The code of largest weight.
    n_listed : int
        Weight of all other codes.
    """

    categories: CategoryMap | None
    thresholds: Floats
    common: int
    n_listed: int

    @classmethod
    def of(
        cls, categories: CategoryMap | None, thresholds: Floats, weight: NDArray[np.int64]
    ) -> FeatureBins:
        """Find the common code, given the weight of each code."""
        common = int(np.argmax(weight))
        return cls(categories, thresholds, common, int(weight.sum() - weight[common]))


@dataclass(frozen=True)
class ShardedLayout:
    """How codes are stored: the same on all ranks, so that their histograms can be added.

    Attributes
    ----------
    shard : Shard
        The shard of this rank.
    features : list of FeatureBins
        Bins of each feature.
    total : int
        Weight of the rows of all ranks.
    """

    shard: Shard
    features: list[FeatureBins]
    total: int

    def set_common_codes(self, builder: _core.BinnedBuilder) -> None:
        """Pass the common codes to a builder, which then stores features as sparse or dense."""
        for number, of in enumerate(self.features):
            builder.set_common_code(number, of.common, of.n_listed, self.total)

    def finish(self, builder: _core.BinnedBuilder, n_rows: int) -> _core.Binned:
        """Return the table, with bundles of features that conflict on no rank.

        The rank with most rows proposes the bundles; features that conflict elsewhere are removed.
        """
        rows = self.shard.communicator.allgather(n_rows)
        is_largest = self.shard.communicator.rank == rows.index(max(rows))
        found = allgather_results(self.shard, lambda: builder.bundles() if is_largest else [])
        bundles = found[rows.index(max(rows))]
        conflicts = raise_together(self.shard, lambda: builder.conflicts(bundles))
        self.shard.communicator.allreduce(conflicts, "sum")
        without_conflicts = [[f for f in bundle if not conflicts[f]] for bundle in bundles]
        return raise_together(self.shard, lambda: builder.finish(without_conflicts))


@dataclass(frozen=True)
class ShardedBinning:
    """How rows of all ranks are binned.

    Attributes
    ----------
    shard : Shard
        The shard of this rank.
    weight : ndarray of int64 of shape (n_rows,)
        Weights of its rows; bins are learned from rows with a weight above 0.
    total : int
        Weight of the rows of all ranks.
    max_bins, max_codes : int
        Maximum number of bins of a numeric feature, and of codes of a categorical one.
    n_threads : int
        Number of threads.
    known : ColumnEncoder or None
        Categories of the previous fit, for a warm start.
    """

    shard: Shard
    weight: NDArray[np.int64]
    total: int
    max_bins: int
    max_codes: int
    n_threads: int
    known: ColumnEncoder | None = None

    def learn(self, table: Table) -> ShardedLayout:
        """Learn the bins of all features, one group of features at a time."""
        features: list[FeatureBins] = []
        for group in self._groups(*table.shape):
            counts = raise_together(self.shard, lambda: self._counted(table, group))  # noqa: B023
            merger = _GroupMerger(self, table.schema, group)
            features += split_by_feature(self.shard, counts, merger.merge)
        return ShardedLayout(self.shard, features, self.total)

    def _groups(self, n_rows: int, n_features: int) -> Iterator[NDArray[np.intp]]:
        max_rows = np.array([float(n_rows)])
        self.shard.communicator.allreduce(max_rows, "maximum")
        size = max(1, _MAX_VALUES // max(1, int(max_rows[0])))
        # A multiple of the number of ranks, so that all of them merge equally many features.
        size += -size % self.shard.communicator.n_ranks
        for start in range(0, n_features, size):
            yield np.arange(start, min(start + size, n_features))

    def _counted(self, table: Table, group: NDArray[np.intp]) -> list[Any]:
        """Return the counts of each feature on this rank: a run, or weights by category."""
        dense = group[table.kind[group] == Kind.NUMERIC]
        counted = dict(zip(dense.tolist(), self._runs(table, dense), strict=True))
        counted |= _sparse_runs(table, group, self.weight)
        is_learned = self.weight > 0
        for feature in group[table.schema.is_categorical[group]].tolist():
            counted[feature] = category_weights(
                masked_categories(table, feature, is_learned), self.weight
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
        stored_weight = weight[part.indices[stored]]
        values = np.append(part.data[stored], part.fill[place])
        run = _run(values, np.append(stored_weight, total - stored_weight.sum()))
        runs[int(part.features[place])] = run
    return runs


def _run(values: Floats, weight: NDArray[np.int64]) -> Run:
    """Return the distinct values and their weights; -0.0 counts as 0.0."""
    counts = ~np.isnan(values) & (weight > 0)
    found, place = np.unique(values[counts] + 0.0, return_inverse=True)
    found_weight = np.zeros(len(found), dtype=np.int64)
    np.add.at(found_weight, place, weight[counts])
    return found, found_weight


@dataclass(frozen=True)
class _GroupMerger:
    """Merges the counts of all ranks for a group of features."""

    binning: ShardedBinning
    schema: Schema
    group: NDArray[np.intp]

    def merge(self, places: range, counts_of_ranks: list[list[Any]]) -> list[FeatureBins]:
        categorical = [bool(self.schema.is_categorical[self.group[place]]) for place in places]
        runs = [of for of, is_one in zip(counts_of_ranks, categorical, strict=True) if not is_one]
        counts, binning = _core.ValueCounts(len(runs)), self.binning
        found = counts.thresholds(runs, binning.max_bins, binning.n_threads) if runs else []
        thresholds = iter(found)
        return [
            self._categorical_bins(int(self.group[place]), of_ranks)
            if is_one
            else self._numeric_bins(next(thresholds), of_ranks)
            for place, is_one, of_ranks in zip(places, categorical, counts_of_ranks, strict=True)
        ]

    def _numeric_bins(self, thresholds: Floats, runs: list[Run]) -> FeatureBins:
        weight = np.zeros(len(thresholds) + 2, dtype=np.int64)
        for values, value_weights in runs:
            n_up_to = np.cumsum(np.concatenate([[0], value_weights]))
            ends = np.searchsorted(values, thresholds, side="right")
            weight[:-1] += np.diff(n_up_to[[0, *ends, len(values)]])
        weight[-1] = self.binning.total - weight.sum()
        return FeatureBins.of(None, thresholds, weight)

    def _categorical_bins(self, feature: int, of_ranks: list[dict[Any, int]]) -> FeatureBins:
        total: dict[Any, int] = {}
        for weights in of_ranks:
            for category, of_category in weights.items():
                total[category] = total.get(category, 0) + of_category
        binning = self.binning
        if binning.known is not None:
            categories = binning.known.categories[feature]
        else:
            categories = CategoryMap.from_weights(
                self.schema.label(feature), total, binning.max_codes
            )
        weight = np.zeros(len(categories.thresholds()) + 2, dtype=np.int64)
        for category, of_category in total.items():
            weight[categories.code_of.get(category, -1)] += of_category
        weight[-1] += binning.total - weight.sum()
        return FeatureBins.of(categories, categories.thresholds(), weight)


def encoding_of(
    layout: ShardedLayout, schema: Schema, binning: ShardedBinning, unknown: str
) -> ColumnEncoder:
    """Return the encoder with the learned categories, or with those of the previous fit."""
    if binning.known is not None:
        return replace(binning.known, handle_unknown=unknown)
    found = enumerate(layout.features)
    categories = {feature: of.categories for feature, of in found if of.categories is not None}
    return ColumnEncoder(schema, categories, unknown)
