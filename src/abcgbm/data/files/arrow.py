"""Parquet and Feather files, whole or in batches of rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from abcgbm.data.files.column_types import with_plain_numbers
from abcgbm.data.files.formats import check_names, open_file
from abcgbm.errors import TableFileError, require_pyarrow

BATCH_ROWS = 65_536


class ArrowFile:
    """A Parquet or Feather file.

    Parameters
    ----------
    path : Path
        The file.
    format : {"parquet", "feather"}
        Its format.

    Attributes
    ----------
    schema : pyarrow.Schema
        Columns and their types.
    names : list of str
        Names of the columns, except those of an index.
    index_names : list of str
        Columns that pandas stored as an index. They are read only if requested by name.
    has_header : bool
        True: the file has column names.
    n_rows : int or None
        Number of rows, if the file stores it.
    """

    has_header = True

    def __init__(self, path: Path, format: str) -> None:
        self.path = path
        self._format = format
        opened = self._checked(lambda: self._open([]))
        self.schema = self._checked(lambda: getattr(opened, "schema_arrow", None) or opened.schema)
        self.n_rows: int | None = opened.metadata.num_rows if format == "parquet" else None
        check_names(self._checked(lambda: self.schema.names), path)
        self.index_names = _index_names(self.schema, path)
        self.names = [name for name in self.schema.names if name not in self.index_names]

    def read(
        self,
        columns: Collection[str] | None = None,
        as_text: Collection[str] = (),
        as_numbers: Collection[str] = (),
    ) -> Any:
        """Return some or all columns as an Arrow table, with the types of the file.

        ``as_text`` and ``as_numbers`` are unused; the signature is that of `DelimitedFile`.
        """
        arrow = require_pyarrow()
        tables = [*self.batches(columns)]
        if not sum(map(len, tables)):
            raise TableFileError(self.path, "no rows; expected a table")
        return arrow.concat_tables(tables)

    def batches(
        self,
        columns: Collection[str] | None = None,
        as_text: Collection[str] = (),
        as_numbers: Collection[str] = (),
    ) -> Iterator[Any]:
        """Yield some or all columns as Arrow tables, one batch of rows at a time.

        Types are those of the file. There is at least one table, which may have no rows.
        ``as_text`` and ``as_numbers`` are unused; the signature is that of `DelimitedFile`.
        """
        yield from (table for table, _ in self.batches_with_text((), columns, as_text, as_numbers))

    def batches_with_text(
        self,
        written: Collection[str],
        columns: Collection[str] | None = None,
        as_text: Collection[str] = (),
        as_numbers: Collection[str] = (),
    ) -> Iterator[tuple[Any, Any]]:
        """Yield the tables of `batches`, each with a table of the columns ``written`` as stored."""
        requested = {*self.names} if columns is None else {*columns}
        first = [name for name in self.schema.names if name in requested]
        second = [*written]
        both = [name for name in self.schema.names if name in {*first, *second}]
        batches = self._batches(both)  # a generator: it opens and reads the file in `next`
        while (batch := self._checked(lambda: next(batches, None))) is not None:
            yield with_plain_numbers(batch.select(first)), batch.select(second)

    def _open(self, places: list[int]) -> Any:
        """Open the file; of a Feather file only the columns at ``places`` (empty: all) are read."""
        if self._format == "parquet":
            return require_pyarrow("pyarrow.parquet").ParquetFile(open_file(self.path))
        arrow = require_pyarrow()
        options = arrow.ipc.IpcReadOptions(included_fields=places)
        return arrow.ipc.open_file(open_file(self.path), options=options)

    def _batches(self, wanted: list[str]) -> Iterator[Any]:
        """Yield batches as tables; an empty table if there are none."""
        arrow, has_batches = require_pyarrow(), False
        file = self._open(sorted(map(self.schema.names.index, wanted)))
        for batch in self._raw_batches(file, wanted):
            has_batches = True
            yield arrow.Table.from_batches([batch]).select(wanted)
        if not has_batches:
            yield self.schema.empty_table().select(wanted)

    def _raw_batches(self, file: Any, wanted: list[str]) -> Iterator[Any]:
        if self._format == "parquet":
            yield from file.iter_batches(BATCH_ROWS, columns=wanted)
            return
        for number in range(file.num_record_batches):
            batch = file.get_batch(number)
            self._check_values(batch)
            yield batch

    def _check_values(self, batch: Any) -> None:
        """Validate the buffers of text and categories.

        Arrow does not check their offsets when it reads them, and corrupt ones would crash the
        process.
        """
        arrow = require_pyarrow()
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column.validate(full=not arrow.types.is_primitive(column.type))
            except arrow.ArrowInvalid as error:
                what = f"damaged values: {error}"
                raise TableFileError(self.path, what, column=name) from error

    def _checked(self, read: Any) -> Any:
        """Call a function that reads the file; its errors become errors of the file."""
        try:
            return read()
        except (FileNotFoundError, PermissionError):
            raise  # these name the file themselves
        except (require_pyarrow().ArrowException, OSError, UnicodeDecodeError) as error:
            what = f"not a {self._format} file, or damaged: {error}"
            raise TableFileError(self.path, what) from error


def _index_names(schema: Any, path: Path) -> list[str]:
    """Return the columns that pandas stored as an index (it stores a range as metadata only)."""
    try:
        metadata = schema.pandas_metadata or {}
    except (ValueError, RecursionError) as error:
        raise TableFileError(path, f"damaged pandas metadata: {error}") from error
    found = metadata.get("index_columns", []) if isinstance(metadata, dict) else None
    if not isinstance(found, list):
        what = "damaged pandas metadata; expected a list of index columns"
        raise TableFileError(path, what)
    stored = {*schema.names}
    return [name for name in found if isinstance(name, str) and name in stored]
