"""LibSVM files, parsed by scikit-learn."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.files.csv_blocks import BLOCK_BYTES, Block, text_blocks
from abcgbm.data.files.formats import Reading, open_bytes, raise_unreadable
from abcgbm.errors import TableFileError


class SparseRows(NamedTuple):
    """Rows of a sparse table, with labels.

    Attributes
    ----------
    X : SciPy csr matrix of shape (n_rows, n_features)
        The values.
    y : ndarray of float64 of shape (n_rows,)
        The labels.
    """

    X: Any
    y: NDArray[np.float64]


class SvmlightFile:
    """A LibSVM file.

    Parameters
    ----------
    path : Path
        The file.
    reading : Reading
        How to parse it.
    """

    def __init__(self, path: Path, reading: Reading) -> None:
        self.path = path
        self._reading = reading

    def read(self, n_features: int | None = None) -> SparseRows:
        """Return all rows; by default ``n_features`` is the largest column number."""
        with self._opened() as stream:
            return self._parsed(Block(1, stream.read()), n_features)

    def batches(self, n_features: int) -> Iterator[SparseRows]:
        """Yield the rows in batches.

        Columns that a row does not store are zero; a column number beyond ``n_features`` is an
        error.
        """
        with self._opened() as stream:
            for block in text_blocks(stream, self.path, BLOCK_BYTES, delimiter=None):
                yield self._parsed(block, n_features)

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        try:
            with open_bytes(self.path) as stream:
                yield stream
        except OSError as error:
            raise_unreadable(self.path, error)

    def _parsed(self, block: Block, n_features: int | None) -> SparseRows:
        try:
            return self._loaded(block.data, n_features)
        except (ValueError, OverflowError) as error:
            self._raise_located(block, n_features, error)
            raise

    def _loaded(self, data: bytes, n_features: int | None) -> SparseRows:
        from sklearn.datasets import load_svmlight_file  # a slow import, rarely needed

        X, y = load_svmlight_file(
            io.BytesIO(data), n_features=n_features, zero_based=self._reading.zero_based
        )
        return SparseRows(X, y)

    def _raise_located(self, block: Block, n_features: int | None, error: Exception) -> None:
        """Find the line that could not be parsed, and raise its error."""
        for number, line in enumerate(block.data.splitlines(keepends=True), block.first_line):
            try:
                found = self._loaded(line, None)
            except (ValueError, OverflowError) as wrong:
                hint = "zero_based" if b" 0:" in line[:99] else None
                what = f"{wrong}; expected a label and pairs such as 3:0.5"
                if hint is not None:
                    what += "; columns are counted from 1 unless the file is declared zero-based"
                raise TableFileError(self.path, what, number, hint=hint) from error
            if n_features is not None and found.X.shape[1] > n_features:
                last = found.X.shape[1] - self._reading.zero_based
                what = f"a value in column {last}; expected at most {n_features} columns"
                raise TableFileError(self.path, f"{what}, as in training", number) from error
