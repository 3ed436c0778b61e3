"""What is wrong with a table file, and where."""

from __future__ import annotations

import importlib
from os import PathLike, fspath
from typing import Any


class TableFileError(ValueError):
    """A file that cannot be read as a table: the message names the file, and where it can the line.

    Parameters
    ----------
    path : path
        The file.
    what : str
        What is wrong, and what was expected.
    line : int or None
        Its line, counted from 1.
    column : str or None
        Its column.
    hint : str or None
        The field of `Reading` that may help: whoever has a name of its own for it can tell.

    Attributes
    ----------
    hint : str or None
        The same.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        what: str,
        line: int | None = None,
        column: str | None = None,
        hint: str | None = None,
    ) -> None:
        where = fspath(path)
        where += "" if line is None else f", line {line}"
        where += "" if column is None else f", column {column!r}"
        super().__init__(f"{where}: {what}")
        self.hint = hint


def require_pyarrow(module: str = "pyarrow") -> Any:
    """Return pyarrow, or a module of it; the error names the extra that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError('files are read with pyarrow: pip install "abcgbm[cli]"') from error
