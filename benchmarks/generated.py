"""Generated tables with any number of rows, features and classes, and grids of them."""

import re
from itertools import chain
from typing import NamedTuple

import numpy as np
from experiments.datasets import Split


class Shape(NamedTuple):
    """Numbers of training rows, features and classes, named as ``20000x20x10``."""

    n_rows: int
    n_features: int
    n_classes: int

    @property
    def name(self) -> str:
        return "x".join(map(str, self))


CENTRE = Shape(20_000, 20, 10)
# One number is varied at a time.
GRIDS: dict[str, list[Shape]] = {
    "N": [CENTRE._replace(n_rows=n) for n in (5_000, 10_000, 20_000, 40_000, 80_000, 160_000)],
    "D": [CENTRE._replace(n_features=d) for d in (10, 20, 40, 80, 160, 320)],
    "K": [CENTRE._replace(n_classes=k) for k in (5, 10, 20, 50, 100, 200, 300)],
}


def grid_names() -> list[str]:
    """Return the names of all shapes of the grids, each once."""
    return list(dict.fromkeys(shape.name for shape in chain.from_iterable(GRIDS.values())))


def parse(name: str) -> Shape | None:
    """Return the shape of a name; None if the name is not a shape."""
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*x[1-9]\d*", name):
        return None
    return Shape(*map(int, name.split("x")))


def generate(shape: Shape) -> Split:
    """Generate classes as overlapping Gaussian clouds; the result is always the same."""
    generator = np.random.default_rng(shape)
    centres = generator.normal(size=(shape.n_classes, shape.n_features))
    n_test = max(1_000, shape.n_rows // 5)
    # Every class has rows, for any number of classes.
    y = np.resize(np.arange(shape.n_classes), shape.n_rows + n_test)
    X = centres[y] + generator.normal(scale=1.5, size=(len(y), shape.n_features))
    order = generator.permutation(shape.n_rows)
    return Split(
        X[: shape.n_rows][order], y[: shape.n_rows][order], X[shape.n_rows :], y[shape.n_rows :]
    )
