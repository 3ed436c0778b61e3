"""LibSVM files: a label and the stored values of each row, read by scikit-learn."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from abcgbm.data.files.errors import TableFileError
from abcgbm.data.files.formats import Reading, open_bytes
from abcgbm.data.files.text_blocks import BLOCK_BYTES, Block, text_blocks


class SparseRows(NamedTuple):
    """Rows of a sparse table, and their labels.

    Attributes
    ----------
    X : scipy csr matrix of shape (n_rows, n_features)
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
        How it is to be understood.
    """

    def __init__(self, path: Path, reading: Reading) -> None:
        self.path = path
        self._reading = reading

    def read(self) -> SparseRows:
        """Return all rows."""
        with open_bytes(self.path) as stream:
            return self._parsed(Block(1, stream.read()), None)

    def parts(self, n_features: int) -> Iterator[SparseRows]:
        """Yield the rows of a table of so many features, a block at a time."""
        with open_bytes(self.path) as stream:
            for block in text_blocks(stream, self.path, BLOCK_BYTES, has_quotes=False):
                yield self._parsed(block, n_features)

    def _parsed(self, block: Block, n_features: int | None) -> SparseRows:
        try:
            return self._loaded(block.data, n_features)
        except (ValueError, OverflowError) as error:
            self._raise_located(block, n_features, error)
            raise

    def _loaded(self, data: bytes, n_features: int | None) -> SparseRows:
        X, y = load_svmlight_file(
            io.BytesIO(data), n_features=n_features, zero_based=self._reading.zero_based
        )
        return SparseRows(X, y)

    def _raise_located(self, block: Block, n_features: int | None, error: Exception) -> None:
        """Look for the line that could not be read, one by one."""
        for number, line in enumerate(block.data.splitlines(keepends=True), block.first_line):
            try:
                self._loaded(line, n_features)
            except (ValueError, OverflowError) as wrong:
                hint = "; are its columns counted from 0?" if " 0:" in line[:99].decode() else ""
                what = f"{wrong}{hint}; expected a label and pairs such as 3:0.5"
                raise TableFileError(self.path, what, number) from error
