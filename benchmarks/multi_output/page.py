"""Tables of multi-output trees for ``docs/benchmarks.md``, from the lines of ``multi_output.jsonl``.

The main tables are between two markers of the page; the text around them is written by hand. All tables are
written into a page beside the results.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from benchmarks import generated
from benchmarks.analysis import slope
from benchmarks.multi_output.systems import SYSTEMS
from benchmarks.report import Lines, markdown, write_between, write_whole
from benchmarks.results import Line, Results
from benchmarks.sets import in_order

MARKER = "multi-output trees"
NOTHING = "-"
MEASURED_AGAINST = "shared"
LABELS = {
    "shared": "multi-output",
    "shared-all": "multi-output, all classes",
}  # of names in results

TITLE = """# Multi-output trees: all measurements

`python -m benchmarks.multi_output report` writes this report from `benchmarks/results/multi_output.jsonl`.
"""

ERRORS = """### Errors and log loss

Test errors: the lowest of all iterations / after the last iteration / at the iteration with the lowest log loss on validation rows /
at the one with the fewest errors on them. For the last two, a second model is fitted without a tenth of the training rows; its best
iteration on that tenth (the first among equals) is applied to the model of all rows. Log loss: lowest / last.
"""

PARTED = """Errors of that second model itself, at the same two iterations:
"""

SEEDS = """### Other random projections

Means of five fits with `random_state` 0 to 4, which draw different projections.
"""

TRAINING = """### Training time

CPU milliseconds per iteration of the whole fit, including binning, one thread; in brackets, multiples of `multi-output`.
"""

GROWTH = """### Growth with the number of classes

CPU milliseconds per iteration after the first one, 20000 x 20, one thread; in brackets, multiples of `multi-output`. The slope is
that of the logarithms.
"""

MODEL = """### Prediction and size

`predict_proba` of {rows:,} rows, one thread; the pickled model; in brackets, multiples of `multi-output`.
"""

TARGET = """### Time to a given error

CPU seconds of the whole fit, one thread, until the test errors are first at most the target, with the best of the numbers of leaves
that were tried.
"""


class Column(NamedTuple):
    """A column of the tables."""

    set: str
    leaves: int
    steps: int

    def __str__(self) -> str:
        return f"{self.set}, J = {self.leaves}, {self.steps:,} iterations"


Section = Callable[[list[Line]], Lines]
Values = dict[tuple[Column, str], float]  # (column, system) -> a number


def write(results: Results, page: Path, ridge: float) -> None:
    """Write the main tables into the page, and all of them beside the results."""
    write_between(page, MARKER, tables_of_page(results, ridge))
    write_whole(results.path.with_suffix(".md"), [TITLE, *tables(results, ridge)])


def tables_of_page(results: Results, ridge: float) -> Lines:
    """Return the main tables."""
    lines = _shown(results, ridge)
    sections: tuple[Section, ...] = (training, growth, sizes, times_to_target, accuracy)
    return [*_parts(sections, lines), *origins(lines, ridge)]


def tables(results: Results, ridge: float) -> Lines:
    """Return all tables, without lines of our systems with another L2 penalty."""
    lines = _shown(results, ridge)
    sections: tuple[Section, ...] = (
        accuracy,
        without_a_tenth,
        seeds,
        training,
        growth,
        sizes,
        times_to_target,
    )
    return [*_parts(sections, lines), *origins(lines, ridge)]


def _shown(results: Results, ridge: float) -> list[Line]:
    return [
        line
        for line in results.lines
        if "reason" not in line and line["ridge"] in (None, ridge) and line["system"] in SYSTEMS
    ]


def _parts(sections: Iterable[Section], lines: list[Line]) -> Lines:
    return [part for section in sections for part in section(lines)]


def accuracy(lines: list[Line]) -> Lines:
    """Errors and log losses, a row for each system."""
    full = {(column_of(line), line["system"]): line for line in lines if line["what"] == "errors"}
    parts = {
        (column_of(line), line["system"]): line for line in lines if line["what"] == "validation"
    }
    if not full:
        return []
    cells = {
        key: f"{_errors(line, parts.get(key))}; {line['lowest_loss']:.4f} / {line['last_loss']:.4f}"
        for key, line in full.items()
    }
    return [ERRORS, *_table(cells, title="errors; log loss")]


def without_a_tenth(lines: list[Line]) -> Lines:
    """Errors of the models fitted without a tenth of the rows."""
    cells = {
        (column_of(of), of["system"]): f"{of['errors_by_loss']:,} / {of['errors_by_errors']:,}"
        for of in lines
        if of["what"] == "validation"
    }
    return [PARTED, *_table(cells, title="errors without a tenth")] if cells else []


def _errors(line: Line, part: Line | None) -> str:
    """Return lowest and last errors, and those at the iterations chosen by validation."""
    curve = line["errors"]  # shorter if training stopped early
    steps = [part["by_loss"], part["by_errors"]] if part else []
    chosen = [curve[min(step, len(curve)) - 1] for step in steps]
    return " / ".join(f"{n:,}" for n in (min(curve), curve[-1], *chosen))


def seeds(lines: list[Line]) -> Lines:
    """Means over the seeds, and the lowest of each."""
    found = [line for line in lines if line["what"] == "seeds"]
    rows = [
        [
            str(column_of(line)),
            label(line["system"]),
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
    """Time of later iterations on generated tables, with the slope of each system."""
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
    """Prediction time, bytes, and bytes for each iteration."""
    found = [line for line in lines if line["what"] == "model"]
    if not found:
        return []
    numbers: dict[str, Callable[[Line], float]] = {
        "seconds": lambda line: line["cpu"],
        "megabytes": lambda line: line["pickle"] / 1e6,
        "kilobytes per iteration": lambda line: line["pickle"] / line["steps"] / 1000,
    }
    cells = [with_ratios(best(found, of)) for of in numbers.values()]
    rows = [
        [str(column), label(system), *(of[column, system] for of in cells)]
        for column, system in sorted(
            cells[0], key=lambda key: (*key[0], list(SYSTEMS).index(key[1]))
        )
    ]
    return [MODEL.format(rows=found[0]["rows"]), *markdown(["", "", *numbers], rows)]


def times_to_target(lines: list[Line]) -> Lines:
    """The fastest number of leaves of each system that reaches the target."""
    fastest: dict[tuple[str, str], Line] = {}
    for line in (line for line in lines if line["what"] == "target"):
        key = line["set"], line["system"]
        fastest[key] = min(line, fastest.get(key, line), key=lambda of: of["cpu"])
    rows = [
        [
            name,
            label(system),
            of["leaves"],
            f"{of['steps']:,}",
            f"{of['last']:,}",
            number(of["cpu"]),
        ]
        for (name, system), of in sorted(fastest.items(), key=lambda item: item[1]["cpu"])
    ]
    head = ["set", "", "leaves", "iterations", "errors", "CPU seconds"]
    return [TARGET, *markdown(head, rows)] if rows else []


def origins(lines: list[Line], ridge: float) -> Lines:
    """Versions, machine, and differences of settings."""
    versions = {SYSTEMS[line["system"]].package: line["version"] for line in lines}
    shown = ", ".join(f"{name} {version}" for name, version in versions.items())
    machines = "; ".join(dict.fromkeys(line["machine"] for line in lines))
    used = {line["system"] for line in lines}
    rows = [
        [label(name), of.differs] for name, of in SYSTEMS.items() if name in used and of.differs
    ]
    said = f"{shown}; {machines}. `l2_regularization` of multi-output trees is {ridge:g}.\n"
    return [said, *markdown(["", "setting"], rows)] if lines else []


def best(lines: Iterable[Line], number_of: Callable[[Line], float]) -> Values:
    """Return the best of the repeats."""
    values: Values = {}
    for line in lines:
        key = column_of(line), line["system"]
        values[key] = min(number_of(line), values.get(key, float("inf")))
    return values


def with_ratios(values: Values) -> dict[tuple[Column, str], str]:
    """Return the numbers as text, each with its multiple of that of multi-output trees."""

    def shown(column: Column, value: float) -> str:
        ours = values.get((column, MEASURED_AGAINST))
        return number(value) + (f" ({value / ours:.2f})" if ours else "")

    return {(column, system): shown(column, value) for (column, system), value in values.items()}


def label(system: str) -> str:
    """Return the name by which a system is shown."""
    return LABELS.get(system, system)


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
            label(system),
            *(cells.get((column, system), NOTHING) for column in columns),
            *(of.get(system, NOTHING) for of in more.values()),
        ]
        for system in SYSTEMS
        if any((column, system) in cells for column in columns)
    ]
    return markdown([title, *map(str, columns), *more], rows) if rows else []
