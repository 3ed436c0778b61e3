"""Rows of a text file as Python reads them: slowly, to say what is wrong and where."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from abcgbm.data.files.errors import TableFileError
from abcgbm.data.files.text_blocks import Block

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
        what = f"{error}: is there a quote that is never closed?"
        raise TableFileError(path, what, start, hint="delimiter") from error


def check_utf8(path: Path, line: int, row: Sequence[str], names: Sequence[str] = ()) -> None:
    """Refuse a row with bytes that are not UTF-8; columns without a name are called by number."""
    for place, cell in enumerate(row):
        odd = [] if cell.isascii() else [i for i, c in enumerate(cell) if "\udc80" <= c <= "\udcff"]
        if odd:
            around = cell[max(0, odd[0] - _MOST_AROUND) : odd[0] + _MOST_AROUND]
            shown = around.encode("utf-8", "surrogateescape")
            what = f"{shown!r} is not UTF-8; name the file's own encoding, such as latin-1"
            column = names[place] if place < len(names) else str(place)
            raise TableFileError(path, what, line, column, "encoding")
