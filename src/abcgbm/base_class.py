"""Which base class a step takes."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

_MOST_SHOWN = 10  # labels in an error message


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


class BasePolicy(Protocol):
    """Chooses the base class of the next step, as a class number; None for no base class."""

    def choose(self, step: int, class_losses: NDArray[np.float64]) -> int | None:
        """Return the base class of a step, given the class losses before it."""


class NoBase:
    """Plain boosting: no base class."""

    def choose(self, step: int, class_losses: NDArray[np.float64]) -> int | None:
        """Return None."""
        return None


@dataclass(frozen=True)
class ConstantBase:
    """The paper's "b1", "b7": one class throughout."""

    base: int

    def choose(self, step: int, class_losses: NDArray[np.float64]) -> int | None:
        """Return the class."""
        return self.base


@dataclass(frozen=True)
class WorstBase:
    """Alg. 3, line 10: the class of largest loss; at the first step, a class drawn at random."""

    first: int

    def choose(self, step: int, class_losses: NDArray[np.float64]) -> int | None:
        """Return the class of largest loss, the lowest among equals."""
        return self.first if step == 0 else int(np.argmax(class_losses))


def resolve_base_class(
    given: object,
    *,
    base_derivatives: bool,
    classes: NDArray[Any],
    rng: np.random.Generator,
) -> BasePolicy:
    """Turn the estimator's ``base_class`` into a policy.

    A fixed label needs the derivatives of a base class; "worst" goes with both kinds (with plain
    ones it is the paper's "Mb").
    """
    if given is None and not base_derivatives:
        return NoBase()
    if given is None or (isinstance(given, str) and given == "worst"):
        return WorstBase(first=int(rng.integers(len(classes))))
    if not base_derivatives:
        raise ValueError(
            f"base_class={given!r} fixes a base class, which needs an abc algorithm; "
            "with a plain one base_class is None or 'worst'"
        )
    label = given.label if isinstance(given, FixedBase) else given
    return ConstantBase(_index_of(label, classes))


def _index_of(label: object, classes: NDArray[Any]) -> int:
    known: list[Any] = classes.tolist()
    if label in known:
        return known.index(label)
    shown = ", ".join(map(repr, known[:_MOST_SHOWN])) + (
        ", ..." if len(known) > _MOST_SHOWN else ""
    )
    raise ValueError(f"base_class={label!r}; expected None, 'worst' or one of the labels {shown}")
