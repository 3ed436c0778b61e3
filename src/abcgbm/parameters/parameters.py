"""Validated parameters of the classifier."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Self, get_type_hints

import numpy as np

from abcgbm.parameters.algorithms import (
    ALGORITHM_NAMES,
    AdaptiveBaseClass,
    AlgorithmObject,
    Categorical,
    Checkpoint,
    DeclaredCallback,
    KeepOnInterrupt,
    MultiOutputTrees,
    ParameterGroup,
    TimeLimit,
    TreePerClass,
    named_algorithm,
)
from abcgbm.parameters.hints import value_hint
from abcgbm.parameters.machine import effective_n_threads
from abcgbm.parameters.validators import (
    Check,
    anything,
    check_boolean,
    check_choice,
    check_integer,
    choice,
    integer,
    is_integer,
    is_integral,
    optional,
    or_auto,
    real,
)

Callback = Callable[[Any], object]
Scorer = Callable[..., float]
MAX_BINS = integer(2, 65534)
HANDLE_UNKNOWN = choice("missing", "error")

_POSITIVE = real("above 0", lambda x: x > 0)
_FROM_ZERO = real("from 0 on", lambda x: x >= 0)
_SHARE = real("above 0 and at most 1", lambda x: 0 < x <= 1)
_PART = real("above 0 and below 1", lambda x: 0 < x < 1)
_SECONDS = real("of seconds above 0", lambda x: x > 0)


def _with_value_hint(parameter: str, check: Check) -> Check:
    """Let the error of a check say which value was probably meant."""

    def check_given(name: str, value: Any) -> Any:
        try:
            return check(name, value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error}{value_hint(parameter, value)}") from error.__cause__

    return check_given


def _n_projections(name: str, value: Any) -> int | str:
    if isinstance(value, str) and value in ("auto", "all"):
        return str(value)
    allowed = "expected 'auto', 'all' or an integer from 1 on"
    if not is_integral(value) and not isinstance(value, str):
        raise TypeError(f"{name}={value!r}; {allowed}")
    if isinstance(value, str) or value < 1:
        raise ValueError(f"{name}={value!r}; {allowed}")
    return int(value)


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


@dataclass(frozen=True)
class Scoring:
    """What the validation score is.

    Attributes
    ----------
    given : str or callable
        As the user said it.
    scorer : callable or None
        The scorer, as scikit-learn knows it; None for the two that need none: "loss" and "error".
    """

    given: str | Scorer
    scorer: Scorer | None = None


def _scorer_named(name: str) -> Scorer:
    from sklearn.metrics import get_scorer  # a third of the time of our own import, and seldom used

    scorer: Scorer = get_scorer(name)
    return scorer


def _check_is_for_classes(name: str, value: Any, scorer: Any) -> None:
    """Refuse the metrics of regression and clustering: they accept labels, and mislead."""
    metric = getattr(scorer, "_score_func", scorer)
    while isinstance(metric, partial):
        metric = metric.func
    module = str(getattr(metric, "__module__", ""))
    if module == "sklearn.metrics._regression":
        reason = "is a metric of continuous targets"
        instead = "'loss' or 'neg_brier_score' for probabilities, 'error' for labels"
    elif module.startswith("sklearn.metrics.cluster"):
        reason = "is a metric of clusterings, for which any renaming of the classes is as good"
        instead = "'error', 'balanced_accuracy' or 'matthews_corrcoef'"
    else:
        return
    raise ValueError(
        f"{name}={value!r} {reason}; expected a metric of classification, such as {instead}"
    )


def _scoring(name: str, value: Any) -> Scoring:
    allowed = (
        "expected 'loss', 'error', a name in sklearn.metrics.get_scorer_names(), or a callable "
        "with the arguments (estimator, X, y)"
    )
    if isinstance(value, str) and value in ("loss", "error"):
        return Scoring(value)
    if not callable(value) and not isinstance(value, str):
        raise TypeError(f"{name}={value!r}; {allowed}")
    try:
        scorer = value if callable(value) else _scorer_named(value)
    except ValueError as error:
        raise ValueError(f"{name}={value!r}; {allowed}") from error
    _check_is_for_classes(name, value, scorer)
    return Scoring(value, scorer)


def _path_to_write(name: str, value: Any) -> Path:
    allowed = "expected a path in a folder that can be written to"
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name}={value!r}; {allowed}")
    path = Path(value)
    if path.is_dir():
        raise ValueError(f"{name}={str(value)!r} is a folder; {allowed}")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        folder = str(path.parent.absolute())
        cause = "cannot be written to" if path.parent.is_dir() else "does not exist"
        raise ValueError(f"{name}={str(value)!r}: the folder {folder!r} {cause}; {allowed}")
    return path


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
class Algorithm:
    """What distinguishes one algorithm from another.

    Attributes
    ----------
    base_derivatives : bool
        Residuals and hessians with respect to a base class (Alg. 3 of the paper), not plain (Alg. 2).
    hessian_split : bool
        Rows are weighted by their hessian in the split gain (robust LogitBoost), not by 1 (MART).
    shared_trees : bool
        One tree per iteration whose leaves hold a value for each class, not one tree per class.
    """

    base_derivatives: bool
    hessian_split: bool
    shared_trees: bool = False

    @property
    def name(self) -> str:
        """The name of the algorithm, as the paper has it."""
        return ("abc-" if self.base_derivatives else "") + self.criterion

    @property
    def criterion(self) -> str:
        """The split gain."""
        return "logitboost" if self.hessian_split else "mart"


@dataclass(frozen=True)
class BaseClassChoice:
    """How base classes are chosen, as ``AdaptiveBaseClass`` has it."""

    n_candidates: int | None = 1
    gap: int = 0
    warmup: int = 0
    base_label: Any = None


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
    l2_regularization: Annotated[float, or_auto(_FROM_ZERO)]
    max_bins: Annotated[int, MAX_BINS]
    max_features: Annotated[int | float | str | None, _max_features]
    interaction_cst: Annotated[Any, anything]
    subsample: Annotated[float, _SHARE]
    classes: Annotated[Any, anything]
    class_weight: Annotated[Any, _with_value_hint("class_weight", _class_weight)]
    early_stopping: Annotated[bool | str, choice("auto", True, False)]
    validation_fraction: Annotated[float, _PART]
    n_iter_no_change: Annotated[int, integer(1)]
    tol: Annotated[float, _FROM_ZERO]
    scoring: Annotated[Scoring, _with_value_hint("scoring", _scoring)]
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
            **_of_algorithm(given["algorithm"]),
            **_of_categorical(given["categorical_features"]),
            **_of_callbacks(given["callbacks"]),
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


# ------------------------------------------------------------------------------ objects to fields

_ALGORITHM_CHECKS: dict[str, Check] = {
    "criterion": _with_value_hint("criterion", choice("logitboost", "mart")),
    "baseline": _with_value_hint("baseline", choice("prior", "zero")),
    "min_gain": _FROM_ZERO,
    "min_hessian_leaf": _FROM_ZERO,
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


def _of_algorithm(given: Any) -> dict[str, Any]:
    """Return the fields of an algorithm that is given by name or as an object."""
    found = _algorithm_object(given)
    checked = _checked_group(found, _ALGORITHM_CHECKS)
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
        said = value_hint("algorithm", given) or _nearest_name(given)
        raise ValueError(f"{expected}{said}")  # noqa: TRY004 (a name, but not one of these)
    if isinstance(given, type) and issubclass(given, ParameterGroup):
        raise TypeError(f"algorithm={given.__name__}; expected an object: {given.__name__}()")
    raise TypeError(expected)


def _nearest_name(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), ALGORITHM_NAMES, n=1, cutoff=0.75)
    return f"; did you mean {near[0]!r}?" if near else ""


def _checked_group(group: ParameterGroup, checks: Mapping[str, Check]) -> dict[str, Any]:
    """Validate the parameters of an object; errors name it."""
    owner = type(group).__name__
    given = group.get_params(deep=False)
    return {name: checks[name](f"{owner}: {name}", value) for name, value in given.items()}


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
            "two: a fixed base class is not chosen"
        )
    if not checked["base_derivatives"] and found.n_candidates != 1:
        raise ValueError(
            f"{owner}: base_derivatives=False with n_candidates={found.n_candidates!r}; expected "
            "n_candidates=1"
        )
    return found


def _of_categorical(given: Any) -> dict[str, Any]:
    """Return the fields of ``categorical_features``."""
    found = given if isinstance(given, Categorical) else Categorical(given)
    columns = _with_value_hint("categorical_features", _categorical_columns)
    columns("categorical_features", found.columns)
    checks = {
        "columns": anything,
        "smoothing": _FROM_ZERO,
        "penalty": _FROM_ZERO,
        "handle_unknown": _with_value_hint("handle_unknown", HANDLE_UNKNOWN),
    }
    checked = _checked_group(found, checks)
    return {
        "categorical_features": checked["columns"],
        "categorical_smoothing": checked["smoothing"],
        "categorical_penalty": checked["penalty"],
        "handle_unknown": checked["handle_unknown"],
    }


def callback_list(given: Any) -> list[Any]:
    """Return the items of ``callbacks``, which may be one alone."""
    if given is None:
        return []
    is_one = callable(given) or isinstance(given, DeclaredCallback)
    return [given] if is_one or not isinstance(given, Iterable) else [*given]


def _of_callbacks(given: Any) -> dict[str, Any]:
    """Return the functions among callbacks, and the fields of those that are declared."""
    items = callback_list(given)
    for item in items:
        if isinstance(item, type) and issubclass(item, ParameterGroup):
            raise TypeError(f"callbacks={given!r}; expected an object: {item.__name__}(...)")
        if not callable(item) and not isinstance(item, DeclaredCallback):
            raise TypeError(
                f"callbacks={given!r}; expected None, a callable, TimeLimit(...), Checkpoint(...), "
                "KeepOnInterrupt(), or a list of these"
            )
    limit, checkpoint = (_only(items, of) for of in (TimeLimit, Checkpoint))
    return {
        "callbacks": tuple(item for item in items if not isinstance(item, DeclaredCallback)),
        "time_limit": limit and _checked_group(limit, {"seconds": _SECONDS})["seconds"],
        **_of_checkpoint(checkpoint),
        "keep_on_interrupt": _only(items, KeepOnInterrupt) is not None,
    }


def _of_checkpoint(given: Checkpoint | None) -> dict[str, Any]:
    if given is None:
        return {"checkpoint": None, "checkpoint_every": None}
    checks = {"path": _path_to_write, "every": optional(integer(1))}
    checked = _checked_group(given, checks)
    return {"checkpoint": checked["path"], "checkpoint_every": checked["every"]}


def _only(items: list[Any], kind: type) -> Any:
    found = [item for item in items if isinstance(item, kind)]
    if len(found) > 1:
        raise ValueError(f"callbacks has {len(found)} of {kind.__name__}; expected at most one")
    return found[0] if found else None


# ---------------------------------------------------------------------------- several at once


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
            "refit=True with warm_start=True; expected one of the two: a model that has learned from "
            "the rows held out cannot be validated on them later"
        )
    if given["early_stopping"] is False:
        raise ValueError(
            "refit=True with early_stopping=False; expected early_stopping=True, or refit=False: "
            "without validation there is no best iteration"
        )
