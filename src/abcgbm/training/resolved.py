"""Parameters resolved for a table: values in place of "auto", feature sampling and constraints."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from abcgbm.communication.communicator import Communicator
from abcgbm.communication.shard import LOCAL
from abcgbm.data.labels import ALLOWED_LABELS
from abcgbm.data.samples import ClassLabels
from abcgbm.data.schema import Schema, find_feature
from abcgbm.model.file.json_values import to_json
from abcgbm.parameters.parameters import Parameters
from abcgbm.parameters.validators import is_integer
from abcgbm.training.base_class import BasePolicy, NoBase, resolve_base_class
from abcgbm.training.early_stopping import Limits


@dataclass(frozen=True)
class FeatureRules:
    """Feature sampling and interaction constraints, as the native core takes them.

    Attributes
    ----------
    max_features : int
        Number of features drawn for each split; 0: all.
    max_path_features : int
        Maximum number of features on a path; 0: no limit.
    interaction_groups : list of list of int
        Groups of features that may interact; empty: no constraint.
    """

    max_features: int
    max_path_features: int
    interaction_groups: list[list[int]]

    @classmethod
    def from_parameters(cls, max_features: Any, interaction_cst: Any, schema: Schema) -> Self:
        """Resolve two parameters for the columns of a table."""
        n_features = len(schema.is_categorical)
        return cls(
            n_features_per_split(max_features, n_features),
            _max_path_features(interaction_cst),
            interaction_groups(interaction_cst, n_features, schema.feature_names),
        )


def n_features_per_split(max_features: Any, n_features: int) -> int:
    """Return the number of features drawn for each split; 0: all."""
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
    """Return the groups of features that may interact; empty: no constraint.

    Features without a group form one more group.
    """
    if given is None or _max_path_features(given):
        return []
    groups = [sorted(group) for group in _feature_sets(given, n_features, names)]
    rest = sorted(set(range(n_features)).difference(*groups))
    return [*groups, rest] if rest else groups


def _max_path_features(interaction_cst: Any) -> int:
    """Return the maximum number of features on a path; 0: no limit."""
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


# Parameters that may be "auto" and whose resolved values are in `settings`.
_AUTO_PARAMETERS = (
    "learning_rate",
    "max_leaf_nodes",
    "l2_regularization",
    "max_features",
)


@dataclass(frozen=True)
class ResolvedParameters:
    """Parameters of a training phase, with a value for every "auto".

    Attributes
    ----------
    settings : Parameters
        The parameters, with values that depend on the data.
    classes : ClassLabels
        Labels of the classes, and the factors of their weights.
    base_policy : BasePolicy
        Policy that chooses the base class; its first choice is already drawn.
    seed : int
        Key of all other draws.
    features : FeatureRules
        Feature sampling and interaction constraints.
    limits : Limits
        Limits of training.
    n_threads : int
        Number of threads.
    n_projections : int
        Number of projections that measure the splits of multi-output trees: all classes, or fewer
        random ones. 0 for one tree per class.
    phase : {"train", "plain", "refit"}
        "train" is the first phase; "plain" trains without a base class, if no iteration of the first
        phase improves the validation score; "refit" trains on all rows.
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

    def for_refit(self, n_iter: int) -> "ResolvedParameters":
        """Return the parameters of the refit: a given number of iterations, no validation."""
        limits = replace(self.limits, max_iter=n_iter, n_iter_no_change=None)
        return replace(self, limits=limits, phase="refit")

    def without_base_class(self) -> "ResolvedParameters":
        """Return the parameters of the same training without a base class."""
        algorithm = replace(self.settings.algorithm, base_derivatives=False)
        settings = replace(self.settings, algorithm=algorithm, base_class=None)
        return replace(self, settings=settings, base_policy=NoBase(), phase="plain")

    def check_can_be_saved(self) -> None:
        """Raise TypeError, before training, if the model could not be saved after it."""
        labels = self.classes.labels
        try:
            to_json(labels)
        except TypeError as error:
            raise TypeError(
                f"y has labels such as {labels[0]!r}: {error}; expected {ALLOWED_LABELS}, each of a "
                "type of Python or NumPy"
            ) from error
        for name, value in self.auto_values.items():
            try:
                to_json(value)
            except TypeError as error:
                raise TypeError(
                    f"{name}={value!r}: {error}; expected a type of abcgbm or Python"
                ) from error

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes.labels)

    @property
    def stops_early(self) -> bool:
        """Whether the model is truncated to its best iteration."""
        return self.limits.n_iter_no_change is not None

    @property
    def auto_values(self) -> dict[str, Any]:
        """Values of the parameters that may be "auto", by name."""
        settings = self.settings
        return {
            "algorithm": settings.algorithm_object(self.n_projections),
            **{name: getattr(settings, name) for name in _AUTO_PARAMETERS},
            "max_iter": self.limits.max_iter,
            "early_stopping": self.stops_early,
        }

    @property
    def has_draws(self) -> bool:
        """Whether rows, features or projections are drawn, so that other draws may help."""
        draws_projections = 0 < self.n_projections < self.n_classes
        return self.settings.subsample < 1 or self.features.max_features > 0 or draws_projections


def resolve_parameters(
    settings: Parameters,
    schema: Schema,
    classes: ClassLabels,
    start_time: float,
    *,
    seed: int | None = None,
    communicator: Communicator = LOCAL.communicator,
) -> ResolvedParameters:
    """Resolve the parameters that depend on the classes and the columns, and draw the seed.

    Parameters
    ----------
    settings : Parameters
        The parameters, with values that depend on the number of rows.
    schema : Schema
        Columns of the table.
    classes : ClassLabels
        Labels of the classes.
    start_time : float
        Start of the fit on the monotonic clock.
    seed : int or None
        Seed of the fit that is continued; None: a new one.
    communicator : Communicator
        Communicator of this rank; rank 0 draws for all.
    """
    rng = settings.generator()
    policy = resolve_base_class(settings.base_class, classes.labels, rng)
    policy, drawn = communicator.broadcast((policy, int(rng.integers(2**64, dtype=np.uint64))))
    rules = FeatureRules.from_parameters(settings.max_features, settings.interaction_cst, schema)
    limits = _limits(settings, start_time)
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
    if not settings.algorithm.multi_output:
        return 0
    given = settings.n_projections
    return n_classes if given == "all" else min(int(given), n_classes)


def _limits(settings: Parameters, start_time: float) -> Limits:
    max_iter = cast(int | None, settings.max_iter)  # "auto" is resolved by now
    stops_early = bool(settings.early_stopping)
    if max_iter is None and settings.time_limit is None and not stops_early:
        raise ValueError(
            "max_iter=None without early stopping or a time limit; expected an integer of at least 1, "
            "or one of early_stopping=True, X_val, callbacks=[TimeLimit(seconds)]"
        )
    if settings.refit and not stops_early:
        raise ValueError(
            "refit=True without early stopping; expected early_stopping=True, or refit=False"
        )
    return Limits(
        max_iter=max_iter,
        deadline=None if settings.time_limit is None else start_time + settings.time_limit,
        n_iter_no_change=settings.n_iter_no_change if stops_early else None,
        tol=settings.tol,
    )
