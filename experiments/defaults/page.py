"""The tables of ``docs/defaults.md``, from the lines of results.

They stand between two markers, so that the words around them are written by hand.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.report import markdown

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

BEGIN, END = "<!-- trial -->\n", "<!-- end of trial -->"
NOTHING = "-"
TITLES = {
    "defaults": "All defaults",
    "stopping": "Early stopping for all",
    "cv": "splits of the training parts",
    "test": "test parts",
    "held-back": "tables that nothing was chosen by",
}
HEAD = (
    "",
    "tables",
    "rank, errors",
    "rank, log loss",
    "errors, %",
    "log loss",
    f"CPU / {MEASURED_AGAINST}",
    "longest",
    "above the bar",
    "worst, in shares of the bar",
)


def write(lines: Sequence[Line], page: Path, systems: Sequence[str] | None) -> None:
    """Write the tables between the markers of a page."""
    text = page.read_text()
    if BEGIN not in text or END not in text:
        raise SystemExit(f"{page} has no {BEGIN.strip()} followed by {END}")
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    made = [
        *tables(lines, systems=systems, matrix=True),
        *the_pool(),
        *not_measured(lines),
        *who(lines),
    ]
    page.write_text(head + BEGIN + "\n".join(made) + END + tail)
    print(f"{page} written")


def tables(
    lines: Sequence[Line],
    modes: Sequence[str] = MODES,
    parts: Sequence[str] = PARTS,
    systems: Sequence[str] | None = None,
    *,
    matrix: bool,
) -> list[str]:
    """Return an overview for each mode and kind of parts, and the numbers of each table if wanted."""
    made: list[str] = []
    for mode in modes:
        for kind in parts:
            of = scores(lines, mode, kind, systems)
            if of:
                made += [f"## {TITLES[mode]}: {TITLES[kind]}\n", *overview(of)]
                made += [*by_table(of)] if matrix else []
    return made


def overview(of: Scores) -> list[str]:
    """Return a row for each system, the best rank of errors first."""
    found = sorted(overviews(of).items(), key=lambda item: item[1].rank_of_errors)
    return markdown(HEAD, (_overview(label, one) for label, one in found))


def _overview(label: str, of: Overview) -> Iterator[str]:
    yield from (label, str(of.n_tables), f"{of.rank_of_errors:.2f}", f"{of.rank_of_log_loss:.2f}")
    yield from (f"{100 * of.rate:.2f}", f"{of.log_loss:.4f}")
    yield NOTHING if of.time is None else f"{of.time:.2f}"
    yield NOTHING if of.longest is None else f"{of.longest[1]:.1f} ({of.longest[0]})"
    yield NOTHING if of.worst is None else str(of.worst.n_missed)
    yield NOTHING if of.worst is None else f"{of.worst.share:.2f} ({of.worst.table})"


def by_table(of: Scores) -> list[str]:
    """Return error rates with log losses, and CPU seconds of a fit; the least are bold."""
    labels = list(next(iter(of.values())))
    rows = [[table, *(_cell(row, label) for label in labels)] for table, row in of.items()]
    times = [[table, *(_seconds(row[label]) for label in labels)] for table, row in of.items()]
    return [
        *markdown(["errors, % / log loss", *labels], rows),
        *markdown(["CPU seconds / steps", *labels], times),
    ]


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
    head = ["", "classes", "training rows", "features", "of them categories", "test rows", "splits"]
    return ["## The tables\n", *markdown(head, rows)]


def not_measured(lines: Sequence[Line]) -> list[str]:
    """Return what has a reason."""
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
