"""The tables of ``docs/shared_trees.md``, from the lines of ``shared.jsonl``.

They stand between two markers, so that the words around them are written by hand.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from benchmarks import generated
from benchmarks.analysis import slope
from benchmarks.report import Lines, markdown
from benchmarks.results import Line, Results
from benchmarks.sets import in_order
from benchmarks.shared.systems import SYSTEMS

BEGIN, END = "<!-- benchmark -->\n", "<!-- end of benchmark -->"
NOTHING = "-"
MEASURED_AGAINST = "shared"

ERRORS = """### Errors and log loss

Test errors: the lowest of all steps / after the last step / at the step that validation chose by its log loss / by its
errors. For these two, a second model is fitted without a tenth of the training rows; the step at which it does best on
them (the first among equals) is taken in the model of all rows. The last table has the errors of that second model
itself at the same steps. Log loss: lowest / last.
"""

SEEDS = """### Other draws

Means of five fits with `random_state` 0 to 4, which draw other directions.
"""

TRAINING = """### Training time

CPU milliseconds a step of the whole fit, binning included, one thread; in brackets, times that of `shared`.
"""

GROWTH = """### Growth with the number of classes

CPU milliseconds a step without the first one and what comes before it, 20000 x 20, one thread; in brackets, times
that of `shared`. The slope is that of the logarithms.
"""

MODEL = """### Prediction and size

`predict_proba` of {rows:,} rows, one thread; the pickled model; in brackets, times that of `shared`.
"""

TARGET = """### Time to a given error

CPU seconds of the whole fit, one thread, until the test errors are first at most the target; the leaves are the best of
those that were tried.
"""


class Column(NamedTuple):
    """What systems are compared by."""

    set: str
    leaves: int
    steps: int

    def __str__(self) -> str:
        return f"{self.set}, J = {self.leaves}, {self.steps:,} steps"


Values = dict[tuple[Column, str], float]  # (column, system) -> a number


def write(results: Results, page: Path, ridge: float) -> None:
    """Write the tables into the page."""
    write_tables(page, tables(results, ridge))


def write_tables(page: Path, lines: Lines) -> None:
    """Write tables between the markers of a page."""
    text = page.read_text()
    if BEGIN not in text or END not in text:
        raise SystemExit(f"{page} has no {BEGIN.strip()} followed by {END}")
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    page.write_text(head + BEGIN + "\n".join(lines) + END + tail)
    print(f"{page} written")


def tables(results: Results, ridge: float) -> Lines:
    """Return all tables; lines of systems with another ridge of ours are left out."""
    lines = [
        line
        for line in results.lines
        if "reason" not in line and line["ridge"] in (None, ridge) and line["system"] in SYSTEMS
    ]
    sections = (accuracy, seeds, training, growth, sizes, times_to_target)
    return [part for section in sections for part in section(lines)] + who(lines, ridge)


def accuracy(lines: list[Line]) -> Lines:
    """Errors and log losses, a row for each system."""
    full = {(column_of(line), line["system"]): line for line in lines if line["what"] == "errors"}
    parts = {
        (column_of(line), line["system"]): line for line in lines if line["what"] == "validation"
    }
    if not full:
        return []
    errors = {key: _errors(line, parts.get(key)) for key, line in full.items()}
    losses = {
        key: f"{line['lowest_loss']:.4f} / {line['last_loss']:.4f}" for key, line in full.items()
    }
    parted = {
        key: f"{of['errors_by_loss']:,} / {of['errors_by_errors']:,}" for key, of in parts.items()
    }
    return [
        ERRORS,
        *_table(errors, title="errors"),
        *_table(losses, title="log loss"),
        *_table(parted, title="errors without a tenth"),
    ]


def _errors(line: Line, part: Line | None) -> str:
    """Lowest, last, and at the steps that validation chose, if it was asked."""
    curve = line["errors"]  # shorter where there was nothing left to fit
    steps = [part["by_loss"], part["by_errors"]] if part else []
    chosen = [curve[min(step, len(curve)) - 1] for step in steps]
    return " / ".join(f"{n:,}" for n in (min(curve), curve[-1], *chosen))


def seeds(lines: list[Line]) -> Lines:
    """Means over the seeds, and the lowest of each."""
    found = [line for line in lines if line["what"] == "seeds"]
    rows = [
        [
            str(column_of(line)),
            line["system"],
            f"{mean(line['lowest']):,.1f} / {mean(line['last']):,.1f}",
            f"{mean(line['lowest_loss']):.4f} / {mean(line['last_loss']):.4f}",
            ", ".join(f"{n:,}" for n in line["lowest"]),
        ]
        for line in sorted(
            found, key=lambda of: in_order({of["set"] for of in found}).index(of["set"])
        )
    ]
    head = ["", "", "errors, lowest / last", "log loss, lowest / last", "lowest of each seed"]
    return [SEEDS, *markdown(head, rows)] if rows else []


def training(lines: list[Line]) -> Lines:
    """Whole fits on the paper's sets."""
    found = [line for line in lines if line["what"] == "step" and _is_paper(line)]
    values = best(found, lambda line: 1000 * line["cpu"] / line["steps"])
    return [TRAINING, *_table(with_ratios(values))] if values else []


def growth(lines: list[Line]) -> Lines:
    """Steps alone on drawn tables; a row for each system, and its slope."""
    found = [line for line in lines if line["what"] == "step" and not _is_paper(line)]
    values = best(found, _milliseconds_of_later_steps)
    slopes = {system: _slope_with_classes(values, system) for _, system in values}
    return [GROWTH, *_table(with_ratios(values), {"slope": slopes})] if values else []


def _milliseconds_of_later_steps(line: Line) -> float:
    seconds: float = line["cpu"] - line["cpu_first"]
    return 1000 * seconds / int(line["steps"] - 1)


def _slope_with_classes(values: Values, system: str) -> str:
    points = {
        shape.n_classes: value
        for (column, of), value in values.items()
        if of == system and (shape := generated.parse(column.set))
    }
    found = slope(points)
    return NOTHING if found is None else f"{found:.2f}"


def sizes(lines: list[Line]) -> Lines:
    """Prediction time, bytes, and bytes for each step."""
    found = [line for line in lines if line["what"] == "model"]
    if not found:
        return []
    seconds = best(found, lambda line: line["cpu"])
    pickles = best(found, lambda line: line["pickle"] / 1e6)
    a_step = best(found, lambda line: line["pickle"] / line["steps"] / 1000)
    parts: Lines = [MODEL.format(rows=found[0]["rows"])]
    for title, values in (
        ("seconds", seconds),
        ("megabytes, pickled", pickles),
        ("kilobytes a step, pickled", a_step),
    ):
        parts += _table(with_ratios(values), title=title)
    return parts


def times_to_target(lines: list[Line]) -> Lines:
    """The fastest number of leaves of each system that reaches the target."""
    fastest: dict[tuple[str, str], Line] = {}
    for line in (line for line in lines if line["what"] == "target"):
        key = line["set"], line["system"]
        fastest[key] = min(line, fastest.get(key, line), key=lambda of: of["cpu"])
    rows = [
        [name, system, of["leaves"], f"{of['steps']:,}", f"{of['last']:,}", number(of["cpu"])]
        for (name, system), of in sorted(fastest.items(), key=lambda item: item[1]["cpu"])
    ]
    head = ["set", "", "leaves", "steps", "errors", "CPU seconds"]
    return [TARGET, *markdown(head, rows)] if rows else []


def who(lines: list[Line], ridge: float) -> Lines:
    """Versions, machine, and what differs."""
    versions = {SYSTEMS[line["system"]].package: line["version"] for line in lines}
    shown = ", ".join(f"{name} {version}" for name, version in versions.items())
    machines = "; ".join(dict.fromkeys(line["machine"] for line in lines))
    used = {line["system"] for line in lines}
    rows = [[name, of.differs] for name, of in SYSTEMS.items() if name in used and of.differs]
    said = f"{shown}; {machines}. The ridge of shared trees is {ridge:g}.\n"
    return [said, *markdown(["", "setting"], rows)] if lines else []


def best(lines: Iterable[Line], number_of: Callable[[Line], float]) -> Values:
    """Return the least of the repeats."""
    values: Values = {}
    for line in lines:
        key = column_of(line), line["system"]
        values[key] = min(number_of(line), values.get(key, float("inf")))
    return values


def with_ratios(values: Values) -> dict[tuple[Column, str], str]:
    """Return the numbers as text, each with its multiple of that of shared trees."""

    def shown(column: Column, value: float) -> str:
        ours = values.get((column, MEASURED_AGAINST))
        return number(value) + (f" ({value / ours:.2f})" if ours else "")

    return {(column, system): shown(column, value) for (column, system), value in values.items()}


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def column_of(line: Line) -> Column:
    return Column(line["set"], line["leaves"], line["steps"])


def _is_paper(line: Line) -> bool:
    return generated.parse(line["set"]) is None


def _table(
    cells: dict[tuple[Column, str], str],
    more: dict[str, dict[str, str]] | None = None,
    title: str = "",
) -> Lines:
    more = more or {}
    names = in_order({column.set for column, _ in cells})
    columns = sorted({column for column, _ in cells}, key=lambda c: (names.index(c.set), *c[1:]))
    rows = [
        [
            system,
            *(cells.get((column, system), NOTHING) for column in columns),
            *(of.get(system, NOTHING) for of in more.values()),
        ]
        for system in SYSTEMS
        if any((column, system) in cells for column in columns)
    ]
    return markdown([title, *map(str, columns), *more], rows) if rows else []
