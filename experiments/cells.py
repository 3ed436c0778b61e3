"""The cells of the paper's tables: their order and their settings."""

import tomllib
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from abcgbm import AdaptiveBaseClass

TABLES = Path(__file__).parent / "tables"
# Fast ones first; the last two take most of the time.
DATASETS = ("optdigits", "pendigits", "letter", "zipcode", "isolet", "covertype")

# The algorithms as parameters of ABCBoostClassifier. "Mb", "b1" and "b7" are the paper's names: derivatives of
# MART with the class of largest loss as base class, and a fixed base class.
ALGORITHMS: dict[str, dict[str, Any]] = {
    "mart": {"algorithm": "mart"},
    "abc-mart": {"algorithm": "abc-mart"},
    "logitboost": {"algorithm": "logitboost"},
    "abc-logitboost": {
        "algorithm": AdaptiveBaseClass("logitboost", n_candidates=2, gap=5, line_search=False)
    },
    "shared": {"algorithm": "multi-output", "l2_regularization": 0.001},
    "Mb": {"algorithm": AdaptiveBaseClass(base_derivatives=False, line_search=False)},
    "b1": {"algorithm": AdaptiveBaseClass(base_label=1, line_search=False)},
    "b7": {"algorithm": AdaptiveBaseClass(base_label=7, line_search=False)},
}
# Settings without effect: MART samples nothing, ABC-MART computes its residuals once in an iteration.
UNUSED = {"mart": "random_state", "abc-mart": "refresh"}
VALIDATED_RATE = 0.1  # cells with this learning rate also choose an iteration by validation


@dataclass(frozen=True)
class Parameters:
    """Settings that the paper does not state."""

    min_samples_leaf: float
    max_bins: int
    random_state: int = 0  # used only for the first base class
    refresh: str = "step"  # residuals of a plain algorithm: once in an iteration, or for each class


@dataclass(frozen=True)
class Cell:
    """A run. Runs of equal cells give the same model."""

    dataset: str
    algorithm: str
    max_leaf_nodes: int
    learning_rate: float
    max_iter: int
    settings: Parameters

    @property
    def is_validated(self) -> bool:
        """Whether an iteration is also chosen by validation."""
        return self.learning_rate == VALIDATED_RATE

    def as_keys(self) -> dict[str, Any]:
        """Return the key of the cell in the results."""
        keys = asdict(self)
        settings: dict[str, Any] = keys.pop("settings")
        return keys | settings

    @classmethod
    def of_line(cls, line: dict[str, Any]) -> "Cell":
        """Return the cell that a line of results belongs to."""
        # Early lines do not have all settings.
        given = {f.name: line[f.name] for f in fields(Parameters) if f.name in line}
        names = ("dataset", "algorithm", "max_leaf_nodes", "learning_rate", "max_iter")
        return cls(*(line[name] for name in names), Parameters(**given))

    def __str__(self) -> str:
        return f"{self.dataset} {self.algorithm} J={self.max_leaf_nodes} nu={self.learning_rate}"


@dataclass(frozen=True)
class Table:
    """A table of the paper: the grid and the printed numbers."""

    dataset: str
    max_leaf_nodes: tuple[int, ...]
    learning_rate: tuple[float, ...]
    cells: tuple[Cell, ...]
    beside: tuple[Cell, ...]
    paper: dict[Cell, int]
    summary: dict[str, float]
    draws_improvement: bool  # over the iterations, as in the paper

    def cell(self, algorithm: str, max_leaf_nodes: int, learning_rate: float) -> Cell:
        """Return a cell, which need not be in the grid."""
        wanted = (algorithm, max_leaf_nodes, learning_rate)
        return next(
            cell
            for cell in self.cells + self.beside
            if (cell.algorithm, cell.max_leaf_nodes, cell.learning_rate) == wanted
        )

    def paper_of(self, cell: Cell) -> int:
        """Return the paper's count at a cell's J and nu, for any iterations and settings."""
        return self.paper[self.cell(cell.algorithm, cell.max_leaf_nodes, cell.learning_rate)]


@cache
def present_settings() -> Parameters:
    """Return the settings of all tables."""
    given = _toml("settings")
    return Parameters(**{field.name: given[field.name] for field in fields(Parameters)})


@cache
def table(dataset: str) -> Table:
    """Read the table of a data set."""
    given = _toml(dataset)
    steps = dict(zip(given["max_leaf_nodes"], given["max_iter"], strict=True))

    def grid(of: dict[str, Any]) -> tuple[Cell, ...]:
        return tuple(
            Cell(given["dataset"], algorithm, leaves, rate, steps[leaves], present_settings())
            for rate in of["learning_rate"]
            for leaves in given["max_leaf_nodes"]
            for algorithm in of["algorithms"]
        )

    cells = grid(given)
    errors = given["paper"]["errors"]
    column = given["learning_rate"].index
    return Table(
        given["dataset"],
        tuple(given["max_leaf_nodes"]),
        tuple(given["learning_rate"]),
        cells,
        grid(given["beside"]),
        {c: errors[c.algorithm][str(c.max_leaf_nodes)][column(c.learning_rate)] for c in cells},
        given["paper"]["summary"],
        given["draws_improvement"],
    )


def alternatives() -> list[Cell]:
    """Return the cells of the paper's comparison of alternatives, MART and ABC-MART first."""
    given = _toml("alternatives")
    of = table(given["dataset"])
    names = ["mart", "abc-mart", *given["algorithms"]]
    mart = of.cell("mart", given["max_leaf_nodes"], given["learning_rate"])
    return [Cell.of_line(mart.as_keys() | {"algorithm": name}) for name in names]


def all_cells() -> list[Cell]:
    """Return every cell in the order of running: learning rate 0.1 and fast data sets first."""
    cells = [cell for name in DATASETS for cell in table(name).cells + table(name).beside]
    cells = list(dict.fromkeys(cells + alternatives()))
    return sorted(cells, key=lambda c: (not c.is_validated, DATASETS.index(c.dataset)))


def trial_cells() -> list[Cell]:
    """Return the cells that compare settings, with the algorithms that they affect."""
    trial, present = _toml("settings")["trial"], present_settings()
    choices = [
        replace(present, **{field.name: value})
        for field in fields(Parameters)
        for value in trial[field.name]
    ]
    return [
        Cell(algorithm=algorithm, learning_rate=trial["learning_rate"], settings=settings, **cell)
        for cell in trial["cells"]
        for settings in dict.fromkeys(choices)
        for algorithm in trial["algorithms"]
        if getattr(settings, UNUSED[algorithm]) == getattr(present, UNUSED[algorithm])
    ]


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads((TABLES / f"{name}.toml").read_text())
