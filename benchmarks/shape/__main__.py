"""Print the size of the code, and with options the functions and the time of a call.

    python -m benchmarks.shape                  # counts of the files, takes seconds
    python -m benchmarks.shape --names          # also names the modules behind a number
    python -m benchmarks.shape --trace          # functions that a fit runs: in memory, from files, on Dask
    python -m benchmarks.shape --times          # time of one row, and of a cell of each kind of column
    python -m benchmarks.shape --tests          # number of test cases, and the time to collect them

It measures the imported package, and counts the files of this checkout. Checks of several parameters at once
are not counted, because nothing in the code marks them.
"""

import argparse
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import abcgbm
from benchmarks import child
from benchmarks.shape import counts, times
from benchmarks.shape.trace import JOBS

Row = tuple[str, str]
ROOT = child.ROOT
ENGINE = {"dask", "distributed"}
GIVE_UP_SECONDS = 600
COLLECTED = re.compile(r"^(?:\d+/)?(\d+) tests? collected .*in ([\d.]+)s", re.MULTILINE)


# --------------------------------------------------------------------------------------------- files


def rows_of_python(package: Path) -> Iterator[Row]:
    modules = counts.modules_of(package)
    files = list(modules.values())
    lines = sum(file.n_lines for file in files)
    functions = [function for file in files for function in counts.functions_of(file)]
    median, p90 = counts.median_and_p90([counts.function_lines(of) for of in functions])
    helpers = sum(len(counts.small_helpers(file)) for file in files)
    private = sum(len(counts.private_functions(file)) for file in files)
    percentage = 100 * sum(counts.comment_lines(file) for file in files) / lines
    n_init = sum(file.is_init for file in files)
    yield "Python modules / lines / functions", f"{len(files)} / {lines:,} / {len(functions):,}"
    yield "of the modules, `__init__`", str(n_init)
    yield "lines of code alone", f"{sum(counts.code_lines(file) for file in files):,}"
    yield "lines of a function, median / p90", f"{median:g} / {p90:g}"
    yield f"private helpers of <= {counts.FEW_LINES} lines, used once", f"{helpers} of {private}"
    yield "modules with one importer", str(len(counts.with_one_importer(modules)))
    yield "modules that import dask", str(len(counts.importing(modules, ENGINE)))
    yield "comment lines in Python", f"{percentage:.1f} %"


def rows_of_files(root: Path) -> Iterator[Row]:
    cpp = counts.cpp_files(root)
    classes, compiled = counts.tree_drivers(cpp)
    yield "C++ files / lines", f"{len(cpp)} / {counts.lines_of(*cpp):,}"
    yield "tree drivers: classes / compiled", f"{len(classes)} / {len(compiled)}"
    yield "README lines", str(counts.lines_of(root / "README.md"))
    yield (
        "pages in docs/ and the root, without API, gallery, README",
        str(len(counts.pages_of(root))),
    )


def rows_of_constructor() -> Iterator[Row]:
    n_parameters = len(inspect.signature(abcgbm.ABCBoostClassifier).parameters)
    yield "constructor parameters", str(n_parameters)


def names(package: Path) -> Iterator[str]:
    """Yield the modules with one importer, and those that import Dask."""
    modules = counts.modules_of(package)
    for name, by in counts.with_one_importer(modules).items():
        yield f"one importer: {name}, by {by}"
    for name in counts.importing(modules, ENGINE):
        yield f"imports dask: {name}"


# ---------------------------------------------------------------------------------- slower to measure


def rows_of_traces() -> Iterator[Row]:
    """Yield the traces of fits, each from its own process."""
    titles = {"fit": "a fit", "train": "`train` from a CSV in parts", "dask": "a fit on Dask"}
    for job, title in titles.items():
        yield f"{title}: functions / files; depth at the core", traced(job)
    yield "reads of a CSV in parts", traced("reads")


def traced(job: str) -> str:
    """Run a job; return the reason if it cannot run."""
    command = [sys.executable, "-m", f"{JOBS[job].__module__}", job]
    try:
        found = child.run(command, 2, give_up_seconds=GIVE_UP_SECONDS)
    except child.ChildFailedError as error:
        return f"not measured: {error}"
    if job == "reads":
        return f"{found['reads']:.1f}"
    return f"{found['functions']} / {found['files']}; {found['depth']}"


def rows_of_times() -> Iterator[Row]:
    for name, milliseconds in times.one_row_milliseconds():
        yield f"ms for one row, {name}", f"{milliseconds:.2f}"
    for name, fit, transform in times.cell_nanoseconds():
        yield f"ns a cell, BinMapper fit / transform, {name}", f"{fit:.0f} / {transform:.0f}"


def rows_of_tests(root: Path) -> Iterator[Row]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    yield "test cases / seconds to collect them", " / ".join(collected(done.stdout))


def collected(output: str) -> tuple[str, str]:
    """Return the number of all tests, including deselected ones, and the seconds that pytest reports."""
    found = COLLECTED.search(output)
    if found is None:
        raise ValueError(f"pytest reports no number of tests: {output[-200:]!r}")
    return found[1], found[2]


# ------------------------------------------------------------------------------------------- command


def rows(given: argparse.Namespace) -> Iterator[Row]:
    yield from rows_of_python(ROOT / "src" / "abcgbm")
    yield from rows_of_files(ROOT)
    yield from rows_of_constructor()
    if given.trace:
        yield from rows_of_traces()
    if given.times:
        yield from rows_of_times()
    if given.tests:
        yield from rows_of_tests(ROOT)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("names", "trace", "times", "tests"):
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args(arguments)
    print("| measure | now |", "|---|---|", sep="\n")
    for name, value in rows(given):
        print(f"| {name} | {value} |", flush=True)
    if given.names:
        print(*names(ROOT / "src" / "abcgbm"), sep="\n")


if __name__ == "__main__":
    main()
