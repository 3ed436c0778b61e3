"""Reports of measurements: the tables of ``docs/benchmarks.md``, and all tables beside the results.

The tables of the page are between two markers; the text around them is written by hand.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import figures, generated
from benchmarks.analysis import (
    CLOCKS,
    Curves,
    Values,
    error_curves,
    grids,
    seconds_to_target,
    slope,
    speed_ups,
    target_errors,
)
from benchmarks.peers import OURS, PEERS, SYSTEMS, Setting
from benchmarks.results import Line, Results, with_max_iterations
from benchmarks.sets import in_order

Lines = list[str]
Section = Callable[[Results], Lines]

PER_CLASS = [name for name, peer in PEERS.items() if peer.has_tree_per_class]
NAMES_OF_CLOCKS = {"cpu": "CPU seconds", "wall": "wall seconds"}
NOTHING = "-"
MARKER = "speed"
MAIN = "mart"  # our algorithm that corresponds to the peers'
ABC = ("abc-mart", "abc-logitboost")

TITLE = """# Speed, memory and size: all measurements
"""

HEAD = """Training time of `mart`, one thread. The column `mart, s` has the CPU seconds of `fit`; the other columns have the time of each
system divided by it, for the same number of iterations and leaves. "nearest" is the fastest other package.
"""

READING = """A ratio is the number of the other package divided by ours, so above 1 abcgbm is faster or smaller. **Bold** marks a ratio
below 1, where abcgbm loses; `-` is not measured. These models have one tree per class.
"""

COMMANDS = """## Commands

`python -m benchmarks.compare report` writes this report from `{source}`, where each line is one
measurement. The measurements were made by

```console
{commands}
```
"""

HOW = """## How it is measured

- Each measurement runs in its own process. The process reads C-order float64 arrays, fits a few rows to warm up, and then
  starts the clock. Repeats alternate between the packages (A B C, A B C, ...); the best one counts.
- Training time is that of the whole `fit`, including our binning and the construction of the other packages' data sets.
- With one thread, CPU time is compared (user and system time of all threads of the process); with two threads, wall time.
- Equal for all: {equal}; no L2 penalty, no sampling, no early stopping.
"""

TWO_THREADS = """## Two threads

Wall time with one thread divided by wall time with two. Under load, two other processes keep both cores busy, both times
are taken under that load, and the median of five counts.
"""

TIME_TO_ERROR = """## Time to a given error

The target is the largest final number of test errors among our algorithms and the packages that grow one tree per class,
so that all of them reach it. The time is the training time (one thread, CPU seconds) multiplied by the fraction of the
iterations that the package needs to reach the target.
"""

PREDICTION = """## Prediction

`predict_proba` of the test rows, repeated to at least 50,000 rows; for one row the median of many calls. "Nearest" is the
fastest other package with one tree per class; for one row, `LGBMClassifier` or `XGBClassifier`.
"""

MEMORY = """## Memory

Peak memory of the process during `fit`, less its memory just before, when the data was already loaded.
"""

GROWTH = """## Growth

Random tables of {centre} rows x features x classes, with one number varied at a time; {steps} iterations. The slope is that of
the least-squares line through the logarithms: 1 means proportional growth.
"""

LIMIT = """## Multiple of the limit

The limit is the CPU time of the bare loop over the same bins with all data in the nearest cache.
"""

ROW = "| {} |"


def write(results: Results, docs: Path) -> None:
    """Write the tables and figures of the page, and all tables beside the results."""
    if not results.lines:
        raise SystemExit(f"{results.path} has no measurements; run first")
    figures.save_all(results, docs)
    write_between(docs / "benchmarks.md", MARKER, tables_of_page(results))
    write_whole(results.path.with_suffix(".md"), _lines_of(SECTIONS, results))


def tables_of_page(results: Results) -> Lines:
    """Return the tables that the page shows."""
    return _lines_of(ON_PAGE, results)


def write_between(page: Path, name: str, lines: Lines) -> None:
    """Replace the text between the two markers of a name in a page."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    head, found, rest = page.read_text().partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{page} has no {begin.strip()} followed by {end}")
    page.write_text(head + begin + "\n".join(lines) + end + tail)
    print(f"{page} written")


def write_whole(page: Path, lines: Lines) -> None:
    """Write a page that is generated completely."""
    page.write_text("\n".join(lines).rstrip() + "\n")
    print(f"{page} written")


def _lines_of(sections: Iterable[Section], results: Results) -> Lines:
    return [line for section in sections for line in section(results)]


def title(results: Results) -> Lines:
    return [TITLE]


def head(results: Results) -> Lines:
    """The training times as multiples of ours."""
    values = results.table("training", "cpu", 1)
    rows = [
        [
            name,
            seconds(values[name, MAIN]),
            *_ratios(values, name, MAIN, list(PEERS)),
            *(plain(_quotient(values, name, ours)) for ours in ABC),
        ]
        for name in in_order({name for name, _ in values})
        if (name, MAIN) in values
    ]
    return [HEAD, *markdown(["", f"{MAIN}, s", *PEERS, "nearest", *ABC], rows)]


def _quotient(values: Values, name: str, system: str) -> float | None:
    return values[name, system] / values[name, MAIN] if (name, system) in values else None


def reading(results: Results) -> Lines:
    return [READING]


def commands(results: Results) -> Lines:
    source = f"benchmarks/results/{results.path.name}"
    given = dict.fromkeys(line["command"] for line in results.lines if "command" in line)
    return [COMMANDS.format(source=source, commands="\n".join(f"$ {line}" for line in given))]


def where(results: Results) -> Lines:
    """Versions, dates and machine."""
    lines = _with_origin(results)
    dates = sorted(line["date"] for line in lines)
    facts = {
        "versions": _versions(lines),
        "commit": _each(line["commit"] for line in lines) + " (+: changed since)",
        "date": dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]} (UTC)",
        "machine": _each(line["machine"] for line in lines),
        "Python": _each(line["python"] for line in lines),
        "busiest moment": f"load average {_busiest(lines)} before a measurement",
    }
    return markdown(["", ""], facts.items())


def versions(results: Results) -> Lines:
    """Versions and machine in one line."""
    lines = _with_origin(results)
    return [f"{_versions(lines)}; {_each(line['machine'] for line in lines)}.\n"]


def _with_origin(results: Results) -> list[Line]:
    return [line for line in results.lines if "version" in line]


def _versions(lines: list[Line]) -> str:
    found = {SYSTEMS[line["system"]].package: line["version"] for line in lines}
    return ", ".join(f"{package} {number}" for package, number in found.items())


def _busiest(lines: list[Line]) -> float:
    return max((line["load_average"] for line in lines if line["what"] != "load"), default=0.0)


def shapes(results: Results) -> Lines:
    """Size of the data sets, and for how many iterations they were fitted."""
    lines = [line for line in results.lines if "shape" in line and line["what"] != "scaling"]
    found = {line["set"]: [*line["shape"], line["steps"]] for line in with_max_iterations(lines)}
    rows = [[name, *(f"{number:,}" for number in found[name])] for name in in_order(found)]
    return markdown(["set", "training rows", "features", "classes", "iterations"], rows)


def how(results: Results) -> Lines:
    setting = Setting(max_iter=0, n_threads=1)
    equal = (
        f"{setting.max_leaf_nodes} leaves grown best first, learning rate {setting.learning_rate}, "
        f"{setting.max_bins} bins,\n  {setting.min_samples_leaf} rows in a leaf at least"
    )
    rows = [[name, peer.differs] for name, peer in PEERS.items()]
    return [HOW.format(equal=equal), *markdown(["", "difference that remains"], rows)]


def training(results: Results) -> Lines:
    lines: Lines = []
    for threads, clock in CLOCKS.items():
        values = results.table("training", clock, threads)
        title = f"Training, {_threads(threads)}, {NAMES_OF_CLOCKS[clock]}"
        lines += compared(title, values, list(PEERS), seconds)
    return ["## Training\n", *lines] if lines else []


def two_threads(results: Results) -> Lines:
    """Two threads against one, idle and under load."""
    idle, loaded = speed_ups(results)
    rows = [
        [name, system, ratio(idle.get((name, system))), ratio(loaded.get((name, system)))]
        for name in in_order({name for name, _ in (*idle, *loaded)})
        for system in OURS
        if (name, system) in idle or (name, system) in loaded
    ]
    return [TWO_THREADS, *markdown(["set", "", "idle", "under load"], rows)] if rows else []


def time_to_error(results: Results) -> Lines:
    """Seconds until a level of test errors that all main systems reach."""
    curves = error_curves(results)
    values = seconds_to_target(curves, results.table("training", "cpu", 1))
    if not values:
        return []
    rows = [
        [name, f"{target_errors(curves[name]):,}", *_final_errors(curves[name])]
        for name in in_order(curves)
    ]
    return [
        TIME_TO_ERROR,
        *compared("Time to the target, 1 thread, CPU seconds", values, list(PEERS), seconds),
        "### Test errors after the last iteration\n",
        *markdown(["", "target", *SYSTEMS], rows),
    ]


def _final_errors(curves: Curves) -> Lines:
    return [f"{curves[system][-1]:,}" if system in curves else NOTHING for system in SYSTEMS]


def prediction(results: Results) -> Lines:
    lines: Lines = []
    for threads, clock in CLOCKS.items():
        values = results.table("prediction", clock, threads)
        title = f"Large batches, {_threads(threads)}, {NAMES_OF_CLOCKS[clock]}"
        lines += compared(title, values, PER_CLASS, seconds)
    for threads in CLOCKS:
        values = results.table("prediction", "one_row", threads)
        title = f"One row, {_threads(threads)}, microseconds"
        lines += compared(title, values, ["LightGBM", "XGBoost"], microseconds)
    return [PREDICTION, *lines] if lines else []


def memory(results: Results) -> Lines:
    lines: Lines = []
    for threads in CLOCKS:
        values = results.table("memory", "bytes", threads)
        title = f"Growth of the peak, {_threads(threads)}, megabytes"
        lines += compared(title, values, list(PEERS), megabytes)
    return [MEMORY, *lines] if lines else []


def size(results: Results) -> Lines:
    threads = {line["threads"] for line in results.measured("size")}
    if not threads:
        return []
    lines = ["## Size of the model\n"]
    titles = {"pickle": "Megabytes, pickled", "saved": "Megabytes, in the system's own format"}
    for kind, title in titles.items():
        lines += absolute(title, results.table("size", kind, min(threads)), megabytes)
    leaves = results.table("size", "leaves", min(threads))
    return [*lines, *absolute("Leaves of all trees", leaves, lambda number: f"{number:,}")]


def scaling(results: Results) -> Lines:
    lines: Lines = []
    for threads, clock in CLOCKS.items():
        for axis, points in grids(results.table("scaling", clock, threads)).items():
            title = f"Growth with {axis}, {_threads(threads)}, {NAMES_OF_CLOCKS[clock]}"
            lines += _grid_table(title, points)
    if not lines:
        return []
    steps = max(line["steps"] for line in results.measured("scaling"))
    return [GROWTH.format(centre=generated.CENTRE.name, steps=steps), *lines]


def _grid_table(title: str, points: dict[str, dict[int, float]]) -> Lines:
    numbers = sorted({number for of_system in points.values() for number in of_system})
    rows = [
        [
            system,
            plain(slope(of_system)),
            *(seconds(of_system[n]) if n in of_system else NOTHING for n in numbers),
        ]
        for system, of_system in points.items()
    ]
    return [f"### {title}\n", *markdown(["", "slope", *map(str, numbers)], rows)]


def limit(results: Results) -> Lines:
    """Our training time as a multiple of the bare loop's."""
    lines = with_max_iterations(results.measured("limit"))
    limits = {(line["set"], line["system"]): line["cpu"] for line in lines}
    fits = results.table("training", "cpu", 1)
    rows = [
        [*key, seconds(limits[key]), ratio(fits[key] / limits[key])]
        for name in in_order({name for name, _ in limits})
        for key in ((name, ours) for ours in OURS)
        if key in limits and key in fits
    ]
    head_row = ["set", "", "limit, CPU seconds", "training / limit"]
    return [LIMIT, *markdown(head_row, rows)] if rows else []


def not_measured(results: Results) -> Lines:
    reasons = [
        [line["system"], line["set"], line["what"], line["reason"]]
        for line in results.lines
        if "reason" in line
    ]
    once = [
        [
            line["system"],
            line["set"],
            f"{line['what']}, {_threads(line['threads'])}",
            "slow: once only",
        ]
        for line in results.lines
        if line.get("only_repeat")
    ]
    rows = [*reasons, *once]
    table = (
        markdown(["system", "set", "what", "why"], rows) if rows else ["Nothing was left out.\n"]
    )
    return ["## Not measured\n", *table]


def compared(
    title: str, values: Values, counted: Sequence[str], show: Callable[[float], str]
) -> Lines:
    """Return the table of ratios to each of our algorithms, and that of the numbers themselves."""
    if not values:
        return []
    rows = [
        [name, ours, *_ratios(values, name, ours, counted)]
        for name in in_order({name for name, _ in values})
        for ours in OURS
        if (name, ours) in values
    ]
    lines = absolute(title, values, show)
    if rows and any((name, peer) in values for name, _ in values for peer in PEERS):
        ratios = markdown(["peer / ours", "", *PEERS, "nearest"], rows)
        lines = [lines[0], *ratios, *lines[1:]]
    return lines


def _ratios(values: Values, name: str, ours: str, counted: Sequence[str]) -> Lines:
    of_peers = {
        peer: values[name, peer] / values[name, ours] for peer in PEERS if (name, peer) in values
    }
    nearest = min((of_peers[peer] for peer in counted if peer in of_peers), default=None)
    return [*(ratio(of_peers.get(peer)) for peer in PEERS), ratio(nearest)]


def absolute(title: str, values: Values, show: Callable[[float], str]) -> Lines:
    """Return a table of numbers with a row for each set; nothing without numbers."""
    systems = [name for name in SYSTEMS if any(system == name for _, system in values)]
    rows = [
        [name, *(show(values[name, of]) if (name, of) in values else NOTHING for of in systems)]
        for name in in_order({name for name, _ in values})
    ]
    return [f"### {title}\n", *markdown(["", *systems], rows)] if rows else []


def markdown(columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> Lines:
    """Return the lines of a table and an empty one."""
    cells = [list(columns), ["---"] * len(columns), *(list(map(str, row)) for row in rows)]
    return [*(ROW.format(" | ".join(row)) for row in cells), ""]


def ratio(value: float | None) -> str:
    if value is None:
        return NOTHING
    text = f"{value:.2f}" if value < 10 else f"{value:.1f}"
    return f"**{text}**" if value < 1 else text


def plain(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def seconds(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def microseconds(value: float) -> str:
    return f"{value * 1e6:.0f}"


def megabytes(value: float) -> str:
    return seconds(value / 1e6)


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def _each(values: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(values))


def shown_time_to_error(results: Results) -> Lines:
    """Seconds until a level of test errors, without the ratios."""
    values = seconds_to_target(error_curves(results), results.table("training", "cpu", 1))
    return absolute("Time to a given error, 1 thread, CPU seconds", values, seconds)


def shown_prediction(results: Results) -> Lines:
    """Prediction of batches on one thread, without the ratios."""
    values = results.table("prediction", "cpu", 1)
    return absolute("Prediction of 50,000 rows or more, 1 thread, CPU seconds", values, seconds)


def shown_memory(results: Results) -> Lines:
    """Memory on one thread, without the ratios."""
    peaks = results.table("memory", "bytes", 1)
    return absolute("Memory of `fit`, 1 thread, megabytes", peaks, megabytes)


def shown_size(results: Results) -> Lines:
    threads = min((line["threads"] for line in results.measured("size")), default=0)
    sizes = results.table("size", "pickle", threads)
    return absolute("Size of the model, megabytes, pickled", sizes, megabytes)


SECTIONS: tuple[Section, ...] = (
    title,
    head,
    reading,
    training,
    two_threads,
    time_to_error,
    prediction,
    memory,
    size,
    scaling,
    limit,
    how,
    where,
    shapes,
    not_measured,
    commands,
)
ON_PAGE: tuple[Section, ...] = (
    head,
    shown_time_to_error,
    shown_prediction,
    shown_memory,
    shown_size,
    shapes,
    versions,
)
