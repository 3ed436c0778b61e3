"""What a rank of a fit does on its Dask worker."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from distributed import Worker

from abcgbm.distributed.joining import form_of, join, no_rows_of
from abcgbm.distributed.on_rank import Kept, Outcome, RankRows, fit_on_rank
from abcgbm.distributed.partitions import Form, Part, Placed
from abcgbm.distributed.session import Done, Session
from abcgbm.distributed.warned import Warned
from abcgbm.ranks.reducer import RanksError, Reducer
from abcgbm.ranks.share import Share
from abcgbm.training.callbacks import Afar, Means, StepReport

Columns = tuple[Any, Any, Any]  # X, y, sample_weight


class Step(NamedTuple):
    """What the client hears of a step: a report, the losses as means, and now and then the state."""

    report: StepReport
    means: Means
    state: bytes | None = None


class MovedError(RanksError):
    """A worker does not have the partitions any longer that it had."""


@dataclass(frozen=True)
class RankWork:
    """The fit of one rank.

    Attributes
    ----------
    params : dict
        Parameters of the estimator.
    placed : Placed
        The partitions that the rank has.
    form : Form
        Of what the rows of all ranks consist.
    checkpoint : bytes or None
        The state to go on from.
    stopped : frozenset of tuple
        Phases and steps after which somebody has asked to stop already.
    elapsed : float
        Seconds that have passed since the fit began.
    """

    params: dict[str, Any]
    placed: Placed
    form: Form
    checkpoint: bytes | None
    stopped: frozenset[tuple[str, int]] = frozenset()
    elapsed: float = 0.0

    def __call__(self, session: Session, reducer: Reducer) -> Done:
        """Fit, and report each step."""
        params = self.params
        if params["n_jobs"] is None:
            params = params | {"n_jobs": session.worker.state.nthreads}
        rows, share = self._read(session.worker, reducer)
        _check_same_tables(share, rows.X)
        kept = Kept()

        def report(report: StepReport, means: Means) -> bool:
            return session.report(Step(report, means, kept.if_due()))

        afar = Afar(report, self.stopped, self.elapsed)
        outcome = fit_on_rank(params, rows, share, checkpoint=self.checkpoint, afar=afar, kept=kept)
        return Done(outcome, outcome.error)

    def _read(self, worker: Worker, reducer: Reducer) -> tuple[RankRows, Share]:
        learned = [(number, _held(worker, key)) for number, key in self.placed.learned]
        validated = [(number, _held(worker, key)) for number, key in self.placed.validated]
        columns, of_validation = _joined(learned, ""), _joined(validated, "_val")
        if not learned:
            columns = _none_like(of_validation, self.form.has_weights)
        if not validated and self.form.has_validation:
            of_validation = _none_like(columns, self.form.has_validation_weights)
        return RankRows(*columns, *of_validation), Share(
            reducer, _sizes(learned), _sizes(validated)
        )


def _sizes(parts: list[tuple[int, Part]]) -> list[tuple[int, int]]:
    return [(number, part.n_rows) for number, part in parts]


def _check_same_tables(share: Share, X: Any) -> None:
    """Raise the same error on all ranks unless the tables of all have the same type and columns."""
    own = (share.parts[0][0], form_of(X)) if share.parts else None
    forms = [form for form in share.reducer.gather(own) if form]
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
        raise MovedError(f"worker {worker.address} has not got {key!r} any longer") from error
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

    n_steps: int
    has_model: bool
    has_checkpoint: bool
    error: BaseException | None
    warned: tuple[Warned, ...] = ()


def summary_of(done: Done) -> Summary:
    """Say what has come of a rank; an error that cannot be sent becomes one that can."""
    outcome: Outcome = done.result or Outcome(None, None, 0, done.error)
    has_model, has_checkpoint = outcome.model is not None, outcome.checkpoint is not None
    error = _sendable(outcome.error)
    return Summary(outcome.n_steps, has_model, has_checkpoint, error, outcome.warned)


def model_of(done: Done) -> bytes:
    """Return the model that came of a rank, as it is sent."""
    return pickle.dumps(done.result.model)


def checkpoint_of(done: Done) -> bytes:
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
