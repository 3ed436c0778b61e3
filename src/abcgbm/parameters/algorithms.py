"""Algorithms: the kinds of trees, derivatives and base classes."""

import difflib
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator

_KNOWN = ("mart", "abc-mart", "logitboost", "abc-logitboost")
TREES = ("per-class", "shared")
_DEFAULT = {"per-class": "abc-mart", "shared": "logitboost"}


@dataclass(frozen=True)
class Algorithm:
    """What distinguishes one algorithm from another.

    Attributes
    ----------
    base_derivatives : bool
        Residuals and hessians against a base class (Alg. 3 of the paper), not plain (Alg. 2).
    hessian_split : bool
        A row weighs its hessian in the split gain (robust LogitBoost), not 1 (MART).
    shared_trees : bool
        One tree a step whose leaves hold a value for each class, not a tree for each class.
    """

    base_derivatives: bool
    hessian_split: bool
    shared_trees: bool = False

    @classmethod
    def from_names(cls, name: str, trees: str = "per-class") -> "Algorithm":
        """Return the algorithm of a name such as ``"abc-mart"``, or "auto", and a kind of trees."""
        known = _DEFAULT[trees] if name == "auto" else known_name("algorithm", name)
        algorithm = cls(
            base_derivatives=known.startswith("abc-"),
            hessian_split=known.endswith("logitboost"),
            shared_trees=trees == "shared",
        )
        if algorithm.shared_trees and algorithm.base_derivatives:
            raise ValueError(
                f"algorithm={name!r} with trees='shared'; expected 'mart' or 'logitboost': a "
                "shared tree moves every class by itself, and a base class was found to gain "
                "nothing there"
            )
        return algorithm

    @property
    def name(self) -> str:
        """The name, also where none was given."""
        return ("abc-" if self.base_derivatives else "") + (
            "logitboost" if self.hessian_split else "mart"
        )


def known_name(parameter: str, name: object) -> str:
    """Return the name of an algorithm, or say which there are."""
    if not isinstance(name, str):
        raise TypeError(f"{parameter}={name!r}; expected {_either(_KNOWN)}")
    if name not in _KNOWN:
        raise ValueError(f"{parameter}={name!r}; expected {_either(_KNOWN)}{_nearest(name)}")
    return name


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(repr(name) for name in names)


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), _KNOWN, n=1, cutoff=0.75)
    return f"; did you mean {near[0]!r}?" if near else ""


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
