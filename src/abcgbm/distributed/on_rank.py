"""The fit of one rank: with the rows that it has, of the model of all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, NamedTuple

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.ranks.share import Share
from abcgbm.training.callbacks import StepReport
from abcgbm.training.checkpoint import Checkpoint
from abcgbm.training.course import Course
from abcgbm.training.preparation import FitArguments


class RankRows(NamedTuple):
    """The rows of a rank, as ``fit`` takes them."""

    X: Any
    y: Any
    sample_weight: Any = None
    X_val: Any = None
    y_val: Any = None
    sample_weight_val: Any = None


class Outcome(NamedTuple):
    """What has come of a fit.

    Attributes
    ----------
    model : ABCBoostClassifier or None
        The fitted estimator; None if the fit was broken off.
    checkpoint : bytes or None
        If it was: the state after the last step that was whole; None if there was none.
    n_steps : int
        The steps of the model, or of that state.
    error : BaseException or None
        What broke it off.
    """

    model: ABCBoostClassifier | None
    checkpoint: bytes | None
    n_steps: int
    error: BaseException | None


def fit_on_rank(
    params: dict[str, Any],
    rows: RankRows,
    share: Share,
    *,
    checkpoint: bytes | None = None,
    on_step: Callable[[StepReport], bool] | None = None,
) -> Outcome:
    """Fit ``ABCBoostClassifier(**params)`` with the rows of this rank, as all ranks do.

    Parameters
    ----------
    params : dict
        The parameters.
    rows : RankRows
        The rows of this rank; there may be none.
    share : Share
        The rank, and where its rows stand among all.
    checkpoint : bytes or None
        The state to go on from, the same on all ranks.
    on_step : callable or None
        Is told of each step, on rank 0 alone; True asks to stop.
    """
    model = ABCBoostClassifier(**params)
    courses: list[Course] = []
    given = FitArguments(*rows, share)
    resume_from = None if checkpoint is None else BytesIO(checkpoint)
    try:
        with _heard(model, on_step):
            model._fit(given, resume_from, courses.append)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
        state = courses[0].state() if courses else None
        return _broken_off(model, _given(checkpoint) if state is None else state, error)
    return Outcome(model, None, model.model_.n_steps, None)


@contextmanager
def _heard(
    model: ABCBoostClassifier, on_step: Callable[[StepReport], bool] | None
) -> Iterator[None]:
    """Let a function hear of the steps, after the callbacks that were given."""
    given = model.callbacks
    if on_step is not None:
        before = [] if given is None else [given] if callable(given) else [*given]
        model.callbacks = [*before, on_step]
    try:
        yield
    finally:
        model.callbacks = given


def _given(checkpoint: bytes | None) -> Checkpoint | None:
    """Return the state that was to be gone on with; None if there is none that could be."""
    if checkpoint is None:
        return None
    try:
        return Checkpoint.load(BytesIO(checkpoint))
    except ValueError:
        return None


def _broken_off(
    model: ABCBoostClassifier, state: Checkpoint | None, error: BaseException
) -> Outcome:
    if state is None:
        return Outcome(None, None, 0, error)
    file = BytesIO()
    state.save(file, model.get_params(deep=False))
    return Outcome(None, file.getvalue(), state.history.n_steps, error)
