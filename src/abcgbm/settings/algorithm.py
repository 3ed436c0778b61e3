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


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(repr(name) for name in names)


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), _KNOWN, n=1, cutoff=0.75)
    return f"; did you mean {near[0]!r}?" if near else ""
