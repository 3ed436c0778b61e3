"""`abcgbm report`: an HTML page about a model on a labelled table file."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from abcgbm import ABCBoostClassifier
from abcgbm.cli.console import print_message
from abcgbm.cli.options import Jobs, Label, ModelFile, OutputOptions, TableFile, TableOptions
from abcgbm.cli.tables import LabelledTable, read_labelled
from abcgbm.errors import TableFileError, format_bytes, quoted_list
from abcgbm.report import write_report


@dataclass(frozen=True)
class PageOptions:
    """Title of the page, and threads."""

    title: Annotated[str | None, typer.Option("--title", help="Title of the page.")] = None
    n_jobs: Jobs = None

    def as_given(self) -> list[str]:
        """Return the options that change the page, as command line arguments."""
        return [] if self.title is None else ["--title", self.title]


def report(
    model: ModelFile,
    file: TableFile,
    tables: TableOptions,
    output: OutputOptions,
    page: PageOptions,
    label: Label = None,
) -> None:
    """Write an HTML report about a model on a labelled table, as a single file."""
    target = output.needed("report.html", model, file)
    estimator = ABCBoostClassifier.load_model(model)
    estimator.n_jobs = page.n_jobs
    table = read_labelled(file, estimator, label, tables.reading())
    rows = table.with_labels_only()
    _check_labels(file, label, rows, estimator.model_.labels)
    if len(rows) < len(table):
        print_message(f"{file}: {len(table) - len(rows):,} rows have no label and are ignored")
    name = f"{model.name} on {file.name}" if page.title is None else page.title
    line = [*_command_line(model, file, label), *tables.as_given(), *page.as_given()]
    command = shlex.join([*line, "--output", str(target)])
    write_report(estimator, rows.X, rows.y, target, title=name, command=command)
    print_message(f"{target}: {format_bytes(target.stat().st_size)}")


def _command_line(model: Path, file: Path, label: str | None) -> list[str]:
    line = ["abcgbm", "report", str(model), str(file)]
    return line if label is None else [*line, "--label", label]


def _check_labels(path: Path, label: str | None, rows: LabelledTable, classes: list[Any]) -> None:
    """Raise an error for text labels if those of the model are not text: they cannot be sorted."""
    if not len(rows):
        raise TableFileError(path, "no row has a label; expected a table with labels", column=label)
    if isinstance(classes[0], str):
        return
    texts = [*dict.fromkeys(value for value in rows.y.tolist() if isinstance(value, str))]
    if texts:
        problem = f"the labels {quoted_list(texts, 5)}; expected some of {quoted_list(classes)}"
        raise TableFileError(path, problem, column=label)
