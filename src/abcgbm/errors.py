"""Exceptions of the package, and values as error messages show them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any


def shortened(values: Sequence[Any], most: int = 10) -> str:
    """Return the first of some values as text, and how many more there are."""
    more = f" and {len(values) - most:,} more" if len(values) > most else ""
    return ", ".join(map(repr, values[:most])) + more


_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))


def shown_bytes(n_bytes: int) -> str:
    """Return a size as people read it."""
    size, unit = next((s, u) for s, u in _UNITS if n_bytes >= s or u == "KB")
    return f"{n_bytes / size:.1f} {unit}"


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


class ModelFileError(ValueError):
    """A model file that cannot be read: damaged, foreign, of a newer format, or made to mislead."""


@contextmanager
def as_model_file_errors(where: str, *kinds: type[Exception]) -> Iterator[None]:
    """Raise errors of some kinds as ``ModelFileError``, and say where in the file they came up."""
    try:
        yield
    except ModelFileError:
        raise
    except kinds as error:
        raise ModelFileError(f"{where}: {error}") from error
