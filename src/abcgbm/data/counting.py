"""Weighted counts of values and categories, collected by batch, spilled to disk and merged."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.data.arrays import Category, Floats
from abcgbm.data.categories import CategoryMap
from abcgbm.data.schema import Kind
from abcgbm.data.table import Table

Run = tuple[NDArray[np.float64], NDArray[np.int64]]  # ascending values and their weights


class _Location(NamedTuple):
    """Location of an array in the scratch file."""

    offset: int
    n_items: int
    dtype: Any


class Scratch:
    """Arrays in an anonymous temporary file, which disappears when it is closed.

    Parameters
    ----------
    folder : path or None
        Folder of the file; None: the default of the system.
    """

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        if folder is not None and not Path(folder).is_dir():
            raise ValueError(f"cache_dir={os.fspath(folder)!r}; expected an existing folder")
        self._folder = folder
        # Unbuffered, because a buffer would be flushed again on close and raise a second error.
        self._file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115
        self._n_bytes = 0

    def put(self, array: NDArray[Any]) -> _Location:
        """Write an array; return its location for `get`."""
        location = _Location(self._n_bytes, len(array), array.dtype)
        try:
            self._file.seek(self._n_bytes)
            data = np.ascontiguousarray(array).view(np.uint8).data
            while len(data):  # a write may be partial
                data = data[self._file.write(data) :]
        except OSError as error:
            where = self._folder or tempfile.gettempdir()
            what = f"{error.strerror}: {self._n_bytes + array.nbytes} bytes of values to sort"
            raise OSError(error.errno, what, os.fspath(where)) from error
        self._n_bytes += array.nbytes
        return location

    def get(self, location: _Location) -> NDArray[Any]:
        """Return an array, memory-mapped."""
        if location.n_items == 0:
            return np.empty(0, dtype=location.dtype)
        mapped: Any = np.memmap(
            self._file, location.dtype, "r", location.offset, (location.n_items,)
        )
        return np.asarray(mapped)

    def close(self) -> None:
        """Close and thereby delete the file."""
        self._file.close()


_MIX = np.uint64(0x9E3779B97F4A7C15)


def digest_of(values: NDArray[np.uint64], first_row: int) -> int:
    """Return a digest of values at the rows from ``first_row`` on, additive modulo 2^64."""
    odd = 2 * np.arange(first_row, first_row + len(values), dtype=np.uint64) + np.uint64(1)
    with np.errstate(over="ignore"):
        mixed = (values ^ (values >> np.uint64(32))) * _MIX
        return int(((mixed ^ (mixed >> np.uint64(29))) * odd).sum(dtype=np.uint64))


_BYTES_PER_VALUE = 16  # a value and its weight


class CategoryCounts:
    """Weighted counts of the categories of one column.

    Attributes
    ----------
    weight : dict of str or float to int
        Total weight of each category, in rows of positive weight.
    digest : int
        Sum of the digests of all batches, which depends on every category and its row.
    """

    def __init__(self) -> None:
        self.weight: dict[Any, int] = {}
        self.digest = 0

    def add(
        self, chunks: Iterable[list[Category]], weight: NDArray[np.int64], first_row: int
    ) -> None:
        """Count a batch that starts at row ``first_row``; rows of weight 0 are ignored."""
        start = 0
        for chunk in chunks:
            weights = weight[start : start + len(chunk)]
            for category, row_weight in zip(chunk, weights.tolist(), strict=True):
                if row_weight:
                    self.weight[category] = self.weight.get(category, 0) + row_weight
            self.digest += category_digest(chunk, first_row + start)
            start += len(chunk)
        self.weight.pop(None, None)

    def merge(self, other: CategoryCounts) -> None:
        """Add the counts of another object."""
        for category, weight in other.weight.items():
            self.weight[category] = self.weight.get(category, 0) + weight
        self.digest += other.digest


def category_digest(chunk: list[Category], first_row: int) -> int:
    """Return the digest of categories at the rows from ``first_row`` on."""
    hashes = np.fromiter(map(hash, chunk), dtype=np.int64, count=len(chunk)).view(np.uint64)
    return digest_of(hashes, first_row)


class ColumnCounts:
    """Weighted counts of the values of several columns, collected batch by batch.

    The bins that follow from them do not depend on how the rows were divided into batches. Values
    beyond ``max_bytes`` are sorted, written to the scratch file and merged when thresholds are
    found.

    Parameters
    ----------
    kinds : sequence of Kind
        Kind of each column.
    n_threads : int
        Number of threads.
    scratch : Scratch or None
        Where values are spilled; None: all stay in memory.
    max_bytes : int or None
        Memory for values before they are spilled.

    Attributes
    ----------
    n_rows : int
        Number of rows counted so far.
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
        self._categories = {
            c: CategoryCounts() for c in np.flatnonzero(kind == Kind.CATEGORICAL).tolist()
        }
        self._values = _core.ValueCounts(len(self._numeric))
        self._n_threads = n_threads
        self._scratch, self._max_bytes = scratch, max_bytes
        self._spilled: list[list[Any]] = []  # one list per spill, by column
        self.n_rows = 0

    def add(self, batch: Table, weight: NDArray[np.int64], first_row: int = 0) -> None:
        """Count a batch that starts at row ``first_row``; rows of weight 0 are ignored."""
        if len(self._numeric):
            values = batch.floats(self._numeric)
            self._values.add(values, weight, first_row, self._n_threads)
        for column, counts in self._categories.items():
            counts.add(batch.categories(column), weight, first_row)
        self.n_rows += len(batch)
        if self._must_spill():
            self._spill()

    def merge(self, other: ColumnCounts) -> None:
        """Add the counts of another object for the same columns; it must not have spilled any."""
        self._values.merge(other._values, self._n_threads)
        for column, counts in self._categories.items():
            counts.merge(other._categories[column])
        self.n_rows += other.n_rows
        if self._must_spill():
            self._spill()

    def digests(self) -> dict[int, int]:
        """Return the digest of each column."""
        value_digests = dict(
            zip(self._numeric.tolist(), self._values.digests.tolist(), strict=True)
        )
        return value_digests | {c: counts.digest % 2**64 for c, counts in self._categories.items()}

    def thresholds(self, max_bins: int) -> dict[int, Floats]:
        """Return the thresholds between the bins of each numeric column."""
        if not len(self._numeric):
            return {}
        runs = [[*self._runs(c)] for c in range(len(self._numeric))] if self._spilled else []
        found = self._values.thresholds(runs, max_bins, self._n_threads)
        return dict(zip(self._numeric.tolist(), found, strict=True))

    def categories(self, names: dict[int, str], max_codes: int) -> dict[int, CategoryMap]:
        """Return the category map of each categorical column; ``names`` are used in errors."""
        return {
            column: CategoryMap.from_weights(names[column], counts.weight, max_codes)
            for column, counts in self._categories.items()
        }

    # ------------------------------------------------------------------------------------- spilling

    def _must_spill(self) -> bool:
        if self._scratch is None or self._max_bytes is None:
            return False
        return self._values.n_values * _BYTES_PER_VALUE > self._max_bytes

    def _spill(self) -> None:
        scratch = self._scratch
        assert scratch is not None
        runs = self._values.take(self._n_threads)
        self._spilled.append([(scratch.put(value), scratch.put(weight)) for value, weight in runs])

    def _runs(self, column: int) -> Iterator[Run]:
        scratch = self._scratch
        assert scratch is not None
        for locations in self._spilled:
            value, weight = locations[column]
            yield scratch.get(value), scratch.get(weight)
