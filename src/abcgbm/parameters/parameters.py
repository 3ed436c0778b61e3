"""Validated parameters of the classifier."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Self, get_type_hints

import numpy as np

from abcgbm.parameters.algorithms import (
    ALGORITHM_NAMES,
    AdaptiveBaseClass,
    AlgorithmObject,
    Categorical,
    MultiOutputTrees,
    ParameterGroup,
    TreePerClass,
    named_algorithm,
)
from abcgbm.parameters.callbacks import callback_fields
from abcgbm.parameters.hints import value_hint
from abcgbm.parameters.machine import effective_n_threads
from abcgbm.parameters.scoring import Scoring, check_scoring
from abcgbm.parameters.validators import (
    Check,
    anything,
    check_boolean,
    check_choice,
    check_group,
    check_integer,
    choice,
    integer,
    is_integer,
    is_integral,
    optional,
    or_auto,
    real,
    with_value_hint,
)

Callback = Callable[[Any], object]
MAX_BINS = integer(2, 65534)
HANDLE_UNKNOWN = choice("missing", "error")

_POSITIVE = real("above 0", lambda x: x > 0)
_NOT_NEGATIVE = real("of at least 0", lambda x: x >= 0)
_FRACTION_OR_ONE = real("above 0 and at most 1", lambda x: 0 < x <= 1)
_FRACTION = real("above 0 and below 1", lambda x: 0 < x < 1)


def _n_projections(name: str, value: Any) -> int | str:
    if isinstance(value, str) and value in ("auto", "all"):
        return str(value)
    allowed = "expected 'auto', 'all' or an integer of at least 1"
    if not is_integral(value) and not isinstance(value, str):
        raise TypeError(f"{name}={value!r}; {allowed}")
    if isinstance(value, str) or value < 1:
        raise ValueError(f"{name}={value!r}; {allowed}")
    return int(value)


def _max_features(name: str, value: Any) -> int | float | str | None:
    allowed = "expected 'auto', None, 'sqrt', an integer of at least 1, or a fraction above 0 and at most 1.0"
    if value is None:
        return None
    if isinstance(value, str) and value in ("auto", "sqrt"):
        return str(check_choice(name, value, ("auto", "sqrt")))
    if isinstance(value, str):
        raise ValueError(f"{name}={value!r}; {allowed}")  # noqa: TRY004
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r}; {allowed}")
    number: int | float = int(value) if is_integer(value) else float(value)  # type: ignore[call-overload]
    if not (number >= 1 if is_integer(value) else 0 < number <= 1):
        raise ValueError(f"{name}={value!r}; {allowed}")
    return number


def _categorical_columns(name: str, value: Any) -> Any:
    if isinstance(value, str) and value != "auto":
        raise TypeError(f"{name}={value!r}; expected 'auto', None, a list, or Categorical(...)")
    return value


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
    """Return a valid ``random_state`` unchanged."""
    generators = np.random.RandomState | np.random.Generator
    if value is None or isinstance(value, generators) or (is_integer(value) and int(value) >= 0):
        return value
    error = ValueError if is_integer(value) else TypeError
    raise error(
        f"{name}={value!r}; expected None, an integer of at least 0, a numpy RandomState or a numpy "
        "Generator"
    )


def generator_of(random_state: Any) -> np.random.Generator:
    """Return a generator for a ``random_state``; a generator is advanced, and None is 0."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(int(random_state or 0))


def _verbose(name: str, value: Any) -> int:
    return int(value) if isinstance(value, bool) else check_integer(name, value, 0)


@dataclass(frozen=True)
class Algorithm:
    """The properties that distinguish the algorithms.

    Attributes
    ----------
    base_derivatives : bool
        Whether residuals and hessians are those with respect to a base class (Alg. 3 of the paper).
    hessian_split : bool
        Whether the split gain weights rows by their hessian (robust LogitBoost) or equally (MART).
    shared_trees : bool
        Whether there is one tree per iteration with a value per class in each leaf, or one per class.
    """

    base_derivatives: bool
    hessian_split: bool
    shared_trees: bool = False

    @property
    def name(self) -> str:
        """The name of the algorithm, as in the paper."""
        return ("abc-" if self.base_derivatives else "") + self.criterion

    @property
    def criterion(self) -> str:
        """The split gain."""
        return "logitboost" if self.hessian_split else "mart"


@dataclass(frozen=True)
class BaseClassChoice:
    """Parameters of ``AdaptiveBaseClass`` about the choice of the base class."""

    n_candidates: int | None = 1
    gap: int = 0
    warmup: int = 0
    base_label: Any = None


@dataclass(frozen=True)
class Parameters:
    """The validated parameters of the classifier.

    Parameters of the algorithm, of ``Categorical`` and of declared callbacks are flattened into fields.
    "auto" is kept in fields of any type until ``abcgbm.parameters.defaults`` resolves it, since the
    values depend on the table.
    """

    learning_rate: Annotated[float, or_auto(_FRACTION_OR_ONE)]
    max_iter: Annotated[int | str | None, or_auto(optional(integer(1)))]
    max_leaf_nodes: Annotated[int, or_auto(integer(2, 32768))]
    max_depth: Annotated[int | None, optional(integer(1))]
    min_samples_leaf: Annotated[float, _POSITIVE]
    l2_regularization: Annotated[float, or_auto(_NOT_NEGATIVE)]
    max_bins: Annotated[int, MAX_BINS]
    max_features: Annotated[int | float | str | None, _max_features]
    interaction_cst: Annotated[Any, anything]
    subsample: Annotated[float, _FRACTION_OR_ONE]
    classes: Annotated[Any, anything]
    class_weight: Annotated[Any, with_value_hint("class_weight", _class_weight)]
    early_stopping: Annotated[bool | str, choice("auto", True, False)]
    validation_fraction: Annotated[float, _FRACTION]
    n_iter_no_change: Annotated[int, integer(1)]
    tol: Annotated[float, _NOT_NEGATIVE]
    scoring: Annotated[Scoring, with_value_hint("scoring", check_scoring)]
    refit: Annotated[bool, check_boolean]
    warm_start: Annotated[bool, check_boolean]
    n_jobs: Annotated[int | None, _n_jobs]
    random_state: Annotated[Any, check_random_state]
    verbose: Annotated[int, _verbose]
    # The algorithm.
    algorithm: Algorithm
    baseline: str  # "auto" if the algorithm is given by name: a warm start keeps the model's
    min_gain: float
    min_hessian_leaf: float
    n_projections: int | str
    sequential_residuals: bool
    recenter: bool
    base_class: BaseClassChoice | None
    line_search: bool
    # Categorical.
    categorical_features: Any
    categorical_smoothing: float
    categorical_penalty: float
    handle_unknown: str
    # Callbacks.
    callbacks: tuple[Callback, ...]
    time_limit: float | None
    checkpoint: Path | None
    checkpoint_every: int | None
    keep_on_interrupt: bool

    @classmethod
    def from_parameters(cls, given: Mapping[str, Any]) -> Self:
        """Validate the parameters of an estimator, first each and then in combination."""
        checked = {name: check(name, given[name]) for name, check in _checks().items()}
        parameters = cls(
            **checked,
            **_algorithm_fields(given["algorithm"]),
            **_categorical_fields(given["categorical_features"]),
            **callback_fields(given["callbacks"]),
        )
        _check_refit(given)
        return parameters

    def algorithm_object(self, n_projections: int) -> AlgorithmObject:
        """Return the algorithm as an argument of the constructor."""
        common: dict[str, Any] = {
            "criterion": self.algorithm.criterion,
            "min_gain": self.min_gain,
            "min_hessian_leaf": self.min_hessian_leaf,
            "baseline": self.baseline,
        }
        if self.algorithm.shared_trees:
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
        """Current number of threads."""
        return effective_n_threads(self.n_jobs)

    def generator(self) -> np.random.Generator:
        """Return a generator for ``random_state``."""
        return generator_of(self.random_state)


@cache
def _checks() -> dict[str, Check]:
    """Return the checks of the plain parameters, from the annotations."""
    hints = get_type_hints(Parameters, include_extras=True)
    return {n: kind.__metadata__[0] for n, kind in hints.items() if hasattr(kind, "__metadata__")}


# ------------------------------------------------------------------------------ objects to fields

_ALGORITHM_CHECKS: dict[str, Check] = {
    "criterion": with_value_hint("criterion", choice("logitboost", "mart")),
    "baseline": with_value_hint("baseline", choice("prior", "zero")),
    "min_gain": _NOT_NEGATIVE,
    "min_hessian_leaf": _NOT_NEGATIVE,
    "n_projections": _n_projections,
    "sequential_residuals": check_boolean,
    "recenter": check_boolean,
    "n_candidates": optional(integer(1)),
    "gap": integer(0),
    "warmup": integer(0),
    "base_label": anything,
    "base_derivatives": check_boolean,
    "line_search": check_boolean,
}


def _algorithm_fields(given: Any) -> dict[str, Any]:
    """Return the fields of ``Parameters`` for an algorithm given by name or as an object."""
    found = _algorithm_object(given)
    checked = check_group(found, _ALGORITHM_CHECKS)
    _check_min_hessian_leaf(found, checked)
    base_class = _base_class(found, checked) if isinstance(found, AdaptiveBaseClass) else None
    algorithm = Algorithm(
        base_derivatives=base_class is not None and checked["base_derivatives"],
        hessian_split=checked["criterion"] == "logitboost",
        shared_trees=isinstance(found, MultiOutputTrees),
    )
    return {
        "algorithm": algorithm,
        "baseline": "auto" if isinstance(given, str) else checked["baseline"],
        "min_gain": checked["min_gain"],
        "min_hessian_leaf": checked["min_hessian_leaf"],
        "n_projections": checked.get("n_projections", "auto"),
        "sequential_residuals": checked.get("sequential_residuals", False),
        "recenter": checked.get("recenter", False),
        "base_class": base_class,
        "line_search": checked.get("line_search", True),
    }


def _algorithm_object(given: Any) -> AlgorithmObject:
    if isinstance(given, AlgorithmObject):
        return given
    if isinstance(given, str) and given in ("auto", *ALGORITHM_NAMES):
        return named_algorithm(given)
    names = ", ".join(map(repr, ("auto", *ALGORITHM_NAMES)))
    objects = "MultiOutputTrees(), TreePerClass() or AdaptiveBaseClass()"
    expected = f"algorithm={given!r}; expected {names}, {objects}"
    if isinstance(given, str):
        suggestion = value_hint("algorithm", given) or _nearest_name(given)
        raise ValueError(f"{expected}{suggestion}")  # noqa: TRY004 (the type is right)
    if isinstance(given, type) and issubclass(given, ParameterGroup):
        raise TypeError(f"algorithm={given.__name__}; expected an object: {given.__name__}()")
    raise TypeError(expected)


def _nearest_name(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), ALGORITHM_NAMES, n=1, cutoff=0.75)
    return f"; did you mean {near[0]!r}?" if near else ""


def _base_class(given: AdaptiveBaseClass, checked: Mapping[str, Any]) -> BaseClassChoice:
    found = BaseClassChoice(
        **{name: checked[name] for name in ("n_candidates", "gap", "warmup", "base_label")}
    )
    owner = type(given).__name__
    if found.base_label is not None and found != BaseClassChoice(base_label=found.base_label):
        others = {name: checked[name] for name in ("n_candidates", "gap", "warmup")}
        changed = [f"{n}={v!r}" for n, v in others.items() if v != getattr(BaseClassChoice, n)]
        raise ValueError(
            f"{owner}: base_label={found.base_label!r} with {', '.join(changed)}; expected one of the "
            "two, since a fixed base class is not chosen"
        )
    if not checked["base_derivatives"] and found.n_candidates != 1:
        raise ValueError(
            f"{owner}: base_derivatives=False with n_candidates={found.n_candidates!r}; expected "
            "n_candidates=1"
        )
    return found


def _categorical_fields(given: Any) -> dict[str, Any]:
    """Return the fields of ``Parameters`` for ``categorical_features``."""
    found = given if isinstance(given, Categorical) else Categorical(given)
    columns = with_value_hint("categorical_features", _categorical_columns)
    columns("categorical_features", found.columns)
    checks = {
        "columns": anything,
        "smoothing": _NOT_NEGATIVE,
        "penalty": _NOT_NEGATIVE,
        "handle_unknown": with_value_hint("handle_unknown", HANDLE_UNKNOWN),
    }
    checked = check_group(found, checks)
    return {
        "categorical_features": checked["columns"],
        "categorical_smoothing": checked["smoothing"],
        "categorical_penalty": checked["penalty"],
        "handle_unknown": checked["handle_unknown"],
    }


# ---------------------------------------------------------------------------- combinations


def _check_min_hessian_leaf(given: AlgorithmObject, checked: Mapping[str, Any]) -> None:
    if checked["min_hessian_leaf"] > 0 and checked["criterion"] == "mart":
        raise ValueError(
            f"{type(given).__name__}: min_hessian_leaf={given.min_hessian_leaf!r} with "
            "criterion='mart'; expected 0, or criterion='logitboost'"
        )


def _check_refit(given: Mapping[str, Any]) -> None:
    if not given["refit"]:
        return
    if given["warm_start"]:
        raise ValueError(
            "refit=True with warm_start=True; expected one of the two: a model that was trained on "
            "the held-out rows cannot be validated on them later"
        )
    if given["early_stopping"] is False:
        raise ValueError(
            "refit=True with early_stopping=False; expected early_stopping=True, or refit=False: "
            "without validation there is no best iteration"
        )
