"""Tables as CSV or TSV: a cell is quoted only if it must be, so that what is handed on stays as it was."""

from __future__ import annotations

from typing import IO, Any

from abcgbm.data.cells import naming
from abcgbm.data.files.column_types import is_text
from abcgbm.data.files.errors import require_pyarrow

_ROWS_AT_A_TIME = 8192


class DelimitedWriter:
    """Writes Arrow tables of one schema.

    Parameters
    ----------
    delimiter : str
        What is between two cells.
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
        """Write the rows of a table; a missing value is an empty cell."""
        for batch in table.combine_chunks().to_batches(_ROWS_AT_A_TIME):
            if len(batch):
                self._sink.write(self._text(batch))

    def close(self) -> None:
        """Nothing is left to write."""

    def _text(self, batch: Any) -> memoryview:
        """Return rows as text: joined row by row, they lie one after the other in memory."""
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
        """Quote the cells that a reader would take for something else."""
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
