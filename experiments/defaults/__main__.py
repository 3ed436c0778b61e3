"""Compare candidates for our defaults with the peers' defaults on a pool of tables.

``python -m experiments.defaults run`` measures cells missing in ``experiments/results/defaults.jsonl``:

- mode ``defaults``: without early stopping; ``stopping``: at most 1,000 iterations, stopped by a fifth of the rows;
- part ``cv``: splits of the training parts, for choosing; ``test``: the test parts; ``held-back``: the test
  parts of tables that are not used for choosing. The last two are only reported.

Small tables come first. Our cells are measured again for another ``--build``, by default the commit that last
changed the package. ``--peer-python`` runs the peers in another Python. A cell that failed or would take too
long is recorded with its reason, and not tried again until that line is deleted.
``show`` prints tables, ``report`` writes overviews into ``docs/benchmarks.md``, between their markers, and all
tables into a page beside the results; ``pool`` writes the shapes of the pool.
The sets are read from the folder ``ABCGBM_DATA``.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.results import Results

from experiments.defaults import page, pool
from experiments.defaults.candidates import Parameters, candidates
from experiments.defaults.cells import MODES, PARTS, Cell, parts_of_table
from experiments.defaults.measure import Job, Line
from experiments.defaults.summary import clashes
from experiments.defaults.systems import PEERS
from experiments.defaults.worker import Workers

ROOT = Path(__file__).parents[2]
FILE = ROOT / "experiments" / "results" / "defaults.jsonl"
PAGE = ROOT / "docs" / "benchmarks.md"


@dataclass(frozen=True)
class Plan:
    """The measurements that a run is to make."""

    systems: Sequence[str] = tuple(PEERS)
    candidates: Path | None = None
    modes: Sequence[str] = ("defaults",)
    parts: Sequence[str] = ("cv",)
    tables: Sequence[str] | None = None
    build: str | None = None
    limit: float = 120.0
    give_up: float = 3600.0
    peer_python: str = sys.executable

    def python_of(self, cell: Cell) -> str:
        return self.peer_python if cell.system in PEERS else sys.executable


def cells(plan: Plan) -> Iterator[Cell]:
    """Yield the cells by part, small tables first."""
    known: dict[str, Parameters] = {name: {} for name in PEERS} | candidates(plan.candidates)
    unknown = [name for name in plan.systems if name not in known]
    if unknown:
        raise SystemExit(f"systems {unknown}; expected some of {', '.join(known)}")
    build = plan.build or package_commit()
    for mode in plan.modes:
        for kind in plan.parts:
            for table, part in in_order(mode, kind, plan.tables):
                for name in plan.systems:
                    of = None if name in PEERS else build
                    yield Cell(mode, table, part, name, known[name], of)


def in_order(mode: str, kind: str, tables: Sequence[str] | None) -> Iterator[tuple[str, str]]:
    """Yield tables and their parts."""
    shapes = pool.shapes()
    wanted = pool.HELD_BACK if kind == "held-back" else pool.POOL
    for name in sorted(wanted, key=lambda name: shapes[name].work):
        if tables is None or name in tables:
            yield from ((name, part) for part in parts_of_table(name, mode, kind))


def run(plan: Plan, results: Results) -> None:
    """Measure every missing cell; each result is saved at once."""
    wanted = list(cells(plan))
    for label in clashes(results.lines, wanted):
        raise SystemExit(
            f"{label} has results with other parameters; expected another name or build"
        )
    done = {Cell.of_line(line).key for line in results.lines}
    with Workers(plan.give_up) as workers:
        for cell in wanted:
            if cell.key not in done:
                job = Job(str(pool.as_file(cell.table)), *cell[:1], *cell[2:5], limit=plan.limit)
                found = workers.ask(plan.python_of(cell), job)
                results.add({**cell._asdict(), **found})
                print_cell(cell, found)


def print_cell(cell: Cell, found: Line) -> None:
    """Print a line about a cell."""
    shown = ("errors", "log_loss", "cpu", "steps", "reason")
    print(*cell[:4], {name: found[name] for name in shown if name in found}, flush=True)


def package_commit() -> str:
    """Return the commit that last changed the package, with a plus sign if there are later changes."""
    commands = (
        ["log", "-1", "--format=%h", "--"],
        ["--no-optional-locks", "status", "--porcelain"],
    )
    last, changed = (
        subprocess.run(
            ["git", *command, "src", "cpp"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
        for command in commands
    )
    return last + ("+" if changed else "")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; defaults are those of the plan."""
    top = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("pool")
    run_parser = commands.add_parser("run", argument_default=argparse.SUPPRESS)
    add = run_parser.add_argument
    add("--systems", nargs="+", help="names of peers and candidates; default: the peers")
    add("--candidates", type=Path, help="a JSON file with more candidates")
    add("--modes", nargs="+", choices=MODES)
    add("--parts", nargs="+", choices=PARTS)
    add("--tables", nargs="+", choices=pool.ALL, metavar="TABLE")
    add("--build", help="a name for the build of the package")
    add(
        "--limit",
        type=float,
        help="limit of the estimated CPU seconds of a fit of more than 100 iterations",
    )
    add("--give-up", type=float, help="timeout of a cell in seconds, recorded as a failure")
    add("--peer-python", help="the Python of a venv with the peers")
    show_parser = commands.add_parser("show")
    show_parser.add_argument("--systems", nargs="+", help="name or name@build; default: all")
    show_parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    show_parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    show_parser.add_argument("--matrix", action="store_true", help="also show each table")
    report_parser = commands.add_parser("report")
    report_parser.add_argument("--systems", nargs="+", help="name or name@build; default: all")
    report_parser.add_argument("--page", type=Path, default=PAGE)
    for command in (run_parser, show_parser, report_parser):
        command.add_argument("--file", type=Path, default=FILE)
    return top


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line."""
    given = vars(parser().parse_args(arguments))
    command = given.pop("command")
    if command == "pool":
        pool.write_shapes()
        return
    results = Results(given.pop("file"))
    if command == "run":
        run(Plan(**given), results)
    elif command == "show":
        print(*page.tables(results.lines, **given), sep="\n")
    else:
        page.write(results.lines, given["page"], results.path.with_suffix(".md"), given["systems"])


if __name__ == "__main__":
    main()
