"""`abcgbm report`: a model and a table file with labels to one HTML page."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from abcgbm import ABCBoostClassifier
from abcgbm.cli.console import tell
from abcgbm.cli.options import Jobs, Label, ModelFile, OutputOptions, TableFile, TableOptions
from abcgbm.cli.tables import LabelledTable, read_labelled
from abcgbm.errors import TableFileError, format_bytes, quoted_list
from abcgbm.report import write_report


@dataclass(frozen=True)
class PageOptions:
    """What the page is called, and what it is made with."""

    title: Annotated[str | None, typer.Option("--title", help="Its heading.")] = None
    n_jobs: Jobs = None

    def as_given(self) -> list[str]:
        """Return what changes the page, as in the line."""
        return [] if self.title is None else ["--title", self.title]


def report(
    model: ModelFile,
    file: TableFile,
    tables: TableOptions,
    output: OutputOptions,
    page: PageOptions,
    label: Label = None,
) -> None:
    """Write a page that shows what a model does on a table with labels: one file, for any browser."""
    target = output.needed("report.html", model, file)
    estimator = ABCBoostClassifier.load_model(model)
    estimator.n_jobs = page.n_jobs
    given = read_labelled(file, estimator, label, tables.reading())
    rows = given.with_labels_only()
    _check_labels(file, label, rows, estimator.model_.labels)
    if len(rows) < len(given):
        tell(f"{file}: {len(given) - len(rows):,} rows have no label, and are left out")
    name = f"{model.name} on {file.name}" if page.title is None else page.title
    line = [*_line(model, file, label), *tables.as_given(), *page.as_given()]
    command = shlex.join([*line, "--output", str(target)])
    write_report(estimator, rows.X, rows.y, target, title=name, command=command)
    tell(f"{target}: {format_bytes(target.stat().st_size)}")


def _line(model: Path, file: Path, label: str | None) -> list[str]:
    line = ["abcgbm", "report", str(model), str(file)]
    return line if label is None else [*line, "--label", label]


def _check_labels(path: Path, label: str | None, rows: LabelledTable, classes: list[Any]) -> None:
    """Refuse labels that cannot be sorted among those of the model."""
    if not len(rows):
        raise TableFileError(path, "no row has a label; expected a table with labels", column=label)
    if isinstance(classes[0], str):
        return
    texts = [*dict.fromkeys(value for value in rows.y.tolist() if isinstance(value, str))]
    if texts:
        what = f"the labels {quoted_list(texts, 5)}; expected some of {quoted_list(classes)}"
        raise TableFileError(path, what, column=label)
