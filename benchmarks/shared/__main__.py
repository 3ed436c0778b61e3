"""Multi-output trees beside one tree per class and the peers: errors, time, size; one thread, CPU time.

``python -m benchmarks.shared run`` measures what is not yet in ``benchmarks/results/shared.jsonl``:

- ``errors``: test errors after each step, log loss; ``validation``: which step a tenth of the
  training rows, held out from a second fit, would choose;
- ``seeds``: errors of fits with five values of ``random_state``, ours alone;
- ``step``: training time; ``model``: prediction time and pickled size;
- ``target``: time until ``--target`` errors, by the step that ``errors`` with these leaves has found.

Repeats go round the systems. Peers may have a Python of their own, ``--peer-python``: XGBoost's vector
leaves need 3.12, and nothing of ours. What failed is noted with its reason, and not tried again until
that line is deleted. ``report`` writes the main tables into ``docs/benchmarks.md``, between their markers,
and all of them into a page beside the results; ``show`` prints them.
The paper's sets are read from the folder that ``ABCGBM_DATA`` names.
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
from benchmarks.results import FOLDER, ROOT, Line, Results
from benchmarks.shared import page
from benchmarks.shared.measure import MEASURES, Job, in_child
from benchmarks.shared.systems import OURS, SYSTEMS, WITH_OUR_RIDGE

TARGET = 10_203  # the paper's best on Covertype
RIDGE = 0.001
ONCE = ("errors", "seeds", "validation")


class Cell(NamedTuple):
    """Where a measurement belongs."""

    what: str
    set: str
    system: str
    leaves: int
    steps: int
    ridge: float | None  # None where the system has its own, or none
    repeat: int


@dataclass(frozen=True)
class ResolvedParameters:
    """What a run is asked to measure."""

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


def cells(name: str, plan: ResolvedParameters, results: Results) -> Iterator[Cell]:
    """Yield the cells of a set; repeats go round the systems. A target may need the errors before it."""
    for what in plan.what:
        for leaves in plan.leaves:
            for repeat in range(1 if what in ONCE else plan.repeats):
                for system in plan.systems:
                    ridge = plan.ridge if system in WITH_OUR_RIDGE else None
                    cell = Cell(what, name, system, leaves, plan.steps, ridge, repeat)
                    yield from to_target(cell, plan, results) if what == "target" else [cell]


def to_target(cell: Cell, plan: ResolvedParameters, results: Results) -> Iterator[Cell]:
    """Yield the cell with the steps to the target; none if no curve is known, or it never gets there."""
    line = find(cell._replace(what="errors", repeat=0), results)
    steps = steps_to(line.get("errors", []), plan.target) if line else None
    if steps is None:
        print(*cell[:-1], f"no step with {plan.target} errors is known: measure errors first")
    else:
        yield cell._replace(steps=steps)


def find(cell: Cell, results: Results) -> Line | None:
    """Return the line of a cell, be it a measurement or a reason why there is none."""
    return next(
        (of for of in results.lines if all(of.get(k) == v for k, v in cell._asdict().items())), None
    )


def run(plan: ResolvedParameters, results: Results) -> None:
    """Measure every cell that is still to be measured; each is kept as soon as it is known."""
    for name in plan.sets:
        with TemporaryDirectory(prefix="benchmark-") as folder:
            for cell in cells(name, plan, results):
                if find(cell, results) is None:
                    if not any(Path(folder).iterdir()):
                        sets.write(sets.load(name), Path(folder))
                    measure(cell, folder, plan, results)


def measure(cell: Cell, folder: str, plan: ResolvedParameters, results: Results) -> None:
    """Measure one cell, and keep what was found."""
    job = Job(cell.what, folder, cell.system, cell.leaves, cell.steps, cell.ridge or 0.0)
    try:
        result = in_child(job, plan.python_of(cell.system), plan.give_up)
    except ChildFailedError as error:
        result = {"reason": str(error)}
    results.add({**cell._asdict(), **result})
    shown = ("cpu", "cpu_first", "pickle", "reason")
    print(*cell, {name: result[name] for name in shown if name in result}, flush=True)


def parser() -> argparse.ArgumentParser:
    """Return the reader of the command line; what is not given is the plan's default."""
    top = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", argument_default=argparse.SUPPRESS)
    add = run_parser.add_argument
    add("--what", nargs="+", choices=MEASURES)
    add("--sets", nargs="+", help="of the paper, or rows x features x classes: 20000x20x100")
    add("--systems", nargs="+", choices=SYSTEMS)
    add("--leaves", nargs="+", type=int, help="of a tree, at most; several are tried one by one")
    add("--steps", type=int, help="the same for all systems")
    add("--ridge", type=float, help="of our shared trees, and of peers that have an equal one")
    add("--repeats", type=int, help="best of so many; errors are the same every time")
    add("--target", type=int, help="errors until which time is taken")
    add("--give-up", type=float, help="seconds after which a measurement is ended, and noted so")
    add("--peer-python", help="the Python that runs peers: of a venv that has them")
    report_parser, show_parser = commands.add_parser("report"), commands.add_parser("show")
    report_parser.add_argument("--page", type=Path, default=ROOT / "docs" / "benchmarks.md")
    for command in (report_parser, show_parser):
        command.add_argument("--ridge", type=float, default=RIDGE, help="whose lines are shown")
    for command in (run_parser, report_parser, show_parser):
        command.add_argument("--file", type=Path, default=FOLDER / "shared.jsonl")
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
        run(ResolvedParameters(**given), results)


if __name__ == "__main__":
    main()
