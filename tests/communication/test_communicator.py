"""Sums, maxima and items over ranks, with ranks that are threads."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abcgbm.communication import communicator as reducer_module
from abcgbm.communication.communicator import RankLostError, RanksError, SingleProcess
from ranks_in_threads import ThreadReducer, on_ranks, outcomes

RANKS = (1, 2, 3, 7)


def values_of(rank: int, n_values: int, dtype: str) -> np.ndarray:
    return np.random.default_rng(rank).integers(-1000, 1000, n_values).astype(dtype)


@pytest.mark.parametrize("n_ranks", RANKS)
@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
@given(n_values=st.integers(0, 40), small=st.sampled_from([0, 1 << 15]))
def test_sum_and_maximum_are_those_of_all_ranks(n_ranks, dtype, n_values, small):
    def work(communicator: ThreadReducer) -> tuple[np.ndarray, np.ndarray]:
        total, largest = (values_of(communicator.rank, n_values, dtype) for _ in range(2))
        communicator.allreduce(total, "sum")
        communicator.allreduce(largest, "maximum")
        return total, largest

    all_values = np.stack([values_of(rank, n_values, dtype) for rank in range(n_ranks)])
    with patch.object(reducer_module, "_SMALL", small):
        found = on_ranks(n_ranks, work)
    for total, largest in found:
        np.testing.assert_array_equal(total, all_values.sum(axis=0))
        np.testing.assert_array_equal(largest, all_values.max(axis=0))


@pytest.mark.parametrize("n_ranks", RANKS)
def test_each_rank_gets_its_own_stretch_of_a_scattered_sum(n_ranks):
    ends = np.sort(np.random.default_rng(0).integers(0, 50, n_ranks)).astype(np.intp)
    ends[-1] = 50

    def work(communicator: ThreadReducer) -> np.ndarray:
        values = values_of(communicator.rank, 50, "int64")
        communicator.reduce_scatter(values, ends, "sum")
        return np.split(values, ends[:-1])[communicator.rank]

    total = sum(values_of(rank, 50, "int64") for rank in range(n_ranks))
    np.testing.assert_array_equal(np.concatenate(on_ranks(n_ranks, work)), total)


@pytest.mark.parametrize("n_ranks", RANKS)
def test_items_of_any_size_come_to_those_they_are_for(n_ranks):
    def work(communicator: ThreadReducer) -> tuple[list[bytes], list[str], str]:
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
    def work(communicator: ThreadReducer) -> None:
        if communicator.rank == 1:
            other(communicator)
        else:
            communicator.allreduce(np.zeros(9, dtype=np.int64), "sum")

    errors = outcomes(3, work)
    assert all(isinstance(error, RanksError) for error in errors)
    assert any("is out of step: it sent (1, " in str(error) for error in errors)


def test_rank_that_is_gone_is_named_with_its_reason():
    def work(communicator: ThreadReducer) -> None:
        if communicator.rank == 2:
            raise MemoryError("no room for 8 GiB")
        communicator.allgather(None)

    first, _, third = outcomes(3, work)
    assert isinstance(third, MemoryError)
    assert isinstance(first, RankLostError)
    assert first.rank == 2
    assert str(first) == "rank 2 is gone: no room for 8 GiB"


def test_nothing_is_exchanged_with_a_rank_alone():
    communicator = SingleProcess()
    values = np.arange(5)
    communicator.allreduce(values, "sum")
    communicator.reduce_scatter(values, np.array([5]), "maximum")
    assert values.tolist() == [0, 1, 2, 3, 4]
    assert communicator.alltoall([b"item"]) == [b"item"]
    assert communicator.allgather("item") == ["item"] == [communicator.broadcast("item")]
