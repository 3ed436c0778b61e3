"""Blocks of whole rows of a delimited text file, and the location of malformed rows."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from abcgbm.errors import TableFileError

BLOCK_BYTES = 2**24
_MAX_BYTES_OF_A_ROW = 2**28
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_QUOTE = b'"'
_ENDS = b"\r\n"
_HEAD_BYTES = 2**16  # of a block, to detect binary data
_MAX_CONTROL = 0.01  # fraction of control characters in text
_CONTROL = bytes({*range(32)} - {*b"\t\n\v\f\r\x1b"})
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_MAX_CONTEXT = 20  # characters on each side of an invalid one in an error


class UnclosedQuoteError(ValueError):
    """A quoted cell without a closing quote.

    Parameters
    ----------
    place : int
        Position of the opening quote.
    """

    def __init__(self, place: int) -> None:
        super().__init__(f"the quote at byte {place} is never closed")
        self.place = place


class Block(NamedTuple):
    """Some complete rows of a text file.

    Attributes
    ----------
    first_line : int
        Number of its first line in the file, counted from 1.
    data : bytes
        The rows.
    """

    first_line: int
    data: bytes

    def without_first_row(self, delimiter: str) -> Block:
        """Return the block without its first non-empty row and all before it."""
        start = len(self.data) - len(self.data.lstrip(_ENDS))
        end = end_of_row(self.data, start, delimiter)
        n_lines = self.data.count(b"\n", 0, end) or self.data.count(b"\r", 0, end)
        return Block(self.first_line + n_lines, self.data[end:])

    @property
    def has_rows(self) -> bool:
        """Whether there are non-empty lines; a row of empty cells is not empty."""
        return bool(self.data.strip(_ENDS))


def newline_of(head: bytes) -> bytes:
    """Return the line end of a file with this head; a lone carriage return in files of old Macs."""
    return b"\r" if b"\n" not in head and b"\r" in head[:-1] else b"\n"


def text_blocks(
    stream: IO[bytes],
    path: Path,
    size: int = BLOCK_BYTES,
    *,
    delimiter: str | None = ",",
    newline: bytes = b"\n",
) -> Iterator[Block]:
    """Yield a text file in blocks of about ``size`` bytes; quoted cells may contain newlines.

    At most two blocks are in memory. Without a delimiter there are no cells, and quotes have no
    meaning. Errors name ``path``.
    """
    line, rest, read = 1, b"", stream.read(max(size, 3)).removeprefix(_BYTE_ORDER_MARK)
    try:
        while read:
            rest += read
            end = end_of_rows(rest, newline, delimiter)
            if end == 0 and len(rest) > _MAX_BYTES_OF_A_ROW:
                check_quotes(rest, delimiter)
                what = f"a row of more than {_MAX_BYTES_OF_A_ROW >> 20} MB; expected shorter rows"
                raise TableFileError(path, what, line)
            if end:
                yield Block(line, rest[:end])
                line, rest = line + rest.count(newline, 0, end), rest[end:]
            read = stream.read(size)
        check_quotes(rest, delimiter)
    except UnclosedQuoteError as error:
        what = "a quoted cell is never closed; expected a quote at its end"
        line += rest.count(newline, 0, error.place)
        raise TableFileError(path, what, line, hint="delimiter") from None
    if rest.strip(_ENDS):
        yield Block(line, rest)


# ----------------------------------------------------------------------------------- ends of rows


def end_of_row(data: bytes, start: int, delimiter: str) -> int:
    """Return the end of the row that begins at ``start``."""
    for found in _row_pattern(delimiter).finditer(data, start):
        if not found.group().startswith(_QUOTE):
            return found.end()
    return len(data)


def end_of_rows(data: bytes, newline: bytes, delimiter: str | None) -> int:
    """Return the end of the last complete row in data that begin with a row; 0 if there is none.

    Raises UnclosedQuoteError as `check_quotes` does, for quotes before the end.
    """
    end = data.rfind(newline) + 1
    if delimiter is None or not end or _QUOTE not in data:
        return end
    if not _is_well_quoted(data, delimiter):
        return _end_of_rows_by_cell(data, delimiter)
    n_quotes = data.count(_QUOTE, 0, end)
    while end and n_quotes % 2:
        earlier = data.rfind(newline, 0, end - 1) + 1
        n_quotes -= data.count(_QUOTE, earlier, end)
        end = earlier
    return end


def _is_well_quoted(data: bytes, delimiter: str) -> bool:
    """Whether quotes open and close cells in turn, so that counting them suffices.

    Each opening quote must follow a delimiter, a line end or a quote (the first of a doubled one),
    and each closing quote must precede one of these.
    """
    characters = np.frombuffer(data, np.uint8)
    places = np.flatnonzero(characters == ord(_QUOTE))
    is_boundary = np.zeros(256, dtype=bool)
    is_boundary[[*f'\r\n"{delimiter}'.encode()]] = True
    opening, closing = places[0::2], places[1::2]
    opens_cell = is_boundary[characters[np.maximum(opening, 1) - 1]] | (opening == 0)
    closes_cell = is_boundary[characters[np.minimum(closing + 1, len(data) - 1)]]
    return bool(opens_cell.all() and closes_cell.all())


def _end_of_rows_by_cell(data: bytes, delimiter: str) -> int:
    """Return the end of the last complete row, found by a scan of every cell."""
    end = 0
    for found in _row_pattern(delimiter).finditer(data):
        if not found.group().startswith(_QUOTE):
            end = found.end()
        else:
            _check_end_of_cell(data, found, delimiter)
    return end


def check_quotes(data: bytes, delimiter: str | None) -> None:
    """Raise UnclosedQuoteError if a quoted cell in the last rows of a file is not closed."""
    if delimiter is None or _QUOTE not in data:
        return
    for found in _row_pattern(delimiter).finditer(data):
        if found.group().count(_QUOTE) % 2:
            raise UnclosedQuoteError(found.start())
        _check_end_of_cell(data, found, delimiter)


def _check_end_of_cell(data: bytes, found: re.Match[bytes], delimiter: str) -> None:
    """Raise UnclosedQuoteError if the closing quote of a multi-line cell is followed by text.

    It is then the opening quote of a later cell, as in ``"a`` above ``"b"``.
    """
    cell, after = found.group(), data[found.end() : found.end() + 1]
    is_over = after in (b"", b"\n", b"\r", delimiter.encode())
    if cell.startswith(_QUOTE) and not is_over and (b"\n" in cell or b"\r" in cell):
        raise UnclosedQuoteError(found.start())


@cache
def _row_pattern(delimiter: str) -> re.Pattern[bytes]:
    """Return a pattern for quoted cells, closed or not, and for line ends between them."""
    begins = rf"(?:\A|(?<=[{re.escape(delimiter)}\r\n]))"
    return re.compile(rf'{begins}"[^"]*(?:""[^"]*)*(?:"|\Z)|\r\n|\n|\r'.encode())


# --------------------------------------------------------------------------------- malformed rows


def python_rows(block: Block, delimiter: str, path: Path) -> Iterator[tuple[range, list[str]]]:
    """Yield rows with their line numbers, parsed by Python; invalid UTF-8 is escaped."""
    text = io.StringIO(block.data.decode("utf-8", "surrogateescape"), newline="")
    reader, start = csv.reader(text, delimiter=delimiter), block.first_line
    try:
        for row in reader:
            stop = block.first_line + reader.line_num
            if row:
                yield range(start, stop), row
            start = stop
    except csv.Error as error:
        what = f"a cell of more than {csv.field_size_limit():,} characters; expected shorter ones"
        raise TableFileError(path, what, start, hint="delimiter") from error


def check_utf8(
    block: Block, path: Path, line: int, row: Sequence[str], names: Sequence[str] = ()
) -> None:
    """Raise an error if a row is not UTF-8; columns beyond ``names`` are called by number."""
    for place, cell in enumerate(row):
        invalid = (
            [] if cell.isascii() else [i for i, c in enumerate(cell) if "\udc80" <= c <= "\udcff"]
        )
        if invalid:
            check_is_text(block, path)
            context = cell[max(0, invalid[0] - _MAX_CONTEXT) : invalid[0] + _MAX_CONTEXT]
            shown = context.encode("utf-8", "surrogateescape")
            what = f"{shown!r} is not UTF-8; set the encoding of the file, such as latin-1"
            column = names[place] if place < len(names) else str(place)
            raise TableFileError(path, what, line, column, "encoding")


def check_is_text(block: Block, path: Path) -> None:
    """Raise an error for binary data, for which no encoding would help.

    UTF-16 counts as text: it begins with a byte order mark, or has zeros at every second byte and
    no other control characters.
    """
    head = block.data[:_HEAD_BYTES]
    n_control = len(head) - len(head.translate(None, _CONTROL))
    is_utf16 = head.startswith(_UTF16_MARKS) or n_control in (
        head[0::2].count(0),
        head[1::2].count(0),
    )
    if n_control > _MAX_CONTROL * len(head) and not is_utf16:
        what = "binary data, not text; expected delimited rows; set the format of the file"
        raise TableFileError(path, what, hint="format")
