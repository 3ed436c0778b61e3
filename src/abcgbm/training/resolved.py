"""Parameters resolved for a table, and which features may be split on."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from abcgbm.communication.communicator import Communicator
from abcgbm.communication.shard import LOCAL
from abcgbm.data.samples import ClassLabels
from abcgbm.data.schema import Schema, find_feature
from abcgbm.parameters.parameters import Parameters
from abcgbm.parameters.validators import is_integer
from abcgbm.training.base_class import BasePolicy, NoBase, resolve_base_class
from abcgbm.training.early_stopping import Limits


@dataclass(frozen=True)
class FeatureRules:
    """Which features a node may be cut on, as the core has it.

    Attributes
    ----------
    max_features : int
        Features that are drawn for each split; 0: all.
    max_path_features : int
        Features that may meet on a path; 0: no bound.
    interaction_groups : list of list of int
        Groups of features that may meet on a path; none at all: all may.
    """

    max_features: int
    max_path_features: int
    interaction_groups: list[list[int]]

    @classmethod
    def from_parameters_object(
        cls, max_features: Any, interaction_cst: Any, schema: Schema
    ) -> Self:
        """Make rules of two parameters, for a table of these columns."""
        n_features = len(schema.is_categorical)
        return cls(
            n_features_per_split(max_features, n_features),
            _most_that_meet(interaction_cst),
            interaction_groups(interaction_cst, n_features, schema.feature_names),
        )


def n_features_per_split(max_features: Any, n_features: int) -> int:
    """Return how many features are drawn for each split; 0 means all of them."""
    if max_features is None:
        return 0
    if isinstance(max_features, str):  # "sqrt"
        n_drawn = max(1, math.isqrt(n_features))
    elif is_integer(max_features):
        n_drawn = int(max_features)
        if n_drawn > n_features:
            raise ValueError(
                f"max_features={max_features!r}; expected at most the {n_features} features of X"
            )
    else:
        n_drawn = math.ceil(float(max_features) * n_features)
    return 0 if n_drawn >= n_features else n_drawn


def interaction_groups(given: Any, n_features: int, names: NDArray[Any] | None) -> list[list[int]]:
    """Return groups of features that may meet on a path; none at all means that all may.

    Features in no given group make a group of their own.
    """
    if given is None or _most_that_meet(given):
        return []
    groups = [sorted(group) for group in _feature_sets(given, n_features, names)]
    rest = sorted(set(range(n_features)).difference(*groups))
    return [*groups, rest] if rest else groups


def _most_that_meet(interaction_cst: Any) -> int:
    """Return how many features may meet on a path, whichever they are; 0: no bound."""
    bounds = {"no_interactions": 1, "pairwise": 2}
    return bounds.get(interaction_cst, 0) if isinstance(interaction_cst, str) else 0


def _feature_sets(given: Any, n_features: int, names: NDArray[Any] | None) -> list[set[int]]:
    if isinstance(given, str) or not _are_groups(given):
        raise ValueError(
            f"interaction_cst={given!r}; expected None, 'pairwise', 'no_interactions', or a list "
            "of lists of feature numbers or names"
        )
    return [{_feature_number(f, n_features, names) for f in group} for group in given]


def _are_groups(given: Any) -> bool:
    return isinstance(given, Iterable) and all(
        isinstance(group, Iterable) and not isinstance(group, str) for group in given
    )


def _feature_number(feature: Any, n_features: int, names: NDArray[Any] | None) -> int:
    number = find_feature(feature, n_features, names)
    if number is None:
        raise ValueError(
            f"interaction_cst names the feature {feature!r}; expected numbers from 0 to "
            f"{n_features - 1}" + ("" if names is None else " or names of columns")
        )
    return number


_LEFT_OPEN = (
    "learning_rate",
    "max_leaf_nodes",
    "l2_regularization",
    "max_features",
)


@dataclass(frozen=True)
class ResolvedParameters:
    """What a training goes by.

    Attributes
    ----------
    settings : Parameters
        What the user gave, and what the data decide.
    classes : ClassLabels
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
    phase : {"train", "plain", "refit"}
        Which training of a fit it is for: the first, the one without a base class that follows if
        validation wants no step of the first, or the one on all rows at the end.
    n_projections : int
        The directions that the cuts of shared trees are measured in: the classes, or fewer, which
        are drawn. 0 for trees per class.
    """

    settings: Parameters
    classes: ClassLabels
    base_policy: BasePolicy
    seed: int
    features: FeatureRules
    limits: Limits
    n_threads: int
    n_projections: int = 0
    phase: str = "train"

    def again(self, n_iter: int) -> "ResolvedParameters":
        """Return the plan of a second training, of so many steps and without validation."""
        limits = replace(self.limits, max_iter=n_iter, n_iter_no_change=None)
        return replace(self, limits=limits, phase="refit")

    def plain(self) -> "ResolvedParameters":
        """Return the plan of the same training without a base class."""
        algorithm = replace(self.settings.algorithm, base_derivatives=False)
        settings = replace(self.settings, algorithm=algorithm, base_class=None)
        return replace(self, settings=settings, base_policy=NoBase(), phase="plain")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes.labels)

    @property
    def stops_early(self) -> bool:
        """Whether the model is cut to its best step."""
        return self.limits.n_iter_no_change is not None

    @property
    def chosen(self) -> dict[str, Any]:
        """What the parameters became that may be left open, by name."""
        settings = self.settings
        return {
            "algorithm": settings.algorithm_object(self.n_projections),
            **{name: getattr(settings, name) for name in _LEFT_OPEN},
            "max_iter": self.limits.max_iter,
            "early_stopping": self.stops_early,
        }

    @property
    def has_draws(self) -> bool:
        """Whether rows, features or directions are drawn.

        Then a step that changes nothing is tried again with other draws before it ends training.
        """
        draws_directions = 0 < self.n_projections < self.n_classes
        return self.settings.subsample < 1 or self.features.max_features > 0 or draws_directions


def resolve_parameters(
    settings: Parameters,
    schema: Schema,
    classes: ClassLabels,
    began: float,
    *,
    seed: int | None = None,
    communicator: Communicator = LOCAL.communicator,
) -> ResolvedParameters:
    """Settle what is still open.

    Parameters
    ----------
    settings : Parameters
        What the user gave, and what the data decide.
    schema : Schema
        The columns of the table.
    classes : ClassLabels
        Its labels.
    began : float
        When the fit began, on the monotonic clock.
    seed : int or None
        That of an earlier fit, if this one goes on from it.
    communicator : Communicator
        The rank; what is drawn is drawn on the first one.
    """
    rng = settings.generator()
    policy = resolve_base_class(settings.base_class, classes.labels, rng)
    policy, drawn = communicator.broadcast((policy, int(rng.integers(2**64, dtype=np.uint64))))
    rules = FeatureRules.from_parameters_object(
        settings.max_features, settings.interaction_cst, schema
    )
    limits = _limits(settings, began)
    return ResolvedParameters(
        settings,
        classes,
        policy,
        drawn if seed is None else seed,
        rules,
        limits,
        settings.n_threads,
        _n_projections(settings, len(classes.labels)),
    )


def _n_projections(settings: Parameters, n_classes: int) -> int:
    if not settings.algorithm.shared_trees:
        return 0
    given = settings.n_projections
    return n_classes if given == "all" else min(int(given), n_classes)


def _limits(settings: Parameters, began: float) -> Limits:
    max_iter = cast(int | None, settings.max_iter)  # no more "auto"
    stops_early = bool(settings.early_stopping)
    if max_iter is None and settings.time_limit is None and not stops_early:
        raise ValueError(
            "max_iter=None without early stopping or a time limit; expected an integer from 1 on, "
            "or one of early_stopping=True, X_val, callbacks=[TimeLimit(seconds)]"
        )
    if settings.refit and not stops_early:
        raise ValueError(
            "refit=True without early stopping; expected early_stopping=True, or refit=False"
        )
    return Limits(
        max_iter=max_iter,
        deadline=None if settings.time_limit is None else began + settings.time_limit,
        n_iter_no_change=settings.n_iter_no_change if stops_early else None,
        tol=settings.tol,
    )
