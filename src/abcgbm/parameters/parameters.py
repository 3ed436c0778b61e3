"""Validated parameters of the classifier."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Self, get_type_hints

import numpy as np

from abcgbm.parameters.algorithms import TREES, Algorithm, known_name
from abcgbm.parameters.machine import effective_n_threads
from abcgbm.parameters.validators import (
    Check,
    anything,
    check_boolean,
    check_choice,
    check_integer,
    choice,
    integer,
    is_auto,
    is_integer,
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


def _gain_directions(name: str, value: Any) -> int | str:
    if isinstance(value, str) and value in ("auto", "all"):
        return str(check_choice(name, value, ("auto", "all")))
    allowed = "expected 'auto', 'all' or an integer from 1 on"
    if not is_integer(value) and not isinstance(value, str):
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


def _monotonic_cst(name: str, value: Any) -> None:
    if value is not None:
        raise ValueError(
            f"{name}={value!r}; expected None: monotone constraints are not supported. With three "
            "or more classes scores compete, so that a score that rises with a feature does not "
            "make its probability rise"
        )


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


def _callbacks(name: str, value: Any) -> tuple[Callback, ...]:
    if value is None:
        return ()
    given: list[Any] = [value] if callable(value) or not isinstance(value, Iterable) else [*value]
    if not all(callable(callback) for callback in given):
        raise TypeError(f"{name}={value!r}; expected None, a callable, or a list of callables")
    return tuple(given)


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
class Parameters:
    """The parameters of the estimator, under the same names, each with its check.

    What depends on the table or its classes is kept as it was given: "auto", whatever the type says,
    until ``abcgbm.settings.defaults`` settles it.
    """

    algorithm: Annotated[Algorithm, or_auto(known_name)]  # made of this name and the next one
    trees: Annotated[str, choice("auto", *TREES)]
    learning_rate: Annotated[float, or_auto(_SHARE)]
    max_iter: Annotated[int | str | None, or_auto(optional(integer(1)))]
    max_leaf_nodes: Annotated[int, or_auto(integer(2, 32768))]
    max_depth: Annotated[int | None, optional(integer(1))]
    min_samples_leaf: Annotated[float, _POSITIVE]
    min_gain: Annotated[float, _FROM_ZERO]
    l2_regularization: Annotated[float, or_auto(_FROM_ZERO)]
    min_hessian_leaf: Annotated[float, _FROM_ZERO]
    max_bins: Annotated[int, MAX_BINS]
    categorical_features: Annotated[Any, anything]
    categorical_smoothing: Annotated[float, _FROM_ZERO]
    categorical_penalty: Annotated[float, _FROM_ZERO]
    handle_unknown: Annotated[str, HANDLE_UNKNOWN]
    subsample: Annotated[float, _SHARE]
    max_features: Annotated[int | float | str | None, _max_features]
    interaction_cst: Annotated[Any, anything]
    monotonic_cst: Annotated[None, _monotonic_cst]
    base_class: Annotated[object, anything]
    base_step: Annotated[str, choice("search", "full")]
    refresh: Annotated[str, choice("step", "class")]
    gain_directions: Annotated[int | str, _gain_directions]
    init: Annotated[str, choice("auto", "zero", "prior")]
    classes: Annotated[Any, anything]
    class_weight: Annotated[Any, anything]
    warm_start: Annotated[bool, check_boolean]
    early_stopping: Annotated[bool | str, choice("auto", True, False)]
    scoring: Annotated[Scoring, _scoring]
    validation_fraction: Annotated[float, _PART]
    n_iter_no_change: Annotated[int, integer(1)]
    refit: Annotated[bool, check_boolean]
    tol: Annotated[float, _FROM_ZERO]
    max_time: Annotated[float | None, optional(_SECONDS)]
    callbacks: Annotated[tuple[Callback, ...], _callbacks]
    checkpoint: Annotated[Path | None, optional(_path_to_write)]
    checkpoint_every: Annotated[int | None, optional(integer(1))]
    on_interrupt: Annotated[str, choice("raise", "keep")]
    recenter: Annotated[bool, check_boolean]
    n_jobs: Annotated[int | None, _n_jobs]
    random_state: Annotated[Any, check_random_state]
    verbose: Annotated[int, _verbose]

    @classmethod
    def from_parameters(cls, given: Mapping[str, Any]) -> Self:
        """Check the parameters of an estimator, first one by one and then together."""
        checked = {name: check(name, given[name]) for name, check in _checks().items()}
        trees = _trees(checked)
        algorithm = Algorithm.from_names(_algorithm_name(checked), trees)
        _check_trees(algorithm, given)
        _check_refresh(algorithm, given)
        _check_min_hessian_leaf(algorithm, given)
        _check_refit(given)
        return cls(**checked | {"algorithm": algorithm, "trees": trees})

    @property
    def n_threads(self) -> int:
        """Number of threads, as of now."""
        return effective_n_threads(self.n_jobs)

    def generator(self) -> np.random.Generator:
        """Return a generator for ``random_state``."""
        return generator_of(self.random_state)


@cache
def _checks() -> dict[str, Check]:
    """Return the check of each parameter, read off the annotations once."""
    hints = get_type_hints(Parameters, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


def _trees(checked: Mapping[str, Any]) -> str:
    """Return the kind of trees: the shared ones, unless something is named that the paper has."""
    if not is_auto(checked["trees"]):
        return str(checked["trees"])
    is_of_paper = (
        not is_auto(checked["algorithm"])
        or not _has_no_base(checked)
        or checked["refresh"] == "class"
    )
    return "per-class" if is_of_paper else "shared"


def _algorithm_name(checked: Mapping[str, Any]) -> str:
    """Return the name, or "auto"; residuals that are computed anew for each class are MART's."""
    name = str(checked["algorithm"])
    return "mart" if is_auto(name) and checked["refresh"] == "class" else name


def _has_no_base(given: Mapping[str, Any]) -> bool:
    """Whether no base class is asked for."""
    return given["base_class"] is None or is_auto(given["base_class"])


def _check_trees(algorithm: Algorithm, given: Mapping[str, Any]) -> None:
    """Refuse what goes with one kind of trees alone."""
    if not algorithm.shared_trees:
        if given["gain_directions"] != "auto":
            raise ValueError(
                f"gain_directions={given['gain_directions']!r} with trees='per-class'; expected "
                "'auto', or trees='shared': the cuts of a tree per class are measured in its class alone"
            )
        return
    if not _has_no_base(given):
        raise ValueError(
            f"base_class={given['base_class']!r} with trees='shared'; expected None: a shared tree "
            "moves every class by itself"
        )
    if given["refresh"] == "class":
        raise ValueError(
            "refresh='class' with trees='shared'; expected 'step': one tree moves all classes"
        )


def _check_refresh(algorithm: Algorithm, given: Mapping[str, Any]) -> None:
    is_plain = not algorithm.base_derivatives and _has_no_base(given)
    if given["refresh"] == "class" and not is_plain:
        raise ValueError(
            f"refresh='class' with algorithm={algorithm.name!r}, "
            f"base_class={given['base_class']!r}; expected a plain algorithm without a base class"
        )


def _check_min_hessian_leaf(algorithm: Algorithm, given: Mapping[str, Any]) -> None:
    if given["min_hessian_leaf"] > 0 and not algorithm.hessian_split:
        raise ValueError(
            f"min_hessian_leaf={given['min_hessian_leaf']!r} with "
            f"algorithm={algorithm.name!r}; expected 0, or a logitboost algorithm"
        )


def _check_refit(given: Mapping[str, Any]) -> None:
    if not given["refit"]:
        return
    if given["warm_start"]:
        raise ValueError(
            "refit=True with warm_start=True; expected one of the two: a model that has learned from "
            "the rows held out cannot go on to be validated on them"
        )
    if given["early_stopping"] is False:
        raise ValueError(
            "refit=True with early_stopping=False; expected early_stopping=True, or refit=False: "
            "without validation there are no steps to train anew with"
        )
