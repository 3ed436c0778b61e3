"""Where rows end: at a newline that is not in a quoted cell.

A quote opens a cell only where the cell begins, and is what it is elsewhere, as in 5" or 7": so it is
read by pyarrow, and by Python's csv.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

_QUOTE = b'"'


class UnclosedQuoteError(ValueError):
    """A quoted cell that has no end.

    Parameters
    ----------
    place : int
        The byte at which its quote opens.
    """

    def __init__(self, place: int) -> None:
        super().__init__(f"the quote at byte {place} is never closed")
        self.place = place


def end_of_row(data: bytes, start: int, delimiter: str) -> int:
    """Return where the row ends that begins at ``start``."""
    for found in _marks(delimiter).finditer(data, start):
        if not found.group().startswith(_QUOTE):
            return found.end()
    return len(data)


def end_of_rows(data: bytes, newline: bytes, delimiter: str | None) -> int:
    """Return where the last whole row ends, of data that begin with a row; 0 if there is none.

    Raise UnclosedQuoteError as ``check_quotes`` does, for quotes that are not at the end.
    """
    end = data.rfind(newline) + 1
    if delimiter is None or not end or _QUOTE not in data:
        return end
    if not _is_well_quoted(data, delimiter):
        return _end_of_odd_rows(data, delimiter)
    n_quotes = data.count(_QUOTE, 0, end)
    while end and n_quotes % 2:
        earlier = data.rfind(newline, 0, end - 1) + 1
        n_quotes -= data.count(_QUOTE, earlier, end)
        end = earlier
    return end


def _is_well_quoted(data: bytes, delimiter: str) -> bool:
    """Whether quotes open and close cells in turn, so that it is enough to count them.

    Then each that opens is behind a delimiter, an end of a row or (of a doubled one the second) a
    quote, and each that closes is before one of these.
    """
    characters = np.frombuffer(data, np.uint8)
    places = np.flatnonzero(characters == ord(_QUOTE))
    is_around = np.zeros(256, dtype=bool)
    is_around[[*f'\r\n"{delimiter}'.encode()]] = True
    opening, closing = places[0::2], places[1::2]
    is_behind = is_around[characters[np.maximum(opening, 1) - 1]] | (opening == 0)
    is_before = is_around[characters[np.minimum(closing + 1, len(data) - 1)]]
    return bool(is_behind.all() and is_before.all())


def check_quotes(data: bytes, delimiter: str | None) -> None:
    """Raise UnclosedQuoteError if a quoted cell has no end; the data are the last rows of a file."""
    if delimiter is None or _QUOTE not in data:
        return
    for found in _marks(delimiter).finditer(data):
        if found.group().count(_QUOTE) % 2:
            raise UnclosedQuoteError(found.start())
        _check_end_of_cell(data, found, delimiter)


def _end_of_odd_rows(data: bytes, delimiter: str) -> int:
    """Return where the last whole row ends, looking at one cell after the other."""
    end = 0
    for found in _marks(delimiter).finditer(data):
        if not found.group().startswith(_QUOTE):
            end = found.end()
        else:
            _check_end_of_cell(data, found, delimiter)
    return end


def _check_end_of_cell(data: bytes, found: re.Match[bytes], delimiter: str) -> None:
    """Refuse a cell of several lines whose last quote is followed by text.

    There the quote of a later cell has closed one that was never closed, as in ``"a`` above ``"b"``.
    """
    cell, after = found.group(), data[found.end() : found.end() + 1]
    is_over = after in (b"", b"\n", b"\r", delimiter.encode())
    if cell.startswith(_QUOTE) and not is_over and (b"\n" in cell or b"\r" in cell):
        raise UnclosedQuoteError(found.start())


@cache
def _marks(delimiter: str) -> re.Pattern[bytes]:
    """Return what finds quoted cells, perhaps not closed, and the ends of rows between them."""
    begins = rf"(?:\A|(?<=[{re.escape(delimiter)}\r\n]))"
    return re.compile(rf'{begins}"[^"]*(?:""[^"]*)*(?:"|\Z)|\r\n|\n|\r'.encode())
