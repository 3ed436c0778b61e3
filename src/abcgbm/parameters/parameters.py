"""Validated parameters of the classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Self, get_type_hints

import numpy as np

from abcgbm.parameters.algorithms import (
    AdaptiveBaseClass,
    AlgorithmObject,
    MultiOutputTrees,
    TreePerClass,
)
from abcgbm.parameters.machine import effective_n_threads
from abcgbm.parameters.objects import (
    Algorithm,
    BaseClassChoice,
    of_algorithm,
    of_callbacks,
    of_categorical,
)
from abcgbm.parameters.scoring import Scoring, check_scoring
from abcgbm.parameters.validators import (
    FROM_ZERO,
    Check,
    anything,
    check_boolean,
    check_choice,
    check_integer,
    choice,
    integer,
    is_integer,
    optional,
    or_auto,
    real,
    with_value_hint,
)

Callback = Callable[[Any], object]
MAX_BINS = integer(2, 65534)

_POSITIVE = real("above 0", lambda x: x > 0)
_SHARE = real("above 0 and at most 1", lambda x: 0 < x <= 1)
_PART = real("above 0 and below 1", lambda x: 0 < x < 1)


def _max_features(name: str, value: Any) -> int | float | str | None:
    allowed = (
        "expected 'auto', None, 'sqrt', an integer from 1 on, or a share above 0 and at most 1.0"
    )
    if value is None:
        return None
    if isinstance(value, str) and value in ("auto", "sqrt"):
        return str(check_choice(name, value, ("auto", "sqrt")))
    if isinstance(value, str):  # of which one is allowed
        raise ValueError(f"{name}={value!r}; {allowed}")  # noqa: TRY004
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r}; {allowed}")
    number: int | float = int(value) if is_integer(value) else float(value)  # type: ignore[call-overload]
    if not (number >= 1 if is_integer(value) else 0 < number <= 1):
        raise ValueError(f"{name}={value!r}; {allowed}")
    return number


def _class_weight(name: str, value: Any) -> Any:
    if isinstance(value, str) and value != "balanced":
        raise ValueError(
            f"{name}={value!r}; expected None, 'balanced' or a dict of labels to factors"
        )
    return value


def _n_jobs(_name: str, value: Any) -> int | None:
    effective_n_threads(value)
    return None if value is None else int(value)


def check_random_state(name: str, value: Any) -> Any:
    """Return what ``generator_of`` takes."""
    drawing = np.random.RandomState | np.random.Generator
    if value is None or isinstance(value, drawing) or (is_integer(value) and int(value) >= 0):
        return value
    error = ValueError if is_integer(value) else TypeError
    raise error(
        f"{name}={value!r}; expected None, an integer from 0 on, a numpy RandomState or a numpy "
        "Generator"
    )


def generator_of(random_state: Any) -> np.random.Generator:
    """Return a generator for a ``random_state``, which moves on if it is one itself; None is 0."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(int(random_state or 0))


def _verbose(name: str, value: Any) -> int:
    return int(value) if isinstance(value, bool) else check_integer(name, value, 0)


@dataclass(frozen=True)
class Parameters:
    """The validated parameters of the classifier.

    Those of the algorithm, of ``Categorical`` and of declared callbacks are fields of their own. What
    depends on the table or its classes is as it was given: "auto", whatever the type says, until
    ``abcgbm.parameters.defaults`` resolves it.
    """

    learning_rate: Annotated[float, or_auto(_SHARE)]
    max_iter: Annotated[int | str | None, or_auto(optional(integer(1)))]
    max_leaf_nodes: Annotated[int, or_auto(integer(2, 32768))]
    max_depth: Annotated[int | None, optional(integer(1))]
    min_samples_leaf: Annotated[float, _POSITIVE]
    l2_regularization: Annotated[float, or_auto(FROM_ZERO)]
    max_bins: Annotated[int, MAX_BINS]
    max_features: Annotated[int | float | str | None, _max_features]
    interaction_cst: Annotated[Any, anything]
    subsample: Annotated[float, _SHARE]
    classes: Annotated[Any, anything]
    class_weight: Annotated[Any, with_value_hint("class_weight", _class_weight)]
    early_stopping: Annotated[bool | str, choice("auto", True, False)]
    validation_fraction: Annotated[float, _PART]
    n_iter_no_change: Annotated[int, integer(1)]
    tol: Annotated[float, FROM_ZERO]
    scoring: Annotated[Scoring, with_value_hint("scoring", check_scoring)]
    refit: Annotated[bool, check_boolean]
    warm_start: Annotated[bool, check_boolean]
    n_jobs: Annotated[int | None, _n_jobs]
    random_state: Annotated[Any, check_random_state]
    verbose: Annotated[int, _verbose]
    # Of the algorithm.
    algorithm: Algorithm
    baseline: (
        str  # "auto" where the algorithm was given by name: a warm start keeps that of the model
    )
    min_gain: float
    min_hessian_leaf: float
    n_projections: int | str
    sequential_residuals: bool
    recenter: bool
    base_class: BaseClassChoice | None
    line_search: bool
    # Of Categorical.
    categorical_features: Any
    categorical_smoothing: float
    categorical_penalty: float
    handle_unknown: str
    # Of callbacks.
    callbacks: tuple[Callback, ...]
    time_limit: float | None
    checkpoint: Path | None
    checkpoint_every: int | None
    keep_on_interrupt: bool

    @classmethod
    def from_parameters(cls, given: Mapping[str, Any]) -> Self:
        """Validate the parameters of an estimator, first one by one and then together."""
        checked = {name: check(name, given[name]) for name, check in _checks().items()}
        parameters = cls(
            **checked,
            **of_algorithm(given["algorithm"]),
            **of_categorical(given["categorical_features"]),
            **of_callbacks(given["callbacks"]),
        )
        _check_refit(given)
        return parameters

    def algorithm_object(self, n_projections: int) -> AlgorithmObject:
        """Return the algorithm as the constructor takes it."""
        common: dict[str, Any] = {
            "criterion": self.algorithm.criterion,
            "min_gain": self.min_gain,
            "min_hessian_leaf": self.min_hessian_leaf,
            "baseline": self.baseline,
        }
        if self.algorithm.multi_output:
            return MultiOutputTrees(n_projections=n_projections, **common)
        if self.base_class is None:
            return TreePerClass(
                sequential_residuals=self.sequential_residuals, recenter=self.recenter, **common
            )
        return AdaptiveBaseClass(
            **vars(self.base_class),
            base_derivatives=self.algorithm.base_derivatives,
            line_search=self.line_search,
            **common,
        )

    @property
    def n_threads(self) -> int:
        """Number of threads, as of now."""
        return effective_n_threads(self.n_jobs)

    def generator(self) -> np.random.Generator:
        """Return a generator for ``random_state``."""
        return generator_of(self.random_state)


@cache
def _checks() -> dict[str, Check]:
    """Return the checks of the plain parameters, read from the annotations once."""
    hints = get_type_hints(Parameters, include_extras=True)
    return {name: of.__metadata__[0] for name, of in hints.items() if hasattr(of, "__metadata__")}


def _check_refit(given: Mapping[str, Any]) -> None:
    if not given["refit"]:
        return
    if given["warm_start"]:
        raise ValueError(
            "refit=True with warm_start=True; expected one of the two: a model that has learned from "
            "the rows held out cannot be validated on them later"
        )
    if given["early_stopping"] is False:
        raise ValueError(
            "refit=True with early_stopping=False; expected early_stopping=True, or refit=False: "
            "without validation there is no best iteration"
        )
