"""Rows of a table as arrays, their splits, and their digest."""

import hashlib
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]


class Rows(NamedTuple):
    """Features and class numbers; categorical columns hold codes, NaN is missing."""

    X: NDArray[np.float64]
    is_category: Mask
    y: NDArray[np.int64]

    def take(self, rows: NDArray[np.generic]) -> Self:
        """Return rows by a mask or by indices."""
        return self._replace(X=self.X[rows], y=self.y[rows])

    def parted(self, share: float, seed: int) -> tuple[Self, Self]:
        """Split off a fraction of the rows of each class; return the rest and the fraction."""
        is_apart = apart(self.y, share, seed)
        return self.take(~is_apart), self.take(is_apart)


class Parts(NamedTuple):
    """The training part, by which candidates are chosen, and the test part, which is only reported."""

    train: Rows
    test: Rows


def numbers(X: NDArray[np.generic], y: NDArray[np.generic]) -> Rows:
    """Return rows without categories."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    return Rows(X, np.zeros(X.shape[1], dtype=bool), np.asarray(y, dtype=np.int64))


def apart(y: NDArray[np.int64], share: float, seed: int) -> Mask:
    """Mark a random fraction of the rows of each class, but never its first row."""
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    starts = np.searchsorted(y[order], y[order])
    rank = np.arange(len(y)) - starts
    is_apart = np.zeros(len(y), dtype=bool)
    # Rounded, so that one third of three rows is one row.
    is_apart[order] = np.floor(np.round((rank + 1) * share, 9)) > np.floor(
        np.round(rank * share, 9)
    )
    return is_apart


def few(rows: Rows, n_rows: int, seed: int) -> Rows:
    """Return a random sample of the rows, not stratified; all rows if there are not more."""
    if len(rows.y) <= n_rows:
        return rows
    drawn = np.random.default_rng(seed).choice(len(rows.y), n_rows, replace=False)
    return rows.take(np.sort(drawn))


def common_classes(train: Rows, test: Rows, least: int) -> Parts:
    """Drop classes with few training rows or no test row, and renumber the others."""
    labels, counts = np.unique(train.y, return_counts=True)
    kept = labels[(counts >= least) & np.isin(labels, test.y)]
    return Parts(*(_numbered(rows, kept) for rows in (train, test)))


def _numbered(rows: Rows, labels: NDArray[np.int64]) -> Rows:
    known = rows.take(np.isin(rows.y, labels))
    return known._replace(y=np.searchsorted(labels, known.y))


def digest(parts: Parts) -> str:
    """Return the start of the SHA-256 of the values and labels in both parts."""
    answer = hashlib.sha256()
    for rows in parts:
        answer.update(f"{rows.X.shape} {rows.is_category.tolist()}".encode())
        # Adding 0 makes -0 equal to 0; all NaN get one bit pattern.
        X = np.where(np.isnan(rows.X), np.nan, rows.X + 0.0)
        answer.update(X.astype("<f8", order="C").tobytes())
        answer.update(rows.y.astype("<i8").tobytes())
    return answer.hexdigest()[:16]
