"""The experiments of "Adaptive Base Class Boost for Multi-class Classification"; see docs/paper.md."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from abcgbm.demo import p_value, relative_improvement
from experiments import report
from experiments.agreement import PAIR
from experiments.cells import DATASETS, Cell, all_cells, table, trial_cells
from experiments.curves import Curves
from experiments.datasets import describe, locate
from experiments.run import in_words, run, say
from experiments.store import Line, Results, only_run

SECONDS_BETWEEN_WORDS = 60.0
SECONDS_BETWEEN_WORDS_OF_ONE = 3.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        arguments.command(arguments)
    except KeyboardInterrupt:
        print("stopped; what is finished is kept", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(f"experiments: error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    commands = parser.add_subparsers(metavar="command", required=True)
    about = "run one pair of cells, or with --all whatever has not been run yet"
    to_run = commands.add_parser("run", help=about, description=about)
    names = ", ".join(DATASETS)
    to_run.add_argument(
        "dataset", nargs="?", type=str.lower, choices=DATASETS, metavar="data-set", help=names
    )
    to_run.add_argument("--all", action="store_true", help="run all cells, or all of the data set")
    to_run.add_argument("--leaves", type=int, metavar="J", help="number of leaves of a tree")
    to_run.add_argument("--learning-rate", type=float, metavar="NU", help="shrinkage")
    to_run.add_argument(
        "--steps",
        type=_count,
        metavar="M",
        help="number of iterations other than the paper's; results are not saved then",
    )
    to_run.set_defaults(command=_run)
    for name, command, about in (
        ("settings", _settings, "measure what the paper does not print, such as the smallest leaf"),
        ("status", _status, "say how far it is"),
        ("report", _report, "write docs/paper.md and its figures"),
    ):
        to_do = commands.add_parser(name, help=about, description=about)
        to_do.set_defaults(command=command)
    for with_processes in (to_run, commands.choices["settings"]):
        with_processes.add_argument(
            "--processes",
            type=_count,
            default=_n_cpus(),
            metavar="N",
            help="number of cells run in parallel (%(default)s)",
        )
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; expected an integer of at least 1")
    return int(text)


def _n_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run(arguments: argparse.Namespace) -> None:
    one = (arguments.leaves, arguments.learning_rate, arguments.steps)
    if arguments.all and one != (None, None, None):
        raise ValueError(
            "--all with --leaves, --learning-rate or --steps; expected --all without them"
        )
    if arguments.all:
        name = arguments.dataset
        cells = [cell for cell in all_cells() if name in (None, cell.dataset)]
        fill_missing(Results(), cells, arguments.processes)
        return
    needed = {
        "a data set": arguments.dataset,
        "--leaves": arguments.leaves,
        "--learning-rate": arguments.learning_rate,
    }
    absent = " and ".join(name for name, value in needed.items() if value is None)
    if absent:
        raise ValueError(f"no {absent}; expected --all, or {', '.join(needed)}")
    _run_pair(arguments)


def fill_missing(results: Results, cells: list[Cell], n_processes: int) -> None:
    """Run the missing cells."""
    with only_run(results.folder):
        done = results.cells()
        missing = [cell for cell in cells if cell not in done]
        say(f"{len(missing)} of {len(cells)} cells to run, {n_processes} at once")
        for name in dict.fromkeys(cell.dataset for cell in missing):
            locate(name)
        n_run = 0
        for line, curves in run(missing, n_processes, SECONDS_BETWEEN_WORDS):
            results.add(line, curves)
            n_run += 1
    _check_all_run(n_run, missing)


def _check_all_run(n_run: int, cells: list[Cell]) -> None:
    if n_run < len(cells):
        raise OSError(f"{len(cells) - n_run} of {len(cells)} cells could not be run; see above")


def _run_pair(arguments: argparse.Namespace) -> None:
    """Run MART and ABC-MART at one J and nu, and compare them with the paper."""
    cells = _pair(arguments.dataset, arguments.leaves, arguments.learning_rate)
    if arguments.steps:
        cells = [replace(cell, max_iter=arguments.steps) for cell in cells]
    print(_introduction(cells[0]), flush=True)
    locate(arguments.dataset)
    results, lines = Results(), {}
    with nullcontext() if arguments.steps else only_run(results.folder):
        for line, curves in run(cells, arguments.processes, SECONDS_BETWEEN_WORDS_OF_ONE):
            lines[line["algorithm"]] = line
            if not arguments.steps:
                keep_or_compare(results, line, curves)
    _check_all_run(len(lines), cells)
    print("\n" + _comparison(cells, lines))


def keep_or_compare(results: Results, line: Line, curves: Curves) -> None:
    """Save a finished cell, or report whether it equals the saved one."""
    cell = Cell.of_line(line)
    known = results.cells().get(cell)
    if known is None:
        results.add(line, curves)
        return
    say(f"{cell}: {_difference(known, line)} the committed result")


def _difference(known: Line, line: Line) -> str:
    keys = ("lowest_errors", "lowest_step", "final_errors", "stop_step", "stop_reason")
    if any(known[key] != line[key] for key in keys):
        return "differs from"
    if known["validated_step"] != line["validated_step"]:
        return "except for the iteration chosen by validation, which depends on the row order, the same as"
    return "the same as"


def _pair(dataset: str, leaves: int, rate: float) -> list[Cell]:
    of = table(dataset)
    if leaves not in of.max_leaf_nodes or rate not in of.learning_rate:
        raise ValueError(
            f"--leaves {leaves} --learning-rate {rate}; expected one of "
            f"{list(of.max_leaf_nodes)} and one of {list(of.learning_rate)}"
        )
    return [of.cell(name, leaves, rate) for name in PAIR]


def _introduction(cell: Cell) -> str:
    about = describe(cell.dataset)
    choice = " and, to choose an iteration without the test rows, on nine tenths of them"
    return (
        f"{cell.dataset}: {about.n_classes} classes, {about.n_train:,} rows to train, "
        f"{about.n_test:,} to test, {about.n_features} features.\n"
        f"J = {cell.max_leaf_nodes} leaves, nu = {cell.learning_rate}, at most {cell.max_iter:,} steps, "
        f"fewer if the training loss reaches machine accuracy.\n"
        f"MART and ABC-MART are each fitted on all training rows{choice if cell.is_validated else ''}."
    )


def _comparison(cells: list[Cell], lines: dict[str, Line]) -> str:
    known = {cell.algorithm: table(cell.dataset).paper_of(cell) for cell in cells}
    text = [f"{name}: {in_words(lines[name])}; paper: {known[name]} (lowest)" for name in PAIR]
    ours = [lines[name]["lowest_errors"] for name in PAIR]
    theirs = [known[name] for name in PAIR]
    n_test = describe(cells[0].dataset).n_test
    shown = [
        f"R_err {relative_improvement(*pair):.1f} %, P-value {p_value(*pair, n_test):.2g}"
        for pair in (ours, theirs)
    ]
    return "\n".join([*text, f"ours: {shown[0]}; paper: {shown[1]}"])


def _settings(arguments: argparse.Namespace) -> None:
    fill_missing(Results(name="settings"), trial_cells(), arguments.processes)


def _status(_: argparse.Namespace) -> None:
    print(report.progress_table(Results().cells()))


def _report(_: argparse.Namespace) -> None:
    report.write_page(report.PAGE, Results(), Results(name="settings"))
    print(f"{report.PAGE} written")


if __name__ == "__main__":
    sys.exit(main())
