"""Tables out: to a file that is written whole or not at all, or to standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from abcgbm.data.files.errors import TableFileError, require_pyarrow
from abcgbm.data.files.formats import Reading, compression_of
from abcgbm.model.file.atomic import written_whole
from abcgbm.model.file.delimited_output import DelimitedWriter


def write_tables(tables: Iterable[Any], path: Path | None) -> int:
    """Write Arrow tables of one schema, a part at a time; return the number of rows.

    The name of the file tells its format; None is standard output, as CSV.
    """
    writer_of, n_rows, writer = _writer(path), 0, None
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
    """Refuse a name that tells no format, before any work is spent on it."""
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
        path or "-", "LibSVM holds no such table; expected CSV, Parquet or Feather"
    )


def _format_of(path: Path) -> str:
    """Return the format that the name of an output tells; there is no option for it."""
    try:
        return Reading().format_of(path)
    except TableFileError as error:
        what = "a name that tells no format; expected one that ends in .csv, .tsv, .parquet or "
        raise TableFileError(path, f"{what}.feather (text perhaps with .gz or .zst)") from error


@contextmanager
def _sink(path: Path | None) -> Iterator[IO[bytes]]:
    if path is not None:
        with written_whole(path) as file, _compressed(file, path) as sink:
            yield sink
        return
    sys.stdout.flush()
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stream:
        yield stream


@contextmanager
def _compressed(file: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """Compress what is written to a file, if its name says so; the file itself stays open."""
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
