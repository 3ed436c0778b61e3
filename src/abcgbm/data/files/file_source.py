"""Table files as a source of batches."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from abcgbm.data.files.arrow import ArrowFile
from abcgbm.data.files.column_types import as_types, common_type, is_text, unified_schema
from abcgbm.data.files.csv import DelimitedFile
from abcgbm.data.files.formats import Reading, checked_path, looks_undivided
from abcgbm.data.files.svmlight import SvmlightFile
from abcgbm.errors import TableFileError, quoted_list, require_pyarrow

NamedFile = DelimitedFile | ArrowFile


def open_table(path: Any, reading: Reading) -> NamedFile | SvmlightFile:
    """Open a table file; only the header or the metadata is read."""
    found = checked_path(path)
    format = reading.format_of(found)
    if format == "libsvm":
        return SvmlightFile(found, reading)
    if format in ("csv", "tsv"):
        return DelimitedFile(found, reading)
    if format in ("parquet", "feather"):
        return ArrowFile(found, format)
    raise NotImplementedError(f"the format {format!r} has no reader in open_table")


def find_column(file: NamedFile, given: str, what: str) -> str:
    """Return the column given by name or by position: from 0, or -1 for the last.

    ``what`` is the role of the column in errors. Columns of a pandas index are found by name only.
    """
    if given in file.index_names:
        return given
    return column_called(file.names, given, file.path, what)


def column_called(names: list[str], given: str, path: Path, what: str) -> str:
    """Return the column given by name or by position."""
    if given in names:
        return given
    try:
        return names[int(given)]
    except (ValueError, IndexError):
        raise TableFileError(
            path,
            f"no column {given!r} for the {what}; expected one of {quoted_list(names, 20)}, or a "
            f"position from 0 to {len(names) - 1} (-1 is the last)",
            hint="delimiter" if looks_undivided(names) else None,
        ) from None


class FileSource:
    """Rows of one or several files.

    Parameters
    ----------
    paths : list of Path
        The files, all with the same columns.
    reading : Reading
        How text files are parsed.
    """

    detects_changes = True

    def __init__(self, paths: list[Path], reading: Reading) -> None:
        self._files = [_opened(path, reading) for path in paths]
        self._states = [_state(path) for path in paths]
        self.is_columnar = all(isinstance(file, ArrowFile) for file in self._files)
        for file in self._files[1:]:
            _check_same_columns(file, self._files[0])
        self.schema, self.n_rows = _unified_schema(self._files)
        self.n_bytes: int | None = sum(path.stat().st_size for path in paths)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables, in the same order each time."""
        arrow = require_pyarrow()
        schema = arrow.schema([self.schema.field(name) for name in columns])
        texts = [field.name for field in schema if arrow.types.is_string(field.type)]
        for file, state in zip(self._files, self._states, strict=True):
            _check_unchanged(file.path, state)
            for table in file.batches(columns, texts):
                yield _as_schema(table, schema, file)
            _check_unchanged(file.path, state)


def _opened(path: Path, reading: Reading) -> NamedFile:
    file = open_table(path, reading)
    if isinstance(file, SvmlightFile):
        raise TableFileError(
            path, "LibSVM cannot be read in batches; expected Parquet, Feather or CSV"
        )
    return file


# --------------------------------------------------------------------------------- changed files

FileState = tuple[int, int, int]  # inode, size and time: rewriting a file changes at least one


def _state(path: Path) -> FileState:
    try:
        found = path.stat()
    except FileNotFoundError:
        what = "the file has vanished since it was first read"
        raise TableFileError(path, what) from None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _check_unchanged(path: Path, before: FileState) -> None:
    if _state(path) != before:
        what = "the file has changed since it was first read; expected the same rows each time"
        raise TableFileError(path, what)


# --------------------------------------------------------------------------------- columns and types


def _check_same_columns(file: NamedFile, first: NamedFile) -> None:
    mine, others = set(file.names), set(first.names)
    if others - mine:
        what = f"no column {min(others - mine)!r}, which {first.path} has"
        raise TableFileError(file.path, f"{what}; expected the same columns in all files")
    if mine - others:
        what = f"a column {min(mine - others)!r}, which {first.path} does not have"
        raise TableFileError(file.path, f"{what}; expected the same columns in all files")


def _unified_schema(files: Sequence[NamedFile]) -> tuple[Any, int | None]:
    """Return the types of the columns, and the number of rows if it is known.

    Text files are read completely, because their types depend on all rows.
    """
    names, first = files[0].names, files[0]
    for file in files[1:]:
        if isinstance(file, DelimitedFile) != isinstance(first, DelimitedFile):
            what = f"another kind of file than {first.path}; expected only text files, or none"
            raise TableFileError(file.path, what)
    if isinstance(first, DelimitedFile):
        return _unified_text_schema(files, names)
    schema = first.schema
    for file in files[1:]:
        schema = _widened_schema(schema, file, names)
    counts: list[Any] = [getattr(file, "n_rows", None) for file in files]
    n_rows = None if None in counts else sum(counts)
    return require_pyarrow().schema([schema.field(name) for name in names]), n_rows


def _unified_text_schema(files: Sequence[NamedFile], names: list[str]) -> tuple[Any, int]:
    arrow, n_rows = require_pyarrow(), 0
    schemas_of_files: list[list[Any]] = []
    for file in files:
        schemas_of_files.append([])
        for table in file.batches():
            n_rows += len(table)
            schemas_of_files[-1].append(arrow.schema([table.schema.field(name) for name in names]))
    schema = unified_schema([of for schemas in schemas_of_files for of in schemas])
    for place, field in enumerate(schema):
        if is_text(field.type):
            _warn_of_text(
                field.name, [{of.field(place).type for of in f} for f in schemas_of_files], files
            )
    return schema, n_rows


def _warn_of_text(name: str, found: list[set[Any]], files: Sequence[NamedFile]) -> None:
    """Warn if a column is text in some files, and numeric in all rows of another."""
    is_null = require_pyarrow("pyarrow.types").is_null
    is_text_in = [{*map(is_text, {of for of in types if not is_null(of)})} for types in found]
    texts = [file.path for file, has in zip(files, is_text_in, strict=True) if True in has]
    others = [file.path for file, has in zip(files, is_text_in, strict=True) if has == {False}]
    if texts and others:
        warnings.warn(
            f"column {name!r} is treated as text because of {texts[0]}; in {others[0]} it only holds "
            "numbers. If it should be numeric, add the spelling of missing values to 'missing'",
            UserWarning,
            stacklevel=2,
        )


def _widened_schema(schema: Any, file: Any, names: list[str]) -> Any:
    """Return a schema whose types fit the columns of another file, too."""
    arrow, fields = require_pyarrow(), []
    for name in names:
        now, so_far = file.schema.field(name).type, schema.field(name).type
        of = common_type(so_far, now)
        if of is None:
            what = f"{now}; expected {so_far}, as in the files before"
            raise TableFileError(file.path, what, column=name)
        fields.append(arrow.field(name, of))
    return arrow.schema(fields)


def _as_schema(table: Any, schema: Any, file: NamedFile) -> Any:
    """Cast a batch to the types of the source; numbers of other widths may stay as they are."""
    if isinstance(file, DelimitedFile):
        return table.select(schema.names).cast(schema, safe=False)
    return as_types(table.select(schema.names), schema)
