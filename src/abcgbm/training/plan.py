"""What is settled before a training begins."""

from typing import Any, NamedTuple, Self

import numpy as np

from abcgbm.data.rows import AnyTable
from abcgbm.settings import parameters
from abcgbm.settings.algorithm import Algorithm
from abcgbm.training.base_class import BasePolicy, resolve_base_class
from abcgbm.training.constraints import FeatureRules
from abcgbm.training.start import EarlierFit
from abcgbm.training.stopping import Limits


class Plan(NamedTuple):
    """What is settled before a training begins.

    Attributes
    ----------
    base_policy : BasePolicy
        Which base classes are tried; it has drawn the first one.
    seed : int
        The key of all other draws.
    features : FeatureRules
        Which features a node may be cut on.
    limits : Limits
        How long training may go on; with early stopping the model is cut to its best step.
    """

    base_policy: BasePolicy
    seed: int
    features: FeatureRules
    limits: Limits

    @property
    def stops_early(self) -> bool:
        """Whether the model is cut to its best step."""
        return self.limits.n_iter_no_change is not None

    @classmethod
    def of(
        cls,
        model: Any,
        table: AnyTable,
        earlier: EarlierFit | None,
        began: float,
        *,
        has_validation: bool,
    ) -> Self:
        """Settle it by the parameters of an estimator that knows its classes."""
        rng = parameters.generator(model.random_state)
        policy = resolve_base_class(
            model.base_class,
            base_derivatives=Algorithm.from_name(model.algorithm).base_derivatives,
            classes=model.classes_,
            rng=rng,
        )
        seed = int(rng.integers(2**64, dtype=np.uint64))
        return cls(
            policy,
            seed if earlier is None else earlier.seed,
            FeatureRules.of(
                model.max_features, model.interaction_cst, table.shape[1], table.feature_names
            ),
            _limits(model, began, has_validation=has_validation),
        )


def _limits(model: Any, began: float, *, has_validation: bool) -> Limits:
    is_auto = model.early_stopping == "auto"
    stops_early = has_validation if is_auto else bool(model.early_stopping)
    parameters.check_that_training_ends(model, stops_early=stops_early)
    return Limits(
        max_iter=model.max_iter,
        deadline=None if model.max_time is None else began + model.max_time,
        n_iter_no_change=model.n_iter_no_change if stops_early else None,
        tol=model.tol,
    )
