"""Prediction methods of the classifier for tables that do not fit into memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.arrays import Floats
from abcgbm.data.files.atomic import same_file
from abcgbm.data.files.batched_table import feature_batches
from abcgbm.data.files.large_table import as_large, files_read
from abcgbm.data.files.writer import check_output, write_tables
from abcgbm.errors import require_pyarrow
from abcgbm.model.losses import SoftmaxLink
from abcgbm.model.model import Model
from abcgbm.parameters.hints import with_prediction_hints


def prediction_columns(
    model: Model, labels: NDArray[Any], probabilities: Floats | None
) -> dict[str, Any]:
    """Return labels and, if given, probabilities as columns of an Arrow table."""
    arrow = require_pyarrow()
    columns = {"prediction": arrow.array(labels, arrow.array(model.classes).type)}
    if probabilities is None:
        return columns
    names = [f"proba_{label}" for label in model.labels]
    return columns | dict(zip(names, probabilities.T, strict=True))


def _check_not_read(path: Path, X: Any) -> None:
    """Raise FileExistsError if the output would replace a file that the table is read from."""
    source = same_file(path, files_read(X) if path.exists() else [])
    if source is not None:
        raise FileExistsError(
            f"path={str(path)!r} is {str(source)!r}, which X is read from; expected another file"
        )


class BatchPrediction:
    """Prediction in batches. Subclasses provide the link and the number of threads."""

    model_: Model

    @with_prediction_hints
    def predict_batches(
        self, X: Any, *, proba: bool = False, n_iter: int | None = None
    ) -> Iterator[NDArray[Any]]:
        """Yield predictions of a table that does not fit into memory, in batches of rows.

        Parameters
        ----------
        X : LargeTable, path, pattern, or pyarrow.dataset.Dataset
            The table. Columns are found by name; all others are ignored.
        proba : bool, default=False
            Yield probabilities, as ``predict_proba`` returns them, instead of labels.
        n_iter : int, optional
            Predict with the first iterations only.
        """
        for raw in self._raw_batches(X, n_iter):
            if proba:
                yield self._outputs().probabilities(raw, self._n_threads())
            else:
                yield self._outputs().labels(raw)

    @with_prediction_hints
    def predict_to_file(
        self,
        X: Any,
        path: str | os.PathLike[str],
        *,
        proba: bool = False,
        n_iter: int | None = None,
    ) -> int:
        """Write predictions to a file in batches; return the number of rows.

        Parameters
        ----------
        X : LargeTable, path, pattern, or pyarrow.dataset.Dataset
            The table, as for ``predict_batches``.
        path : path
            A name that ends in .parquet, .feather, .csv or .tsv, the last two optionally followed by
            .gz or .zst. An existing file is replaced atomically; one that ``X`` is read from is an
            error.
        proba : bool, default=False
            Write the probability of each class, too, in columns ``proba_<label>``.
        n_iter : int, optional
            Predict with the first iterations only.
        """
        check_output(Path(path))
        _check_not_read(Path(path), X)
        tables = (self._predicted_table(raw, proba) for raw in self._raw_batches(X, n_iter))
        return write_tables(tables, Path(path))

    def _predicted_table(self, raw: Floats, proba: bool) -> Any:
        link = self._outputs()
        probabilities = link.probabilities(raw, self._n_threads()) if proba else None
        columns = prediction_columns(self.model_, link.labels(raw), probabilities)
        return require_pyarrow().table(columns)

    def _raw_batches(self, X: Any, n_iter: int | None) -> Iterator[Floats]:
        self._check_fitted()
        for batch in feature_batches(as_large(X), self.model_.encoding.schema, type(self).__name__):
            yield self.model_.raw_scores(batch, self._n_threads(), n_iter)

    def _raw_of_all(self, X: Any, n_iter: int | None) -> Floats:
        batches = [*self._raw_batches(X, n_iter)]
        if not batches:
            raise ValueError(f"X is {as_large(X)!r}, which has no rows; expected at least 1")
        return np.concatenate(batches)

    def _check_fitted(self) -> None:
        raise NotImplementedError

    def _outputs(self) -> SoftmaxLink:
        raise NotImplementedError

    def _n_threads(self) -> int:
        raise NotImplementedError
