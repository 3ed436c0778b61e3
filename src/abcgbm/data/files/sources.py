"""Sources of batches: files, Arrow datasets, iterables of tables."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from abcgbm.data.files.column_types import as_types, common_type
from abcgbm.data.files.file_source import FileSource
from abcgbm.data.files.formats import Reading, is_table
from abcgbm.errors import TableFileError, quoted_list, require_pyarrow

_MAGIC = frozenset("*?[")


class Source(Protocol):
    """Rows that can be read several times in batches.

    Attributes
    ----------
    schema : pyarrow.Schema
        Columns and their types.
    is_columnar : bool
        Whether some columns can be read without the others.
    detects_changes : bool
        Whether it raises an error itself if its rows have changed.
    n_bytes, n_rows : int or None
        Size of the data and number of rows, if known beforehand.
    """

    schema: Any
    is_columnar: bool
    detects_changes: bool
    n_bytes: int | None
    n_rows: int | None

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables, in the same order each time."""
        ...


def open_source(given: Any, reading: Reading) -> Source:
    """Return the source for a path, a pattern, a list of these, a dataset, or batches."""
    if isinstance(given, str | os.PathLike) or is_paths(given):
        return FileSource(files_of(given), reading)
    if _is_dataset(given):
        return DatasetSource(given)
    return BatchSource(given)


def files_of(given: Any) -> list[Path]:
    """Return the files of a source; none for batches and remote datasets."""
    if isinstance(given, str | os.PathLike):
        return _files(given)
    if is_paths(given):
        return [file for path in given for file in _files(path)]
    return _files_of_dataset(given) if _is_dataset(given) else []


def _is_dataset(given: Any) -> bool:
    """Whether it is a pyarrow dataset."""
    return hasattr(given, "scanner") and hasattr(given, "schema")


def _files_of_dataset(dataset: Any) -> list[Path]:
    """Return the local files of a dataset, or of the children of a union."""
    children = getattr(dataset, "children", None) or ()
    files = [file for child in children for file in _files_of_dataset(child)]
    system = getattr(dataset, "filesystem", None)
    if system is not None and system.type_name == "local":
        files += map(Path, dataset.files)
    return files


def is_paths(given: Any) -> bool:
    """Whether it is a non-empty list of paths or patterns."""
    is_list = isinstance(given, list | tuple) and len(given) > 0
    return is_list and all(isinstance(path, str | os.PathLike) for path in given)


def _files(given: str | os.PathLike[str]) -> list[Path]:
    """Return the file of a path, or the sorted files of a pattern or of a folder."""
    path = Path(given)
    if "://" in str(given):
        what = "a URL, not a path; expected a dataset, pyarrow.dataset.dataset(url)"
        raise TableFileError(os.fspath(given), what)
    if path.is_dir():
        tables = [p for p in path.rglob("*") if is_table(p)]
        # Names with a dot or an underscore in front, such as .git and _SUCCESS, are hidden.
        found = [p for p in tables if all(n[0] not in "._" for n in p.relative_to(path).parts)]
        _check_not_partitioned(found, path)
    elif path.exists() or not _MAGIC.intersection(str(given)):
        return [path]
    else:
        matches = glob.glob(str(given), recursive=True)  # noqa: PTH207 (patterns may be absolute)
        found = [Path(p) for p in matches if Path(p).is_file()]
    if not found:
        raise TableFileError(given, "no table file found; expected at least one")
    return sorted(found)


def _check_not_partitioned(files: Sequence[Path], folder: Path) -> None:
    """Raise an error for Hive folders such as ``year=2024``, whose values would be lost."""
    for file in files:
        for part in file.relative_to(folder).parts[:-1]:
            if "=" in part:
                raise TableFileError(
                    file,
                    f"the folder {part!r} holds the value of a column; expected "
                    "pyarrow.dataset.dataset(path, partitioning='hive'), which reads that column",
                )


_BATCHES = "Arrow record batches, Arrow tables or data frames"


class DatasetSource:
    """Rows of a pyarrow dataset.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        The dataset, whose filter is applied.
    """

    is_columnar = True
    detects_changes = False
    n_bytes: int | None = None
    n_rows: int | None = None

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.schema = dataset.schema
        _check_names(self.schema.names, "the dataset")

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables, in the same order each time."""
        arrow = require_pyarrow()
        try:
            for batch in self._dataset.scanner(columns=[*columns]).to_batches():
                yield arrow.Table.from_batches([batch])
        except (arrow.ArrowException, OSError) as error:
            raise TableFileError(
                self._unreadable_file(columns), f"cannot be read: {error}"
            ) from error

    def _unreadable_file(self, columns: Sequence[str]) -> str:
        """Find the file that cannot be read, by reading each of them."""
        arrow = require_pyarrow()
        for fragment in self._dataset.get_fragments():
            scanner = fragment.scanner(schema=self.schema, columns=[*columns])
            try:
                for _ in scanner.to_batches():
                    pass
            except (arrow.ArrowException, OSError):
                return str(getattr(fragment, "path", fragment))
        return "a file of the dataset"


class BatchSource:
    """Batches from an iterable or a function.

    Types are those that fit all batches read so far; they are final after the first pass.

    Parameters
    ----------
    batches : iterable, or function that returns one
        Arrow record batches, Arrow tables or data frames. Each iteration yields the same rows.
    """

    is_columnar = False
    detects_changes = False
    n_bytes: int | None = None
    n_rows: int | None = None

    def __init__(self, batches: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self._batches = batches
        self._last: Any = None
        if not callable(batches):
            _check_is_reiterable(batches)
        first = next(self._tables(), None)
        if first is None:
            raise ValueError("X has no batches; expected at least one")
        self.schema = first.schema
        _check_names(self.schema.names, "batch 0")

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables, in the same order each time."""
        for number, table in enumerate(self._tables()):
            if not table.schema.equals(self.schema):
                self._widen(table.schema, number)
            yield as_types(table.select([*columns]), self.schema)

    def _widen(self, schema: Any, number: int) -> None:
        """Widen the types such that they fit the columns of another batch."""
        arrow, names, fields = require_pyarrow(), self.schema.names, []
        if sorted(schema.names) != sorted(names):
            other = min({*schema.names} ^ {*names}, default=schema.names[0])
            has = "a column" if other in schema.names else "no column"
            raise ValueError(
                f"batch {number} has {has} {other!r}; expected {quoted_list(names, 20)}"
            )
        for name in names:
            now, so_far = schema.field(name).type, self.schema.field(name).type
            of = common_type(so_far, now)
            if of is None:
                raise TypeError(
                    f"batch {number} has {now} in column {name!r}; expected {so_far}, as before"
                )
            fields.append(arrow.field(name, of))
        self.schema = arrow.schema(fields)

    def _tables(self) -> Iterator[Any]:
        arrow = require_pyarrow()
        for number, batch in enumerate(self._new_iterator()):
            yield _as_arrow(arrow, batch, number)

    def _new_iterator(self) -> Iterator[Any]:
        """Start an iteration; a function must return a new iterator each time."""
        batches = self._batches() if callable(self._batches) else self._batches
        if not hasattr(batches, "__iter__"):
            raise TypeError(
                f"the function returned {type(batches).__name__}; expected an iterable of {_BATCHES}"
            )
        iterator = iter(batches)
        if iterator is self._last:
            raise TypeError(
                "the function returned the same iterator twice; expected a new one each time"
            )
        self._last = iterator
        return iterator


def _check_is_reiterable(batches: Any) -> None:
    kind = type(batches).__name__
    if _is_table(batches):
        raise TypeError(
            f"X is of type {kind}, a table in memory, which fit accepts directly; expected a path, a "
            f"pyarrow dataset, or an iterable of {_BATCHES}"
        )
    if not hasattr(batches, "__iter__"):
        raise TypeError(
            f"X is of type {kind}; expected a path, a pyarrow dataset, or an iterable of {_BATCHES}"
        )
    if iter(batches) is batches:
        raise TypeError(
            f"X is of type {kind}, which can be iterated only once; expected a list or another "
            "re-iterable, or a function that returns an iterator"
        )


def _is_table(given: Any) -> bool:
    """Whether it is a table rather than an iterable of batches."""
    has_columns = hasattr(given, "columns") or hasattr(given, "dtype") or isinstance(given, dict)
    return bool(has_columns)


def _check_names(names: list[str], what: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"{what} has duplicate column names: {quoted_list(twice)}; expected unique names"
        )


def _as_arrow(arrow: Any, batch: Any, number: int) -> Any:
    if isinstance(batch, arrow.Table):
        return batch
    if isinstance(batch, arrow.RecordBatch):
        return arrow.Table.from_batches([batch])
    if not hasattr(batch, "__arrow_c_stream__") and not hasattr(batch, "iloc"):
        raise TypeError(
            f"batch {number} is of type {type(batch).__name__}; expected one of {_BATCHES}"
        )
    try:
        if hasattr(batch, "iloc"):
            return arrow.Table.from_pandas(batch, preserve_index=False)
        return arrow.table(batch)
    except (TypeError, ValueError, AttributeError, arrow.ArrowException) as error:
        raise TypeError(f"batch {number} cannot be read: {error}; expected {_BATCHES}") from error
