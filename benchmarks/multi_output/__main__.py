"""Compare multi-output trees with one tree per class and the peers: errors, time, size; one thread, CPU time.

``python -m benchmarks.multi_output run`` measures cells missing in ``benchmarks/results/multi_output.jsonl``:

- ``errors``: test errors after each iteration, log loss; ``validation``: the best iteration of a second fit
  by a held-out tenth of the training rows;
- ``seeds``: errors of our fits with five values of ``random_state``;
- ``step``: training time; ``model``: prediction time and pickled size;
- ``target``: time until ``--target`` errors, at the iteration found by ``errors`` with these leaves.

Repeats alternate between systems. ``--peer-python`` runs the peers in another Python: XGBoost's vector leaves
need 3.12, and our package is not needed there. A failed cell is recorded with its reason, and not tried again
until that line is deleted. ``report`` writes the main tables into ``docs/benchmarks.md``, between their
markers, and all tables into a page beside the results; ``show`` prints them. The paper's sets are read from
``ABCGBM_DATA``.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from experiments import datasets

from benchmarks import sets
from benchmarks.analysis import steps_to
from benchmarks.child import ChildFailedError
from benchmarks.multi_output import page
from benchmarks.multi_output.measure import MEASURES, Job, in_child
from benchmarks.multi_output.systems import OURS, SYSTEMS, WITH_OUR_RIDGE
from benchmarks.results import FOLDER, ROOT, Line, Results

TARGET = 10_203  # the paper's best on Covertype
RIDGE = 0.001
ONCE = ("errors", "seeds", "validation")


class Cell(NamedTuple):
    """The key of a measurement."""

    what: str
    set: str
    system: str
    leaves: int
    steps: int
    ridge: float | None  # None if the system has its own penalty, or none
    repeat: int


@dataclass(frozen=True)
class Plan:
    """The measurements that a run is to make."""

    what: Sequence[str] = ("errors",)
    sets: Sequence[str] = datasets.NAMES
    systems: Sequence[str] = tuple(SYSTEMS)
    leaves: Sequence[int] = (20,)
    steps: int = 1000
    ridge: float = RIDGE
    repeats: int = 3
    target: int = TARGET
    give_up: float = 3600.0
    peer_python: str = sys.executable

    def python_of(self, system: str) -> str:
        return sys.executable if system in OURS else self.peer_python


def cells(name: str, plan: Plan, results: Results) -> Iterator[Cell]:
    """Yield the cells of a set; repeats alternate between systems. Targets need the errors first."""
    for what in plan.what:
        for leaves in plan.leaves:
            for repeat in range(1 if what in ONCE else plan.repeats):
                for system in plan.systems:
                    ridge = plan.ridge if system in WITH_OUR_RIDGE else None
                    cell = Cell(what, name, system, leaves, plan.steps, ridge, repeat)
                    yield from to_target(cell, plan, results) if what == "target" else [cell]


def to_target(cell: Cell, plan: Plan, results: Results) -> Iterator[Cell]:
    """Yield the cell with the iterations to the target; none without a curve that reaches it."""
    line = find(cell._replace(what="errors", repeat=0), results)
    steps = steps_to(line.get("errors", []), plan.target) if line else None
    if steps is None:
        print(*cell[:-1], f"no iteration with {plan.target} errors is known: measure errors first")
    else:
        yield cell._replace(steps=steps)


def find(cell: Cell, results: Results) -> Line | None:
    """Return the line of a cell: a measurement, or the reason why there is none."""
    return next(
        (of for of in results.lines if all(of.get(k) == v for k, v in cell._asdict().items())), None
    )


def run(plan: Plan, results: Results) -> None:
    """Measure every missing cell; each result is saved at once."""
    for name in plan.sets:
        with TemporaryDirectory(prefix="benchmark-") as folder:
            for cell in cells(name, plan, results):
                if find(cell, results) is None:
                    if not any(Path(folder).iterdir()):
                        sets.write(sets.load(name), Path(folder))
                    measure(cell, folder, plan, results)


def measure(cell: Cell, folder: str, plan: Plan, results: Results) -> None:
    """Measure one cell, and save the result."""
    job = Job(cell.what, folder, cell.system, cell.leaves, cell.steps, cell.ridge or 0.0)
    try:
        result = in_child(job, plan.python_of(cell.system), plan.give_up)
    except ChildFailedError as error:
        result = {"reason": str(error)}
    results.add({**cell._asdict(), **result})
    shown = ("cpu", "cpu_first", "pickle", "reason")
    print(*cell, {name: result[name] for name in shown if name in result}, flush=True)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; defaults are those of the plan."""
    top = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", argument_default=argparse.SUPPRESS)
    add = run_parser.add_argument
    add("--what", nargs="+", choices=MEASURES)
    add("--sets", nargs="+", help="data sets of the paper, or shapes such as 20000x20x100")
    add("--systems", nargs="+", choices=SYSTEMS)
    add(
        "--leaves",
        nargs="+",
        type=int,
        help="maximum numbers of leaves of a tree, tried one by one",
    )
    add("--steps", type=int, help="iterations of all systems")
    add("--ridge", type=float, help="L2 penalty of our multi-output trees and of equal peers")
    add("--repeats", type=int, help="repeats, of which the best time counts")
    add("--target", type=int, help="number of errors to reach")
    add("--give-up", type=float, help="timeout in seconds, recorded as a failure")
    add("--peer-python", help="the Python of a venv with the peers")
    report_parser, show_parser = commands.add_parser("report"), commands.add_parser("show")
    report_parser.add_argument("--page", type=Path, default=ROOT / "docs" / "benchmarks.md")
    for command in (report_parser, show_parser):
        command.add_argument(
            "--ridge", type=float, default=RIDGE, help="show lines with this L2 penalty"
        )
    for command in (run_parser, report_parser, show_parser):
        command.add_argument("--file", type=Path, default=FOLDER / "multi_output.jsonl")
    return top


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line."""
    given = vars(parser().parse_args(arguments))
    command, results = given.pop("command"), Results(given.pop("file"))
    if command == "report":
        page.write(results, given["page"], given["ridge"])
    elif command == "show":
        print(*page.tables(results, given["ridge"]), sep="\n")
    else:
        run(Plan(**given), results)


if __name__ == "__main__":
    main()
