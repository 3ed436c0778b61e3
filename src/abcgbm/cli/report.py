"""`abcgbm report`: a model and a table file with labels to one HTML page."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from abcgbm import ABCBoostClassifier
from abcgbm.cli.failure import tell
from abcgbm.cli.options import Label, ModelFile, OutputOptions, TableFile, TableOptions, Threads
from abcgbm.cli.tables import Columns, read_labelled
from abcgbm.report import write_report
from abcgbm.settings.free_memory import shown_bytes


@dataclass(frozen=True)
class PageOptions:
    """What the page is called, and what it is made with."""

    title: Annotated[str | None, typer.Option("--title", help="Its heading.")] = None
    threads: Threads = None


def report(
    model: ModelFile,
    file: TableFile,
    tables: TableOptions,
    output: OutputOptions,
    page: PageOptions,
    label: Label = None,
) -> None:
    """Write a page that shows what a model does on a table with labels: one file, for any browser."""
    target = output.needed("report.html")
    estimator = ABCBoostClassifier.load_model(model)
    estimator.n_jobs = page.threads
    rows = read_labelled(file, estimator, Columns(label), tables.reading())
    name = f"{model.name} on {file.name}" if page.title is None else page.title
    command = shlex.join([*_line(model, file, label), "--output", str(target)])
    write_report(estimator, rows.X, rows.y, target, title=name, command=command)
    tell(f"{target}: {shown_bytes(target.stat().st_size)}")


def _line(model: Path, file: Path, label: str | None) -> list[str]:
    line = ["abcgbm", "report", str(model), str(file)]
    return line if label is None else [*line, "--label", label]
