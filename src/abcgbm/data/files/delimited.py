"""CSV and TSV files: rows of cells as Arrow tables, with types that the whole file settles.

A column holds numbers if every cell of it is one, truth values if every cell is "true" or "false",
and text otherwise; a missing cell is any of them. So where a file is cut into blocks plays no part.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from abcgbm.data.files.errors import TableFileError, require_pyarrow
from abcgbm.data.files.formats import MISSING, Reading, check_names, open_bytes
from abcgbm.data.files.text_blocks import BLOCK_BYTES, Block, text_blocks

_TRUE, _FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]


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
    has_header : bool
        Whether the file itself has names.
    """

    def __init__(self, path: Path, reading: Reading, block_bytes: int = BLOCK_BYTES) -> None:
        self.path = path
        self._reading = reading
        self._delimiter = reading.delimiter_of(path)
        self._block_bytes = block_bytes
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
            if not tables:
                raise TableFileError(self.path, "no rows below the header; expected a table")
            mixed = _misread(tables).difference(as_text)
            if not mixed:
                return united(tables)
            as_text = {*as_text, *mixed}  # read again: numbers as they are spelled

    def parts(
        self,
        columns: Collection[str] | None = None,
        as_text: Collection[str] = (),
        as_numbers: Collection[str] = (),
    ) -> Iterator[Any]:
        """Yield some columns as Arrow tables, a block at a time.

        Types are those of the block, but that columns ``as_text`` are text. A cell of a column
        ``as_numbers`` that is neither a number nor a truth value is an error.
        """
        wanted = self._in_order(columns)
        for block in self._blocks():
            table = self._parsed(block, wanted, as_text)
            for name in as_numbers:
                if not _is_number(table.schema.field(name).type):
                    self._raise_not_a_number(block, name)
            yield table

    def _in_order(self, columns: Collection[str] | None) -> list[str]:
        """Return the names of the columns that are wanted, in the order of the file."""
        return [name for name in self.names if columns is None or name in columns]

    # ------------------------------------------------------------------------------------- blocks

    def _blocks(self) -> Iterator[Block]:
        n_lines = self._n_header_lines if self.has_header else 0
        for block in self._raw_blocks():
            below = block.without_lines(n_lines)
            n_lines = 0
            if below.data and not below.data.isspace():
                yield below

    def _raw_blocks(self) -> Iterator[Block]:
        try:
            with open_bytes(self.path, self._reading.encoding) as stream:
                yield from text_blocks(stream, self.path, self._block_bytes)
        except UnicodeDecodeError as error:
            what = f"not {self._reading.encoding}: {error}; name the file's own encoding"
            raise TableFileError(self.path, what) from error
        except OSError as error:
            if isinstance(error, FileNotFoundError | PermissionError):
                raise
            raise TableFileError(self.path, f"cannot be read: {error}") from error

    def _parsed(self, block: Block, wanted: list[str], as_text: Collection[str]) -> Any:
        arrow, reader = require_pyarrow(), require_pyarrow("pyarrow.csv")
        try:
            return reader.read_csv(
                arrow.BufferReader(block.data),
                reader.ReadOptions(column_names=self.names, block_size=len(block.data) + 1),
                reader.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=b'"' in block.data
                ),
                reader.ConvertOptions(
                    include_columns=wanted,
                    column_types=dict.fromkeys(as_text, arrow.string()),
                    null_values=[*MISSING, *self._reading.missing],
                    strings_can_be_null=True,
                    true_values=_TRUE,
                    false_values=_FALSE,
                ),
            )
        except arrow.ArrowInvalid as error:
            self._raise_located(block, error)

    # ------------------------------------------------------------------------------------- header

    def _first_row(self) -> list[str]:
        for block in self._raw_blocks():
            for line, row in _rows(block, self._delimiter):
                self._n_header_lines = line.stop - block.first_line
                self._check_utf8(line.start, row, [*map(str, range(len(row)))])
                return row
        raise TableFileError(self.path, "the file is empty; expected a table")

    def _check_header(self, first: list[str]) -> None:
        """Refuse to take a row for names, unless the user says so."""
        numbers = [cell for cell in first if _reads_as_number(cell)]
        if numbers and self._reading.header is None:
            raise TableFileError(
                self.path,
                f"looks like a row, not like the names of columns, since {numbers[0]!r} is a "
                "number; say that there is no header, or that there is one",
                line=1,
            )

    # ------------------------------------------------------------------------------- what is wrong

    def _raise_located(self, block: Block, error: Exception) -> None:
        """Look for the row that pyarrow could not read, slowly."""
        for line, row in _rows(block, self._delimiter):
            if len(row) != len(self.names):
                what = f"{len(row)} cells; expected {len(self.names)}, as in the first line"
                raise TableFileError(self.path, what, line.start) from error
            self._check_utf8(line.start, row, self.names)
        raise TableFileError(self.path, str(error), block.first_line) from error

    def _check_utf8(self, line: int, row: list[str], names: list[str]) -> None:
        for name, cell in zip(names, row, strict=True):
            if not cell.isascii() and any("\udc80" <= character <= "\udcff" for character in cell):
                shown = cell.encode("utf-8", "surrogateescape")
                what = f"{shown!r} is not UTF-8; name the file's own encoding, such as latin-1"
                raise TableFileError(self.path, what, line, name)

    def _raise_not_a_number(self, block: Block, name: str) -> None:
        place, missing = self.names.index(name), {*MISSING, *self._reading.missing}
        allowed = {*_TRUE, *_FALSE, *missing}
        for line, row in _rows(block, self._delimiter):
            self._check_utf8(line.start, row, self.names)
            if row[place] not in allowed and not _reads_as_number(row[place]):
                what = f"{row[place]!r}; expected a number, as in training"
                raise TableFileError(self.path, what, line.start, name)
        what = "truth values beside numbers; expected numbers, as in training"
        raise TableFileError(self.path, what, block.first_line, name)


def _rows(block: Block, delimiter: str) -> Iterator[tuple[range, list[str]]]:
    """Yield rows as Python reads them, with their lines; bytes that are not UTF-8 are escaped."""
    text = io.StringIO(block.data.decode("utf-8", "surrogateescape"), newline="")
    reader, start = csv.reader(text, delimiter=delimiter), block.first_line
    for row in reader:
        stop = block.first_line + reader.line_num
        if row:
            yield range(start, stop), row
        start = stop


def _reads_as_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell and cell not in MISSING


# ------------------------------------------------------------------------------------------- types


def _is_number(of: Any) -> bool:
    """Whether Arrow found numbers, truth values or nothing at all."""
    types = require_pyarrow("pyarrow.types")
    return bool(
        types.is_null(of) or types.is_integer(of) or types.is_floating(of) or types.is_boolean(of)
    )


def settled(schemas: Sequence[Any]) -> Any:
    """Return the schema that holds the columns of all blocks: numbers, truth values, or text."""
    arrow, types = require_pyarrow(), require_pyarrow("pyarrow.types")
    fields = []
    for place, name in enumerate(schemas[0].names):
        seen = {schema.field(place).type for schema in schemas}
        known = {of for of in seen if not types.is_null(of)}
        if all(_is_number(of) and not types.is_boolean(of) for of in known):
            of = known.pop() if len(known) == 1 else arrow.float64()
        else:
            of = arrow.bool_() if known == {arrow.bool_()} else arrow.string()
        fields.append(arrow.field(name, of))
    return arrow.schema(fields)


def united(tables: Sequence[Any]) -> Any:
    """Put tables end to end; nothing becomes anything, integers beside floats become floats."""
    schema = settled([table.schema for table in tables])
    return require_pyarrow().concat_tables([table.cast(schema, safe=False) for table in tables])


def texts_of(schema: Any) -> set[str]:
    """Return the columns that hold text."""
    is_string = require_pyarrow("pyarrow.types").is_string
    return {field.name for field in schema if is_string(field.type)}


def _misread(tables: Sequence[Any]) -> set[str]:
    """Return the columns of text that some of the tables have as something else."""
    types, texts = require_pyarrow("pyarrow.types"), texts_of(settled([t.schema for t in tables]))

    def is_other(of: Any) -> bool:
        return not types.is_string(of) and not types.is_null(of)

    return {n for n in texts if any(is_other(table.schema.field(n).type) for table in tables)}
