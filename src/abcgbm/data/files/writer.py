"""Writers of predictions to CSV, Parquet and Feather files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from abcgbm.data.arrays import naming
from abcgbm.data.files.atomic import written_whole
from abcgbm.data.files.column_types import is_text
from abcgbm.data.files.formats import Reading, compression_of
from abcgbm.errors import TableFileError, require_pyarrow

_ROWS_AT_A_TIME = 8192


class DelimitedWriter:
    """Writer of Arrow tables as delimited text.

    Parameters
    ----------
    delimiter : str
        Delimiter of cells.
    sink : binary file
        Where to write.
    schema : pyarrow.Schema
        The columns.
    """

    def __init__(self, delimiter: str, sink: IO[bytes], schema: Any) -> None:
        self._delimiter = delimiter
        self._sink = sink
        names = require_pyarrow().chunked_array([schema.names])
        header = self._quoted(names).to_pylist()
        sink.write(f"{delimiter.join(header)}\n".encode())

    def write_table(self, table: Any) -> None:
        """Write the rows of a table; missing values are empty cells."""
        for batch in table.combine_chunks().to_batches(_ROWS_AT_A_TIME):
            if len(batch):
                self._sink.write(self._text(batch))

    def close(self) -> None:
        """Do nothing, as all rows are written at once."""

    def _text(self, batch: Any) -> memoryview:
        """Return rows as text. Arrow joins the cells, so that the rows are contiguous in memory."""
        compute, cells = require_pyarrow("pyarrow.compute"), []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            with naming(f"column {name!r}"):
                cells.append(self._cells(column))
        rows = compute.binary_join_element_wise(*cells, self._large(self._delimiter))
        ended = compute.binary_join_element_wise(rows, self._large("\n"), self._large(""))
        _, offsets, values = ended.buffers()
        ends = memoryview(offsets).cast("q")
        return memoryview(values)[ends[ended.offset] : ends[ended.offset + len(ended)]]

    def _cells(self, column: Any) -> Any:
        """Return a column as text."""
        types, text = require_pyarrow("pyarrow.types"), require_pyarrow().large_string()
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        cells = self._quoted(column) if is_text(column.type) else column.cast(text)
        return cells.fill_null("")

    def _quoted(self, column: Any) -> Any:
        """Quote the cells that contain delimiters, quotes or line ends."""
        compute = require_pyarrow("pyarrow.compute")
        cells = column.cast(require_pyarrow().large_string())
        must_be = compute.match_substring_regex(cells, f'[{self._delimiter}"\r\n]')
        if not compute.any(must_be).as_py():
            return cells
        doubled = compute.replace_substring(cells, '"', '""')
        quote, nothing = self._large('"'), self._large("")
        return compute.if_else(
            must_be, compute.binary_join_element_wise(quote, doubled, quote, nothing), cells
        )

    @staticmethod
    def _large(text: str) -> Any:
        arrow = require_pyarrow()
        return arrow.scalar(text, arrow.large_string())


def write_tables(tables: Iterable[Any], path: Path | None) -> int:
    """Write Arrow tables of one schema; return the number of rows.

    The suffix of ``path`` determines the format; None writes CSV to standard output.
    """
    writer_of = _writer(path)
    writer = None
    n_rows = 0
    with _sink(path) as sink:
        try:
            for table in tables:
                writer = writer or writer_of(sink, table.schema)
                writer.write_table(table)
                n_rows += len(table)
        finally:
            if writer is not None:
                writer.close()
    return n_rows


def check_output(path: Path | None) -> None:
    """Raise an error if the suffix is no format of tables, before predictions are computed."""
    _writer(path)


def _writer(path: Path | None) -> Callable[[Any, Any], Any]:
    format = "csv" if path is None else _format_of(path)
    if format in ("csv", "tsv"):
        return partial(DelimitedWriter, "\t" if format == "tsv" else ",")
    if format == "parquet":
        return require_pyarrow("pyarrow.parquet").ParquetWriter  # type: ignore[no-any-return]
    if format == "feather":
        return require_pyarrow("pyarrow.ipc").new_file  # type: ignore[no-any-return]
    raise TableFileError(
        path or "-", "LibSVM cannot store predictions; expected CSV, Parquet or Feather"
    )


def _format_of(path: Path) -> str:
    """Return the format of an output file by its suffix, as there is no option for it."""
    try:
        return Reading().format_of(path)
    except TableFileError as error:
        what = "a name without a known suffix; expected .csv, .tsv, .parquet or .feather"
        raise TableFileError(path, f"{what} (text perhaps with .gz or .zst)") from error


@contextmanager
def _sink(path: Path | None) -> Iterator[IO[bytes]]:
    """Open the output; closing the stream of standard output must not close ``sys.stdout``."""
    if path is not None:
        with written_whole(path) as file, _compressed(file, path) as sink:
            yield sink
        return
    sys.stdout.flush()
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stream:
        yield stream


@contextmanager
def _compressed(file: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """Compress what is written to a file, by its suffix, without closing the file."""
    codec = compression_of(path)
    if codec is None:
        yield file
        return
    arrow = require_pyarrow()
    with (
        os.fdopen(os.dup(file.fileno()), "wb") as own,
        arrow.CompressedOutputStream(own, codec) as to,
    ):
        yield to
