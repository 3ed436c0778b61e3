"""How an algorithm takes a step, in the words of the native core."""

from dataclasses import dataclass

from abcgbm.model.ensemble import NO_BASE
from abcgbm.settings.algorithm import Algorithm


@dataclass(frozen=True)
class StepPlan:
    """The trees of one step, in the words of the native core.

    Attributes
    ----------
    bases : tuple of int
        Candidates for the class that takes the trees' values with a minus sign; (NO_BASE,) for none.
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
    4 p (1 - p), so one tree serves both classes. A shared tree does so by itself.
    """
    if bases:
        return StepPlan(bases, algorithm.base_derivatives, 1.0)
    if n_classes == 2 and not algorithm.shared_trees:  # noqa: PLR2004
        return StepPlan((0,), True, 1.0)
    return StepPlan((NO_BASE,), False, (n_classes - 1) / n_classes)
