"""The pool of tables by name, each with a training part and a test part that is only reported.

Candidates are chosen by splits of the training parts of ``POOL``. The test parts of ``HELD_BACK`` are evaluated
after the choice. ``pool.json`` has the shape and the digest of each table; a changed table is an error.
``python -m experiments.defaults pool`` writes it.
"""

import json
import os
import zlib
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets as shipped_with_sklearn

from experiments.defaults import generated as of
from experiments.defaults import real
from experiments.defaults.rows import Parts, Rows, common_classes, digest

SHAPES = Path(__file__).parent / "pool.json"
SOURCES = [Path(__file__).parent / f"{name}.py" for name in ("pool", "real", "generated", "rows")]


class Table(NamedTuple):
    """A table, and the number of splits of its training part."""

    load: Callable[[], Parts]
    n_splits: int = 2

    @property
    def is_generated(self) -> bool:
        """Whether the rows are drawn from a known distribution, not collected."""
        return getattr(self.load, "func", None) is _drawn


def _drawn(name: str, sizes: tuple[int, int], law: of.Law, changes: Sequence[of.Change]) -> Parts:
    """Generate a table with about the given numbers of training and test rows."""
    seed = zlib.crc32(name.encode())
    rows = of.draw(np.random.default_rng(seed), sum(sizes), law, changes)
    return common_classes(*rows.parted(sizes[1] / sum(sizes), seed), real.MIN_ROWS)


def _generated(
    name: str, sizes: tuple[int, int], law: of.Law, *changes: of.Change, n_splits: int = 2
) -> dict[str, Table]:
    return {name: Table(partial(_drawn, name, sizes, law, changes), n_splits)}


def _real(load: Callable[..., Parts], *given: Any, n_splits: int = 2) -> Table:
    return Table(partial(load, *given), n_splits)


REAL = {
    "iris": _real(real.shipped, shipped_with_sklearn.load_iris, n_splits=10),
    "wine": _real(real.shipped, shipped_with_sklearn.load_wine, n_splits=10),
    "soybean": _real(real.extra_table, "soybean", 1_000, n_splits=3),
    "nursery": _real(real.extra_table, "nursery", 20_000),
    "krkopt-8k": _real(real.extra_table, "krkopt", 8_000, n_splits=1),
    "kdd-20k": _real(real.extra_table, "kddcup99_10pct", 20_000, n_splits=1),
    "drybean": _real(real.extra_table, "drybean", 20_000),
    "poker-5k": _real(real.extra_numbers, "poker", "test_first18k.csv.gz", 5_000),
    "poker-25k": _real(real.extra_numbers, "poker", "test_first18k.csv.gz", 25_010, n_splits=1),
    "mnist-2k": _real(real.extra_numbers, "mnist", "test.csv.gz", 2_000, n_splits=1),
    "optdigits": _real(real.paper_set, "optdigits", 4_000),
    "pendigits": _real(real.paper_set, "pendigits", 8_000),
    "pendigits-1k": _real(real.paper_set, "pendigits", 1_000, n_splits=3),
    "letter": _real(real.paper_set, "letter", 16_000, n_splits=1),
    "letter-2k": _real(real.paper_set, "letter", 2_000),
    "zipcode-3k": _real(real.paper_set, "zipcode", 3_000, n_splits=1),
    "isolet-1500": _real(real.every_third_feature, "isolet", 1_500, n_splits=1),
    "covertype-5k": _real(real.paper_set, "covertype", 5_000),
    "covertype-100k": _real(real.paper_set, "covertype", 100_000, n_splits=1),
    "covertype-categories-8k": _real(real.covertype_as_categories, 8_000),
}

# Two distributions on which default parameters went wrong before: 8 classes, to which a categorical
# feature is added below (accuracy fell), and 100 classes that are hard to separate.
EIGHT = partial(of.cubes, n_features=20, n_informative=20, n_redundant=0, n_classes=8)
HUNDRED = partial(of.cubes, n_features=20, n_informative=15, n_classes=100, n_clusters_per_class=1)
GENERATED = {
    **_generated(
        "three-150", (150, 1000), partial(of.linear, n_classes=3, n_features=5), n_splits=10
    ),
    **_generated(
        "spirals-400",
        (400, 2000),
        partial(of.spirals, n_classes=3),
        partial(of.noise_columns, n_columns=3),
        n_splits=3,
    ),
    **_generated(
        "wide-200",
        (200, 1000),
        partial(of.clouds, n_classes=4, n_features=15, distance=0.8),
        partial(of.noise_columns, n_columns=285),
        n_splits=3,
    ),
    **_generated(
        "few-informative-1k",
        (1000, 2000),
        partial(of.smooth, n_classes=3, n_features=4),
        partial(of.noise_columns, n_columns=96),
        n_splits=3,
    ),
    **_generated(
        "missing-500",
        (500, 2000),
        partial(of.clouds, n_classes=5, n_features=12, distance=0.7),
        partial(of.missing, share=0.15),
        n_splits=3,
    ),
    **_generated(
        "large-missing-2k",
        (2000, 3000),
        partial(of.smooth, n_classes=3, n_features=8),
        partial(of.large_missing, share=0.4),
        n_splits=3,
    ),
    **_generated(
        "heavy-tails-1500",
        (1500, 3000),
        partial(of.clouds, n_classes=4, n_features=10, distance=0.4),
        of.heavy_tails,
        n_splits=3,
    ),
    **_generated(
        "label-noise-2k",
        (2000, 3000),
        partial(of.rules, n_classes=4, n_features=8, depth=5),
        partial(of.other_labels, share=0.25),
        n_splits=3,
    ),
    **_generated(
        "label-noise-5k",
        (5000, 5000),
        partial(of.clouds, n_classes=10, n_features=15),
        partial(of.other_labels, share=0.4),
    ),
    **_generated(
        "weak-signal-3k",
        (3000, 3000),
        partial(of.linear, n_classes=4, n_features=20, sharpness=1.5),
    ),
    **_generated(
        "imbalance-5k",
        (5000, 5000),
        partial(of.smooth, n_classes=6, n_features=8, shares=(0.7, 0.15, 0.08, 0.04, 0.02, 0.01)),
    ),
    **_generated(
        "steep-imbalance-6k",
        (12_000, 12_000),
        partial(of.clouds, n_classes=10, n_features=12, distance=0.8),
        partial(of.thinned, shares=(1, 1, 1, 0.7, 0.4, 0.2, 0.1, 0.05, 0.02, 0.01)),
    ),
    **_generated("counts-2k", (2000, 3000), partial(of.counts, n_classes=6, n_features=15)),
    **_generated(
        "words-1500",
        (1500, 3000),
        partial(of.counts, n_classes=8, n_features=120, rate=0.15),
        n_splits=1,
    ),
    **_generated(
        "whole-numbers-3k",
        (3000, 3000),
        partial(of.smooth, n_classes=5, n_features=6),
        partial(of.whole_numbers, factor=1.5),
    ),
    **_generated(
        "rules-10k", (10_000, 5000), partial(of.rules, n_classes=5, n_features=10, depth=8)
    ),
    **_generated(
        "ordered-4k", (4000, 4000), partial(of.ordered, n_classes=10, n_features=10, noise=1.0)
    ),
    **_generated(
        "mixed-3k",
        (3000, 3000),
        partial(of.smooth, n_classes=6, n_features=10),
        partial(of.missing, share=0.1),
        partial(of.cut_to_categories, n_columns=4, n_levels=12),
    ),
    **_generated("eight-4k", (4000, 4000), EIGHT),
    **_generated("eight-noise-40", (4000, 4000), EIGHT, partial(of.noise_category, n_levels=40)),
    **_generated("eight-noise-400", (4000, 4000), EIGHT, partial(of.noise_category, n_levels=400)),
    **_generated(
        "eight-noise-4000",
        (8000, 4000),
        EIGHT,
        partial(of.noise_category, n_levels=4000),
        n_splits=1,
    ),
    **_generated(
        "eight-levels-400",
        (4000, 4000),
        EIGHT,
        partial(of.class_category, n_levels=400, purity=0.4),
    ),
    **_generated(
        "levels-2000-20k",
        (20_000, 10_000),
        partial(of.smooth, n_classes=5, n_features=8),
        partial(of.class_category, n_levels=2000, purity=0.4),
        n_splits=1,
    ),
    **_generated(
        "families-20-4k",
        (4000, 4000),
        partial(of.families, n_classes=20, n_features=12),
        n_splits=1,
    ),
    **_generated(
        "clouds-40-3k", (3000, 3000), partial(of.clouds, n_classes=40, n_features=15), n_splits=1
    ),
    **_generated("cubes-100-5k", (5000, 5000), HUNDRED, n_splits=1),
    **_generated(
        "clouds-100-4k",
        (4000, 4000),
        partial(of.clouds, n_classes=100, n_features=10, distance=1.0),
        n_splits=1,
    ),
    **_generated(
        "clouds-300-4500",
        (4500, 4500),
        partial(of.clouds, n_classes=300, n_features=8, distance=1.5),
        n_splits=1,
    ),
    **_generated(
        "smooth-100k", (100_000, 20_000), partial(of.smooth, n_classes=4, n_features=10), n_splits=1
    ),
}
POOL = {**REAL, **GENERATED}

# "digits" are the test rows of Optdigits, so they must not be used for choosing.
HELD_BACK = {
    "digits": _real(real.shipped, shipped_with_sklearn.load_digits),
    **_generated(
        "held-small-250",
        (250, 2000),
        partial(of.smooth, n_classes=3, n_features=5),
        partial(of.noise_columns, n_columns=20),
    ),
    **_generated(
        "held-missing-2500",
        (2500, 3000),
        partial(of.clouds, n_classes=12, n_features=14),
        partial(of.missing, share=0.2),
    ),
    **_generated(
        "held-categories-3k",
        (3000, 3000),
        partial(of.smooth, n_classes=7, n_features=8),
        partial(of.noise_category, n_levels=300),
        partial(of.class_category, n_levels=60, purity=0.3),
    ),
    **_generated(
        "held-imbalance-3k",
        (6000, 6000),
        partial(of.counts, n_classes=9, n_features=20, rate=1.0),
        partial(of.thinned, shares=(1, 1, 1, 0.5, 0.3, 0.2, 0.1, 0.05, 0.03)),
    ),
    **_generated(
        "held-rules-20k",
        (20_000, 10_000),
        partial(of.rules, n_classes=4, n_features=12, depth=7),
        partial(of.other_labels, share=0.15),
    ),
    **_generated(
        "held-clouds-150-3k",
        (3000, 3000),
        partial(of.families, n_classes=150, n_features=12, n_families=10),
    ),
}
ALL = {**POOL, **HELD_BACK}


class Shape(NamedTuple):
    """The shape of a table, known without loading it."""

    rows: int
    features: int
    categories: int
    classes: int
    test_rows: int
    digest: str

    @property
    def work(self) -> int:
        """The approximate cost of an iteration."""
        return (self.rows + 500) * self.features * self.classes


def shape_of(parts: Parts) -> Shape:
    """Return the shape of a loaded table."""
    n_rows, n_features = parts.train.X.shape
    n_categories = int(parts.train.is_category.sum())
    n_classes = int(parts.train.y.max()) + 1
    return Shape(n_rows, n_features, n_categories, n_classes, len(parts.test.y), digest(parts))


@cache
def shapes() -> dict[str, Shape]:
    """Return the stored shapes."""
    return {name: Shape(**given) for name, given in json.loads(SHAPES.read_text()).items()}


def write_shapes() -> None:
    """Write the shapes of all tables."""
    found = {name: shape_of(table.load())._asdict() for name, table in ALL.items()}
    lines = (f"  {json.dumps(name)}: {json.dumps(shape)}" for name, shape in found.items())
    SHAPES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def load(name: str) -> Parts:
    """Return a table after checking its digest."""
    parts = ALL[name].load()
    found, expected = shape_of(parts), shapes()[name]
    if found != expected:
        raise ValueError(f"{name}: {found}; expected {expected}: another table")
    return parts


def write(parts: Parts, path: Path) -> None:
    """Write a table for a process of any Python."""
    arrays = {
        f"{part}_{field}": array
        for part, rows in parts._asdict().items()
        for field, array in rows._asdict().items()
    }
    part = path.with_suffix(f".{os.getpid()}.npz")  # renamed when complete
    np.savez(part, **arrays)
    part.replace(path)


def read(path: Path) -> Parts:
    """Read a written table."""
    with np.load(path) as arrays:
        return Parts(
            *(Rows(*(arrays[f"{part}_{of}"] for of in Rows._fields)) for part in Parts._fields)
        )


def as_file(name: str) -> Path:
    """Return the file of a table in a cache keyed by the sources of the pool."""
    sources = zlib.crc32(b"".join(path.read_bytes() for path in (*SOURCES, SHAPES)))
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = root / "abcgbm" / "defaults" / f"{sources:08x}" / f"{name}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(load(name), path)
    return path
