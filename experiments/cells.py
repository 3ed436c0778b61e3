"""The cells of the paper's tables: what is run, in which order, with which settings."""

import tomllib
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from abcgbm import AdaptiveBaseClass

TABLES = Path(__file__).parent / "tables"
# Cheap ones first; the last two take most of the time.
DATASETS = ("optdigits", "pendigits", "letter", "zipcode", "isolet", "covertype")

# The algorithms in the words of ABCBoostClassifier. "Mb", "b1" and "b7" are the paper's names: the
# derivatives of MART with the worst class as the base, and a base class that never changes.
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
# What an algorithm has no use for: MART draws nothing, ABC-MART computes its residuals once a step.
UNUSED = {"mart": "random_state", "abc-mart": "refresh"}
VALIDATED_RATE = 0.1  # cells of this learning rate also choose a step by validation


@dataclass(frozen=True)
class Parameters:
    """What the paper does not print."""

    min_samples_leaf: float
    max_bins: int
    random_state: int = 0  # draws the first base class, and nothing else here
    refresh: str = "step"  # how often a plain algorithm computes residuals: once a step, or a class


@dataclass(frozen=True)
class Cell:
    """One run. Two runs of equal cells give the same model."""

    dataset: str
    algorithm: str
    max_leaf_nodes: int
    learning_rate: float
    max_iter: int
    settings: Parameters

    @property
    def is_validated(self) -> bool:
        """Whether a step is chosen by validation too."""
        return self.learning_rate == VALIDATED_RATE

    def as_keys(self) -> dict[str, Any]:
        """Return what distinguishes the cell, as it is written into results."""
        keys = asdict(self)
        settings: dict[str, Any] = keys.pop("settings")
        return keys | settings

    @classmethod
    def of_line(cls, line: dict[str, Any]) -> "Cell":
        """Return the cell that a line of results belongs to."""
        # The first lines do not have all settings.
        given = {f.name: line[f.name] for f in fields(Parameters) if f.name in line}
        names = ("dataset", "algorithm", "max_leaf_nodes", "learning_rate", "max_iter")
        return cls(*(line[name] for name in names), Parameters(**given))

    def __str__(self) -> str:
        return f"{self.dataset} {self.algorithm} J={self.max_leaf_nodes} nu={self.learning_rate}"


@dataclass(frozen=True)
class Table:
    """A table of the paper: the grid, and the numbers that are printed."""

    dataset: str
    max_leaf_nodes: tuple[int, ...]
    learning_rate: tuple[float, ...]
    cells: tuple[Cell, ...]
    beside: tuple[Cell, ...]
    paper: dict[Cell, int]
    summary: dict[str, float]
    draws_improvement: bool  # over the steps, as the paper does

    def cell(self, algorithm: str, max_leaf_nodes: int, learning_rate: float) -> Cell:
        """Return a cell of the grid or beside it."""
        wanted = (algorithm, max_leaf_nodes, learning_rate)
        return next(
            cell
            for cell in self.cells + self.beside
            if (cell.algorithm, cell.max_leaf_nodes, cell.learning_rate) == wanted
        )

    def paper_of(self, cell: Cell) -> int:
        """Return the paper's count at a cell's J and nu, whatever its steps and settings."""
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
    """Return every cell in the order of running: learning rate 0.1 first, cheap data sets first."""
    cells = [cell for name in DATASETS for cell in table(name).cells + table(name).beside]
    cells = list(dict.fromkeys(cells + alternatives()))
    return sorted(cells, key=lambda c: (not c.is_validated, DATASETS.index(c.dataset)))


def trial_cells() -> list[Cell]:
    """Return the cells that compare settings, each with the algorithms that it matters to."""
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
