"""Counts of values and categories, collected by batch, spilled to disk and merged."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.data.arrays import Floats, Level
from abcgbm.data.categories import CategoryMap
from abcgbm.data.schema import Kind
from abcgbm.data.table import Table

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


_MIX = np.uint64(0x9E3779B97F4A7C15)


def digest_of(values: NDArray[np.uint64], first_row: int) -> int:
    """Return the digest of values in the rows from ``first_row`` on, modulo 2^64."""
    odd = 2 * np.arange(first_row, first_row + len(values), dtype=np.uint64) + np.uint64(1)
    with np.errstate(over="ignore"):
        mixed = (values ^ (values >> np.uint64(32))) * _MIX
        return int(((mixed ^ (mixed >> np.uint64(29))) * odd).sum(dtype=np.uint64))


_BYTES_OF_A_VALUE = 16  # and its weight


class CategoryCounts:
    """The levels of a category, and the weight of each in the rows so far.

    Attributes
    ----------
    weight : dict of str or float to int
        The weights of the levels that occur in rows that count.
    digest : int
        That of the column: those of parts add up, and it is another if a level or a place is.
    """

    def __init__(self) -> None:
        self.weight: dict[Any, int] = {}
        self.digest = 0

    def add(self, chunks: Iterable[list[Level]], weight: NDArray[np.int64], first_row: int) -> None:
        """Count the rows from ``first_row`` on; those of weight 0 are absent."""
        start = 0
        for chunk in chunks:
            of_rows = weight[start : start + len(chunk)]
            for level, of_row in zip(chunk, of_rows.tolist(), strict=True):
                if of_row:
                    self.weight[level] = self.weight.get(level, 0) + of_row
            self.digest += category_digest(chunk, first_row + start)
            start += len(chunk)
        self.weight.pop(None, None)

    def merge(self, other: CategoryCounts) -> None:
        """Count what another has counted."""
        for level, weight in other.weight.items():
            self.weight[level] = self.weight.get(level, 0) + weight
        self.digest += other.digest


def category_digest(chunk: list[Level], first_row: int) -> int:
    """Return the digest of levels in the rows from ``first_row`` on."""
    hashes = np.fromiter(map(hash, chunk), dtype=np.int64, count=len(chunk)).view(np.uint64)
    return digest_of(hashes, first_row)


class ColumnCounts:
    """The values of numeric columns and the levels of categories, in the rows so far.

    Whatever parts the rows come in, bins and levels are those of all rows at once. If they are many,
    values are kept in a scratch file, sorted, and merged by reading it.

    Parameters
    ----------
    kinds : sequence of Kind
        What each column is: a number or a category.
    n_threads : int
        Number of threads.
    scratch : Scratch or None
        Where values are kept that are too many; None: they are never too many.
    max_bytes : int or None
        What they may take in memory.

    Attributes
    ----------
    n_rows : int
        The rows so far.
    """

    def __init__(
        self,
        kinds: Iterable[int],
        n_threads: int,
        scratch: Scratch | None = None,
        max_bytes: int | None = None,
    ) -> None:
        kind = np.asarray([*kinds])
        self._numeric = np.flatnonzero(kind != Kind.CATEGORICAL)
        self._levels = {
            c: CategoryCounts() for c in np.flatnonzero(kind == Kind.CATEGORICAL).tolist()
        }
        self._values = _core.ValueCounts(len(self._numeric))
        self._n_threads = n_threads
        self._scratch, self._max_bytes = scratch, max_bytes
        self._spilled: list[list[Any]] = []  # by time, then by column
        self.n_rows = 0

    def add(self, part: Table, weight: NDArray[np.int64], first_row: int = 0) -> None:
        """Count rows from ``first_row`` on; those of weight 0 are absent."""
        if len(self._numeric):
            values = part.floats(self._numeric)
            self._values.add(values, weight, first_row, self._n_threads)
        for column, counts in self._levels.items():
            counts.add(part.levels(column), weight, first_row)
        self.n_rows += len(part)
        if self._is_too_much():
            self._spill()

    def merge(self, other: ColumnCounts) -> None:
        """Count what another has counted, of the same columns; nothing of it lies in a file."""
        self._values.merge(other._values, self._n_threads)
        for column, counts in self._levels.items():
            counts.merge(other._levels[column])
        self.n_rows += other.n_rows
        if self._is_too_much():
            self._spill()

    def digests(self) -> dict[int, int]:
        """Return the digest of each column."""
        of_values = dict(zip(self._numeric.tolist(), self._values.digests.tolist(), strict=True))
        return of_values | {c: counts.digest % 2**64 for c, counts in self._levels.items()}

    def thresholds(self, max_bins: int) -> dict[int, Floats]:
        """Return the thresholds between the bins of each numeric column."""
        if not len(self._numeric):
            return {}
        runs = [[*self._runs(c)] for c in range(len(self._numeric))] if self._spilled else []
        found = self._values.thresholds(runs, max_bins, self._n_threads)
        return dict(zip(self._numeric.tolist(), found, strict=True))

    def levels(self, names: dict[int, str], most_codes: int) -> dict[int, CategoryMap]:
        """Return the levels of each category, whose names errors use."""
        return {
            column: CategoryMap.from_weights(names[column], counts.weight, most_codes)
            for column, counts in self._levels.items()
        }

    # ------------------------------------------------------------------------------------- spilling

    def _is_too_much(self) -> bool:
        if self._scratch is None or self._max_bytes is None:
            return False
        return self._values.n_values * _BYTES_OF_A_VALUE > self._max_bytes

    def _spill(self) -> None:
        scratch = self._scratch
        assert scratch is not None
        taken = self._values.take(self._n_threads)
        self._spilled.append([(scratch.put(value), scratch.put(weight)) for value, weight in taken])

    def _runs(self, column: int) -> Iterator[Run]:
        scratch = self._scratch
        assert scratch is not None
        for places in self._spilled:
            value, weight = places[column]
            yield scratch.get(value), scratch.get(weight)
