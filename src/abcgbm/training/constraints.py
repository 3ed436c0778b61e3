"""Which features may meet in a tree, and how many are looked at for a split."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from numpy.typing import NDArray

from abcgbm.data.features import find_feature
from abcgbm.data.tables import Schema
from abcgbm.settings.checks import is_integer


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
    def from_settings(cls, max_features: Any, interaction_cst: Any, schema: Schema) -> Self:
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
