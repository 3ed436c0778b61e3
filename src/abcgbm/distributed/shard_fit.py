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
from abcgbm.distributed.concat import join, no_rows_of, table_kind_of
from abcgbm.distributed.dask_partitions import Part, Placement, TableKind
from abcgbm.distributed.dask_session import Session, TaskResult
from abcgbm.distributed.warned import CapturedWarning, warnings_kept
from abcgbm.training.callbacks import IterationReport, Means, RemoteListener
from abcgbm.training.checkpoint import FitState
from abcgbm.training.fit_run import FitArguments, FitRun

_SECONDS = 30.0  # between two states that are kept elsewhere
_TIMES_ITS_COST = 20  # that much time lies between two of them at least
_MAX_BYTES = 2**24  # of a state that is sent with the report of a step


class ShardRows(NamedTuple):
    """The rows of a rank, as ``fit`` takes them."""

    X: Any
    y: Any
    sample_weight: Any = None
    X_val: Any = None
    y_val: Any = None
    sample_weight_val: Any = None


class ShardResult(NamedTuple):
    """What has come of a fit.

    Attributes
    ----------
    model : ABCBoostClassifier or None
        The fitted estimator; None if the fit was broken off.
    checkpoint : bytes or None
        If it was: the state after the last step that was whole; None if there was none.
    n_iter : int
        The steps of the model, or of that state.
    error : BaseException or None
        What broke it off.
    warned : tuple of CapturedWarning
        What the user should be told.
    """

    model: ABCBoostClassifier | None
    checkpoint: bytes | None
    n_iter: int
    error: BaseException | None
    warned: tuple[CapturedWarning, ...] = ()


class StateSender:
    """Gives the state of a fit now and then, for those who keep it elsewhere."""

    def __init__(self) -> None:
        self.take: Callable[[], bytes | None] = lambda: None
        self._not_before = time.monotonic() + _SECONDS

    def if_due(self) -> bytes | None:
        """Return the state after the last step, if it is time for one and it is small."""
        began = time.monotonic()
        if began < self._not_before:
            return None
        state = self.take()
        now = time.monotonic()
        self._not_before = now + max(_SECONDS, _TIMES_ITS_COST * (now - began))
        return state if state is not None and len(state) <= _MAX_BYTES else None


def fit_on_rank(
    params: dict[str, Any],
    rows: ShardRows,
    shard: Shard,
    *,
    checkpoint: bytes | None = None,
    afar: RemoteListener | None = None,
    kept: StateSender | None = None,
) -> ShardResult:
    """Fit ``ABCBoostClassifier(**params)`` with the rows of this rank, as all ranks do.

    Parameters
    ----------
    params : dict
        The parameters.
    rows : ShardRows
        The rows of this rank; there may be none.
    shard : Shard
        The rank, and where its rows stand among all.
    checkpoint : bytes or None
        The state to go on from, the same on all ranks.
    afar : RemoteListener or None
        Who follows the fit, on rank 0 alone.
    kept : StateSender or None
        Is told how the state can be taken.
    """
    model = ABCBoostClassifier(**params)
    courses: list[FitRun] = []
    given = FitArguments(*rows, shard, keeps_state=True)
    resume_from = None if checkpoint is None else BytesIO(checkpoint)

    def told(course: FitRun) -> None:
        course.afar = afar if afar is not None and shard.communicator.rank == 0 else course.afar
        courses.append(course)
        if kept is not None:
            kept.take = lambda: _written(model, course.state())

    def fit() -> ShardResult:
        try:
            remark = model._fit(given, resume_from, told, 0.0 if afar is None else afar.elapsed)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
            state = courses[0].state() if courses else None
            return _interrupted(model, _given(checkpoint) if state is None else state, error)
        warned.extend([] if remark is None else [CapturedWarning(remark, UserWarning)])
        return ShardResult(model, None, model.model_.n_iter, None)

    with warnings_kept() as warned:
        outcome = fit()
    return outcome._replace(warned=tuple(warned))


def _given(checkpoint: bytes | None) -> FitState | None:
    """Return the state that was to be gone on with; None if there is none that could be."""
    if checkpoint is None:
        return None
    try:
        return FitState.load(BytesIO(checkpoint))
    except ValueError:
        return None


def _interrupted(
    model: ABCBoostClassifier, state: FitState | None, error: BaseException
) -> ShardResult:
    if state is None:
        return ShardResult(None, None, 0, error)
    return ShardResult(None, _written(model, state), state.history.n_iter, error)


def _written(model: ABCBoostClassifier, state: FitState | None) -> bytes | None:
    if state is None:
        return None
    file = BytesIO()
    state.save(file, model.get_params(deep=False))
    return file.getvalue()


Columns = tuple[Any, Any, Any]  # X, y, sample_weight


class Step(NamedTuple):
    """What the client hears of a step: a report, the losses as means, and now and then the state."""

    report: IterationReport
    means: Means
    state: bytes | None = None


class PartitionsMovedError(RanksError):
    """A worker does not have the partitions any longer that it had."""


@dataclass(frozen=True)
class ShardTask:
    """The fit of one rank.

    Attributes
    ----------
    params : dict
        Parameters of the estimator.
    placed : Placement
        The partitions that the rank has.
    form : TableKind
        Of what the rows of all ranks consist.
    checkpoint : bytes or None
        The state to go on from.
    stopped : frozenset of tuple
        Phases and steps after which somebody has asked to stop already.
    elapsed : float
        Seconds that have passed since the fit began.
    """

    params: dict[str, Any]
    placed: Placement
    form: TableKind
    checkpoint: bytes | None
    stopped: frozenset[tuple[str, int]] = frozenset()
    elapsed: float = 0.0

    def __call__(self, session: Session, communicator: Communicator) -> TaskResult:
        """Fit, and report each step."""
        params = self.params
        if params["n_jobs"] is None:
            params = params | {"n_jobs": session.worker.state.nthreads}
        rows, shard = self._read(session.worker, communicator)
        _check_same_tables(shard, rows.X)
        kept = StateSender()

        def report(report: IterationReport, means: Means) -> bool:
            return session.report(Step(report, means, kept.if_due()))

        afar = RemoteListener(report, self.stopped, self.elapsed)
        outcome = fit_on_rank(params, rows, shard, checkpoint=self.checkpoint, afar=afar, kept=kept)
        return TaskResult(outcome, outcome.error)

    def _read(self, worker: Worker, communicator: Communicator) -> tuple[ShardRows, Shard]:
        learned = [(number, _held(worker, key)) for number, key in self.placed.learned]
        validated = [(number, _held(worker, key)) for number, key in self.placed.validated]
        columns, of_validation = _joined(learned, ""), _joined(validated, "_val")
        if not learned:
            columns = _none_like(of_validation, self.form.has_weights)
        if not validated and self.form.has_validation:
            of_validation = _none_like(columns, self.form.has_validation_weights)
        return ShardRows(*columns, *of_validation), Shard(
            communicator, _sizes(learned), _sizes(validated)
        )


def _sizes(parts: list[tuple[int, Part]]) -> list[tuple[int, int]]:
    return [(number, part.n_rows) for number, part in parts]


def _check_same_tables(shard: Shard, X: Any) -> None:
    """Raise the same error on all ranks unless the tables of all have the same type and columns."""
    own = (shard.partitions[0][0], table_kind_of(X)) if shard.partitions else None
    forms = [form for form in shard.communicator.allgather(own) if form]
    first, expected = min(forms, key=lambda form: form[0])
    for number, form in sorted(forms, key=lambda form: form[0]):
        if form != expected:
            raise ValueError(
                f"partition {number} of X is {form}, partition {first} {expected}; expected the same"
            )


def _none_like(columns: Columns, has_weights: bool) -> Columns:
    """No rows, in a table like another."""
    X, y, _ = columns
    return no_rows_of(X), no_rows_of(y), np.zeros(0) if has_weights else None


def _held(worker: Worker, key: Any) -> Part:
    try:
        part: Part = worker.data[key]
    except KeyError as error:
        raise PartitionsMovedError(
            f"worker {worker.address} has not got {key!r} any longer"
        ) from error
    return part


def _joined(parts: list[tuple[int, Part]], suffix: str) -> Columns:
    if not parts:
        return None, None, None
    columns = []
    for name in ("X", "y", "sample_weight"):
        pieces = [(number, getattr(part, name)) for number, part in parts]
        columns.append(None if pieces[0][1] is None else join(pieces, name + suffix))
    return columns[0], columns[1], columns[2]


# ------------------------------------------------------------------------- what a client sees of it


class Summary(NamedTuple):
    """What has come of a rank: its steps, whether there is a model or a checkpoint, and the error.

    And what the user should be told.
    """

    n_iter: int
    has_model: bool
    has_checkpoint: bool
    error: BaseException | None
    warned: tuple[CapturedWarning, ...] = ()


def summary_of(done: TaskResult) -> Summary:
    """Say what has come of a rank; an error that cannot be sent becomes one that can."""
    outcome: ShardResult = done.result or ShardResult(None, None, 0, done.error)
    has_model, has_checkpoint = outcome.model is not None, outcome.checkpoint is not None
    error = _sendable(outcome.error)
    return Summary(outcome.n_iter, has_model, has_checkpoint, error, outcome.warned)


def model_of(done: TaskResult) -> bytes:
    """Return the model that came of a rank, as it is sent."""
    return pickle.dumps(done.result.model)


def checkpoint_of(done: TaskResult) -> bytes:
    """Return the state in which a rank was broken off."""
    return done.result.checkpoint  # type: ignore[no-any-return]


def _sendable(error: BaseException | None) -> BaseException | None:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def read_model(sent: bytes) -> Any:
    """Return a model that was sent."""
    return pickle.loads(sent)
