"""`fit_on_rank`: sharded training resumes from the state of an interrupted fit."""

import signal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_ranks import file_of, noisy_rows, random_shards

from abcgbm import ABCBoostClassifier, Checkpoint, TimeLimit
from abcgbm.communication.collectives import Interrupts, uninterrupted
from abcgbm.communication.communicator import RanksError, SingleProcess
from abcgbm.communication.shard import Shard
from abcgbm.distributed.shard_fit import ShardResult, ShardRows, StateSender, fit_on_rank
from abcgbm.training.callbacks import IterationReport, Means, RemoteListener
from ranks_in_threads import ThreadCommunicator, on_ranks, outcomes

ALL = noisy_rows(11, n=120)
PARAMS: dict[str, Any] = {
    "max_iter": 6,
    "learning_rate": 0.15,
    "max_leaf_nodes": 4,
    "random_state": 2,
    "n_jobs": 1,
}
FITS = {
    "shared": PARAMS,
    "abc-mart": PARAMS | {"algorithm": "abc-mart", "subsample": 0.6},
    "refit": PARAMS | {"early_stopping": True, "n_iter_no_change": 2, "refit": True},
}
every_fit = pytest.mark.parametrize("params", FITS.values(), ids=FITS)


def rows_of(n_ranks: int, seed: int) -> list[tuple[ShardRows, list[tuple[int, int]]]]:
    held = random_shards(len(ALL["y"]), n_ranks, np.random.default_rng(seed))
    return [(ShardRows(ALL["X"][rows], ALL["y"][rows]), parts) for rows, parts in held]


def work(params: dict[str, Any], n_ranks: int, seed: int, checkpoint: bytes | None = None) -> Any:
    given = rows_of(n_ranks, seed)

    def fit(communicator: ThreadCommunicator) -> ShardResult:
        rows, parts = given[communicator.rank]
        outcome = fit_on_rank(params, rows, Shard(communicator, parts), checkpoint=checkpoint)
        if str(outcome.error).endswith("for the test"):
            raise RanksError(str(outcome.error))  # fails the other ranks as well
        return outcome

    return fit


def expected(params: dict[str, Any]) -> bytes:
    return file_of(ABCBoostClassifier(**params).fit(**ALL))


@every_fit
def test_result_is_the_model(params):
    steps = []
    fit = rows_of(2, 1)

    def with_steps(communicator: ThreadCommunicator) -> ShardResult:
        rows, parts = fit[communicator.rank]
        shard = Shard(communicator, parts)
        listener = RemoteListener(lambda report, means: steps.append(report.iteration))
        return fit_on_rank(params, rows, shard, listener=listener)

    for outcome in on_ranks(2, with_steps):
        assert outcome.error is None
        assert file_of(outcome.model) == expected(params)
        assert outcome.model.callbacks is None
        assert outcome.n_iter == outcome.model.n_iter_
    assert steps[:2] == [1, 2]


@every_fit
def test_training_resumes_on_other_ranks_after_one_is_lost(params):
    def counted(communicator: ThreadCommunicator) -> int:
        work(params, 3, 5)(communicator)
        return communicator.n_exchanges

    n_exchanges = max(on_ranks(3, counted))
    rng, whole = np.random.default_rng(5), expected(params)
    for number in [*range(1, 12, 4), *rng.integers(12, n_exchanges + 1, 8).tolist()]:
        found = outcomes(3, work(params, 3, 5), leaves=(number % 3, number))
        left = [of for of in found if isinstance(of, ShardResult) and of.error is not None]
        if not left:  # the other ranks had finished with the lost one
            continue
        furthest = max(left, key=lambda outcome: outcome.n_iter)
        assert isinstance(furthest.error, RanksError)
        for n_ranks in (1, 2):
            again = on_ranks(n_ranks, work(params, n_ranks, 6, furthest.checkpoint))
            assert [of.error for of in again] == [None] * n_ranks
            assert {file_of(of.model) for of in again} == {whole}


def test_one_process_and_ranks_resume_each_others_checkpoints(tmp_path):
    params = FITS["abc-mart"]
    path = tmp_path / "checkpoint"
    ABCBoostClassifier(callbacks=[Checkpoint(path)], **params | {"max_iter": 3}).fit(**ALL)
    again = on_ranks(2, work(params, 2, 6, path.read_bytes()))
    assert {file_of(of.model) for of in again} == {expected(params)}

    def stopped(communicator: ThreadCommunicator) -> None:
        rows, parts = rows_of(2, 1)[communicator.rank]
        model = ABCBoostClassifier(
            callbacks=[Checkpoint(tmp_path / "of ranks")], **params | {"max_iter": 3}
        )
        model.fit(*rows[:2], communicator=Shard(communicator, parts))

    on_ranks(2, stopped)
    keeps_state = ABCBoostClassifier(**params).fit(**ALL, resume_from=tmp_path / "of ranks")
    assert file_of(keeps_state) == expected(params)


def stopping(after: tuple[str, int], fails: bool) -> Any:
    """Return a callback that stops training after an iteration, or fails there."""

    def on_iteration(report: IterationReport, means: Means) -> bool:
        is_there = (report.phase, report.iteration) == after
        if is_there and fails:
            raise RanksError("lost before the answer was known")
        return is_there

    return on_iteration


@pytest.mark.parametrize("after", [("train", 2), ("refit", 2), ("train", 6)])
@pytest.mark.parametrize("n_ranks", [1, 2])
def test_retry_of_a_training_stopped_by_a_callback_stops_at_once(after, n_ranks):
    params, given = FITS["refit"], rows_of(2, 1)

    def fit(listener: RemoteListener, checkpoint: bytes | None = None, given: Any = given) -> Any:
        def on_rank(communicator: ThreadCommunicator) -> ShardResult:
            rows, parts = given[communicator.rank]
            shard = Shard(communicator, parts)
            return fit_on_rank(params, rows, shard, checkpoint=checkpoint, listener=listener)

        return on_ranks(len(given), on_rank)

    expected = fit(RemoteListener(stopping(after, fails=False)))[0]
    interrupted = fit(RemoteListener(stopping(after, fails=True)))[0]
    again = RemoteListener(stopping(after, fails=True), frozenset([after]))
    for outcome in fit(again, interrupted.checkpoint, rows_of(n_ranks, 6)):
        assert outcome.error is None
        assert file_of(outcome.model) == file_of(expected.model)
        assert outcome.model.stop_reason_ == expected.model.stop_reason_


def test_fit_of_one_rank_leaves_its_state():
    outcome = fit_on_rank(
        PARAMS,
        rows_of(1, 1)[0][0],
        Shard(SingleProcess()),
        listener=RemoteListener(stopping(("train", 3), fails=True)),
    )
    assert (type(outcome.error), outcome.n_iter) == (RanksError, 3)
    again = on_ranks(2, work(PARAMS, 2, 1, outcome.checkpoint))
    assert {file_of(of.model) for of in again} == {expected(PARAMS)}


def test_state_is_sent_at_intervals(monkeypatch):
    sender, states = StateSender(), []

    def on_iteration(report: IterationReport, means: Means) -> bool:
        sender._not_before = 0.0 if report.iteration in (3, 5) else 1e9
        monkeypatch.setattr(
            "abcgbm.distributed.shard_fit._MAX_BYTES", 2**24 if report.iteration < 5 else 9
        )
        states.append(sender.if_due())
        return False

    row = rows_of(1, 1)[0][0]
    fit_on_rank(
        PARAMS,
        row,
        Shard(SingleProcess()),
        listener=RemoteListener(on_iteration),
        state_sender=sender,
    )
    assert [state is not None for state in states] == [False, False, True, False, False, False]
    again = on_ranks(2, work(PARAMS, 2, 1, states[2]))
    assert {file_of(of.model) for of in again} == {expected(PARAMS)}


def test_labels_that_cannot_be_stored_are_refused_if_state_is_kept():
    row, day = rows_of(1, 1)[0][0], pd.Timestamp("2026-01-01", tz="UTC")
    y = np.array([day + pd.Timedelta(days=int(label in row.y[:1])) for label in row.y])
    error = fit_on_rank(PARAMS, row._replace(y=y), Shard(SingleProcess())).error
    assert "a value of type Timestamp cannot be held by a model file" in str(error)


def test_failure_before_the_first_iteration_leaves_no_state():
    def fit(communicator: ThreadCommunicator) -> ShardResult:
        rows, _ = rows_of(2, 1)[communicator.rank]
        return fit_on_rank(PARAMS | {"max_iter": 0}, rows, Shard(communicator))

    for outcome in on_ranks(2, fit):
        assert (outcome.model, outcome.checkpoint, outcome.n_iter) == (None, None, 0)
        assert isinstance(outcome.error, ValueError)


def test_checkpoint_of_other_rows_is_refused_on_all_ranks(tmp_path):
    path = tmp_path / "checkpoint"
    ABCBoostClassifier(callbacks=[Checkpoint(path)], **PARAMS).fit(ALL["X"] + 1, ALL["y"])
    for outcome in on_ranks(2, work(PARAMS, 2, 1, path.read_bytes())):
        assert "do not give the losses that it records" in str(outcome.error)
    model = file_of(ABCBoostClassifier(**PARAMS).fit(**ALL))
    for outcome in on_ranks(2, work(PARAMS, 2, 1, model)):
        assert "is a model file, not a checkpoint" in str(outcome.error)
        assert (outcome.checkpoint, outcome.n_iter) == (None, 0)


class OneOfTwo(SingleProcess):
    """A communicator of two ranks that is never used."""

    n_ranks = 2


@pytest.mark.usefixtures("heeds_interrupts")
def test_first_interrupt_is_deferred_and_the_second_raised_at_once():
    with Interrupts(OneOfTwo()) as interrupts:
        interrupts.raise_if_requested()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupts.raise_if_requested()
        interrupts.raise_if_requested()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    for who in (OneOfTwo(), SingleProcess()):
        with Interrupts(who):
            pass
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with Interrupts(SingleProcess()), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("heeds_interrupts")
def test_interrupt_between_two_trainings_reaches_all_ranks():
    done = []

    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("work")

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(OneOfTwo(), work)
    assert done == ["work"]
    with pytest.raises(KeyboardInterrupt):
        uninterrupted(SingleProcess(), work)
    assert done == ["work"]


def test_time_is_measured_on_rank_0():
    given = rows_of(2, 1)

    def fit(communicator: ThreadCommunicator) -> ShardResult:
        rows, parts = given[communicator.rank]
        limits = {"max_iter": 50, "callbacks": [TimeLimit(1e-6 if communicator.rank == 0 else 1e6)]}
        return fit_on_rank(PARAMS | limits, rows, Shard(communicator, parts))

    for outcome in on_ranks(2, fit):
        assert (outcome.model.stop_reason_, outcome.n_iter) == ("time_limit", 1)


def test_elapsed_time_of_earlier_attempts_counts():
    params = PARAMS | {"max_iter": 50, "callbacks": [TimeLimit(1e5)]}
    outcome = fit_on_rank(
        params, rows_of(1, 1)[0][0], Shard(SingleProcess()), listener=RemoteListener(elapsed=1e6)
    )
    assert (outcome.model.stop_reason_, outcome.n_iter) == ("time_limit", 1)


def test_validation_rows_may_be_on_some_ranks_only():
    other = noisy_rows(12, n=40)
    validation = {"X_val": other["X"], "y_val": other["y"]}
    whole = file_of(ABCBoostClassifier(**PARAMS).fit(**ALL, **validation))
    given = rows_of(3, 3)

    def fit(communicator: ThreadCommunicator) -> ShardResult:
        rows, parts = given[communicator.rank]
        if communicator.rank == 1:
            rows = rows._replace(**validation)
        return fit_on_rank(PARAMS, rows, Shard(communicator, parts))

    assert [file_of(outcome.model) == whole for outcome in on_ranks(3, fit)] == [True] * 3
