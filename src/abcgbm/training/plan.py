"""The settings, settled for a table and its classes: what could not be known before."""

from dataclasses import dataclass

import numpy as np

from abcgbm.data.rows import Classes
from abcgbm.data.tables import Schema
from abcgbm.settings.settings import Settings
from abcgbm.training.base_class import BasePolicy, resolve_base_class
from abcgbm.training.constraints import FeatureRules
from abcgbm.training.stopping import Limits


@dataclass(frozen=True)
class Plan:
    """What a training goes by.

    Attributes
    ----------
    settings : Settings
        What the user gave.
    classes : Classes
        The labels, and the factors of their weights.
    base_policy : BasePolicy
        Which base classes are tried; it has drawn the first one.
    seed : int
        The key of all other draws.
    features : FeatureRules
        Which features a node may be cut on.
    limits : Limits
        How long training may go on; with early stopping the model is cut to its best step.
    n_threads : int
        Number of threads.
    """

    settings: Settings
    classes: Classes
    base_policy: BasePolicy
    seed: int
    features: FeatureRules
    limits: Limits
    n_threads: int

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes.labels)

    @property
    def stops_early(self) -> bool:
        """Whether the model is cut to its best step."""
        return self.limits.n_iter_no_change is not None

    @property
    def has_draws(self) -> bool:
        """Whether rows or features are drawn.

        Then a step that changes nothing is tried again with other draws before it ends training.
        """
        return self.settings.subsample < 1 or self.features.max_features > 0


def make_plan(
    settings: Settings,
    schema: Schema,
    classes: Classes,
    began: float,
    *,
    has_validation: bool,
    seed: int | None = None,
) -> Plan:
    """Settle what the settings leave open.

    Parameters
    ----------
    settings : Settings
        What the user gave.
    schema : Schema
        The columns of the table.
    classes : Classes
        Its labels.
    began : float
        When the fit began, on the monotonic clock.
    has_validation : bool
        Whether rows to validate on were given.
    seed : int or None
        That of an earlier fit, if this one goes on from it.
    """
    rng = settings.generator()
    policy = resolve_base_class(
        settings.base_class,
        base_derivatives=settings.algorithm.base_derivatives,
        classes=classes.labels,
        rng=rng,
    )
    drawn = int(rng.integers(2**64, dtype=np.uint64))
    rules = FeatureRules.from_settings(settings.max_features, settings.interaction_cst, schema)
    limits = _limits(settings, began, has_validation=has_validation)
    key = drawn if seed is None else seed
    return Plan(settings, classes, policy, key, rules, limits, settings.n_threads)


def _limits(settings: Settings, began: float, *, has_validation: bool) -> Limits:
    is_auto = settings.early_stopping == "auto"
    stops_early = has_validation if is_auto else bool(settings.early_stopping)
    if settings.max_iter is None and settings.max_time is None and not stops_early:
        raise ValueError(
            "max_iter=None without early stopping or max_time; expected an integer from 1 on, "
            "or one of early_stopping=True, X_val, max_time"
        )
    return Limits(
        max_iter=settings.max_iter,
        deadline=None if settings.max_time is None else began + settings.max_time,
        n_iter_no_change=settings.n_iter_no_change if stops_early else None,
        tol=settings.tol,
    )
