"""Measurements as JSON lines, and queries of them."""

import json
import os
import platform
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks" / "results"

Line = dict[str, Any]


class Cell(NamedTuple):
    """The key of a measurement."""

    what: str
    set: str
    system: str
    threads: int
    steps: int
    repeat: int


class Results:
    """The lines of a file; added lines are written at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text() if path.exists() else ""
        self.lines: list[Line] = [json.loads(line) for line in text.splitlines()]

    def add(self, line: Line) -> None:
        self.lines.append(line)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def find(self, cell: Cell) -> Line | None:
        """Return the measurement of a cell."""
        return next((line for line in self.measured(cell.what) if cell_of(line) == cell), None)

    def why_not(self, cell: Cell) -> str | None:
        """Return the last reason why the cell is not measured, or None."""
        return next(
            (
                line["reason"]
                for line in reversed(self.lines)
                if "reason" in line
                and line["system"] == cell.system
                and line["set"] in (cell.set, "all")
                and line["what"] in (cell.what, "all")
                and line.get("threads", cell.threads) == cell.threads
                and line.get("steps", cell.steps) == cell.steps
            ),
            None,
        )

    def measured(self, what: str) -> list[Line]:
        return [line for line in self.lines if line["what"] == what and "reason" not in line]

    def table(
        self,
        what: str,
        field: str,
        threads: int,
        pick: Callable[[Iterable[float]], float] = min,
    ) -> dict[tuple[str, str], float]:
        """Return one number for each (set, system): by default the best of the repeats.

        Of several numbers of iterations of a set, only the largest counts.
        """
        lines = [line for line in self.measured(what) if line["threads"] == threads]
        values = defaultdict(list)
        for line in with_max_iterations(lines):
            if line.get(field) is not None:
                values[line["set"], line["system"]].append(line[field])
        return {key: pick(of_key) for key, of_key in values.items()}


def with_max_iterations(lines: list[Line]) -> list[Line]:
    """Return the lines of each set with the largest number of iterations."""
    most: dict[str, int] = {}
    for line in lines:
        most[line["set"]] = max(line["steps"], most.get(line["set"], 0))
    return [line for line in lines if line["steps"] == most[line["set"]]]


def cell_of(line: Line) -> Cell:
    return Cell(*(line[name] for name in Cell._fields))


def origin(package: str) -> Line:
    """Return the origin of a measurement: version, commit, machine, date."""
    return {
        "version": version(package),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "commit": commit(),
        "machine": machine(),
        "python": platform.python_version(),
        "load_average": round(os.getloadavg()[0], 2),
    }


@cache
def commit() -> str:
    """Return the commit, with a plus sign if the package has uncommitted changes."""
    try:
        name = _git("rev-parse", "--short", "HEAD")
        changed = _git("--no-optional-locks", "status", "--porcelain", "src", "cpp")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + ("+" if changed else "")


@cache
def machine() -> str:
    """Return processor, number of usable CPUs, and memory."""
    names = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    n_cpus = len(os.sched_getaffinity(0))
    return f"{names[0] if names else platform.machine()}, {n_cpus} CPUs, {gigabytes:.0f} GiB"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
