"""Drawn tables: some laws by which labels and features go together, and what makes them harder.

A law is called with a generator and a number of rows. What comes after it is called with the same
generator and the rows so far. Numbers are rounded, so that they are the same on every machine.
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
    """Return rows by a law, and changed."""
    rows = law(rng, n_rows)
    for change in changes:
        rows = change(rng, rows)
    return rows._replace(X=np.round(rows.X, DIGITS))


# Laws


def clouds(
    rng: Generator, n_rows: int, n_classes: int, n_features: int, distance: float = 0.5
) -> Rows:
    """A normal cloud for each class; centres differ by so much in each feature."""
    y = _even_labels(rng, n_rows, n_classes)
    centres = rng.normal(size=(n_classes, n_features)) * distance
    return numbers(centres[y] + rng.normal(size=(n_rows, n_features)), y)


def families(
    rng: Generator, n_rows: int, n_classes: int, n_features: int, n_families: int = 5
) -> Rows:
    """Clouds in groups: far between the groups, near within one."""
    y = _even_labels(rng, n_rows, n_classes)
    of_family = rng.normal(size=(n_families, n_features)) * 2
    centres = of_family[np.arange(n_classes) % n_families]
    centres = centres + rng.normal(size=(n_classes, n_features)) * 0.4
    return numbers(centres[y] + rng.normal(size=(n_rows, n_features)), y)


def cubes(rng: Generator, n_rows: int, **given: object) -> Rows:
    """scikit-learn's ``make_classification``: clouds at the corners of a cube, by its parameters."""
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
    """Labels drawn by the softmax of smooth functions: waves of single features, and products."""
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
    """Labels drawn by the softmax of linear functions."""
    X = rng.normal(size=(n_rows, n_features))
    directions = rng.normal(size=(n_features, n_classes)) / np.sqrt(n_features)
    return numbers(X, _drawn_labels(rng, sharpness * (X @ directions)))


def rules(rng: Generator, n_rows: int, n_classes: int, n_features: int, depth: int = 6) -> Rows:
    """Labels by a tree of random cuts: steps, and features that count only together."""
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
    """Whole numbers: Poisson, whose rates differ between classes; a small rate gives mostly zeros."""
    y = _even_labels(rng, n_rows, n_classes)
    rates = rate * rng.gamma(2.0, 0.5, size=(n_classes, n_features))
    return numbers(rng.poisson(rates[y]), y)


def ordered(rng: Generator, n_rows: int, n_classes: int, n_features: int, noise: float) -> Rows:
    """Classes in an order: Friedman's first function, cut at its quantiles."""
    X = rng.uniform(size=(n_rows, n_features))
    z = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    z = z + 10 * X[:, 3] + 5 * X[:, 4] + noise * rng.normal(size=n_rows)
    cuts = np.quantile(z, np.arange(1, n_classes) / n_classes)
    return numbers(X, np.searchsorted(cuts, z))


def spirals(rng: Generator, n_rows: int, n_classes: int, noise: float = 0.2) -> Rows:
    """Arms of a spiral in a plane."""
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
    """A share of all values is missing, whatever they are."""
    is_missing = rng.uniform(size=rows.X.shape) < share
    return rows._replace(X=np.where(is_missing, np.nan, rows.X))


def large_missing(rng: Generator, rows: Rows, share: float) -> Rows:
    """Values are the likelier missing the larger they are; about this share of them."""
    rank = rows.X.argsort(axis=0).argsort(axis=0) / len(rows.y)
    is_missing = rng.uniform(size=rows.X.shape) < 2 * share * rank
    return rows._replace(X=np.where(is_missing, np.nan, rows.X))


def noise_columns(rng: Generator, rows: Rows, n_columns: int) -> Rows:
    """Normal columns that say nothing, at random places."""
    X = np.column_stack([rows.X, rng.normal(size=(len(rows.y), n_columns))])
    is_category = np.append(rows.is_category, np.zeros(n_columns, dtype=bool))
    order = rng.permutation(X.shape[1])
    return rows._replace(X=X[:, order], is_category=is_category[order])


def other_labels(rng: Generator, rows: Rows, share: float) -> Rows:
    """A share of the labels is drawn anew."""
    is_drawn = rng.uniform(size=len(rows.y)) < share
    drawn = rng.integers(rows.y.max() + 1, size=len(rows.y))
    return rows._replace(y=np.where(is_drawn, drawn, rows.y))


def thinned(rng: Generator, rows: Rows, shares: Sequence[float]) -> Rows:
    """Of each class only this share of its rows is kept."""
    return rows.take(rng.uniform(size=len(rows.y)) < np.asarray(shares)[rows.y])


def heavy_tails(rng: Generator, rows: Rows) -> Rows:
    """Values are stretched: the order stays, a few become huge."""
    return rows._replace(X=np.sinh(2 * rows.X))


def whole_numbers(rng: Generator, rows: Rows, factor: float) -> Rows:
    """Values are rounded to few different ones."""
    return rows._replace(X=np.round(rows.X * factor))


def noise_category(rng: Generator, rows: Rows, n_levels: int) -> Rows:
    """A category that says nothing."""
    return _with_category(rows, rng.integers(n_levels, size=len(rows.y)))


def class_category(rng: Generator, rows: Rows, n_levels: int, purity: float) -> Rows:
    """A category each of whose levels goes with a class, in this share of the rows; else a noise."""
    n_classes = int(rows.y.max()) + 1
    level = rng.integers(n_levels, size=len(rows.y))
    own = level - level % n_classes + rows.y  # the class of a level is its rest
    is_own = (rng.uniform(size=len(rows.y)) < purity) & (own < n_levels)
    names = rng.permutation(n_levels)
    return _with_category(rows, names[np.where(is_own, own, level)])


def cut_to_categories(rng: Generator, rows: Rows, n_columns: int, n_levels: int) -> Rows:
    """The first columns become categories: cut at quantiles, levels in no order."""
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
