"""`abcgbm predict`: a model and a table file to labels or probabilities, in constant memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer

from abcgbm import ABCBoostClassifier
from abcgbm.cli.console import Misuse, tell
from abcgbm.cli.options import Jobs, ModelFile, OutputOptions, TableFile, TableOptions
from abcgbm.cli.tables import LabelledTable, read_like
from abcgbm.data.files.writer import check_output, write_tables
from abcgbm.errors import require_pyarrow
from abcgbm.prediction import prediction_columns


@dataclass(frozen=True)
class PredictionOptions:
    """What is written of each row."""

    proba: Annotated[
        bool, typer.Option("--proba", help="Write the probability of each class, too.")
    ] = False
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="A column of the table to hand on (repeatable)."),
    ] = None


def predict(
    model: ModelFile,
    file: TableFile,
    tables: TableOptions,
    output: OutputOptions,
    wanted: PredictionOptions,
    n_jobs: Jobs = None,
) -> None:
    """Predict the rows of a table file, of any size, as CSV on standard output or into a file.

    Columns are found by name, and others are left alone.
    """
    target = output.checked(model, file)
    check_output(target)
    estimator = ABCBoostClassifier.load_model(model)
    estimator.n_jobs = n_jobs
    parts = read_like(file, estimator, None, tables.reading(), wanted.keep or ())
    n_rows = write_tables(
        (_predicted(estimator, part, proba=wanted.proba) for part in parts), target
    )
    if target is not None:
        tell(f"{target}: {n_rows:,} rows")


def _predicted(estimator: ABCBoostClassifier, part: LabelledTable, *, proba: bool) -> Any:
    """Return a part's predictions as an Arrow table, beside the columns that are handed on."""
    classes = estimator.classes_
    labels = estimator.predict(part.X) if len(part) else classes[:0]
    found = None
    if proba:
        found = estimator.predict_proba(part.X) if len(part) else np.empty((0, len(classes)))
    columns = prediction_columns(estimator.model_, labels, found)
    kept = part.others or {}
    _check_kept(kept, columns)
    return require_pyarrow().table(kept | columns)


def _check_kept(given: Collection[str], own: Collection[str]) -> None:
    """Refuse columns of the user that are called like one of ours."""
    both = [name for name in given if name in own]
    if both:
        what = f"--keep {both[0]}; the output has a column of that name already"
        raise Misuse(f"{what}: expected one that is called otherwise")
