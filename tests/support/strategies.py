"""Small training problems: Hypothesis strategies, and generators with a seed."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reference
import reference_multi_output

MAX_CLASSES = 6
# Algorithms with at most one candidate for the base class in each iteration.
VARIANTS = {
    "mart": reference.Algorithm("mart", None),
    "mart-class": reference.Algorithm("mart", None, sequential_residuals=True),
    "Mb": reference.Algorithm("mart", "worst"),
    "abc-mart": reference.Algorithm("abc-mart"),
    "abc-mart-fixed": reference.Algorithm("abc-mart", 1),
}


@dataclass(frozen=True)
class Problem:
    """Everything that a training needs except the algorithm."""

    X: np.ndarray
    y: np.ndarray
    n_classes: int
    weight: np.ndarray | None = None  # None: all ones
    unit: float = 1.0
    max_bins: int = 255
    categorical: tuple[int, ...] = ()  # features with codes 0, 1, ... as values
    raw: np.ndarray | None = None  # initial scores
    params: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.weight is None:
            object.__setattr__(self, "weight", np.ones(len(self.y), np.int64))

    def rows(self, index: np.ndarray) -> "Problem":
        raw = None if self.raw is None else np.ascontiguousarray(self.raw[:, index])
        return replace(self, X=self.X[index], y=self.y[index], weight=self.weight[index], raw=raw)

    def with_two_classes(self) -> "Problem":
        raw = None if self.raw is None else self.raw[:2]
        return replace(self, y=self.y % 2, n_classes=2, raw=raw)

    def with_params(self, **params: Any) -> "Problem":
        return replace(self, params=self.params | params)

    def thresholds(self) -> list[list[float]]:
        return [self._thresholds_of(f) for f in range(self.X.shape[1])]

    def _thresholds_of(self, feature: int) -> list[float]:
        column = self.X[:, feature].tolist()
        if feature not in self.categorical:
            return reference.find_thresholds(column, self.weight.tolist(), self.max_bins)
        n_codes = int(max((x for x in column if not math.isnan(x)), default=0)) + 1
        return [code + 0.5 for code in range(n_codes - 1)]

    def is_categorical(self) -> np.ndarray:
        return np.isin(np.arange(self.X.shape[1]), self.categorical)


def reference_trainer(problem: Problem, **more_params: Any) -> reference.Trainer:
    return reference_trainer_with(problem.thresholds(), problem.with_params(**more_params))


def reference_trainer_with(thresholds: list[list[float]], problem: Problem) -> reference.Trainer:
    """Return a trainer with thresholds that may come from another table."""
    binned = reference.bin_table(problem.X, thresholds, problem.is_categorical())
    params = reference.TrainParams(**problem.params)
    labels = reference.Labels(problem.y, problem.weight, problem.unit, problem.n_classes)
    kind = reference_multi_output.Trainer if params.multi_output else reference.Trainer
    return kind(binned, labels, params, problem.raw)


def random_problem(
    seed: int, n_rows: int, n_features: int, n_classes: int, /, **params: Any
) -> Problem:
    """Return classes that are noisy functions of the features, with a few missing values."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n_rows, n_features)), 2)
    directions = rng.normal(size=(n_features, n_classes))
    y = np.argmax(X @ directions + rng.gumbel(size=(n_rows, n_classes)), axis=1).astype(np.int32)
    X[rng.random(X.shape) < 0.05] = math.nan
    return Problem(X, y, n_classes, params={"min_weight": 5, "max_leaf_nodes": 8} | params)


def mixed_problem(seed: int, n_rows: int, n_classes: int, /, **params: Any) -> Problem:
    """Return columns of numbers, few and many categories, mostly one value, and mostly missing values."""
    rng = np.random.default_rng(seed)
    numbers = random_problem(seed, n_rows, 2, n_classes, **params)
    is_rare = rng.random((3, n_rows)) < 0.1
    codes = [rng.integers(0, n, n_rows).astype(float) for n in (5, 200)]
    columns = [
        np.where(rng.random(n_rows) < 0.5, numbers.y % 5, codes[0]),
        np.where(rng.random(n_rows) < 0.05, math.nan, codes[1]),
        np.where(is_rare[0], numbers.y + 1.0, 0.0),
        np.where(is_rare[1], numbers.y, math.nan),
        np.where(is_rare[2], codes[1], 3.0),
    ]
    X = np.column_stack([numbers.X, *columns])
    return replace(numbers, X=X, categorical=(2, 3, 6))


def one_hot(categories: np.ndarray, values: np.ndarray | float = 1.0) -> np.ndarray:
    """Return a column for each category: values in its rows, 0 elsewhere; a negative code is no category."""
    return np.where(categories[:, None] == np.arange(categories.max() + 1), np.c_[values], 0.0)


def one_hot_problem(seed: int, n_rows: int, n_classes: int, /, **params: Any) -> Problem:
    """Return informative one-hot columns, shuffled among dense and overlapping sparse ones.

    The one-hot columns encode nine categories that cover all rows; seven that do not, with several values
    and missing ones; and six whose common value is missing. Four more sparse columns overlap with them.
    """
    rng = np.random.default_rng(seed)
    numbers = random_problem(seed, n_rows, 2, n_classes, **params)
    nine, seven, six = (rng.permutation(n_rows) % n for n in (9, 9, 7))
    seven, six = np.where(seven < 7, seven, -1), np.where(six < 6, six, -1)
    effects = rng.normal(size=(3, 9, n_classes)) * 1.5
    effect = sum(of[codes] for of, codes in zip(effects, (nine, seven, six), strict=True))
    y = np.argmax(effect + rng.gumbel(size=(n_rows, n_classes)), axis=1).astype(np.int32)
    several = rng.choice([1.0, 2.0, 3.0, math.nan], n_rows)
    of_six = np.where(one_hot(six) == 1, rng.integers(0, 3, n_rows)[:, None], math.nan)
    overlapping = (rng.random((n_rows, 4)) < 0.1).astype(float)  # too many to be bundled
    overlapping[0] = 1
    X = np.hstack([one_hot(nine), one_hot(seven, several), of_six, overlapping, numbers.X])
    order = rng.permutation(X.shape[1])
    categorical = tuple(np.flatnonzero(np.isin(order, [2, 3, 10, 11, 16, 17])).tolist())
    return replace(numbers, X=np.ascontiguousarray(X[:, order]), y=y, categorical=categorical)


# ------------------------------------------------------------------------------ hypothesis strategies

AWKWARD = [math.nan, -math.inf, -2.0, -5e-324, -0.0, 0.0, 1.0, 1.0 + 2**-52, 1e308, math.inf]


def columns(n: int) -> st.SearchStrategy[np.ndarray]:
    """Columns with ties, with edge cases, with any float, and constant ones."""
    elements = st.one_of(
        st.integers(0, 3).map(float), st.sampled_from(AWKWARD), st.floats(width=64)
    )
    kinds = st.sampled_from(
        [st.integers(0, 5).map(float), st.sampled_from(AWKWARD), st.floats(-4, 4), elements]
    )
    drawn = kinds.flatmap(lambda kind: hnp.arrays(np.float64, n, elements=kind, fill=kind))
    constant = st.sampled_from(AWKWARD).map(lambda x: np.full(n, x))
    return st.one_of(drawn, drawn, drawn, constant)


def tables(n: int, max_features: int = 3) -> st.SearchStrategy[np.ndarray]:
    return st.lists(columns(n), min_size=1, max_size=max_features).map(np.column_stack)


def sample_weights(n: int) -> st.SearchStrategy[list[float]]:
    kinds = [
        st.just(1.0),
        st.integers(1, 4).map(float),
        st.floats(0.01, 3.0),
        st.floats(1e-3, 1e12),
    ]
    return st.sampled_from(kinds).flatmap(lambda kind: st.lists(kind, min_size=n, max_size=n))


grow_params = st.fixed_dictionaries(
    {
        "max_leaf_nodes": st.integers(2, 8),
        "max_depth": st.integers(0, 4),
        "min_gain": st.sampled_from([0.0, 0.0, 1e-3, 0.5]),
        "learning_rate": st.sampled_from([0.1, 0.5, 1.0]),
        "hessian_split": st.booleans(),
        "l2_regularization": st.sampled_from([0.0, 0.0, 0.3, 1e80]),
        "min_hessian_leaf": st.sampled_from([0.0, 0.0, 0.2]),
        "categorical_smoothing": st.sampled_from([0.0, 1.5, 10.0]),
        "categorical_penalty": st.sampled_from([0.0, 0.1, 1.0]),
        "subsample": st.sampled_from([1.0, 1.0, 0.6]),
        "max_features": st.integers(0, 3),
        "max_path_features": st.sampled_from([0, 0, 1, 2]),
        "base_line_search": st.booleans(),
        "seed": st.integers(0, 2**64 - 1),
    }
)


def category_columns(n: int) -> st.SearchStrategy[np.ndarray]:
    """Codes of few or many categories, with missing values."""
    codes = st.sampled_from([2, 7, 150]).map(lambda largest: st.integers(0, largest).map(float))
    elements = codes.map(lambda code: st.one_of(code, code, code, st.just(math.nan)))
    return elements.flatmap(
        lambda kind: hnp.arrays(np.float64, n, elements=kind, fill=st.nothing())
    )


@st.composite
def tables_with_categories(draw: st.DrawFn, n: int) -> tuple[np.ndarray, tuple[int, ...]]:
    kinds = draw(st.lists(st.booleans(), min_size=1, max_size=3))
    made = [draw(category_columns(n) if is_category else columns(n)) for is_category in kinds]
    return np.column_stack(made), tuple(f for f, is_category in enumerate(kinds) if is_category)


def interaction_groups(n_features: int) -> st.SearchStrategy[list[list[int]]]:
    group = st.lists(st.integers(0, n_features - 1), min_size=1, unique=True)
    return st.one_of(st.just([]), st.just([]), st.lists(group, max_size=3))


def start_scores(n_classes: int, n_rows: int) -> st.SearchStrategy[np.ndarray | None]:
    scores = hnp.arrays(
        np.float64, (n_classes, 1), elements=st.integers(-(2**33), 2**33).map(float)
    )
    return st.one_of(st.none(), scores.map(lambda F: np.repeat(F / 2**32, n_rows, axis=1)))


@st.composite
def problems(draw: st.DrawFn, min_rows: int = 1, max_classes: int = MAX_CLASSES) -> Problem:
    n, K = draw(st.integers(min_rows, 30)), draw(st.integers(2, max_classes))
    X, categorical = draw(tables_with_categories(n))
    y = draw(hnp.arrays(np.int32, n, elements=st.integers(0, K - 1)))
    weight, unit = reference.integer_weights(draw(sample_weights(n)))
    smallest = reference.min_weight(draw(st.sampled_from([0.5, 1, 1, 2, 5])), unit)
    max_bins = draw(st.sampled_from([2, 3, 5, 255, 65534]))
    groups = draw(interaction_groups(X.shape[1]))
    params = draw(grow_params) | {"min_weight": smallest, "interaction_groups": groups}
    raw = draw(start_scores(K, n))
    weights = np.array(weight, np.int64)
    return Problem(X, y, K, weights, unit, max_bins, categorical, raw, params)


def order_free_problems() -> st.SearchStrategy[Problem]:
    """Problems that do not depend on the row order: no rows are sampled."""
    return problems().map(lambda problem: problem.with_params(subsample=1.0))


@st.composite
def sparse_problems(draw: st.DrawFn) -> Problem:
    """Problems with columns that have one value in at least 80 percent of the rows.

    Columns repeated three times overlap, so they cannot all be bundled.
    """
    problem = draw(problems(min_rows=10))
    n, X = len(problem.y), problem.X.copy()
    for feature in draw(st.sets(st.integers(0, X.shape[1] - 1), min_size=1)):
        others = draw(st.sets(st.integers(0, n - 1), max_size=n // 5))
        common = draw(st.sampled_from(X[:, feature].tolist()))
        X[[i for i in range(n) if i not in others], feature] = common
    times = draw(st.sampled_from([1, 3]))
    categorical = [f + i * X.shape[1] for i in range(times) for f in problem.categorical]
    return replace(problem, X=np.tile(X, times), categorical=tuple(categorical))


@st.composite
def one_hot_columns(draw: st.DrawFn, n: int) -> np.ndarray:
    """Mutually exclusive sparse columns that cover at least half of the rows.

    There may be one more, which differs from another column in one row.
    """
    n_categories = math.ceil(n / (n // 5))
    categories = np.array(draw(st.permutations(range(n)))) % n_categories
    categories[categories >= draw(st.integers(math.ceil(n_categories / 2), n_categories))] = -1
    value = st.sampled_from(draw(st.sampled_from([[1.0], [1.0, 3.0], [0.0, 1.0, 2.0, math.nan]])))
    values = np.array(draw(st.lists(value, min_size=n, max_size=n)))
    common = draw(st.lists(st.sampled_from([0.0, 0.0, 2.0, math.nan]), min_size=9, max_size=9))
    is_category = one_hot(categories) == 1
    X = np.where(is_category, values[:, None], common[: is_category.shape[1]])
    if draw(st.booleans()):
        other = X[:, draw(st.integers(0, X.shape[1] - 1))].copy()
        other[draw(st.integers(0, n - 1))] = 1.0
        X = np.column_stack([X, other])
    return X


@st.composite
def one_hot_problems(draw: st.DrawFn) -> Problem:
    """Problems with one or two groups of one-hot columns among the others, in any order."""
    problem = draw(problems(min_rows=10))
    more = draw(st.lists(one_hot_columns(len(problem.y)), min_size=1, max_size=2))
    X, n_others = np.hstack([problem.X, *more]), problem.X.shape[1]
    is_category = np.array(draw(st.lists(st.booleans(), min_size=X.shape[1], max_size=X.shape[1])))
    is_category[:n_others] = problem.is_categorical()
    order = np.array(draw(st.permutations(range(X.shape[1]))))
    problem = problem.with_params(interaction_groups=draw(interaction_groups(X.shape[1])))
    categorical = tuple(np.flatnonzero(is_category[order]).tolist())
    return replace(problem, X=np.ascontiguousarray(X[:, order]), categorical=categorical)


HEAVY = 2**33  # thirty such weights have 38 bits


def heavy_weights(n: int) -> st.SearchStrategy[list[int]]:
    """Weights whose total has more than 30 bits; some rows may have tiny weights."""
    kinds = [st.integers(1, HEAVY), st.sampled_from([1, 7, HEAVY]), st.just(HEAVY)]
    return st.sampled_from(kinds).flatmap(lambda kind: st.lists(kind, min_size=n, max_size=n))


@st.composite
def with_heavy_rows(draw: st.DrawFn, problem: Problem) -> Problem:
    weight = np.array(draw(heavy_weights(len(problem.y))), np.int64)
    minimum = max(1, int(weight.sum()) // draw(st.sampled_from([2, 3, 8, 2**50])))
    unit = draw(st.sampled_from([1.0, 0.3, 2.0**-37]))
    return replace(problem, weight=weight, unit=unit).with_params(min_weight=minimum)


@st.composite
def with_far_scores(draw: st.DrawFn, problem: Problem) -> Problem:
    """Add initial scores that fit some rows and are far off for others, so that steps are scaled back."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, scale = len(problem.y), draw(st.sampled_from([1.0, 6.0, 40.0]))
    raw = rng.normal(size=(problem.n_classes, n)) * scale
    raw[problem.y, np.arange(n)] += scale * rng.choice([-2.0, 0.0, 5.0], n)
    return replace(problem, raw=np.round(raw * 2.0**32) / 2.0**32)


N_PROJECTIONS = (0, 0, 1, 3, 7, 8, 9, 17, 40)


@st.composite
def multi_output_problems(draw: st.DrawFn, of: st.SearchStrategy[Problem] | None = None) -> Problem:
    """Problems for multi-output trees: many classes, any projections, any weights."""
    problem = draw(problems(max_classes=30) if of is None else of)
    problem = draw(st.one_of(st.just(problem), with_heavy_rows(problem)))
    problem = draw(st.one_of(st.just(problem), with_far_scores(problem)))
    return problem.with_params(
        multi_output=True, n_projections=draw(st.sampled_from(N_PROJECTIONS))
    )


@st.composite
def algorithms(draw: st.DrawFn, n_classes: int) -> reference.Algorithm:
    """Every variant of the paper, and searches for the base class."""
    a_class = draw(st.integers(0, n_classes - 1))
    search = reference.Search(
        draw(st.integers(1, n_classes)), draw(st.integers(0, 2)), draw(st.integers(0, 1))
    )
    return draw(
        st.sampled_from(
            [
                reference.Algorithm("mart", None),
                reference.Algorithm("mart", None, sequential_residuals=True),
                reference.Algorithm("mart", "worst", first_base=a_class),  # "Mb"
                reference.Algorithm("abc-mart", "worst", first_base=a_class),
                reference.Algorithm("abc-mart", a_class),
                reference.Algorithm("abc-mart", search, first_base=a_class),
                reference.Algorithm("abc-mart", reference.Search(n_classes)),  # exhaustive
            ]
        )
    )


@st.composite
def scores(draw: st.DrawFn, limit: float = 3.0) -> tuple[list[float], int]:
    """The scores and the class of a row."""
    F = draw(st.lists(st.floats(-limit, limit), min_size=2, max_size=MAX_CLASSES))
    return F, draw(st.integers(0, len(F) - 1))
