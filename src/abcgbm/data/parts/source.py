"""Where the parts of a table come from: files, a data set of pyarrow, or batches of rows."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from abcgbm.data.files.errors import TableFileError
from abcgbm.data.files.formats import Reading, is_table
from abcgbm.data.parts.batch_source import BatchSource, DatasetSource
from abcgbm.data.parts.file_source import FileSource

_MAGIC = frozenset("*?[")


class Source(Protocol):
    """Rows that can be read again and again, a part at a time.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns, and their types.
    is_columnar : bool
        Whether a few columns can be read without the others.
    is_steady : bool
        Whether it tells by itself if there are other rows than before.
    n_bytes, n_rows : int or None
        The size of what is read, and the number of rows, if they are known beforehand.
    """

    schema: Any
    is_columnar: bool
    is_steady: bool
    n_bytes: int | None
    n_rows: int | None

    def parts(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables, in the same order each time."""
        ...


def open_source(given: Any, reading: Reading) -> Source:
    """Return the source that a user means: a path, a pattern, some of these, a data set, batches."""
    if isinstance(given, str | os.PathLike) or is_paths(given):
        return FileSource(files_of(given), reading)
    if _is_dataset(given):
        return DatasetSource(given)
    return BatchSource(given)


def files_of(given: Any) -> list[Path]:
    """Return the files that a source reads; batches, and data sets elsewhere, name none."""
    if isinstance(given, str | os.PathLike):
        return _files(given)
    if is_paths(given):
        return [file for path in given for file in _files(path)]
    return _files_of_dataset(given) if _is_dataset(given) else []


def _is_dataset(given: Any) -> bool:
    """Whether it is a data set of pyarrow."""
    return hasattr(given, "scanner") and hasattr(given, "schema")


def _files_of_dataset(dataset: Any) -> list[Path]:
    """Return the files of a data set, or of those that it unites, on this machine."""
    children = getattr(dataset, "children", None) or ()
    files = [file for child in children for file in _files_of_dataset(child)]
    system = getattr(dataset, "filesystem", None)
    if system is not None and system.type_name == "local":
        files += map(Path, dataset.files)
    return files


def is_paths(given: Any) -> bool:
    """Whether these are some paths, or patterns, and nothing else."""
    is_list = isinstance(given, list | tuple) and len(given) > 0
    return is_list and all(isinstance(path, str | os.PathLike) for path in given)


def _files(given: str | os.PathLike[str]) -> list[Path]:
    """Return the files of a path or a pattern, or all tables in a folder, in the order of names."""
    path = Path(given)
    if "://" in str(given):
        what = "an address, not a path; expected a data set of it, pyarrow.dataset.dataset(address)"
        raise TableFileError(os.fspath(given), what)
    if path.is_dir():
        found = [p for p in path.rglob("*") if is_table(p) and not _is_hidden(p, path)]
        _check_names_no_values(found, path)
    elif path.exists() or not _MAGIC.intersection(str(given)):
        return [path]
    else:
        matches = glob.glob(str(given), recursive=True)  # noqa: PTH207 (an absolute one, too)
        found = [Path(p) for p in matches if Path(p).is_file()]
    if not found:
        raise TableFileError(given, "no table file is there; expected at least one")
    return sorted(found)


def _is_hidden(file: Path, folder: Path) -> bool:
    """Whether it, or a folder on the way to it, is one that others leave alone: _SUCCESS, .git."""
    return any(part[0] in "._" for part in file.relative_to(folder).parts)


def _check_names_no_values(files: Sequence[Path], folder: Path) -> None:
    """Refuse folders whose names are values of a column, which would be lost."""
    for file in files:
        for part in file.relative_to(folder).parts[:-1]:
            if "=" in part:
                raise TableFileError(
                    file,
                    f"in the folder {part!r}, which names a value of a column; expected "
                    "pyarrow.dataset.dataset(path, partitioning='hive'), which reads that column",
                )
