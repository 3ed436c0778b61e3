"""Generated tables: distributions of labels and features, and changes that make them harder.

A distribution is called with a generator and a number of rows. Changes are called with the same generator and
the rows so far. Numbers are rounded, so that they are equal on every machine.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.datasets import make_classification

from experiments.defaults.rows import Rows, numbers

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Law = Callable[[Generator, int], Rows]
Change = Callable[[Generator, Rows], Rows]

DIGITS = 4


def draw(rng: Generator, n_rows: int, law: Law, changes: Sequence[Change]) -> Rows:
    """Return rows of a distribution after changes."""
    rows = law(rng, n_rows)
    for change in changes:
        rows = change(rng, rows)
    return rows._replace(X=np.round(rows.X, DIGITS))


# Distributions


def clouds(
    rng: Generator, n_rows: int, n_classes: int, n_features: int, distance: float = 0.5
) -> Rows:
    """Return a normal cloud for each class; centres have the given spread in each feature."""
    y = _even_labels(rng, n_rows, n_classes)
    centres = rng.normal(size=(n_classes, n_features)) * distance
    return numbers(centres[y] + rng.normal(size=(n_rows, n_features)), y)


def families(
    rng: Generator, n_rows: int, n_classes: int, n_features: int, n_families: int = 5
) -> Rows:
    """Return clouds in groups: far apart between groups, near within one."""
    y = _even_labels(rng, n_rows, n_classes)
    of_family = rng.normal(size=(n_families, n_features)) * 2
    centres = of_family[np.arange(n_classes) % n_families]
    centres = centres + rng.normal(size=(n_classes, n_features)) * 0.4
    return numbers(centres[y] + rng.normal(size=(n_rows, n_features)), y)


def cubes(rng: Generator, n_rows: int, **given: object) -> Rows:
    """Return scikit-learn's ``make_classification``: clouds at the corners of a cube."""
    X, y = make_classification(n_rows, random_state=int(rng.integers(2**31)), **given)
    return numbers(X, y)


def smooth(
    rng: Generator,
    n_rows: int,
    n_classes: int,
    n_features: int,
    sharpness: float = 3.0,
    shares: Sequence[float] | None = None,
) -> Rows:
    """Sample labels by the softmax of smooth functions: waves of single features, and products."""
    X = rng.normal(size=(n_rows, n_features))
    scores = np.zeros((n_rows, n_classes))
    for k in range(n_classes):
        for _ in range(4):
            i, j = rng.integers(n_features, size=2)
            scores[:, k] += np.sin(rng.uniform(0.5, 2.5) * X[:, i] + rng.uniform(0, 6))
            scores[:, k] += 0.5 * rng.normal() * X[:, i] * X[:, j]
    if shares is not None:
        scores = scores + np.log(shares) / sharpness
    return numbers(X, _drawn_labels(rng, sharpness * scores))


def linear(
    rng: Generator, n_rows: int, n_classes: int, n_features: int, sharpness: float = 1.0
) -> Rows:
    """Sample labels by the softmax of linear functions."""
    X = rng.normal(size=(n_rows, n_features))
    directions = rng.normal(size=(n_features, n_classes)) / np.sqrt(n_features)
    return numbers(X, _drawn_labels(rng, sharpness * (X @ directions)))


def rules(rng: Generator, n_rows: int, n_classes: int, n_features: int, depth: int = 6) -> Rows:
    """Assign labels by a tree of random splits, with interactions of features."""
    X = rng.uniform(size=(n_rows, n_features))
    feature = rng.integers(n_features, size=2**depth)
    cut = rng.uniform(0.25, 0.75, size=2**depth)
    node = np.ones(n_rows, dtype=np.int64)
    for _ in range(depth):
        is_right = X[np.arange(n_rows), feature[node]] > cut[node]
        node = 2 * node + is_right
    label = rng.permutation(np.arange(2**depth) % n_classes)
    return numbers(X, label[node - 2**depth])


def counts(rng: Generator, n_rows: int, n_classes: int, n_features: int, rate: float = 2.0) -> Rows:
    """Return Poisson counts with class-dependent rates; a small rate gives mostly zeros."""
    y = _even_labels(rng, n_rows, n_classes)
    rates = rate * rng.gamma(2.0, 0.5, size=(n_classes, n_features))
    return numbers(rng.poisson(rates[y]), y)


def ordered(rng: Generator, n_rows: int, n_classes: int, n_features: int, noise: float) -> Rows:
    """Return ordered classes: quantiles of Friedman's first function."""
    X = rng.uniform(size=(n_rows, n_features))
    z = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    z = z + 10 * X[:, 3] + 5 * X[:, 4] + noise * rng.normal(size=n_rows)
    cuts = np.quantile(z, np.arange(1, n_classes) / n_classes)
    return numbers(X, np.searchsorted(cuts, z))


def spirals(rng: Generator, n_rows: int, n_classes: int, noise: float = 0.2) -> Rows:
    """Return the arms of a spiral in a plane."""
    y = _even_labels(rng, n_rows, n_classes)
    radius = np.sqrt(rng.uniform(0.05, 1, size=n_rows))
    angle = 4 * radius + 2 * np.pi * y / n_classes + noise * rng.normal(size=n_rows)
    return numbers(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y)


def _even_labels(rng: Generator, n_rows: int, n_classes: int) -> Integers:
    return rng.permutation(np.arange(n_rows) % n_classes)


def _drawn_labels(rng: Generator, scores: Floats) -> Integers:
    return (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


# Changes


def missing(rng: Generator, rows: Rows, share: float) -> Rows:
    """Remove a fraction of all values at random."""
    is_missing = rng.uniform(size=rows.X.shape) < share
    return rows._replace(X=np.where(is_missing, np.nan, rows.X))


def large_missing(rng: Generator, rows: Rows, share: float) -> Rows:
    """Remove about a fraction of the values, large ones with higher probability."""
    rank = rows.X.argsort(axis=0).argsort(axis=0) / len(rows.y)
    is_missing = rng.uniform(size=rows.X.shape) < 2 * share * rank
    return rows._replace(X=np.where(is_missing, np.nan, rows.X))


def noise_columns(rng: Generator, rows: Rows, n_columns: int) -> Rows:
    """Insert uninformative normal columns at random positions."""
    X = np.column_stack([rows.X, rng.normal(size=(len(rows.y), n_columns))])
    is_category = np.append(rows.is_category, np.zeros(n_columns, dtype=bool))
    order = rng.permutation(X.shape[1])
    return rows._replace(X=X[:, order], is_category=is_category[order])


def other_labels(rng: Generator, rows: Rows, share: float) -> Rows:
    """Replace a fraction of the labels by random ones."""
    is_drawn = rng.uniform(size=len(rows.y)) < share
    drawn = rng.integers(rows.y.max() + 1, size=len(rows.y))
    return rows._replace(y=np.where(is_drawn, drawn, rows.y))


def thinned(rng: Generator, rows: Rows, shares: Sequence[float]) -> Rows:
    """Keep only a fraction of the rows of each class."""
    return rows.take(rng.uniform(size=len(rows.y)) < np.asarray(shares)[rows.y])


def heavy_tails(rng: Generator, rows: Rows) -> Rows:
    """Transform values monotonically, so that a few become huge."""
    return rows._replace(X=np.sinh(2 * rows.X))


def whole_numbers(rng: Generator, rows: Rows, factor: float) -> Rows:
    """Round values to few distinct ones."""
    return rows._replace(X=np.round(rows.X * factor))


def noise_category(rng: Generator, rows: Rows, n_levels: int) -> Rows:
    """Add an uninformative categorical column."""
    return _with_category(rows, rng.integers(n_levels, size=len(rows.y)))


def class_category(rng: Generator, rows: Rows, n_levels: int, purity: float) -> Rows:
    """Add a categorical column that indicates the class in a fraction of the rows, and is random else."""
    n_classes = int(rows.y.max()) + 1
    level = rng.integers(n_levels, size=len(rows.y))
    own = level - level % n_classes + rows.y  # the class of a category is its remainder
    is_own = (rng.uniform(size=len(rows.y)) < purity) & (own < n_levels)
    names = rng.permutation(n_levels)
    return _with_category(rows, names[np.where(is_own, own, level)])


def cut_to_categories(rng: Generator, rows: Rows, n_columns: int, n_levels: int) -> Rows:
    """Make the first columns categorical: quantile bins, with random codes."""
    X, is_category = rows.X.copy(), rows.is_category.copy()
    for column in range(n_columns):
        cuts = np.nanquantile(X[:, column], np.arange(1, n_levels) / n_levels)
        levels = rng.permutation(n_levels)[np.searchsorted(cuts, X[:, column])]
        X[:, column] = np.where(np.isnan(X[:, column]), np.nan, levels)
        is_category[column] = True
    return rows._replace(X=X, is_category=is_category)


def _with_category(rows: Rows, levels: Integers) -> Rows:
    return rows._replace(
        X=np.column_stack([rows.X, levels]), is_category=np.append(rows.is_category, True)
    )
