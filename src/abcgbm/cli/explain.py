"""`abcgbm explain`: what each feature adds to the scores of the rows of a table file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from abcgbm import ABCBoostClassifier
from abcgbm.cli.console import tell
from abcgbm.cli.inspect import label_of
from abcgbm.cli.options import Jobs, ModelFile, OutputOptions, TableFile, TableOptions
from abcgbm.cli.tables import LabelledTable, read_like
from abcgbm.data.files.writer import check_output, write_tables
from abcgbm.errors import require_pyarrow

_ROWS_AT_A_TIME = 1024


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
    """Write exact Shapley values: a column for each feature, which add up, with the base, to the score.

    Of each row the score of the class that is predicted is explained, or that of --class.
    """
    target = output.checked(model, file)
    check_output(target)
    estimator = ABCBoostClassifier.load_model(model)
    estimator.n_jobs = n_jobs
    wanted = None if class_ is None else estimator.model_.labels.index(label_of(estimator, class_))
    parts = read_like(file, estimator, None, tables.reading())
    explained = (_explained(estimator, rows, wanted) for rows in _pieces(parts))
    n_rows = write_tables(explained, target)
    if target is not None:
        tell(f"{target}: {n_rows:,} rows")


def _pieces(parts: Iterator[LabelledTable]) -> Iterator[Any]:
    """Cut parts into few rows each: there is a value for every row, feature and class."""
    for part in parts:
        for start in range(0, max(1, len(part)), _ROWS_AT_A_TIME):
            stop = start + _ROWS_AT_A_TIME
            is_frame = hasattr(part.X, "slice")
            yield part.X.slice(start, _ROWS_AT_A_TIME) if is_frame else part.X[start:stop]


def _explained(estimator: ABCBoostClassifier, X: Any, wanted: int | None) -> Any:
    arrow, names = require_pyarrow(), estimator.model_.feature_labels
    if X.shape[0] == 0:
        classes, base, values = np.empty(0, np.int64), np.empty(0), np.empty((0, len(names)))
    else:
        found, classes = estimator.explain(X), _classes(estimator, X, wanted)
        base, values = found.base_values[classes], found.values[np.arange(len(classes)), :, classes]
    labels = arrow.array(estimator.classes_[classes], arrow.array(estimator.classes_).type)
    own = {_free("class", names): labels, _free("base", names): base}
    return arrow.table(own | dict(zip(names, values.T, strict=True)))


def _free(name: str, features: Sequence[str]) -> str:
    """Return the name of a column of ours: with a line below it if a feature is called so."""
    return _free(f"{name}_", features) if name in features else name


def _classes(estimator: ABCBoostClassifier, X: Any, wanted: int | None) -> NDArray[np.int64]:
    """Return the class of each row whose score is explained."""
    if wanted is None:
        found: NDArray[np.int64] = estimator.predict_proba(X).argmax(axis=1)
        return found
    return np.full(X.shape[0], wanted)
