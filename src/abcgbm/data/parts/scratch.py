"""Scratch files: what does not fit into memory for a while."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Run = tuple[NDArray[np.float64], NDArray[np.int64]]  # values, ascending, and their weights


class _Place(NamedTuple):
    """Where an array lies in the file."""

    offset: int
    n_items: int
    dtype: Any


class Scratch:
    """Arrays in a file that nobody else can see, and that is gone with this object.

    Parameters
    ----------
    folder : path or None
        Where the file lies; None: where the system keeps such files.
    """

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        if folder is not None and not Path(folder).is_dir():
            raise ValueError(f"cache_dir={os.fspath(folder)!r} is no folder; expected one that is")
        self._folder = folder
        # Without a buffer, which would be written once more when the file is closed.
        self._file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115
        self._n_bytes = 0

    def put(self, array: NDArray[Any]) -> _Place:
        """Write an array; return what ``get`` takes."""
        place = _Place(self._n_bytes, len(array), array.dtype)
        try:
            self._file.seek(self._n_bytes)
            self._write(np.ascontiguousarray(array).view(np.uint8).data)
        except OSError as error:
            where = self._folder or tempfile.gettempdir()
            what = f"{error.strerror}: {self._n_bytes + array.nbytes} bytes of values to be sorted"
            raise OSError(error.errno, what, os.fspath(where)) from error
        self._n_bytes += array.nbytes
        return place

    def _write(self, data: memoryview) -> None:
        """Write all of it: a system may take but a part at a time."""
        while len(data):
            data = data[self._file.write(data) :]

    def get(self, place: _Place) -> NDArray[Any]:
        """Return an array as the file has it, mapped rather than read."""
        if place.n_items == 0:
            return np.empty(0, dtype=place.dtype)
        mapped: Any = np.memmap(self._file, place.dtype, "r", place.offset, (place.n_items,))
        return np.asarray(mapped)

    def close(self) -> None:
        """Give the room back."""
        self._file.close()
