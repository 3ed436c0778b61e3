"""Generated rows that do not depend on the number of ranks."""

from typing import NamedTuple

import numpy as np

ROWS_OF_A_PART = 250_000


class Shape(NamedTuple):
    """Numbers of rows, features and classes of a table."""

    n_rows: int
    n_features: int
    n_classes: int

    @property
    def n_parts(self) -> int:
        return -(-self.n_rows // ROWS_OF_A_PART)


def part(shape: Shape, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y of one part: classes follow from products of features, with noise."""
    rng = np.random.default_rng([7, number])
    n_rows = min(ROWS_OF_A_PART, shape.n_rows - number * ROWS_OF_A_PART)
    X = rng.standard_normal((n_rows, shape.n_features), dtype=np.float32)
    weights = np.random.default_rng(11).normal(size=(2, shape.n_features, shape.n_classes))
    score = X @ weights[0] + np.tanh(X[:, ::-1] * X) @ weights[1]
    y = np.argmax(score + 2.0 * rng.gumbel(size=score.shape), axis=1)
    return X, y.astype(np.int32)


def parts_of_rank(shape: Shape, rank: int, n_ranks: int) -> range:
    """Return the consecutive parts of a rank, so that rows stay in order."""
    return range(rank * shape.n_parts // n_ranks, (rank + 1) * shape.n_parts // n_ranks)


def rows_of_rank(shape: Shape, rank: int = 0, n_ranks: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a rank as one array."""
    drawn = [part(shape, number) for number in parts_of_rank(shape, rank, n_ranks)]
    if not drawn:
        return np.empty((0, shape.n_features), np.float32), np.empty(0, np.int32)
    X, y = zip(*drawn, strict=True)
    return np.concatenate(X), np.concatenate(y)
