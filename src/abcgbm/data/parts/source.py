"""Where the parts of a table come from: files, a data set of pyarrow, or batches of rows."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from abcgbm.data.files.arrow_files import ArrowFile
from abcgbm.data.files.column_types import settled
from abcgbm.data.files.delimited import DelimitedFile
from abcgbm.data.files.errors import TableFileError, require_pyarrow
from abcgbm.data.files.formats import Reading, is_table
from abcgbm.data.files.svmlight import SvmlightFile
from abcgbm.data.files.table_file import NamedFile, open_table

_MAGIC = frozenset("*?[")


class Source(Protocol):
    """Rows that can be read again and again, a part at a time.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns, and their types.
    is_columnar : bool
        Whether a few columns can be read without the others.
    n_bytes : int or None
        The size of what is read, if it is known.
    """

    schema: Any
    is_columnar: bool
    n_bytes: int | None

    def parts(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables, in the same order each time."""
        ...


def open_source(given: Any, reading: Reading) -> Source:
    """Return the source that a user means: a path, a pattern, some of these, a data set, batches."""
    if isinstance(given, str | os.PathLike):
        return FileSource(_files(given), reading)
    if hasattr(given, "scanner") and hasattr(given, "schema"):  # a data set of pyarrow
        return DatasetSource(given)
    if isinstance(given, Sequence) and all(isinstance(p, str | os.PathLike) for p in given):
        return FileSource([file for p in given for file in _files(p)], reading)
    return BatchSource(given)


def _files(given: str | os.PathLike[str]) -> list[Path]:
    """Return the files of a path or a pattern, or all tables in a folder, in the order of names."""
    path = Path(given)
    if path.is_dir():
        found = [p for p in path.rglob("*") if is_table(p) and p.name[0] not in "._"]
    elif path.exists() or not _MAGIC.intersection(str(given)):
        return [path]
    else:
        matches = glob.glob(str(given), recursive=True)  # noqa: PTH207 (an absolute one, too)
        found = [Path(p) for p in matches if Path(p).is_file()]
    if not found:
        raise TableFileError(given, "no table file is there; expected at least one")
    return sorted(found)


# -------------------------------------------------------------------------------------------- files


class FileSource:
    """The rows of files, one file after the other.

    Parameters
    ----------
    paths : list of Path
        The files, all of the same columns.
    reading : Reading
        How text files are to be understood.
    """

    def __init__(self, paths: list[Path], reading: Reading) -> None:
        if not paths:
            raise ValueError("no file was given; expected at least one")
        self._files = [_opened(path, reading) for path in paths]
        self.n_bytes: int | None = sum(path.stat().st_size for path in paths)
        self.is_columnar = all(isinstance(file, ArrowFile) for file in self._files)
        for file in self._files[1:]:
            _check_same_columns(file, self._files[0])
        self.schema = _united_schema(self._files)

    def parts(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables, in the same order each time."""
        arrow = require_pyarrow()
        schema = arrow.schema([self.schema.field(name) for name in columns])
        texts = [field.name for field in schema if arrow.types.is_string(field.type)]
        for file in self._files:
            if not file.path.exists():
                raise TableFileError(file.path, "the file has vanished since it was first read")
            for table in file.parts(columns, texts):
                yield _as_schema(table, schema, file)


def _opened(path: Path, reading: Reading) -> NamedFile:
    file = open_table(path, reading)
    if isinstance(file, SvmlightFile):
        raise TableFileError(path, "LibSVM is not read in parts; expected Parquet, Feather or CSV")
    return file


def _check_same_columns(file: NamedFile, first: NamedFile) -> None:
    mine, others = set(file.names), set(first.names)
    for missing, of in ((others - mine, first), (mine - others, file)):
        if missing:
            what = f"column {min(missing)!r} is in {of.path} alone"
            raise TableFileError(file.path, f"{what}; expected the same columns in all files")


def _united_schema(files: Sequence[NamedFile]) -> Any:
    """Return the types of the columns: of text files those that all rows of all files settle."""
    arrow, names = require_pyarrow(), files[0].names
    first = files[0]
    if not isinstance(first, DelimitedFile):
        for file in files[1:]:
            _check_same_types(file, first)
        return arrow.schema([first.schema.field(name) for name in names])
    schemas = []
    for file in files:
        for table in file.parts():
            schemas.append(arrow.schema([table.schema.field(name) for name in names]))
    return settled(schemas)


def _check_same_types(file: NamedFile, first: ArrowFile) -> None:
    types = require_pyarrow("pyarrow.types")

    def kind(of: Any) -> str:
        is_number = types.is_integer(of) or types.is_floating(of) or types.is_decimal(of)
        return "numbers" if is_number else str(of)

    if isinstance(file, DelimitedFile):
        what = f"a text file beside {first.path}; expected files of one format"
        raise TableFileError(file.path, what)
    for name in first.names:
        now, then = file.schema.field(name).type, first.schema.field(name).type
        if kind(now) != kind(then):
            what = f"{now}; expected {then}, as in {first.path}"
            raise TableFileError(file.path, what, column=name)


def _as_schema(table: Any, schema: Any, file: NamedFile) -> Any:
    """Return a part with the types of the whole; numbers of another width may stay as they are."""
    if isinstance(file, DelimitedFile):
        return table.select(schema.names).cast(schema, safe=False)
    return table.select(schema.names)


# -------------------------------------------------------------------------------- data sets, batches


class DatasetSource:
    """The rows of a data set of pyarrow.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        The data set; what it filters stays out.
    """

    is_columnar = True
    n_bytes: int | None = None

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.schema = dataset.schema

    def parts(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables, in the same order each time."""
        arrow = require_pyarrow()
        for batch in self._dataset.scanner(columns=[*columns]).to_batches():
            yield arrow.Table.from_batches([batch])


class BatchSource:
    """Batches of rows that somebody makes, as often as they are asked for.

    Parameters
    ----------
    batches : iterable, or function that returns one
        Record batches or tables of Arrow, or data frames. Each iteration has the same rows.
    """

    is_columnar = False
    n_bytes: int | None = None

    def __init__(self, batches: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self._batches = batches
        if not callable(batches) and not hasattr(batches, "__iter__"):
            raise TypeError(
                f"X is of type {type(batches).__name__}; expected a path, a data set of pyarrow, or "
                "an iterable of record batches"
            )
        if not callable(batches) and iter(batches) is batches:
            raise TypeError(
                f"X is of type {type(batches).__name__}, which can be read only once; expected an "
                "iterable that can be begun anew, such as a list, or a function that returns one"
            )
        first = next(self._tables(), None)
        if first is None:
            raise ValueError("X has no batches; expected at least one")
        self.schema = first.schema

    def parts(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables, in the same order each time."""
        for number, table in enumerate(self._tables()):
            missing = [name for name in columns if name not in table.column_names]
            if missing:
                raise ValueError(
                    f"batch {number} has no column {missing[0]!r}; expected the columns of the first"
                )
            yield table.select([*columns])

    def _tables(self) -> Iterator[Any]:
        arrow = require_pyarrow()
        batches = self._batches() if callable(self._batches) else self._batches
        for number, batch in enumerate(batches):
            yield _as_arrow(arrow, batch, number)


def _as_arrow(arrow: Any, batch: Any, number: int) -> Any:
    if isinstance(batch, arrow.Table):
        return batch
    if isinstance(batch, arrow.RecordBatch):
        return arrow.Table.from_batches([batch])
    try:
        if hasattr(batch, "__arrow_c_stream__") and not hasattr(batch, "iloc"):
            return arrow.table(batch)
        return arrow.Table.from_pandas(batch, preserve_index=False)
    except (TypeError, ValueError, AttributeError, arrow.ArrowException) as error:
        raise TypeError(
            f"batch {number} is of type {type(batch).__name__}: {error}; expected a record batch, a "
            "table of Arrow or a data frame"
        ) from error
