"""`abcgbm predict`: labels or probabilities of the rows of a table file, in constant memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer

from abcgbm import ABCBoostClassifier
from abcgbm.cli.console import Misuse, print_message
from abcgbm.cli.options import Jobs, ModelFile, OutputOptions, TableFile, TableOptions
from abcgbm.cli.tables import LabelledTable, read_like
from abcgbm.data.files.writer import check_output, write_tables
from abcgbm.errors import require_pyarrow
from abcgbm.prediction import prediction_columns


@dataclass(frozen=True)
class PredictionOptions:
    """The columns to write."""

    proba: Annotated[
        bool, typer.Option("--proba", help="Also write the probability of each class.")
    ] = False
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="A column of the table to copy to the output (repeatable)."),
    ] = None


def predict(
    model: ModelFile,
    file: TableFile,
    tables: TableOptions,
    output: OutputOptions,
    columns: PredictionOptions,
    n_jobs: Jobs = None,
) -> None:
    """Predict the rows of a table file of any size, to a file or as CSV to standard output.

    Columns are matched by name; other columns are ignored.
    """
    target = output.checked(model, file)
    check_output(target)
    estimator = ABCBoostClassifier.load_model(model)
    estimator.n_jobs = n_jobs
    batches = read_like(file, estimator, None, tables.reading(), columns.keep or ())
    n_rows = write_tables(
        (_predicted(estimator, batch, proba=columns.proba) for batch in batches), target
    )
    if target is not None:
        print_message(f"{target}: {n_rows:,} rows")


def _predicted(estimator: ABCBoostClassifier, batch: LabelledTable, *, proba: bool) -> Any:
    """Return the copied columns and the predictions of a batch as an Arrow table."""
    classes = estimator.classes_
    labels = estimator.predict(batch.X) if len(batch) else classes[:0]
    probabilities = None
    if proba:
        no_rows = np.empty((0, len(classes)))
        probabilities = estimator.predict_proba(batch.X) if len(batch) else no_rows
    predicted = prediction_columns(estimator.model_, labels, probabilities)
    copied = batch.others or {}
    _check_names_differ(copied, predicted)
    return require_pyarrow().table(copied | predicted)


def _check_names_differ(copied: Collection[str], predicted: Collection[str]) -> None:
    """Raise an error if a copied column has the name of a predicted one."""
    both = [name for name in copied if name in predicted]
    if both:
        raise Misuse(f"--keep {both[0]}: the output has a column of this name; expected another")
