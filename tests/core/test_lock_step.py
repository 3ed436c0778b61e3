"""Trees on rows that are distributed over ranks: bit for bit those of a single process."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import core
import reference as ref
from abcgbm import _core
from ranks_in_threads import ThreadCommunicator, outcomes
from reference_multi_output import MULTI_OUTPUT
from strategies import (
    VARIANTS,
    Problem,
    algorithms,
    mixed_problem,
    one_hot_problem,
    problems,
    random_problem,
)

N_ITER = 4


def shard_of(problem: Problem, rows: np.ndarray, communicator: ThreadCommunicator) -> Any:
    """Return the arguments of a training on some rows of a problem."""
    some = problem.rows(rows)
    weight = np.ascontiguousarray(some.weight, dtype=np.int64)
    shard = _core.Shard(communicator, rows.astype(np.uint64))
    labels = _core.Labels(some.y.astype(np.int32), weight, some.unit, some.n_classes, shard=shard)
    return {"binned": core.binned(problem).take(rows), "labels": labels, "raw": some.raw}


def train_on(
    problem: Problem,
    algorithm: ref.Algorithm,
    rows: Sequence[np.ndarray],
    n_threads: int = 1,
    scatters: bool = False,
) -> Any:
    """Return the work of a rank, which returns its iterations and the scores of its rows."""

    def work(communicator: ThreadCommunicator) -> Any:
        communicator.min_scatter_bytes = 0 if scatters else 1 << 40
        given = shard_of(problem, rows[communicator.rank], communicator)
        total_weight = int(problem.weight.sum()) * problem.unit
        params = core.train_params(**problem.params)
        trainer = core.Trainer(total_weight, params=params, n_threads=n_threads, **given)
        return ref.boost(trainer, algorithm, problem.n_classes, N_ITER), trainer.raw()

    return work


def assert_same_on_ranks(
    problem: Problem, algorithm: ref.Algorithm, rows: Sequence[np.ndarray], n_threads: int = 1
) -> None:
    """Each rank receives all sums, or only those of its own columns."""
    alone = core.trainer(problem)
    expected = ref.boost(alone, algorithm, problem.n_classes, N_ITER)
    raw = alone.raw()
    for scatters in (False, True):
        found = outcomes(len(rows), train_on(problem, algorithm, rows, n_threads, scatters))
        for (iterations, raw_of_rank), numbers in zip(found, rows, strict=True):
            core.assert_same_iterations(iterations, expected)
            np.testing.assert_array_equal(raw_of_rank, raw[:, numbers])


def random_shards(n_rows: int, n_ranks: int, seed: int = 0) -> list[np.ndarray]:
    """Return random rows for each rank; the last one may have none."""
    rank = np.random.default_rng(seed).integers(0, n_ranks, n_rows)
    return [np.flatnonzero(rank == r) for r in range(n_ranks)]


@given(problems(), st.data())
def test_trees_are_the_same_for_any_distribution_of_rows(problem, data):
    algorithm = data.draw(algorithms(problem.n_classes))
    n_ranks = data.draw(st.integers(1, 3))
    rank = np.array(
        data.draw(
            st.lists(st.integers(0, n_ranks - 1), min_size=len(problem.y), max_size=len(problem.y))
        )
    )
    rows = [np.flatnonzero(rank == r) for r in range(n_ranks)]
    assert_same_on_ranks(problem, algorithm, rows)


@pytest.mark.parametrize("n_ranks", [1, 2, 3, 7])
@pytest.mark.parametrize("name", VARIANTS)
def test_every_algorithm_is_the_same_on_ranks(name, n_ranks):
    problem = random_problem(3, 900, 4, 5, max_leaf_nodes=15, subsample=0.7, max_features=3)
    assert_same_on_ranks(problem, VARIANTS[name], random_shards(900, n_ranks))


SEARCH = ref.Algorithm("abc-mart", ref.Search(3))


@pytest.mark.parametrize("hessian_split", [False, True])
@pytest.mark.parametrize("make", [mixed_problem, one_hot_problem])
@pytest.mark.parametrize("algorithm", [VARIANTS["mart"], SEARCH], ids=["mart", "search"])
def test_all_kinds_of_columns_are_the_same_on_ranks(make, algorithm, hessian_split):
    problem = make(5, 700, 4, max_leaf_nodes=12, hessian_split=hessian_split)
    assert_same_on_ranks(problem, algorithm, random_shards(700, 2), n_threads=2)


@pytest.mark.parametrize("n_ranks", [1, 3])
@pytest.mark.parametrize("hessian_split", [False, True])
@pytest.mark.parametrize("n_projections", [0, 3, 9])
def test_multi_output_trees_are_the_same_on_ranks(n_projections, hessian_split, n_ranks):
    params = {"multi_output": True, "n_projections": n_projections, "hessian_split": hessian_split}
    problem = mixed_problem(6, 700, 11, max_leaf_nodes=25, max_features=3, subsample=0.8, **params)
    assert_same_on_ranks(problem, MULTI_OUTPUT, random_shards(700, n_ranks), n_threads=2)


def test_a_rank_may_have_no_rows():
    problem = mixed_problem(1, 300, 3, subsample=0.5)
    none = np.empty(0, np.int64)
    assert_same_on_ranks(problem, VARIANTS["abc-mart"], [none, np.arange(300), none])
    multi_output = problem.with_params(multi_output=True, n_projections=2)
    assert_same_on_ranks(multi_output, MULTI_OUTPUT, [np.arange(300), none])


def test_exchanges_grow_slower_than_leaves():
    """Histograms of leaves that are split soon are built ahead, so exchanges grow slower than leaves."""
    problem = random_problem(2, 4000, 5, 4, max_leaf_nodes=64)

    def exchanges_of_iteration(communicator: ThreadCommunicator) -> int:
        given = shard_of(problem, random_shards(4000, 2)[communicator.rank], communicator)
        trainer = _core.Trainer(params=core.train_params(**problem.params), n_threads=1, **given)
        before = communicator.n_exchanges
        trainer.train_iteration([0, 1, 2, 3], [-1], False, 1.0, 0)
        return communicator.n_exchanges - before

    n_exchanges = outcomes(2, exchanges_of_iteration)
    assert (
        n_exchanges[0] == n_exchanges[1] < 2 * 40
    )  # two exchanges for each sum; there are 63 splits


def test_reduce_scatter_sends_fewer_bytes():
    problem = random_problem(2, 4000, 5, 4, max_leaf_nodes=30)

    def bytes_of_iteration(scatters: bool) -> int:
        def work(communicator: ThreadCommunicator) -> int:
            communicator.min_scatter_bytes = 0 if scatters else 1 << 40
            given = shard_of(problem, random_shards(4000, 3)[communicator.rank], communicator)
            params = core.train_params(**problem.params)
            trainer = _core.Trainer(params=params, n_threads=1, **given)
            before = communicator.n_bytes
            trainer.train_iteration([0, 1, 2, 3], [-1], False, 1.0, 0)
            return communicator.n_bytes - before

        return sum(outcomes(3, work))

    assert bytes_of_iteration(scatters=True) < 0.7 * bytes_of_iteration(scatters=False)


def test_validation_loss_is_the_same_on_ranks():
    problem = mixed_problem(4, 500, 4)
    trainer, alone = core.trainer(problem), core.validation(problem)
    results = [trainer.native_iteration(range(4), [-1], False, 1.0, i) for i in range(3)]
    rows = random_shards(500, 3)

    def validate(communicator: ThreadCommunicator) -> list[float]:
        given = shard_of(problem, rows[communicator.rank], communicator)
        state = _core.Validation(n_threads=1, **given)
        losses = [state.loss()]
        for result in results:
            state.add(result)
            losses.append(state.loss())
        return losses

    expected = [alone.loss()]
    for result in results:
        alone.add(result)
        expected.append(alone.loss())
    assert outcomes(3, validate) == [expected] * 3


def test_error_of_a_rank_ends_the_iteration():
    problem = random_problem(2, 300, 3, 3)
    rows = random_shards(300, 2)
    errors = outcomes(2, train_on(problem, VARIANTS["mart"], rows), leaves=(1, 25))
    assert "leaves at exchange 25" in str(errors[1])
    assert "rank 1 is gone" in str(errors[0])
