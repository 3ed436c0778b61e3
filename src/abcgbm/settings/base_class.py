"""What can be given as base class beside a label or the name of a policy."""

from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class FixedBase:
    """The same base class at every step.

    Needed only where a label is itself spelled like a policy, such as ``"worst"``; any other label
    can be given as ``base_class`` directly.

    Parameters
    ----------
    label : object
        One of the labels in ``y``.
    """

    label: Any


class BaseClassSearch(BaseEstimator):
    """Try several base classes at a step, and keep the best one for a while.

    Parameters
    ----------
    n_candidates : int, default=2
        How many classes to try, those of largest training loss: 1 to the number of classes. The one
        with the smallest training loss after its step is taken.
    gap : int, default=5
        For how many further steps the choice is kept.
    warmup : int, default=0
        Number of plain steps, without a base class, at the start.

    Notes
    -----
    ``n_candidates=1, gap=0, warmup=0`` is ``"worst"``; ``n_candidates=K, gap=0, warmup=0`` with K
    classes is ``"exhaustive"``. The parameters can be searched over: with
    ``model = ABCBoostClassifier(base_class=BaseClassSearch())``,
    ``GridSearchCV(model, {"base_class__gap": [0, 5, 20]})``.
    """

    def __init__(self, n_candidates: int = 2, gap: int = 5, warmup: int = 0) -> None:
        self.n_candidates = n_candidates
        self.gap = gap
        self.warmup = warmup
