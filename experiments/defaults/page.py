"""Tables of the trial of defaults for ``docs/benchmarks.md``, from the lines of results.

The overviews are between two markers of the page; the text around them is written by hand. All tables are
written into a page beside the results.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.report import markdown, write_between, write_whole

from experiments.defaults import pool
from experiments.defaults.cells import MODES, PARTS
from experiments.defaults.measure import Line
from experiments.defaults.summary import (
    MEASURED_AGAINST,
    Overview,
    Score,
    Scores,
    overviews,
    reasons,
    scores,
)

MARKER = "trial"
NOTHING = "-"
LABELS = {"default@0.3": "abcgbm"}  # names in the tables of labels in results
TITLE = """# The trial of defaults: all tables

`python -m experiments.defaults report` writes this report from `experiments/results/defaults.jsonl`.
"""
ON_PAGE = (("defaults", "test"), ("defaults", "held-back"), ("stopping", "test"))
SHORT = dict(zip(ON_PAGE, ("defaults", "held back", "early stopping"), strict=True))
OURS = "default@0.3"
TITLES = {
    "defaults": "Default parameters",
    "stopping": "Early stopping",
    "cv": "validation splits of the training parts",
    "test": "test parts",
    "held-back": "held-back tables",
}
HEAD = (
    "",
    "tables",
    "mean rank, errors",
    "mean rank, log loss",
    "errors, %",
    "log loss",
    f"CPU / {MEASURED_AGAINST}",
    "slowest",
    "above the bar",
    "worst, in multiples of the bar",
)


def write(lines: Sequence[Line], page: Path, whole: Path, systems: Sequence[str] | None) -> None:
    """Write the overviews between the markers of a page, and all tables into another."""
    write_between(page, MARKER, tables_of_page(lines, systems))
    made = [
        TITLE,
        *tables(lines, systems=systems, matrix=True),
        *the_pool(),
        *not_measured(lines),
        *who(lines),
    ]
    write_whole(whole, made)


def tables_of_page(lines: Sequence[Line], systems: Sequence[str] | None) -> list[str]:
    """Return some overviews, and the tables on which others make fewer errors by default."""
    made: list[str] = []
    for mode, kind in ON_PAGE:
        of = scores(lines, mode, kind, systems)
        made += [_title(mode, kind), *overview(of)] if of else []
    made += ranks_by_origin(lines, systems)
    lost = {
        name: row
        for name, row in scores(lines, "defaults", "test", systems).items()
        if (ours := row.get(OURS)) and any(of and of.rate < ours.rate for of in row.values())
    }
    title = (
        _title("defaults", "test").rstrip() + " on which abcgbm does not have the fewest errors\n"
    )
    made += [title, *errors_by_table(lost)] if lost else []
    return [*made, *who(lines)]


def _title(mode: str, kind: str) -> str:
    return f"### {TITLES[mode]}: {TITLES[kind]}\n"


def tables(
    lines: Sequence[Line],
    modes: Sequence[str] = MODES,
    parts: Sequence[str] = PARTS,
    systems: Sequence[str] | None = None,
    *,
    matrix: bool,
) -> list[str]:
    """Return an overview for each mode and kind of parts, optionally with the numbers of each table."""
    made: list[str] = []
    for mode in modes:
        for kind in parts:
            of = scores(lines, mode, kind, systems)
            if of:
                made += [_title(mode, kind), *overview(of)]
                made += [*by_table(of)] if matrix else []
    return made


def overview(of: Scores) -> list[str]:
    """Return a row for each system, the best rank of errors first."""
    found = sorted(overviews(of).items(), key=lambda item: item[1].rank_of_errors)
    return markdown(HEAD, (_overview(_shown(label), one) for label, one in found))


def ranks_by_origin(lines: Sequence[Line], systems: Sequence[str] | None) -> list[str]:
    """Return mean ranks on real and on generated tables apart."""
    columns: dict[str, dict[str, Overview]] = {}
    for mode, kind in ON_PAGE:
        of = scores(lines, mode, kind, systems)
        for origin, generated in (("real", False), ("generated", True)):
            part = {
                name: row for name, row in of.items() if pool.ALL[name].is_generated == generated
            }
            if part:
                columns[f"{SHORT[mode, kind]}, {len(part)} {origin}"] = overviews(part)
    if not columns:
        return []
    labels = list(dict.fromkeys(label for of in columns.values() for label in of))
    rows = [
        [_shown(label), *(_ranks(of.get(label)) for of in columns.values())] for label in labels
    ]
    title = "### Real and generated tables: mean rank, errors / log loss\n"
    return [title, *markdown(["", *columns], rows)]


def _ranks(of: Overview | None) -> str:
    return NOTHING if of is None else f"{of.rank_of_errors:.2f} / {of.rank_of_log_loss:.2f}"


def _overview(label: str, of: Overview) -> Iterator[str]:
    yield from (label, str(of.n_tables), f"{of.rank_of_errors:.2f}", f"{of.rank_of_log_loss:.2f}")
    yield from (f"{100 * of.rate:.2f}", f"{of.log_loss:.4f}")
    yield NOTHING if of.time is None else f"{of.time:.2f}"
    yield NOTHING if of.longest is None else f"{of.longest[1]:.1f} ({of.longest[0]})"
    yield NOTHING if of.worst is None else str(of.worst.n_missed)
    yield NOTHING if of.worst is None else f"{of.worst.share:.2f} ({of.worst.table})"


def by_table(of: Scores) -> list[str]:
    """Return error rates with log losses, and CPU seconds of a fit."""
    labels = _labels(of)
    times = [[table, *(_seconds(row[label]) for label in labels)] for table, row in of.items()]
    head = ["CPU seconds / iterations", *map(_shown, labels)]
    return [*errors_by_table(of), *markdown(head, times)]


def errors_by_table(of: Scores) -> list[str]:
    """Return error rates with log losses; the lowest are bold."""
    labels = _labels(of)
    rows = [[table, *(_cell(row, label) for label in labels)] for table, row in of.items()]
    return markdown(["errors, % / log loss", *map(_shown, labels)], rows)


def _labels(of: Scores) -> list[str]:
    return list(next(iter(of.values())))


def _shown(label: str) -> str:
    return LABELS.get(label, label)


def _cell(row: dict[str, Score | None], label: str) -> str:
    score = row[label]
    if score is None:
        return NOTHING
    others = [of for of in row.values() if of is not None]
    rate, loss = f"{100 * score.rate:.2f}", f"{score.log_loss:.3f}"
    rate = f"**{rate}**" if score.rate == min(of.rate for of in others) else rate
    loss = f"**{loss}**" if score.log_loss == min(of.log_loss for of in others) else loss
    return f"{rate} / {loss}"


def _seconds(score: Score | None) -> str:
    return NOTHING if score is None else f"{score.cpu:.3g} / {score.steps:.0f}"


def the_pool() -> list[str]:
    """Return the shapes of all tables."""
    rows = [
        [name, of.classes, f"{of.rows:,}", of.features, of.categories, f"{of.test_rows:,}", splits]
        for name, of in pool.shapes().items()
        for splits in [NOTHING if name in pool.HELD_BACK else pool.POOL[name].n_splits]
    ]
    head = ["", "classes", "training rows", "features", "categorical", "test rows", "splits"]
    return ["## The tables\n", *markdown(head, rows)]


def not_measured(lines: Sequence[Line]) -> list[str]:
    """Return the cells that were not measured, with reasons."""
    found = reasons(lines)
    return ["## Not measured\n", *markdown(["", "table", "", "reason"], found)] if found else []


def who(lines: Sequence[Line]) -> list[str]:
    """Return versions and machines."""
    versions = {
        line["system"]: line["version"]
        for line in lines
        if line["build"] is None and "version" in line
    }
    machines = dict.fromkeys(line["machine"] for line in lines if "machine" in line)
    shown = ", ".join(f"{name} {version}" for name, version in versions.items())
    return [f"{shown}; {'; '.join(machines)}.\n"]
