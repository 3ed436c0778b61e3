"""`abcgbm evaluate`: how right a model is on a table file with labels."""

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
    """Count a model's errors on a table file with labels, class by class; of any size."""
    check_label(file, label, tables.reading())
    estimator = ABCBoostClassifier.load_model(model)
    estimator.n_jobs = n_jobs
    counts = Counts([*estimator.model_.labels])
    for part in read_like(file, estimator, label, tables.reading()):
        counts.add(estimator, part)
    counts.check(file, label)
    if as_json:
        print(json.dumps(counts.summary(), ensure_ascii=False, default=str))
    else:
        _show(counts)


class Counts:
    """What the rows so far add up to.

    Parameters
    ----------
    labels : list
        The classes.

    Attributes
    ----------
    confusion : Confusion
        Rows by their own class and the one that was predicted.
    loss : float
        Minus the logarithms of the probabilities of the rows' own classes, where these are known.
    n_without_label : int
        Rows that are left out since they have none.
    unknown : list
        Some labels that the model does not know.
    """

    def __init__(self, labels: list[Any]) -> None:
        self.confusion = Confusion(labels, np.zeros((len(labels) + 1, len(labels))))
        self.loss = 0.0
        self.n_without_label = 0
        self.unknown: list[Any] = []

    def add(self, estimator: ABCBoostClassifier, part: LabelledTable) -> None:
        """Count the rows of a part; a label that the model does not know is an error of it."""
        rows = part.with_labels_only()
        self.n_without_label += len(part) - len(rows)
        if not len(rows):
            return
        n_classes = len(self.confusion.labels)
        number = {label: k for k, label in enumerate(self.confusion.labels)}
        own = np.array([number.get(label, n_classes) for label in rows.y.tolist()], dtype=np.intp)
        self._note_unknown(rows.y[own == n_classes])
        log_proba = estimator.predict_log_proba(rows.X)
        np.add.at(self.confusion.counts, (own, log_proba.argmax(axis=1)), 1.0)
        known = np.flatnonzero(own < n_classes)
        self.loss -= math.fsum(log_proba[known, own[known]].tolist())

    def _note_unknown(self, labels: NDArray[Any]) -> None:
        if len(self.unknown) < _SHOWN_LABELS and len(labels):
            known = dict.fromkeys([*self.unknown, *labels.tolist()])
            self.unknown = [*known][:_SHOWN_LABELS]

    def check(self, path: Path, label: str | None) -> None:
        """Refuse a table in which no row has a label that the model knows."""
        if not self.confusion.counts.any():
            missing = f"{self.n_without_label:,} rows, none with a label"
            what = missing if self.n_without_label else "no rows"
            raise TableFileError(path, f"{what}; expected a table with labels", column=label)
        if not self.confusion.support.any():
            what = f"no label that the model knows, but {quoted_list(self.unknown)}"
            expected = quoted_list(self.confusion.labels)
            raise TableFileError(path, f"{what}; expected some of {expected}", column=label)

    def summary(self) -> dict[str, Any]:
        """Return all figures by name; what there is none of is null."""
        found = self.confusion
        n_rows, n_known = int(found.counts.sum()), int(found.support.sum())
        n_correct = int(found.correct.sum())
        columns = {
            "label": found.labels,
            "precision": found.precision.tolist(),
            "recall": found.recall.tolist(),
            "f1": found.f1.tolist(),
            "rows": found.support.astype(int).tolist(),
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
    """Return a figure as JSON has it."""
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
        console.print(f"{n_unknown:,} rows have labels that the model does not know: {shown}{more}")
    if counts.n_without_label:
        console.print(f"{counts.n_without_label:,} more rows have no label, and are left out")
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
