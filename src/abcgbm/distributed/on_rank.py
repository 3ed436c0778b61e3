"""The fit of one rank: with the rows that it has, of the model of all rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from io import BytesIO
from typing import Any, NamedTuple

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.distributed.warned import Warned, warnings_kept
from abcgbm.ranks.share import Share
from abcgbm.training.callbacks import Afar
from abcgbm.training.checkpoint import Checkpoint
from abcgbm.training.course import Course
from abcgbm.training.preparation import FitArguments

_SECONDS = 30.0  # between two states that are kept elsewhere
_TIMES_ITS_COST = 20  # that much time lies between two of them at least
_MOST_BYTES = 2**24  # of a state that is sent with the report of a step


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
    warned : tuple of Warned
        What the user should be told.
    """

    model: ABCBoostClassifier | None
    checkpoint: bytes | None
    n_steps: int
    error: BaseException | None
    warned: tuple[Warned, ...] = ()


class Kept:
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
        return state if state is not None and len(state) <= _MOST_BYTES else None


def fit_on_rank(
    params: dict[str, Any],
    rows: RankRows,
    share: Share,
    *,
    checkpoint: bytes | None = None,
    afar: Afar | None = None,
    kept: Kept | None = None,
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
    afar : Afar or None
        Who follows the fit, on rank 0 alone.
    kept : Kept or None
        Is told how the state can be taken.
    """
    model = ABCBoostClassifier(**params)
    courses: list[Course] = []
    given = FitArguments(*rows, share, goes_on=True)
    resume_from = None if checkpoint is None else BytesIO(checkpoint)

    def told(course: Course) -> None:
        course.afar = afar if afar is not None and share.reducer.rank == 0 else course.afar
        courses.append(course)
        if kept is not None:
            kept.take = lambda: _written(model, course.state())

    def fit() -> Outcome:
        try:
            remark = model._fit(given, resume_from, told, 0.0 if afar is None else afar.elapsed)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
            state = courses[0].state() if courses else None
            return _broken_off(model, _given(checkpoint) if state is None else state, error)
        warned.extend([] if remark is None else [Warned(remark, UserWarning)])
        return Outcome(model, None, model.model_.n_steps, None)

    with warnings_kept() as warned:
        outcome = fit()
    return outcome._replace(warned=tuple(warned))


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
    return Outcome(None, _written(model, state), state.history.n_steps, error)


def _written(model: ABCBoostClassifier, state: Checkpoint | None) -> bytes | None:
    if state is None:
        return None
    file = BytesIO()
    state.save(file, model.get_params(deep=False))
    return file.getvalue()
