"""The fit of one rank."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from distributed import Worker

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.communication.communicator import Communicator, RanksError
from abcgbm.communication.shard import Shard
from abcgbm.distributed.captured_warnings import CapturedWarning, capture_warnings
from abcgbm.distributed.concat import concat_partitions, describe_table, without_rows
from abcgbm.distributed.dask_partitions import Partition, Placement, TableKind
from abcgbm.distributed.dask_session import Session, TaskResult
from abcgbm.training.callbacks import IterationReport, Means, RemoteListener
from abcgbm.training.checkpoint import FitState
from abcgbm.training.fit_run import FitArguments, FitRun

_STATE_INTERVAL = 30.0  # minimum seconds between two states that are sent to the client
_INTERVAL_PER_COST = 20  # minimum interval per second of making a state: at most 5 % of a fit
_MAX_BYTES = 2**24  # of a state that is sent with a report


class ShardRows(NamedTuple):
    """Rows of a rank, as arguments of ``fit``."""

    X: Any
    y: Any
    sample_weight: Any = None
    X_val: Any = None
    y_val: Any = None
    sample_weight_val: Any = None


class ShardResult(NamedTuple):
    """Result of the fit of a rank.

    Attributes
    ----------
    model : ABCBoostClassifier or None
        The fitted estimator; None if the fit failed.
    checkpoint : bytes or None
        If the fit failed: the state after the last whole iteration; None before the first.
    n_iter : int
        Number of iterations of the model, or of the checkpoint.
    error : BaseException or None
        The error that ended the fit.
    warnings : tuple of CapturedWarning
        Warnings for the user.
    """

    model: ABCBoostClassifier | None
    checkpoint: bytes | None
    n_iter: int
    error: BaseException | None
    warnings: tuple[CapturedWarning, ...] = ()


class StateSender:
    """Returns the state of a fit at intervals, so that the client can keep it."""

    def __init__(self) -> None:
        self.get_state: Callable[[], bytes | None] = lambda: None
        self._not_before = time.monotonic() + _STATE_INTERVAL

    def if_due(self) -> bytes | None:
        """Return the state after the last iteration, if one is due and it is small."""
        began = time.monotonic()
        if began < self._not_before:
            return None
        state = self.get_state()
        now = time.monotonic()
        self._not_before = now + max(_STATE_INTERVAL, _INTERVAL_PER_COST * (now - began))
        return state if state is not None and len(state) <= _MAX_BYTES else None


def fit_on_rank(
    params: dict[str, Any],
    rows: ShardRows,
    shard: Shard,
    *,
    checkpoint: bytes | None = None,
    listener: RemoteListener | None = None,
    state_sender: StateSender | None = None,
) -> ShardResult:
    """Fit ``ABCBoostClassifier(**params)`` on the rows of this rank, together with all other ranks.

    Parameters
    ----------
    params : dict
        Parameters of the estimator.
    rows : ShardRows
        Rows of this rank; there may be none.
    shard : Shard
        Shard of this rank.
    checkpoint : bytes or None
        Checkpoint to resume from, the same on all ranks.
    listener : RemoteListener or None
        Listener in another process, used on rank 0 only.
    state_sender : StateSender or None
        Gets access to the state of the fit.
    """
    estimator = ABCBoostClassifier(**params)
    runs: list[FitRun] = []
    given = FitArguments(*rows, shard, keeps_state=True)
    resume_from = None if checkpoint is None else BytesIO(checkpoint)
    elapsed = 0.0 if listener is None else listener.elapsed

    def on_start(run: FitRun) -> None:
        if listener is not None and shard.communicator.rank == 0:
            run.listener = listener
        runs.append(run)
        if state_sender is not None:
            state_sender.get_state = lambda: _saved(estimator, run.get_state())

    def fit() -> ShardResult:
        try:
            warning = estimator._fit(given, resume_from, on_start, elapsed)
        # KeyboardInterrupt too: the client needs the state after the last whole iteration.
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
            state = runs[0].get_state() if runs else None
            if state is None:
                state = _loaded(checkpoint)
            n_iter = 0 if state is None else state.history.n_iter
            return ShardResult(None, _saved(estimator, state), n_iter, error)
        captured.extend([] if warning is None else [CapturedWarning(warning, UserWarning)])
        return ShardResult(estimator, None, estimator.model_.n_iter, None)

    with capture_warnings() as captured:
        result = fit()
    return result._replace(warnings=tuple(captured))


def _loaded(checkpoint: bytes | None) -> FitState | None:
    """Return the state of a checkpoint; None if it cannot be read."""
    if checkpoint is None:
        return None
    try:
        return FitState.load(BytesIO(checkpoint))
    except ValueError:
        return None


def _saved(estimator: ABCBoostClassifier, state: FitState | None) -> bytes | None:
    if state is None:
        return None
    file = BytesIO()
    state.save(file, estimator.get_params(deep=False))
    return file.getvalue()


# ---------------------------------------------------------------------------------- task of a worker


Columns = tuple[Any, Any, Any]  # X, y, sample_weight


class ShardReport(NamedTuple):
    """Report of an iteration for the client, with mean losses and sometimes the state."""

    report: IterationReport
    means: Means
    state: bytes | None = None


class PartitionsMovedError(RanksError):
    """A worker no longer has its partitions."""


@dataclass(frozen=True)
class ShardTask:
    """Task of a worker: the fit of one rank.

    Attributes
    ----------
    params : dict
        Parameters of the estimator.
    placement : Placement
        Partitions of the rank.
    kind : TableKind
        What the rows of all ranks consist of.
    checkpoint : bytes or None
        Checkpoint to resume from.
    stopped : frozenset of tuple
        Phases and iterations at which earlier attempts were asked to stop.
    elapsed : float
        Seconds since the fit began.
    """

    params: dict[str, Any]
    placement: Placement
    kind: TableKind
    checkpoint: bytes | None
    stopped: frozenset[tuple[str, int]] = frozenset()
    elapsed: float = 0.0

    def __call__(self, session: Session, communicator: Communicator) -> TaskResult:
        """Fit, and report each iteration to the client."""
        params = self.params
        if params["n_jobs"] is None:
            params = params | {"n_jobs": session.worker.state.nthreads}
        rows, shard = self._read(session.worker, communicator)
        _check_same_tables(shard, rows.X)
        sender = StateSender()

        def on_iteration(report: IterationReport, means: Means) -> bool:
            return session.report(ShardReport(report, means, sender.if_due()))

        listener = RemoteListener(on_iteration, self.stopped, self.elapsed)
        result = fit_on_rank(
            params,
            rows,
            shard,
            checkpoint=self.checkpoint,
            listener=listener,
            state_sender=sender,
        )
        return TaskResult(result, result.error)

    def _read(self, worker: Worker, communicator: Communicator) -> tuple[ShardRows, Shard]:
        train = [(number, _stored(worker, key)) for number, key in self.placement.train]
        validation = [(number, _stored(worker, key)) for number, key in self.placement.validation]
        columns, columns_val = _concat(train, ""), _concat(validation, "_val")
        if not train:
            columns = _without_rows(columns_val, self.kind.has_weights)
        if not validation and self.kind.has_validation:
            columns_val = _without_rows(columns, self.kind.has_validation_weights)
        shard = Shard(communicator, _sizes(train), _sizes(validation))
        return ShardRows(*columns, *columns_val), shard


def _stored(worker: Worker, key: Any) -> Partition:
    try:
        partition: Partition = worker.data[key]
    except KeyError as error:
        raise PartitionsMovedError(f"worker {worker.address} no longer has {key!r}") from error
    return partition


def _concat(partitions: list[tuple[int, Partition]], suffix: str) -> Columns:
    if not partitions:
        return None, None, None
    columns: list[Any] = []
    for name in ("X", "y", "sample_weight"):
        column = [(number, getattr(partition, name)) for number, partition in partitions]
        if column[0][1] is None:
            columns.append(None)
        else:
            columns.append(concat_partitions(column, name + suffix, is_label=name == "y"))
    return columns[0], columns[1], columns[2]


def _without_rows(columns: Columns, has_weights: bool) -> Columns:
    X, y, _ = columns
    return without_rows(X), without_rows(y), np.zeros(0) if has_weights else None


def _sizes(partitions: list[tuple[int, Partition]]) -> list[tuple[int, int]]:
    return [(number, partition.n_rows) for number, partition in partitions]


def _check_same_tables(shard: Shard, X: Any) -> None:
    """Raise ValueError on all ranks unless their tables have the same type and columns."""
    own = (shard.partitions[0][0], describe_table(X)) if shard.partitions else None
    tables = sorted(table for table in shard.communicator.allgather(own) if table)
    first, expected = tables[0]
    for number, table in tables:
        if table != expected:
            raise ValueError(
                f"partition {number} of X is {table}, partition {first} {expected}; expected the same"
            )


# ------------------------------------------------------------------------ views of a result, for the client


class Summary(NamedTuple):
    """Summary of a `ShardResult`, without the model and the checkpoint."""

    n_iter: int
    has_model: bool
    has_checkpoint: bool
    error: BaseException | None
    warnings: tuple[CapturedWarning, ...] = ()


def summary_of(done: TaskResult) -> Summary:
    """Return a summary of a result; an error that cannot be sent becomes a RuntimeError."""
    result: ShardResult = done.result or ShardResult(None, None, 0, done.error)
    has_model, has_checkpoint = result.model is not None, result.checkpoint is not None
    error = _sendable(result.error)
    return Summary(result.n_iter, has_model, has_checkpoint, error, result.warnings)


def model_of(done: TaskResult) -> bytes:
    """Return the pickled model of a result."""
    return pickle.dumps(done.result.model)


def checkpoint_of(done: TaskResult) -> bytes:
    """Return the checkpoint of a result."""
    return done.result.checkpoint  # type: ignore[no-any-return]


def read_model(sent: bytes) -> Any:
    """Return the model that `model_of` sent."""
    return pickle.loads(sent)


def _sendable(error: BaseException | None) -> BaseException | None:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
