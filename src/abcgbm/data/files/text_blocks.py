"""A text file in pieces of whole rows, each with the number of its first line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from abcgbm.data.files.errors import TableFileError

BLOCK_BYTES = 2**24
_MOST_BYTES_OF_A_ROW = 2**28
_QUOTE, _NEWLINE = b'"', b"\n"
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

    def without_lines(self, n_lines: int) -> Block:
        """Return the block without its first lines."""
        start = 0
        for _ in range(n_lines):
            start = self.data.find(_NEWLINE, start) + 1 or len(self.data)
        return Block(self.first_line + n_lines, self.data[start:])


def text_blocks(
    stream: IO[bytes], path: Path, size: int = BLOCK_BYTES, *, has_quotes: bool = True
) -> Iterator[Block]:
    """Yield a text file in blocks of about ``size`` bytes; a quoted cell may hold newlines.

    Memory is that of two blocks, whatever the file's size. ``path`` is what errors speak of.
    """
    line, rest, read = 1, b"", stream.read(size).removeprefix(_BYTE_ORDER_MARK)
    while read:
        rest += read
        end = _end_of_rows(rest, has_quotes=has_quotes)
        if end == 0 and len(rest) > _MOST_BYTES_OF_A_ROW:
            what = f"more than {_MOST_BYTES_OF_A_ROW >> 20} MB without the end of a row"
            raise TableFileError(path, f"{what}: is there a quote that is never closed?", line)
        if end:
            yield Block(line, rest[:end])
            line, rest = line + rest.count(_NEWLINE, 0, end), rest[end:]
        read = stream.read(size)
    if rest and not rest.isspace():
        yield Block(line, rest)


def _end_of_rows(data: bytes, *, has_quotes: bool) -> int:
    """Return where the last whole row ends: at a newline with an even number of quotes before it."""
    end = data.rfind(_NEWLINE) + 1
    if not has_quotes:
        return end
    n_quotes = data.count(_QUOTE, 0, end)
    while end and n_quotes % 2:
        earlier = data.rfind(_NEWLINE, 0, end - 1) + 1
        n_quotes -= data.count(_QUOTE, earlier, end)
        end = earlier
    return end
