"""A text file in pieces of whole rows, each with the number of its first line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from abcgbm.data.files.errors import TableFileError
from abcgbm.data.files.row_ends import UnclosedQuoteError, check_quotes, end_of_row, end_of_rows

BLOCK_BYTES = 2**24
_MOST_BYTES_OF_A_ROW = 2**28
_ENDS = b"\r\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Block(NamedTuple):
    """Some whole rows of a text file.

    Attributes
    ----------
    first_line : int
        The line of the file, counted from 1, that its first line is.
    data : bytes
        The rows.
    """

    first_line: int
    data: bytes

    def without_first_row(self, delimiter: str) -> Block:
        """Return the block without its first row that is not empty, and what is before it."""
        start = len(self.data) - len(self.data.lstrip(_ENDS))
        end = end_of_row(self.data, start, delimiter)
        return Block(self.first_line + _n_lines(self.data[:end]), self.data[end:])

    @property
    def has_rows(self) -> bool:
        """Whether there is anything but empty lines: cells that are all empty are a row."""
        return bool(self.data.strip(_ENDS))


def _n_lines(data: bytes) -> int:
    """Return the number of ends of lines."""
    return data.count(b"\n") or data.count(b"\r")


def newline_of(head: bytes) -> bytes:
    """Return what ends a line, of a file that begins so: on old Macs a carriage return alone."""
    return b"\r" if b"\n" not in head and b"\r" in head[:-1] else b"\n"


def text_blocks(
    stream: IO[bytes],
    path: Path,
    size: int = BLOCK_BYTES,
    *,
    delimiter: str | None = ",",
    newline: bytes = b"\n",
) -> Iterator[Block]:
    """Yield a text file in blocks of about ``size`` bytes; a quoted cell may hold newlines.

    Memory is that of two blocks, whatever the file's size. Errors name ``path``; with no delimiter
    there are no cells, and quotes mean nothing. A quote that is never closed is an error.
    """
    line, rest, read = 1, b"", stream.read(max(size, 3)).removeprefix(_BYTE_ORDER_MARK)
    try:
        while read:
            rest += read
            end = end_of_rows(rest, newline, delimiter)
            if end == 0 and len(rest) > _MOST_BYTES_OF_A_ROW:
                check_quotes(rest, delimiter)
                what = f"more than {_MOST_BYTES_OF_A_ROW >> 20} MB without the end of a row"
                raise TableFileError(path, what, line)
            if end:
                yield Block(line, rest[:end])
                line, rest = line + rest.count(newline, 0, end), rest[end:]
            read = stream.read(size)
        check_quotes(rest, delimiter)
    except UnclosedQuoteError as error:
        what = "a quote opens a cell and is never closed; expected a second one at the cell's end"
        line += rest.count(newline, 0, error.place)
        raise TableFileError(path, what, line, hint="delimiter") from None
    if rest.strip(_ENDS):
        yield Block(line, rest)
