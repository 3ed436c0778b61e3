"""Small training problems: drawn by hypothesis, or generated from a seed."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reference

MAX_CLASSES = 6


@dataclass(frozen=True)
class Problem:
    """Everything a training needs but the algorithm."""

    X: np.ndarray
    y: np.ndarray
    n_classes: int
    weight: np.ndarray | None = None  # None: all ones
    unit: float = 1.0
    max_bins: int = 255
    params: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.weight is None:
            object.__setattr__(self, "weight", np.ones(len(self.y), np.int64))

    def rows(self, index: np.ndarray) -> "Problem":
        return replace(self, X=self.X[index], y=self.y[index], weight=self.weight[index])

    def thresholds(self) -> list[list[float]]:
        weight = self.weight.tolist()
        return [reference.find_thresholds(x, weight, self.max_bins) for x in self.X.T.tolist()]


def reference_trainer(problem: Problem, **more_params: Any) -> reference.Trainer:
    binned = reference.bin_table(problem.X, problem.thresholds())
    params = reference.TrainParams(**problem.params | more_params)
    return reference.Trainer(
        binned, problem.y, problem.weight, problem.unit, problem.n_classes, params
    )


def random_problem(
    seed: int, n_rows: int, n_features: int, n_classes: int, **params: Any
) -> Problem:
    """Classes that are noisy functions of the features, a few values missing."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n_rows, n_features)), 2)
    directions = rng.normal(size=(n_features, n_classes))
    y = np.argmax(X @ directions + rng.gumbel(size=(n_rows, n_classes)), axis=1).astype(np.int32)
    X[rng.random(X.shape) < 0.05] = math.nan
    return Problem(X, y, n_classes, params={"min_weight": 5, "max_leaf_nodes": 8} | params)


# ------------------------------------------------------------------------------ hypothesis strategies

AWKWARD = [math.nan, -math.inf, -2.0, -5e-324, -0.0, 0.0, 1.0, 1.0 + 2**-52, 1e308, math.inf]


def columns(n: int) -> st.SearchStrategy[np.ndarray]:
    """Columns with ties, with awkward values, with any value at all, and with one value."""
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
        "l2_regularization": st.sampled_from([0.0, 0.0, 0.3]),
        "min_hessian_leaf": st.sampled_from([0.0, 0.0, 0.2]),
    }
)


@st.composite
def problems(draw: st.DrawFn, max_rows: int = 30) -> Problem:
    n, K = draw(st.integers(1, max_rows)), draw(st.integers(2, MAX_CLASSES))
    X = draw(tables(n))
    y = draw(hnp.arrays(np.int32, n, elements=st.integers(0, K - 1)))
    weight, unit = reference.integer_weights(draw(sample_weights(n)))
    smallest = reference.min_weight(draw(st.sampled_from([0.5, 1, 1, 2, 5])), unit)
    max_bins = draw(st.sampled_from([2, 3, 5, 255, 65534]))
    params = draw(grow_params) | {"min_weight": smallest}
    return Problem(X, y, K, np.array(weight, np.int64), unit, max_bins, params)


@st.composite
def algorithms(draw: st.DrawFn, n_classes: int) -> reference.Algorithm:
    """Every variant of the paper, and searches."""
    a_class = draw(st.integers(0, n_classes - 1))
    search = reference.Search(
        draw(st.integers(1, n_classes)), draw(st.integers(0, 2)), draw(st.integers(0, 1))
    )
    return draw(
        st.sampled_from(
            [
                reference.Algorithm("mart", None),
                reference.Algorithm("mart", None, refresh="class"),
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
    """The scores of a row, and its class."""
    F = draw(st.lists(st.floats(-limit, limit), min_size=2, max_size=MAX_CLASSES))
    return F, draw(st.integers(0, len(F) - 1))
