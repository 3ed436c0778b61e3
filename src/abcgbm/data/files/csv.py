"""CSV and TSV files as Arrow tables, with column types that depend on the whole file.

A column is numeric if every cell is a number, boolean if every cell is "true" or "false", and text
otherwise; missing cells fit all three. Types thus do not depend on how a file is divided into
blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NoReturn

from abcgbm.data.files.column_types import (
    columns_of_type,
    concat_unified,
    hexadecimal_columns,
    inconsistent_columns,
    is_number,
    is_text,
    reads_as_number,
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
_HEAD_BYTES = 2**16  # of the file, to detect its line ends


class DelimitedFile:
    """A text file of delimited cells.

    Parameters
    ----------
    path : Path
        The file.
    reading : Reading
        How to parse it.
    block_bytes : int
        Size of the blocks in which it is read.

    Attributes
    ----------
    names : list of str
        Column names of the header. Columns without a name are called c0, c1, ... by position.
    index_names : list of str
        Always empty: text files have no index.
    has_header : bool
        Whether the file has column names.
    missing : set of str
        Spellings of a missing value.
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
        """Return some or all columns as an Arrow table.

        Columns in ``as_text`` are text, and those in ``as_numbers`` must be numeric.
        """
        while True:
            tables = [*self.batches(columns, as_text, as_numbers)]
            if not sum(map(len, tables)):
                raise TableFileError(self.path, "no rows below the header; expected a table")
            mixed = inconsistent_columns(tables).difference(as_text)
            if not mixed:
                return concat_unified(tables)
            as_text = {*as_text, *mixed}  # read again, to get these numbers as spelled in the file

    def batches(
        self,
        columns: Collection[str] | None = None,
        as_text: Collection[str] = (),
        as_numbers: Collection[str] = (),
    ) -> Iterator[Any]:
        """Yield some or all columns as Arrow tables, one block at a time.

        There is at least one table, which may have no rows. Types are those of the block: int64,
        double, bool, string, or null if all cells are missing. Columns in ``as_text`` are text, and
        a cell of a column in ``as_numbers`` that is neither a number nor a boolean is an error.
        """
        yield from (table for table, _ in self.batches_with_text((), columns, as_text, as_numbers))

    def batches_with_text(
        self,
        written: Collection[str],
        columns: Collection[str] | None = None,
        as_text: Collection[str] = (),
        as_numbers: Collection[str] = (),
    ) -> Iterator[tuple[Any, Any]]:
        """Yield the tables of `batches`, each with a table of the columns ``written`` as text.

        Missing values are not recognised in the latter.
        """
        requested = None if columns is None else {*columns}
        wanted = [name for name in self.names if requested is None or name in requested]
        texts = {*as_text}.intersection(wanted)
        for block in self._blocks():
            table = self._typed(block, wanted, texts)
            for name in as_numbers:
                if not is_number(table.schema.field(name).type):
                    self._raise_not_a_number(block, name)
            yield table, self._as_written(block, [*written])

    # ------------------------------------------------------------------------------------- blocks

    def _blocks(self) -> Iterator[Block]:
        """Yield the blocks of rows below the header; an empty block if there are none."""
        is_header_next = self.has_header
        n_blocks = 0
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
        except UnicodeError as error:  # UTF-16 without a byte order mark is no UnicodeDecodeError
            what = f"not {self._reading.encoding}: {error}; set the encoding of the file"
            raise TableFileError(self.path, what, hint="encoding") from error
        except OSError as error:
            raise_unreadable(self.path, error)

    def _typed(self, block: Block, wanted: list[str], texts: set[str]) -> Any:
        """Parse a block; columns of other types become text, in this block and all later ones."""
        table = self._parsed(block, wanted, texts)
        unparsed = columns_of_type(table.schema, lambda of: not is_number(of) and not is_text(of))
        if b"0x" in block.data or b"0X" in block.data:
            unparsed += self._hexadecimal(block, table.schema)
        if not unparsed:
            return table
        texts.update(unparsed)
        return self._parsed(block, wanted, texts)

    def _hexadecimal(self, block: Block, schema: Any) -> list[str]:
        """Return the columns of hexadecimal numbers, which only pyarrow parses as integers."""
        integers = columns_of_type(schema, require_pyarrow("pyarrow.types").is_integer)
        return hexadecimal_columns(self._parsed(block, integers, integers)) if integers else []

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
            what = "zero bytes, as in UTF-16; expected text: set the encoding of the file"
            raise TableFileError(self.path, what, line, hint="encoding")

    def _check_header(self, first: list[str]) -> None:
        """Raise an error if the header looks like data, unless the user declared it a header."""
        decimal = self._reading.decimal
        numbers = [
            cell for cell in first if cell not in self.missing and reads_as_number(cell, decimal)
        ]
        if numbers and self._reading.header is None:
            raise TableFileError(
                self.path,
                f"looks like data rather than column names, since {numbers[0]!r} is a number; "
                "set whether the file has a header",
                line=1,
                hint="header",
            )

    # ------------------------------------------------------------------------------------- errors

    def _raise_located(self, block: Block, error: Exception) -> NoReturn:
        """Find the row that pyarrow could not parse, with a slow parser, and raise its error."""
        for lines, row in python_rows(block, self._delimiter, self.path):
            if len(row) != len(self.names):
                what = f"{len(row)} cells; expected {len(self.names)}, as in the first line"
                hint = "delimiter" if looks_undivided(self.names) else None
                raise TableFileError(self.path, what, lines.start, hint=hint) from error
            check_utf8(block, self.path, lines.start, row, self.names)
        raise TableFileError(self.path, str(error), block.first_line) from error

    def _raise_not_a_number(self, block: Block, name: str) -> NoReturn:
        place = self.names.index(name)
        allowed = {*_TRUE, *_FALSE, *self.missing}
        for lines, row in python_rows(block, self._delimiter, self.path):
            check_utf8(block, self.path, lines.start, row, self.names)
            cell = row[place]
            if cell not in allowed and not reads_as_number(cell, self._reading.decimal):
                what = f"{cell!r}; expected a number, as in training"
                raise TableFileError(self.path, what, lines.start, name, _hint_for(cell))
        what = "booleans beside numbers; expected numbers, as in training"
        raise TableFileError(self.path, what, block.first_line, name)


def _hint_for(cell: str) -> str | None:
    """Return the option that may help to parse a cell as a number."""
    if reads_as_number(cell) or reads_as_number(cell, ","):
        return "decimal"
    return None if any(character.isalnum() for character in cell) else "missing"
