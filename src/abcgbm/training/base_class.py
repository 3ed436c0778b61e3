"""Policies that choose the candidates for the base class of an iteration (ABC-Boost only)."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.labels import label_objects
from abcgbm.errors import quoted_list
from abcgbm.parameters.objects import BaseClassChoice


class BasePolicy(Protocol):
    """Chooses the candidates for the base class of each iteration, as class numbers."""

    @property
    def n_candidates(self) -> int:
        """Maximum number of candidates of an iteration, at least 1."""

    def candidates(
        self, n_iter: int, class_losses: NDArray[np.float64], previous: int | None
    ) -> tuple[int, ...]:
        """Return the candidates, given the class losses and the previous base class; () for none."""


@dataclass(frozen=True)
class NoBase:
    """Plain boosting: no base class."""

    n_candidates: int = field(default=1, init=False)

    def candidates(
        self, n_iter: int, class_losses: NDArray[np.float64], previous: int | None
    ) -> tuple[int, ...]:
        """Return no candidate."""
        return ()


@dataclass(frozen=True)
class ConstantBase:
    """The same base class in every iteration ("b1", "b7" in the paper)."""

    base: int
    n_candidates: int = field(default=1, init=False)

    def candidates(
        self, n_iter: int, class_losses: NDArray[np.float64], previous: int | None
    ) -> tuple[int, ...]:
        """Return the class."""
        return (self.base,)


@dataclass(frozen=True)
class WorstBases:
    """The classes of largest loss, searched in every iteration or with gaps.

    With one candidate and no gap this is line 10 of Algorithm 3. The first base class is drawn at
    random, because the initial loss of a class only reflects its size.
    """

    first: int
    n_candidates: int = 1
    gap: int = 0
    warmup: int = 0

    def candidates(
        self, n_iter: int, class_losses: NDArray[np.float64], previous: int | None
    ) -> tuple[int, ...]:
        """Return the classes of largest loss in ascending order; of equal losses the lowest class."""
        if n_iter < self.warmup:
            return ()
        if previous is not None and (n_iter - self.warmup) % (self.gap + 1) != 0:
            return (previous,)
        if self.n_candidates == 1:
            return (self.first if n_iter == 0 else int(np.argmax(class_losses)),)
        worst_first = np.argsort(-class_losses, kind="stable")
        return tuple(sorted(worst_first[: self.n_candidates].tolist()))


def resolve_base_class(
    given: BaseClassChoice | None, classes: NDArray[Any], rng: np.random.Generator
) -> BasePolicy:
    """Return the policy of an algorithm for these classes; None is boosting without a base class."""
    if given is None:
        return NoBase()
    first = int(rng.integers(len(classes)))
    if given.base_label is not None:
        return ConstantBase(_index_of(given.base_label, classes))
    n_candidates = len(classes) if given.n_candidates is None else given.n_candidates
    return WorstBases(first, min(n_candidates, len(classes)), given.gap, given.warmup)


def _index_of(label: object, classes: NDArray[Any]) -> int:
    known = label_objects(classes)
    for index, candidate in enumerate(known):
        if candidate == label and isinstance(candidate, bool) == isinstance(label, bool | np.bool_):
            return index
    raise ValueError(
        f"AdaptiveBaseClass: base_label={label!r}; expected one of the labels {quoted_list(known)}"
    )
