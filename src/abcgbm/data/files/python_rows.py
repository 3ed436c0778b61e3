"""Rows of a text file as Python reads them: slowly, to say what is wrong and where."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from abcgbm.data.files.errors import TableFileError
from abcgbm.data.files.text_blocks import Block

_HEAD_BYTES = 2**16  # of a block, to see whether it is text
_MOST_CONTROL = 0.01  # share of control characters in text
_CONTROL = bytes({*range(32)} - {*b"\t\n\v\f\r\x1b"})
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_MOST_AROUND = 20  # characters each side of one that is wrong, in an error


def python_rows(block: Block, delimiter: str, path: Path) -> Iterator[tuple[range, list[str]]]:
    """Yield rows with their lines; bytes that are not UTF-8 are escaped."""
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
    """Refuse a row with bytes that are not UTF-8; columns without a name are called by number."""
    for place, cell in enumerate(row):
        odd = [] if cell.isascii() else [i for i, c in enumerate(cell) if "\udc80" <= c <= "\udcff"]
        if odd:
            check_is_text(block, path)
            around = cell[max(0, odd[0] - _MOST_AROUND) : odd[0] + _MOST_AROUND]
            shown = around.encode("utf-8", "surrogateescape")
            what = f"{shown!r} is not UTF-8; name the file's own encoding, such as latin-1"
            column = names[place] if place < len(names) else str(place)
            raise TableFileError(path, what, line, column, "encoding")


def check_is_text(block: Block, path: Path) -> None:
    """Refuse binary data, for which no encoding is right.

    UTF-16 is text: it has a mark in front, or zeros at every second byte and no other control
    characters.
    """
    head = block.data[:_HEAD_BYTES]
    n_control = len(head) - len(head.translate(None, _CONTROL))
    is_utf16 = head.startswith(_UTF16_MARKS) or n_control in (
        head[0::2].count(0),
        head[1::2].count(0),
    )
    if n_control > _MOST_CONTROL * len(head) and not is_utf16:
        what = "binary data, not text; expected rows of cells, or the format of the file"
        raise TableFileError(path, what, hint="format")
