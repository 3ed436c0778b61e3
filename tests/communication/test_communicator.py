"""Collective operations over ranks that are threads."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abcgbm.communication import communicator as communicator_module
from abcgbm.communication.communicator import RankLostError, RanksError, SingleProcess
from ranks_in_threads import ThreadCommunicator, on_ranks, outcomes

RANKS = (1, 2, 3, 7)


def values_of(rank: int, n_values: int, dtype: str) -> np.ndarray:
    return np.random.default_rng(rank).integers(-1000, 1000, n_values).astype(dtype)


@pytest.mark.parametrize("n_ranks", RANKS)
@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
@given(n_values=st.integers(0, 40), small=st.sampled_from([0, 1 << 15]))
def test_allreduce_gives_the_sum_and_the_maximum_over_ranks(n_ranks, dtype, n_values, small):
    def work(communicator: ThreadCommunicator) -> tuple[np.ndarray, np.ndarray]:
        total, largest = (values_of(communicator.rank, n_values, dtype) for _ in range(2))
        communicator.allreduce(total, "sum")
        communicator.allreduce(largest, "maximum")
        return total, largest

    all_values = np.stack([values_of(rank, n_values, dtype) for rank in range(n_ranks)])
    with patch.object(communicator_module, "_SMALL", small):
        found = on_ranks(n_ranks, work)
    for total, largest in found:
        np.testing.assert_array_equal(total, all_values.sum(axis=0))
        np.testing.assert_array_equal(largest, all_values.max(axis=0))


@pytest.mark.parametrize("n_ranks", RANKS)
def test_reduce_scatter_gives_each_rank_its_segment_of_the_sum(n_ranks):
    ends = np.sort(np.random.default_rng(0).integers(0, 50, n_ranks)).astype(np.intp)
    ends[-1] = 50

    def work(communicator: ThreadCommunicator) -> np.ndarray:
        values = values_of(communicator.rank, 50, "int64")
        communicator.reduce_scatter(values, ends, "sum")
        return np.split(values, ends[:-1])[communicator.rank]

    total = sum(values_of(rank, 50, "int64") for rank in range(n_ranks))
    np.testing.assert_array_equal(np.concatenate(on_ranks(n_ranks, work)), total)


@pytest.mark.parametrize("n_ranks", RANKS)
def test_exchange_allgather_and_broadcast_deliver_items_of_any_size(n_ranks):
    def work(communicator: ThreadCommunicator) -> tuple[list[bytes], list[str], str]:
        items = [bytes([communicator.rank, to]) * to for to in range(n_ranks)]
        received = [bytes(item) for item in communicator.alltoall(items)]
        return (
            received,
            communicator.allgather(f"of {communicator.rank}"),
            communicator.broadcast(communicator.rank),
        )

    for rank, (received, gathered, broadcast) in enumerate(on_ranks(n_ranks, work)):
        assert received == [bytes([other, rank]) * rank for other in range(n_ranks)]
        assert gathered == [f"of {other}" for other in range(n_ranks)]
        assert broadcast == 0


@pytest.mark.parametrize(
    "other",
    [
        lambda communicator: communicator.allreduce(np.zeros(9, dtype=np.int64), "maximum"),
        lambda communicator: communicator.allreduce(np.zeros(8, dtype=np.int64), "sum"),
        lambda communicator: communicator.allreduce(np.zeros(9, dtype=np.int32), "sum"),
        lambda communicator: communicator.allgather(1),
    ],
    ids=["operation", "count", "type", "items"],
)
def test_ranks_out_of_step_are_an_error_on_every_rank(other):
    def work(communicator: ThreadCommunicator) -> None:
        if communicator.rank == 1:
            other(communicator)
        else:
            communicator.allreduce(np.zeros(9, dtype=np.int64), "sum")

    errors = outcomes(3, work)
    assert all(isinstance(error, RanksError) for error in errors)
    assert any("is out of step: it sent (1, " in str(error) for error in errors)


def test_lost_rank_is_named_with_its_reason():
    def work(communicator: ThreadCommunicator) -> None:
        if communicator.rank == 2:
            raise MemoryError("8 GiB are not available")
        communicator.allgather(None)

    first, _, third = outcomes(3, work)
    assert isinstance(third, MemoryError)
    assert isinstance(first, RankLostError)
    assert first.rank == 2
    assert str(first) == "rank 2 is gone: 8 GiB are not available"


def test_single_process_returns_its_own_values():
    communicator = SingleProcess()
    values = np.arange(5)
    communicator.allreduce(values, "sum")
    communicator.reduce_scatter(values, np.array([5]), "maximum")
    assert values.tolist() == [0, 1, 2, 3, 4]
    assert communicator.alltoall([b"item"]) == [b"item"]
    assert communicator.allgather("item") == ["item"] == [communicator.broadcast("item")]
