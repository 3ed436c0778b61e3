"""Parquet and Feather files, whole or a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from abcgbm.data.files.column_types import with_plain_numbers
from abcgbm.data.files.formats import check_names, open_file
from abcgbm.errors import TableFileError, require_pyarrow

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
        Their names, without those that are an index.
    index_names : list of str
        Columns that pandas stored as an index, which is no column of its table: they are read when
        they are asked for by name.
    has_header : bool
        True: the file itself has names.
    n_rows : int or None
        Number of rows, if the file tells.
    """

    has_header = True

    def __init__(self, path: Path, format: str) -> None:
        self.path = path
        self._format = format
        opened = self._told(lambda: self._open([]))
        self.schema = self._told(lambda: getattr(opened, "schema_arrow", None) or opened.schema)
        self.n_rows: int | None = opened.metadata.num_rows if format == "parquet" else None
        check_names(self.schema.names, path)
        self.index_names = _index_names(self.schema, path)
        self.names = [name for name in self.schema.names if name not in self.index_names]

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
        """Yield some columns as Arrow tables, a batch of rows at a time; types are the file's.

        There is a table at least, perhaps without rows.
        """
        yield from (table for table, _ in self.parts_with((), columns, as_text, as_numbers))

    def parts_with(
        self,
        written: Collection[str],
        columns: Collection[str] | None = None,
        as_text: Collection[str] = (),
        as_numbers: Collection[str] = (),
    ) -> Iterator[tuple[Any, Any]]:
        """Yield what ``parts`` yields and, beside it, columns as the file has them."""
        wanted = {*self.names} if columns is None else {*columns}
        first = [name for name in self.schema.names if name in wanted]
        second = [*written]
        both = [name for name in self.schema.names if name in {*first, *second}]
        batches = self._told(lambda: self._batches(both))
        while (batch := self._told(lambda: next(batches, None))) is not None:
            yield with_plain_numbers(batch.select(first)), batch.select(second)

    def _open(self, places: list[int]) -> Any:
        """Open the file; of Feather just the columns at some places are read, or all if none is named."""
        if self._format == "parquet":
            return require_pyarrow("pyarrow.parquet").ParquetFile(open_file(self.path))
        arrow = require_pyarrow()
        options = arrow.ipc.IpcReadOptions(included_fields=places)
        return arrow.ipc.open_file(open_file(self.path), options=options)

    def _batches(self, wanted: list[str]) -> Iterator[Any]:
        """Yield batches as tables: an empty one where there is none."""
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
        """Check where the values of text and categories are stored, which Arrow reads unchecked.

        A damaged place of a value would end the process.
        """
        arrow = require_pyarrow()
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column.validate(full=not arrow.types.is_primitive(column.type))
            except arrow.ArrowInvalid as error:
                what = f"damaged values: {error}"
                raise TableFileError(self.path, what, column=name) from error

    def _told(self, read: Any) -> Any:
        """Do what reads the file; what goes wrong is told of the file."""
        try:
            return read()
        except (FileNotFoundError, PermissionError):
            raise  # these name the file themselves
        except (require_pyarrow().ArrowException, OSError) as error:
            what = f"not a {self._format} file, or damaged: {error}"
            raise TableFileError(self.path, what) from error


def _index_names(schema: Any, path: Path) -> list[str]:
    """Return the columns that pandas stored as an index (a range it stores as no column)."""
    try:
        metadata = schema.pandas_metadata or {}
    except (ValueError, RecursionError) as error:
        raise TableFileError(path, f"damaged metadata of pandas: {error}") from error
    found = metadata.get("index_columns", []) if isinstance(metadata, dict) else None
    if not isinstance(found, list):
        what = "damaged metadata of pandas; expected a list of index columns among them"
        raise TableFileError(path, what)
    stored = {*schema.names}
    return [name for name in found if isinstance(name, str) and name in stored]
