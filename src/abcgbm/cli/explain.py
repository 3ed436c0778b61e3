"""`abcgbm explain`: Shapley values of the rows of a table file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from abcgbm import ABCBoostClassifier
from abcgbm.cli.console import print_message
from abcgbm.cli.inspect import label_of
from abcgbm.cli.options import Jobs, ModelFile, OutputOptions, TableFile, TableOptions
from abcgbm.cli.tables import LabelledTable, read_like
from abcgbm.data.files.writer import check_output, write_tables
from abcgbm.errors import require_pyarrow

_BATCH_ROWS = 1024


def explain(
    model: ModelFile,
    file: TableFile,
    tables: TableOptions,
    output: OutputOptions,
    class_: Annotated[
        str | None,
        typer.Option("--class", help="Explain the score of this class, not of the predicted one."),
    ] = None,
    n_jobs: Jobs = None,
) -> None:
    """Write exact Shapley values: one column per feature. With the base value they sum to the score.

    The score is that of the predicted class of each row, or of --class.
    """
    target = output.checked(model, file)
    check_output(target)
    estimator = ABCBoostClassifier.load_model(model)
    estimator.n_jobs = n_jobs
    class_index = None
    if class_ is not None:
        class_index = estimator.model_.labels.index(label_of(estimator, class_))
    batches = read_like(file, estimator, None, tables.reading())
    explained = (_explained(estimator, X, class_index) for X in _small_batches(batches))
    n_rows = write_tables(explained, target)
    if target is not None:
        print_message(f"{target}: {n_rows:,} rows")


def _small_batches(batches: Iterator[LabelledTable]) -> Iterator[Any]:
    """Split batches into smaller ones, since there is a value per row, feature and class."""
    for batch in batches:
        for start in range(0, max(1, len(batch)), _BATCH_ROWS):
            is_arrow = hasattr(batch.X, "slice")
            stop = start + _BATCH_ROWS
            yield batch.X.slice(start, _BATCH_ROWS) if is_arrow else batch.X[start:stop]


def _explained(estimator: ABCBoostClassifier, X: Any, class_index: int | None) -> Any:
    arrow, names = require_pyarrow(), estimator.model_.feature_labels
    if X.shape[0] == 0:
        classes, base, values = np.empty(0, np.int64), np.empty(0), np.empty((0, len(names)))
    else:
        found, classes = estimator.explain(X), _explained_classes(estimator, X, class_index)
        base, values = found.base_values[classes], found.values[np.arange(len(classes)), :, classes]
    labels = arrow.array(estimator.classes_[classes], arrow.array(estimator.classes_).type)
    first = {_unused_name("class", names): labels, _unused_name("base", names): base}
    return arrow.table(first | dict(zip(names, values.T, strict=True)))


def _unused_name(name: str, features: Sequence[str]) -> str:
    """Append underscores to a name until no feature has it."""
    return _unused_name(f"{name}_", features) if name in features else name


def _explained_classes(
    estimator: ABCBoostClassifier, X: Any, class_index: int | None
) -> NDArray[np.int64]:
    """Return the class whose score is explained, for each row."""
    if class_index is None:
        predicted: NDArray[np.int64] = estimator.predict_proba(X).argmax(axis=1)
        return predicted
    return np.full(X.shape[0], class_index)
