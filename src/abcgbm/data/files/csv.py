"""CSV and TSV files: rows of cells as Arrow tables, with types that the whole file settles.

A column holds numbers if every cell of it is one, truth values if every cell is "true" or "false",
and text otherwise; a missing cell is any of them. So where a file is cut into blocks plays no part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NoReturn

from abcgbm.data.files.column_types import (
    columns_of_type,
    hexadecimal,
    is_number,
    is_text,
    misread,
    reads_as_number,
    united,
)
from abcgbm.data.files.csv_blocks import (
    BLOCK_BYTES,
    Block,
    check_is_text,
    check_utf8,
    newline_of,
    python_rows,
    text_blocks,
)
from abcgbm.data.files.formats import (
    MISSING,
    Reading,
    check_names,
    looks_undivided,
    open_bytes,
    raise_unreadable,
)
from abcgbm.errors import TableFileError, require_pyarrow

_TRUE, _FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]
_HEAD_BYTES = 2**16  # of the file, to see what ends its lines


class DelimitedFile:
    """A file of rows of cells.

    Parameters
    ----------
    path : Path
        The file.
    reading : Reading
        How it is to be understood.
    block_bytes : int
        How much of it is in memory at a time.

    Attributes
    ----------
    names : list of str
        The columns: as the header says or, without one, c0, c1 and so on. So is called, too, a
        column whose name is empty.
    index_names : list of str
        None: a text file has no index.
    has_header : bool
        Whether the file itself has names.
    missing : set of str
        What stands for a missing value.
    """

    def __init__(self, path: Path, reading: Reading, block_bytes: int = BLOCK_BYTES) -> None:
        self.path = path
        self._reading = reading
        self._delimiter = reading.delimiter_of(path)
        self._block_bytes = block_bytes
        self.index_names: list[str] = []
        self.missing = {*MISSING, *reading.missing}
        self.has_header = reading.header is not False
        first = self._first_row()
        if self.has_header:
            self._check_header(first)
            self.names = [name or f"c{place}" for place, name in enumerate(first)]
        else:
            self.names = [f"c{place}" for place in range(len(first))]
        check_names(self.names, path, line=1)

    def read(
        self,
        columns: Collection[str] | None = None,
        as_text: Collection[str] = (),
        as_numbers: Collection[str] = (),
    ) -> Any:
        """Return some columns, or all, as an Arrow table whose types the whole file settles.

        Columns ``as_text`` are text and those ``as_numbers`` numbers in any case.
        """
        while True:
            tables = [*self.parts(columns, as_text, as_numbers)]
            if not sum(map(len, tables)):
                raise TableFileError(self.path, "no rows below the header; expected a table")
            mixed = misread(tables).difference(as_text)
            if not mixed:
                return united(tables)
            as_text = {*as_text, *mixed}  # read again: numbers as they are spelled

    def parts(
        self,
        columns: Collection[str] | None = None,
        as_text: Collection[str] = (),
        as_numbers: Collection[str] = (),
    ) -> Iterator[Any]:
        """Yield some columns as Arrow tables, a block at a time: one at least, perhaps without rows.

        Types are those of the block: int64, double, bool, string, or null where all is missing. But
        columns ``as_text`` are text, and a cell of a column ``as_numbers`` that is neither a number
        nor a truth value is an error.
        """
        yield from (table for table, _ in self.parts_with((), columns, as_text, as_numbers))

    def parts_with(
        self,
        written: Collection[str],
        columns: Collection[str] | None = None,
        as_text: Collection[str] = (),
        as_numbers: Collection[str] = (),
    ) -> Iterator[tuple[Any, Any]]:
        """Yield what ``parts`` yields and, beside it, columns as they are written in the file.

        These are text, even where it stands for a missing value.
        """
        asked = None if columns is None else {*columns}
        wanted = [name for name in self.names if asked is None or name in asked]
        texts = {*as_text}.intersection(wanted)
        for block in self._blocks():
            table = self._typed(block, wanted, texts)
            for name in as_numbers:
                if not is_number(table.schema.field(name).type):
                    self._raise_not_a_number(block, name)
            yield table, self._as_written(block, [*written])

    # ------------------------------------------------------------------------------------- blocks

    def _blocks(self) -> Iterator[Block]:
        """Yield the blocks of rows below the header; an empty one if there are none."""
        is_header_next, n_blocks = self.has_header, 0
        for block in self._raw_blocks():
            if not block.has_rows:
                continue
            below = block.without_first_row(self._delimiter) if is_header_next else block
            is_header_next = False
            if below.has_rows:
                n_blocks += 1
                yield below
        if not n_blocks:
            yield Block(1, b"")

    def _raw_blocks(self) -> Iterator[Block]:
        try:
            with open_bytes(self.path, self._reading.encoding) as stream:
                newline = newline_of(stream.read(_HEAD_BYTES))
            with open_bytes(self.path, self._reading.encoding) as stream:
                yield from text_blocks(
                    stream,
                    self.path,
                    self._block_bytes,
                    delimiter=self._delimiter,
                    newline=newline,
                )
        except UnicodeDecodeError as error:
            what = f"not {self._reading.encoding}: {error}; name the file's own encoding"
            raise TableFileError(self.path, what, hint="encoding") from error
        except OSError as error:
            raise_unreadable(self.path, error)

    def _typed(self, block: Block, wanted: list[str], texts: set[str]) -> Any:
        """Parse a block; what no number or truth value is becomes text, here and in later blocks."""
        table = self._parsed(block, wanted, texts)
        others = columns_of_type(table.schema, lambda of: not is_number(of) and not is_text(of))
        if b"0x" in block.data or b"0X" in block.data:
            others += self._hexadecimal(block, table.schema)
        if not others:
            return table
        texts.update(others)
        return self._parsed(block, wanted, texts)

    def _hexadecimal(self, block: Block, schema: Any) -> list[str]:
        """Return the columns that pyarrow takes for integers and nobody else for numbers."""
        integers = columns_of_type(schema, require_pyarrow("pyarrow.types").is_integer)
        return hexadecimal(self._parsed(block, integers, integers)) if integers else []

    def _parsed(self, block: Block, wanted: list[str], texts: Collection[str]) -> Any:
        convert = require_pyarrow("pyarrow.csv").ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(texts, require_pyarrow().string()),
            null_values=[*self.missing],
            strings_can_be_null=True,
            true_values=_TRUE,
            false_values=_FALSE,
            decimal_point=self._reading.decimal,
        )
        return self._converted(block, wanted, convert)

    def _as_written(self, block: Block, wanted: list[str]) -> Any:
        convert = require_pyarrow("pyarrow.csv").ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(wanted, require_pyarrow().string()),
        )
        return self._converted(block, wanted, convert)

    def _converted(self, block: Block, wanted: list[str], convert: Any) -> Any:
        arrow, reader = require_pyarrow(), require_pyarrow("pyarrow.csv")
        if not wanted:
            return arrow.table({})
        if not block.data:
            types = convert.column_types
            fields = [arrow.field(name, types.get(name, arrow.null())) for name in wanted]
            return arrow.schema(fields).empty_table()
        try:
            return reader.read_csv(
                arrow.BufferReader(block.data),
                reader.ReadOptions(column_names=self.names, block_size=len(block.data) + 1),
                reader.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=b'"' in block.data
                ),
                convert,
            )
        except arrow.ArrowInvalid as error:
            self._raise_located(block, error)

    # ------------------------------------------------------------------------------------- header

    def _first_row(self) -> list[str]:
        for block in self._raw_blocks():
            for lines, row in python_rows(block, self._delimiter, self.path):
                check_utf8(block, self.path, lines.start, row)
                self._check_no_nul(block, lines.start, row)
                return row
        raise TableFileError(self.path, "the file is empty; expected a table")

    def _check_no_nul(self, block: Block, line: int, row: list[str]) -> None:
        if any("\0" in cell for cell in row):
            check_is_text(block, self.path)
            what = "bytes that are 0, as in UTF-16; expected text: name the file's own encoding"
            raise TableFileError(self.path, what, line, hint="encoding")

    def _check_header(self, first: list[str]) -> None:
        """Refuse to take a row for names, unless the user says so."""
        decimal = self._reading.decimal
        numbers = [
            cell for cell in first if cell not in self.missing and reads_as_number(cell, decimal)
        ]
        if numbers and self._reading.header is None:
            raise TableFileError(
                self.path,
                f"looks like a row, not like the names of columns, since {numbers[0]!r} is a "
                "number; say that there is no header, or that there is one",
                line=1,
                hint="header",
            )

    # ------------------------------------------------------------------------------- what is wrong

    def _raise_located(self, block: Block, error: Exception) -> NoReturn:
        """Look for the row that pyarrow could not read, slowly."""
        for lines, row in python_rows(block, self._delimiter, self.path):
            if len(row) != len(self.names):
                what = f"{len(row)} cells; expected {len(self.names)}, as in the first line"
                hint = "delimiter" if looks_undivided(self.names) else None
                raise TableFileError(self.path, what, lines.start, hint=hint) from error
            check_utf8(block, self.path, lines.start, row, self.names)
        raise TableFileError(self.path, str(error), block.first_line) from error

    def _raise_not_a_number(self, block: Block, name: str) -> NoReturn:
        place, allowed = self.names.index(name), {*_TRUE, *_FALSE, *self.missing}
        for lines, row in python_rows(block, self._delimiter, self.path):
            check_utf8(block, self.path, lines.start, row, self.names)
            cell = row[place]
            if cell not in allowed and not reads_as_number(cell, self._reading.decimal):
                what = f"{cell!r}; expected a number, as in training"
                raise TableFileError(self.path, what, lines.start, name, _hint_for(cell))
        what = "truth values beside numbers; expected numbers, as in training"
        raise TableFileError(self.path, what, block.first_line, name)


def _hint_for(cell: str) -> str | None:
    """Return how a cell that is no number might be read after all."""
    if reads_as_number(cell) or reads_as_number(cell, ","):
        return "decimal"
    return None if any(character.isalnum() for character in cell) else "missing"
