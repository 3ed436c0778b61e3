"""The algorithms as points in one small space.

The only place where an algorithm's name is parsed.
"""

import difflib
from dataclasses import dataclass

_KNOWN = ("mart", "abc-mart", "logitboost", "abc-logitboost")


@dataclass(frozen=True)
class Algorithm:
    """What distinguishes one algorithm from another.

    Attributes
    ----------
    base_derivatives : bool
        Residuals and hessians against a base class (Alg. 3 of the paper), not plain (Alg. 2).
    hessian_split : bool
        A row weighs its hessian in the split gain (robust LogitBoost), not 1 (MART).
    """

    base_derivatives: bool
    hessian_split: bool

    @classmethod
    def from_name(cls, name: object) -> "Algorithm":
        """Parse a name such as ``"abc-mart"``."""
        if not isinstance(name, str):
            raise TypeError(f"algorithm={name!r}; expected {_either(_KNOWN)}")
        if name not in _KNOWN:
            raise ValueError(f"algorithm={name!r}; expected {_either(_KNOWN)}{_nearest(name)}")
        return cls(
            base_derivatives=name.startswith("abc-"), hessian_split=name.endswith("logitboost")
        )


@dataclass(frozen=True)
class StepPlan:
    """The trees of one step, in the words of the native core.

    Attributes
    ----------
    bases : tuple of int
        Candidates for the class that takes the trees' values with a minus sign; (-1,) for none.
    base_derivatives : bool
        Whether residuals and hessians are those against the base class.
    leaf_scale : float
        Factor of the leaf values.
    """

    bases: tuple[int, ...]
    base_derivatives: bool
    leaf_scale: float


def plan_step(algorithm: Algorithm, n_classes: int, bases: tuple[int, ...]) -> StepPlan:
    """Say how a step with these candidates for the base class, or with none, is taken.

    The factor (K-1)/K belongs to plain boosting alone. With two classes plain boosting is boosting
    against base class 0: half the quotient r - p over p (1 - p) is the quotient of 2 (r - p) over
    4 p (1 - p), so one tree serves both classes.
    """
    if bases:
        return StepPlan(bases, algorithm.base_derivatives, 1.0)
    if n_classes == 2:  # noqa: PLR2004
        return StepPlan((0,), True, 1.0)
    return StepPlan((-1,), False, (n_classes - 1) / n_classes)


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(repr(name) for name in names)


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), _KNOWN, n=1, cutoff=0.75)
    return f"; did you mean {near[0]!r}?" if near else ""
