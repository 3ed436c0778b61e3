"""Bins, layouts, labels and hold-outs of several ranks are those of all rows at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from test_ranks import random_shards
from test_reductions import LAYOUT, table

from abcgbm.communication.collectives import split_by_feature
from abcgbm.communication.shard import LOCAL, Shard
from abcgbm.data import sharded_binning as shared_bins
from abcgbm.data.binned_table import BinnedTable
from abcgbm.data.binning import Binning, bin_rows
from abcgbm.data.samples import GivenRows, rows_to_learn
from abcgbm.data.table import read_table
from abcgbm.training.validation import hold_out
from ranks_in_threads import on_ranks


def binned(X, y, share=LOCAL, max_bins=255) -> BinnedTable:
    rows, _ = rows_to_learn(GivenRows(read_table(X), y, None, share), None, None)
    return bin_rows(rows, None, Binning(max_bins, "missing", 1))[0].table


def on_each(X, y, n_ranks, seed, max_bins=255) -> list[BinnedTable]:
    held = random_shards(len(y), n_ranks, np.random.default_rng(seed), n_partitions=2 * n_ranks)
    held = [of for of in held if len(of.rows)]

    def work(communicator):
        rows, parts = held[communicator.rank]
        return binned(X[rows], y[rows], Shard(communicator, parts), max_bins)

    return on_ranks(len(held), work)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("max_values", [2**24, 100])
def test_all_ranks_have_one_layout(make, max_values, monkeypatch):
    monkeypatch.setattr(shared_bins, "_MAX_VALUES", max_values)
    for seed in range(3):
        X = table(np.random.default_rng(seed))
        y = np.arange(len(X)) % 3
        expected = binned(make(X), y)
        one = expected.binned.state()
        found = on_each(make(X), y, 3, seed)
        states = [of.binned.state() for of in found]
        for of_rank, state in zip(found, states, strict=True):
            assert of_rank.has_bins_of(expected)
            for name in LAYOUT:
                np.testing.assert_array_equal(state[name], states[0][name], err_msg=name)
            for name in ("n_bins", "is_categorical", "is_sparse"):
                np.testing.assert_array_equal(state[name], one[name], err_msg=name)
            assert (state["bundle"][4:16] >= 0).sum() >= 10  # a category as columns of 0 and 1


def test_features_that_meet_on_any_rank_are_in_no_bundle_together():
    """On rank 0, which has most rows, no two columns meet; on rank 1 the first and the last do."""
    X = np.zeros((300, 8))
    X[np.arange(200), np.arange(200) % 8] = 1
    X[290:, [0, 7]] = 1
    y, ends = np.arange(300) % 2, (0, 200, 300)

    def work(communicator):
        rows = slice(ends[communicator.rank], ends[communicator.rank + 1])
        return binned(X[rows], y[rows], Shard(communicator)).binned

    for of_rank, rows in zip(on_ranks(2, work), (slice(0, 200), slice(200, 300)), strict=True):
        bundle = of_rank.state()["bundle"]
        assert bundle[0] == bundle[1] >= 0
        assert bundle[7] != bundle[0]
        np.testing.assert_array_equal(of_rank.codes(), X[rows])


def test_every_rank_merges_a_feature_at_a_time_where_there_are_many_rows(monkeypatch):
    monkeypatch.setattr(shared_bins, "_MAX_VALUES", 1)
    merged = []

    def recording(self, places, counts):
        merged.append(len(places))
        return merge(self, places, counts)

    merge = shared_bins._GroupMerger.merge
    monkeypatch.setattr(shared_bins._GroupMerger, "merge", recording)
    X = np.random.default_rng(0).normal(size=(90, 6))
    on_each(X, np.arange(90) % 3, 3, 1)
    assert merged == [1] * 6


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 7]), st.integers(2, 12))
def test_thresholds_are_those_of_all_rows(seed, n_ranks, max_bins):
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, -0.0, 0.0, np.nan, np.inf, -np.inf, 0.5, *rng.normal(size=20)], (60, 3))
    y = np.arange(60) % 2
    expected = binned(X, y, max_bins=max_bins)
    for of_rank in on_each(X, y, n_ranks, seed, max_bins):
        assert of_rank.has_bins_of(expected)


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 3), min_size=8, max_size=80),
    st.floats(0.05, 0.95),
    st.integers(0, 2**64 - 1),
    st.sampled_from([1, 2, 3, 7]),
)
def test_rows_held_out_are_those_of_all_rows(labels, fraction, seed, n_ranks):
    y = np.array([*labels, 0, 0, 1, 1], np.int32)
    held = random_shards(len(y), n_ranks, np.random.default_rng(seed % 2**32))
    try:
        expected = hold_out(y, 4, fraction, seed)
    except ValueError:
        return

    def work(communicator):
        rows, parts = held[communicator.rank]
        return [rows[of] for of in hold_out(y[rows], 4, fraction, seed, Shard(communicator, parts))]

    for of_all, of_ranks in zip(expected, zip(*on_ranks(n_ranks, work), strict=True), strict=True):
        assert np.sort(np.concatenate(of_ranks)).tolist() == of_all.tolist()


@pytest.mark.parametrize("n_things", [0, 1, 2, 5])
@pytest.mark.parametrize("n_ranks", [1, 3])
def test_dealt_things_are_finished_of_the_pieces_of_all(n_things, n_ranks):
    def work(communicator):
        pieces = [(communicator.rank, thing) for thing in range(n_things)]
        return split_by_feature(
            Shard(communicator), pieces, lambda places, of: [*zip(places, of, strict=True)]
        )

    expected = [(thing, [(rank, thing) for rank in range(n_ranks)]) for thing in range(n_things)]
    assert on_ranks(n_ranks, work) == [expected] * n_ranks


def test_numbers_of_rows_follow_the_partitions():
    parts = [[(4, 2), (0, 3)], [], [(2, 0), (3, 1)]]
    found = on_ranks(
        3, lambda communicator: Shard(communicator, parts[communicator.rank]).row_ids().tolist()
    )
    assert found == [[4, 5, 0, 1, 2], [], [3]]
    some = Shard(LOCAL.communicator, [(4, 2), (0, 3)]).take(np.array([1, 2, 4]))
    assert (some.partitions, some.row_ids().tolist()) == ([(4, 1), (0, 2)], [2, 0, 1])
