"""Compare the package with its peers: time, memory, size.

``python -m benchmarks.compare run`` measures cells that are missing in ``benchmarks/results/latest.jsonl``, or
some of them; it may be stopped and resumed. A failed cell is recorded with its reason, and not tried again
until that line is deleted. ``--name`` selects another file of results, so that everything is measured again.
``python -m benchmarks.compare report`` writes the tables of ``docs/benchmarks.md`` between their markers, its
figures, and all tables into a page beside the results. The paper's sets are read from ``ABCGBM_DATA``.
"""

import argparse
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from experiments import datasets

from benchmarks import generated, limit, report, sets
from benchmarks.child import ChildFailedError
from benchmarks.measure import MEASURES, Job, in_child
from benchmarks.peers import OURS, PEERS, SYSTEMS
from benchmarks.results import FOLDER, ROOT, Cell, Line, Results, origin

HEADLINE = (
    "mart",
    "abc-mart",
)  # measured under load and for growth; the others behave the same
SCALING_STEPS = 20
LOAD_REPEATS = 5
N_BUSY_LOOPS = 2
ONCE = ("curve", "size", "memory", "limit")
WITHOUT_THREADS = ("curve", "size", "limit")


@dataclass(frozen=True)
class Plan:
    """The measurements that a run is to make."""

    sets: Sequence[str] = datasets.NAMES
    what: Sequence[str] = tuple(MEASURES)
    ours: Sequence[str] = tuple(OURS)
    peers: Sequence[str] = tuple(PEERS)
    scaling_peers: Sequence[str] = ()
    grid: Sequence[str] = field(default_factory=generated.grid_names)
    threads: Sequence[int] = (1, 2)
    steps: int = 100
    repeats: int = 3
    cap: float = 120.0
    give_up: float = 3600.0
    command: str = ""  # the command line of the run

    def sets_of(self, what: str) -> Sequence[str]:
        return self.grid if what == "scaling" else self.sets

    def systems_of(self, what: str) -> list[str]:
        headline = [name for name in self.ours if name in HEADLINE]
        return {
            "load": headline,
            "scaling": [*headline, *self.scaling_peers],
            "limit": list(self.ours) if limit.IS_AVAILABLE else [],
        }.get(what, [*self.ours, *self.peers])

    def threads_of(self, what: str) -> Sequence[int]:
        return self.threads[:1] if what in WITHOUT_THREADS else self.threads

    def steps_of(self, what: str) -> int:
        return min(self.steps, SCALING_STEPS) if what == "scaling" else self.steps

    def repeats_of(self, what: str) -> int:
        if what in ONCE:
            return 1
        return LOAD_REPEATS if what == "load" else self.repeats


def cells(plan: Plan) -> Iterator[Cell]:
    """Yield all cells by set; within a set, repeats are interleaved over systems."""
    names = dict.fromkeys(name for what in plan.what for name in plan.sets_of(what))
    for name in names:
        for what in (what for what in plan.what if name in plan.sets_of(what)):
            for repeat in range(plan.repeats_of(what)):
                for threads in plan.threads_of(what):
                    for system in plan.systems_of(what):
                        yield Cell(what, name, system, threads, plan.steps_of(what), repeat)


def run(plan: Plan, results: Results) -> None:
    """Measure every missing cell; each result is saved at once."""
    for name, of_set in groupby(cells(plan), lambda cell: cell.set):
        open_cells = [cell for cell in of_set if not is_settled(cell, results)]
        if not open_cells:
            continue
        with TemporaryDirectory(prefix="benchmark-") as folder:
            data = sets.load(name)
            sets.write(data, Path(folder))
            shape = [*data.X_train.shape, int(data.y_train.max()) + 1]
            about = {"shape": shape, "command": plan.command}
            del data
            for what, of_what in groupby(open_cells, lambda cell: cell.what):
                with busy_loops(N_BUSY_LOOPS if what == "load" else 0):
                    for cell in of_what:
                        measure(cell, folder, about, plan, results)


def is_settled(cell: Cell, results: Results) -> bool:
    """Return whether the cell is measured, left out, or the repeat of one that took too long."""
    first = results.find(cell._replace(repeat=0))
    is_capped = first is not None and first.get("only_repeat", False)
    return is_capped or results.find(cell) is not None or results.why_not(cell) is not None


def measure(cell: Cell, folder: str, about: Line, plan: Plan, results: Results) -> None:
    """Measure a cell, unless a result made meanwhile makes it unnecessary."""
    if is_settled(cell, results):
        return
    line = {**cell._asdict(), **about, **origin(SYSTEMS[cell.system].package)}
    try:
        result = in_child(
            Job(cell.what, folder, cell.system, cell.threads, cell.steps), plan.give_up
        )
    except ChildFailedError as error:
        result = {"reason": str(error)}
    if plan.repeats_of(cell.what) > 1 and result.get("wall", 0.0) > plan.cap:
        result["only_repeat"] = True
    results.add({**line, **result})
    shown = {name: value for name, value in result.items() if name != "errors"}
    print(*cell, shown, flush=True)


@contextmanager
def busy_loops(n_loops: int) -> Iterator[None]:
    """Keep a number of CPUs busy with other processes."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n_loops)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def leave_out(reasons: list[tuple[str, str, str]], results: Results) -> None:
    """Record systems that are not measured on a set (or on ``all``), and why."""
    for system, name, reason in reasons:
        if system not in SYSTEMS:
            raise SystemExit(f"--leave-out {system}; expected one of {', '.join(SYSTEMS)}")
        line = {"what": "all", "set": name, "system": system, "reason": reason}
        if line not in results.lines:
            results.add(line)


def check(plan: Plan) -> None:
    """Refuse unknown names and missing peers before any work."""
    known = (*datasets.NAMES, "or rows x features x classes such as 20000x20x10")
    for name in (*plan.sets, *plan.grid):
        if name not in datasets.NAMES and generated.parse(name) is None:
            raise SystemExit(f"data set {name!r}; expected {', '.join(known)}")
    for name in (*plan.peers, *plan.scaling_peers):
        if not PEERS[name].is_installed():
            raise SystemExit(
                f'{name} is missing: pip install "abcgbm[bench]", or name other --peers'
            )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; defaults are those of the plan."""
    top = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", argument_default=argparse.SUPPRESS)
    add = run_parser.add_argument
    add(
        "--sets",
        nargs="*",
        help="data sets of the paper, or shapes rows x features x classes such as 20000x20x10",
    )
    add("--what", nargs="+", choices=MEASURES)
    add("--ours", nargs="+", choices=OURS)
    add("--peers", nargs="*", choices=PEERS)
    add(
        "--scaling-peers",
        nargs="*",
        choices=PEERS,
        help="peers measured on the grids; default: none",
    )
    add("--grid", nargs="+", help="shapes for scaling; default: all")
    add("--threads", nargs="+", type=int)
    add("--steps", type=int, help=f"iterations; at most {SCALING_STEPS} on the grids")
    add(
        "--repeats",
        type=int,
        help=f"repeats, of which the best counts; always {LOAD_REPEATS} under load",
    )
    add("--cap", type=float, help="seconds above which a system is measured only once")
    add("--give-up", type=float, help="timeout of a measurement in seconds, recorded as a failure")
    add("--leave-out", nargs=3, action="append", metavar=("SYSTEM", "SET", "REASON"))
    report_parser = commands.add_parser("report")
    report_parser.add_argument(
        "--docs", type=Path, default=ROOT / "docs", help="folder of the pages"
    )
    for command in (run_parser, report_parser):
        command.add_argument("--name", default="latest", help="name of the file of results")
        command.add_argument(
            "--folder", type=Path, default=FOLDER, help="folder of the file of results"
        )
    return top


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    given = vars(parser().parse_args(arguments))
    command = given.pop("command")
    results = Results(given.pop("folder") / f"{given.pop('name')}.jsonl")
    if command == "report":
        report.write(results, given["docs"])
        return
    leave_out(given.pop("leave_out", []), results)
    plan = Plan(**given, command=shlex.join(["python", "-m", "benchmarks.compare", *arguments]))
    check(plan)
    run(plan, results)


if __name__ == "__main__":
    main()
