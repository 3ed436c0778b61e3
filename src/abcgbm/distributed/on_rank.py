"""The fit of one rank: with the rows that it has, of the model of all rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from abcgbm.classifier import ABCBoostClassifier
from abcgbm.ranks.share import Share
from abcgbm.training.callbacks import StepReport


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
    raise NotImplementedError
