"""`abcgbm evaluate`: errors and metrics of a model on a labelled table file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from abcgbm import ABCBoostClassifier
from abcgbm.cli.console import screen
from abcgbm.cli.options import Jobs, Label, ModelFile, TableFile, TableOptions
from abcgbm.cli.tables import LabelledTable, check_label, read_like
from abcgbm.errors import TableFileError, quoted_list
from abcgbm.evaluation.class_metrics import Confusion

_SHOWN_LABELS = 5


def evaluate(
    model: ModelFile,
    file: TableFile,
    tables: TableOptions,
    label: Label = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
    n_jobs: Jobs = None,
) -> None:
    """Evaluate a model on a labelled table file of any size: errors, log loss and metrics by class."""
    check_label(file, label, tables.reading())
    estimator = ABCBoostClassifier.load_model(model)
    estimator.n_jobs = n_jobs
    counts = Counts([*estimator.model_.labels])
    for batch in read_like(file, estimator, label, tables.reading()):
        counts.add(estimator, batch)
    counts.check(file, label)
    if as_json:
        print(json.dumps(counts.summary(), ensure_ascii=False, default=str))
    else:
        _show(counts)


class Counts:
    """Counts and loss of the rows so far.

    Parameters
    ----------
    labels : list
        The classes.

    Attributes
    ----------
    confusion : Confusion
        Number of rows by true and predicted class.
    loss : float
        Sum of the log loss over the rows whose class is known to the model.
    n_without_label : int
        Number of rows without a label, which are ignored.
    unknown : list
        The first few labels that the model does not know.
    """

    def __init__(self, labels: list[Any]) -> None:
        self.confusion = Confusion(labels, np.zeros((len(labels) + 1, len(labels))))
        self.loss = 0.0
        self.n_without_label = 0
        self.unknown: list[Any] = []

    def add(self, estimator: ABCBoostClassifier, batch: LabelledTable) -> None:
        """Count the rows of a batch; a row with an unknown label counts as an error."""
        rows = batch.with_labels_only()
        self.n_without_label += len(batch) - len(rows)
        if not len(rows):
            return
        n_classes = len(self.confusion.labels)
        code_of = {label: k for k, label in enumerate(self.confusion.labels)}
        y = np.array([code_of.get(label, n_classes) for label in rows.y.tolist()], dtype=np.intp)
        self._note_unknown(rows.y[y == n_classes])
        log_proba = estimator.predict_log_proba(rows.X)
        np.add.at(self.confusion.counts, (y, log_proba.argmax(axis=1)), 1.0)
        known = np.flatnonzero(y < n_classes)
        self.loss -= math.fsum(log_proba[known, y[known]].tolist())

    def _note_unknown(self, labels: NDArray[Any]) -> None:
        if len(self.unknown) < _SHOWN_LABELS and len(labels):
            known = dict.fromkeys([*self.unknown, *labels.tolist()])
            self.unknown = [*known][:_SHOWN_LABELS]

    def check(self, path: Path, label: str | None) -> None:
        """Raise an error if no row has a label that the model knows."""
        if not self.confusion.counts.any():
            missing = f"{self.n_without_label:,} rows, none with a label"
            problem = missing if self.n_without_label else "no rows"
            raise TableFileError(path, f"{problem}; expected a table with labels", column=label)
        if not self.confusion.support.any():
            problem = f"no label is known to the model: {quoted_list(self.unknown)}"
            expected = quoted_list(self.confusion.labels)
            raise TableFileError(path, f"{problem}; expected some of {expected}", column=label)

    def summary(self) -> dict[str, Any]:
        """Return all metrics by name; an undefined one is None."""
        confusion = self.confusion
        n_rows, n_known = int(confusion.counts.sum()), int(confusion.support.sum())
        n_correct = int(confusion.correct.sum())
        columns = {
            "label": confusion.labels,
            "precision": confusion.precision.tolist(),
            "recall": confusion.recall.tolist(),
            "f1": confusion.f1.tolist(),
            "rows": confusion.support.astype(int).tolist(),
        }
        return {
            "rows": n_rows,
            "errors": n_rows - n_correct,
            "accuracy": n_correct / n_rows,
            "log_loss": self.loss / n_known if n_known else None,
            "rows_of_unknown_labels": n_rows - n_known,
            "rows_without_label": self.n_without_label,
            "classes": [
                dict(zip(columns, map(_plain, row), strict=True))
                for row in zip(*columns.values(), strict=True)
            ],
        }


def _plain(value: Any) -> Any:
    """Replace NaN by None, which JSON writes as null."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _show(counts: Counts) -> None:
    """Write the figures for people."""
    found = counts.summary()
    console = screen()
    loss = "" if found["log_loss"] is None else f", log loss {found['log_loss']:.4f}"
    rate = 100 * (1 - found["accuracy"])
    console.print(f"{found['rows']:,} rows, {found['errors']:,} errors ({rate:.2f} %){loss}")
    if n_unknown := found["rows_of_unknown_labels"]:
        shown = quoted_list(counts.unknown)
        more = ", and others" if len(counts.unknown) == _SHOWN_LABELS else ""
        console.print(
            f"{n_unknown:,} rows have labels that are unknown to the model: {shown}{more}"
        )
    if counts.n_without_label:
        console.print(f"{counts.n_without_label:,} more rows have no label and are ignored")
    table = Table(box=None, pad_edge=False)
    for name in found["classes"][0]:
        table.add_column(name, justify="left" if name == "label" else "right")
    for row in found["classes"]:
        table.add_row(*(_cell(value) for value in row.values()))
    console.print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
