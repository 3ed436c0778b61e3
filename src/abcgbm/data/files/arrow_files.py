"""Parquet and Feather files, whole or a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from abcgbm.data.files.errors import TableFileError, require_pyarrow
from abcgbm.data.files.formats import check_names

BATCH_ROWS = 65_536


class ArrowFile:
    """A file that knows the types of its columns.

    Parameters
    ----------
    path : Path
        The file.
    format : {"parquet", "feather"}
        Its format.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns and their types.
    names : list of str
        Their names.
    has_header : bool
        True: the file itself has names.
    """

    has_header = True

    def __init__(self, path: Path, format: str) -> None:
        self.path = path
        self._format = format
        opened = self._told(self._open)
        self.schema = getattr(opened, "schema_arrow", None) or opened.schema
        self.names = [*self.schema.names]
        check_names(self.names, path)

    def read(
        self,
        columns: Collection[str] | None = None,
        as_text: Collection[str] = (),
        as_numbers: Collection[str] = (),
    ) -> Any:
        """Return some columns, or all, as an Arrow table; types are the file's."""
        arrow = require_pyarrow()
        tables = [*self.parts(columns)]
        if not sum(map(len, tables)):
            raise TableFileError(self.path, "no rows; expected a table")
        return arrow.concat_tables(tables)

    def parts(
        self,
        columns: Collection[str] | None = None,
        as_text: Collection[str] = (),
        as_numbers: Collection[str] = (),
    ) -> Iterator[Any]:
        """Yield some columns as Arrow tables, a batch of rows at a time; types are the file's."""
        wanted = [name for name in self.names if columns is None or name in columns]
        batches = self._told(lambda: self._batches(wanted))
        while (batch := self._told(lambda: next(batches, None))) is not None:
            yield batch

    def _open(self) -> Any:
        if self._format == "parquet":
            return require_pyarrow("pyarrow.parquet").ParquetFile(self.path)
        arrow = require_pyarrow()
        return arrow.ipc.open_file(arrow.memory_map(str(self.path)))

    def _batches(self, wanted: list[str]) -> Iterator[Any]:
        arrow, file = require_pyarrow(), self._open()
        if self._format == "parquet":
            for batch in file.iter_batches(BATCH_ROWS, columns=wanted):
                yield arrow.Table.from_batches([batch])
            return
        for number in range(file.num_record_batches):
            yield arrow.Table.from_batches([file.get_batch(number)]).select(wanted)

    def _told(self, read: Any) -> Any:
        """Do what reads the file; what goes wrong is told of the file."""
        try:
            return read()
        except require_pyarrow().ArrowException as error:
            what = f"not a {self._format} file, or damaged: {error}"
            raise TableFileError(self.path, what) from error
