"""Sources of batches: files, Arrow data sets, iterables of tables."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from abcgbm.data.files.column_types import as_types, common_type
from abcgbm.data.files.file_source import FileSource
from abcgbm.data.files.formats import Reading, is_table
from abcgbm.errors import TableFileError, require_pyarrow, shortened

_MAGIC = frozenset("*?[")


class Source(Protocol):
    """Rows that can be read again and again, a part at a time.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns, and their types.
    is_columnar : bool
        Whether a few columns can be read without the others.
    is_steady : bool
        Whether it tells by itself if there are other rows than before.
    n_bytes, n_rows : int or None
        The size of what is read, and the number of rows, if they are known beforehand.
    """

    schema: Any
    is_columnar: bool
    is_steady: bool
    n_bytes: int | None
    n_rows: int | None

    def parts(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables, in the same order each time."""
        ...


def open_source(given: Any, reading: Reading) -> Source:
    """Return the source that a user means: a path, a pattern, some of these, a data set, batches."""
    if isinstance(given, str | os.PathLike) or is_paths(given):
        return FileSource(files_of(given), reading)
    if _is_dataset(given):
        return DatasetSource(given)
    return BatchSource(given)


def files_of(given: Any) -> list[Path]:
    """Return the files that a source reads; batches, and data sets elsewhere, name none."""
    if isinstance(given, str | os.PathLike):
        return _files(given)
    if is_paths(given):
        return [file for path in given for file in _files(path)]
    return _files_of_dataset(given) if _is_dataset(given) else []


def _is_dataset(given: Any) -> bool:
    """Whether it is a data set of pyarrow."""
    return hasattr(given, "scanner") and hasattr(given, "schema")


def _files_of_dataset(dataset: Any) -> list[Path]:
    """Return the files of a data set, or of those that it unites, on this machine."""
    children = getattr(dataset, "children", None) or ()
    files = [file for child in children for file in _files_of_dataset(child)]
    system = getattr(dataset, "filesystem", None)
    if system is not None and system.type_name == "local":
        files += map(Path, dataset.files)
    return files


def is_paths(given: Any) -> bool:
    """Whether these are some paths, or patterns, and nothing else."""
    is_list = isinstance(given, list | tuple) and len(given) > 0
    return is_list and all(isinstance(path, str | os.PathLike) for path in given)


def _files(given: str | os.PathLike[str]) -> list[Path]:
    """Return the files of a path or a pattern, or all tables in a folder, in the order of names."""
    path = Path(given)
    if "://" in str(given):
        what = "an address, not a path; expected a data set of it, pyarrow.dataset.dataset(address)"
        raise TableFileError(os.fspath(given), what)
    if path.is_dir():
        found = [p for p in path.rglob("*") if is_table(p) and not _is_hidden(p, path)]
        _check_names_no_values(found, path)
    elif path.exists() or not _MAGIC.intersection(str(given)):
        return [path]
    else:
        matches = glob.glob(str(given), recursive=True)  # noqa: PTH207 (an absolute one, too)
        found = [Path(p) for p in matches if Path(p).is_file()]
    if not found:
        raise TableFileError(given, "no table file is there; expected at least one")
    return sorted(found)


def _is_hidden(file: Path, folder: Path) -> bool:
    """Whether it, or a folder on the way to it, is one that others leave alone: _SUCCESS, .git."""
    return any(part[0] in "._" for part in file.relative_to(folder).parts)


def _check_names_no_values(files: Sequence[Path], folder: Path) -> None:
    """Refuse folders whose names are values of a column, which would be lost."""
    for file in files:
        for part in file.relative_to(folder).parts[:-1]:
            if "=" in part:
                raise TableFileError(
                    file,
                    f"in the folder {part!r}, which names a value of a column; expected "
                    "pyarrow.dataset.dataset(path, partitioning='hive'), which reads that column",
                )


_BATCHES = "record batches, tables of Arrow or data frames"


class DatasetSource:
    """The rows of a data set of pyarrow.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        The data set; what it filters stays out.
    """

    is_columnar = True
    is_steady = False
    n_bytes: int | None = None
    n_rows: int | None = None

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.schema = dataset.schema
        _check_names(self.schema.names, "the data set")

    def parts(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables, in the same order each time."""
        arrow = require_pyarrow()
        try:
            for batch in self._dataset.scanner(columns=[*columns]).to_batches():
                yield arrow.Table.from_batches([batch])
        except (arrow.ArrowException, OSError) as error:
            raise TableFileError(self._culprit(columns), f"cannot be read: {error}") from error

    def _culprit(self, columns: Sequence[str]) -> str:
        """Look for the file that cannot be read, slowly."""
        arrow = require_pyarrow()
        for fragment in self._dataset.get_fragments():
            scanner = fragment.scanner(schema=self.schema, columns=[*columns])
            try:
                for _ in scanner.to_batches():
                    pass
            except (arrow.ArrowException, OSError):
                return str(getattr(fragment, "path", fragment))
        return "a file of the data set"


class BatchSource:
    """Batches of rows that somebody makes, as often as they are asked for.

    Types are those that have room for all batches that were read: those of the first until all were.

    Parameters
    ----------
    batches : iterable, or function that returns one
        Record batches or tables of Arrow, or data frames. Each iteration has the same rows.
    """

    is_columnar = False
    is_steady = False
    n_bytes: int | None = None
    n_rows: int | None = None

    def __init__(self, batches: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self._batches = batches
        self._last: Any = None
        if not callable(batches):
            _check_can_be_begun_anew(batches)
        first = next(self._tables(), None)
        if first is None:
            raise ValueError("X has no batches; expected at least one")
        self.schema = first.schema
        _check_names(self.schema.names, "batch 0")

    def parts(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables, in the same order each time."""
        for number, table in enumerate(self._tables()):
            if not table.schema.equals(self.schema):
                self._widen(table.schema, number)
            yield as_types(table.select([*columns]), self.schema)

    def _widen(self, schema: Any, number: int) -> None:
        """Make room for the columns of a batch, too."""
        arrow, names, fields = require_pyarrow(), self.schema.names, []
        if sorted(schema.names) != sorted(names):
            other = min({*schema.names} ^ {*names}, default=schema.names[0])
            has = "a column" if other in schema.names else "no column"
            raise ValueError(f"batch {number} has {has} {other!r}; expected {shortened(names, 20)}")
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
        for number, batch in enumerate(self._begun()):
            yield _as_arrow(arrow, batch, number)

    def _begun(self) -> Iterator[Any]:
        """Begin to iterate; a function must do so anew each time."""
        batches = self._batches() if callable(self._batches) else self._batches
        if not hasattr(batches, "__iter__"):
            raise TypeError(
                f"the function returned {type(batches).__name__}; expected an iterable of {_BATCHES}"
            )
        begun = iter(batches)
        if begun is self._last:
            raise TypeError(
                "the function returned the same iterator twice; expected a new one each time"
            )
        self._last = begun
        return begun


def _check_can_be_begun_anew(batches: Any) -> None:
    kind = type(batches).__name__
    if _is_table(batches):
        raise TypeError(
            f"X is of type {kind}, a table itself, which fit takes as it is; expected a path, a "
            f"data set of pyarrow, or an iterable of {_BATCHES}"
        )
    if not hasattr(batches, "__iter__"):
        raise TypeError(
            f"X is of type {kind}; expected a path, a data set of pyarrow, or an iterable of "
            f"{_BATCHES}"
        )
    if iter(batches) is batches:
        raise TypeError(
            f"X is of type {kind}, which can be read only once; expected an iterable that can be "
            "begun anew, such as a list, or a function that returns one"
        )


def _is_table(given: Any) -> bool:
    """Whether it is columns rather than something that yields batches."""
    looks_so = hasattr(given, "columns") or hasattr(given, "dtype") or isinstance(given, dict)
    return bool(looks_so)


def _check_names(names: list[str], what: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"{what} has columns of the same name: {shortened(twice)}; expected all to differ"
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
