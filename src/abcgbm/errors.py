"""Exceptions of the package, and helpers that format values for error messages."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any

_MAX_STRING = 250  # paths and names are useless without their end, so they are rarely cut


def shorten(value: Any, max_chars: int = 60) -> str:
    """Return the repr of a value on one line, cut to ``max_chars``; strings to 250."""
    text = repr(value)
    if isinstance(value, str):
        max_chars = _MAX_STRING
    else:
        text = " ".join(text.split())
    return text if len(text) <= max_chars else text[:max_chars] + "..."


def quoted_list(values: Sequence[Any], max_items: int = 10) -> str:
    """Return the reprs of the first values, separated by commas, and how many more there are."""
    n_more = len(values) - max_items
    return ", ".join(map(repr, values[:max_items])) + (f" and {n_more:,} more" * (n_more > 0))


_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))


def format_bytes(n_bytes: int) -> str:
    """Return a size with a unit, such as ``1.5 GB``."""
    size, unit = next((s, u) for s, u in _UNITS if n_bytes >= s or u == "KB")
    return f"{n_bytes / size:.1f} {unit}"


class TableFileError(ValueError):
    """A file that cannot be read as a table. The message names the file and, if known, the line.

    Parameters
    ----------
    path : path
        The file.
    what : str
        What is wrong, and what was expected.
    line : int or None
        Line number, counted from 1.
    column : str or None
        Name of the column.
    hint : str or None
        Field of `Reading` that may help. The command line maps it to its own option.

    Attributes
    ----------
    hint : str or None
        As given.
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
    """Import and return pyarrow, or one of its modules."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            'reading table files requires pyarrow: pip install "abcgbm[cli]"'
        ) from error


class ModelFileError(ValueError):
    """A model file that cannot be read: damaged, malicious, of a newer or of another format."""


@contextmanager
def as_model_file_errors(where: str, *kinds: type[Exception]) -> Iterator[None]:
    """Raise exceptions of the given types as ``ModelFileError`` that names a place in the file."""
    try:
        yield
    except ModelFileError:
        raise
    except kinds as error:
        raise ModelFileError(f"{where}: {error}") from error
