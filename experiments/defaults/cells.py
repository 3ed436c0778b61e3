"""The cells of the trial, and the parts of a table."""

import json
from typing import Any, NamedTuple

from experiments.defaults import pool
from experiments.defaults.candidates import Parameters
from experiments.defaults.measure import TEST, Line

MODES = ("defaults", "stopping")
PARTS = ("cv", "test", "held-back")


class Cell(NamedTuple):
    """The key of a measurement."""

    mode: str
    table: str
    part: str
    system: str
    parameters: Parameters
    build: str | None  # of our package; None for a peer

    @property
    def key(self) -> tuple[Any, ...]:
        """Return the cell as a dictionary key."""
        return *self[:4], json.dumps(self.parameters, sort_keys=True), self.build

    @property
    def label(self) -> str:
        """Return the name of the system, with the build of ours."""
        return self.system if self.build is None else f"{self.system}@{self.build}"

    @property
    def kind(self) -> str:
        """Return the kind of the part, one of ``PARTS``."""
        if self.table in pool.HELD_BACK:
            return "held-back"
        return TEST if self.part == TEST else "cv"

    @classmethod
    def of_line(cls, line: Line) -> "Cell":
        return cls(*(line[name] for name in cls._fields))


def parts_of_table(table: str, mode: str, kind: str) -> list[str]:
    """Return the parts of a kind of a table; early stopping uses only one split."""
    if kind != "cv":
        return [TEST]
    n_splits = pool.POOL[table].n_splits if mode == "defaults" else 1
    return [f"cv-{split}" for split in range(n_splits)]
