"""A file of any format as a table with named columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from abcgbm.data.files.arrow_files import ArrowFile
from abcgbm.data.files.delimited import DelimitedFile
from abcgbm.data.files.errors import TableFileError
from abcgbm.data.files.formats import Reading, checked_path, looks_undivided, shortened
from abcgbm.data.files.svmlight import SvmlightFile

NamedFile = DelimitedFile | ArrowFile


def open_table(path: Any, reading: Reading) -> NamedFile | SvmlightFile:
    """Open a table file: look at its head, and read no more."""
    found = checked_path(path)
    format = reading.format_of(found)
    if format == "libsvm":
        return SvmlightFile(found, reading)
    if format in ("csv", "tsv"):
        return DelimitedFile(found, reading)
    return ArrowFile(found, format)


def find_column(file: NamedFile, given: str, what: str) -> str:
    """Return the column that a user means, by its name or by its position: 0, or -1 for the last.

    ``what`` is what errors call it. An index that pandas stored is found by name alone.
    """
    if given in file.index_names:
        return given
    return column_called(file.names, given, file.path, what)


def column_called(names: list[str], given: str, path: Path, what: str) -> str:
    """Return the one of some columns that a user means, by name or by position."""
    if given in names:
        return given
    try:
        return names[int(given)]
    except (ValueError, IndexError):
        raise TableFileError(
            path,
            f"no column {given!r} to be the {what}; expected one of {shortened(names, 20)}, or a "
            f"position from 0 to {len(names) - 1} (-1 is the last)",
            hint="delimiter" if looks_undivided(names) else None,
        ) from None
