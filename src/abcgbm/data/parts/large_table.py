"""What users give for a table that is read in parts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from abcgbm.data.files.formats import Reading
from abcgbm.data.parts.source import Source, open_source
from abcgbm.settings.checks import is_integer
from abcgbm.settings.free_memory import available_bytes

_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_READING = ("format", "header", "delimiter", "decimal", "encoding", "missing")
_IF_UNKNOWN = 4 * 10**9  # bytes of memory, where nobody can tell how many there are


class LargeTable:
    """A table that is read in parts, and need not fit into memory.

    ``ABCBoostClassifier.fit`` takes it for ``X``; ``y`` and ``sample_weight`` are then the names of
    its columns of labels and of weights, and all other columns are features. The model is the one
    that the whole table in memory would give, byte for byte.

    Parameters
    ----------
    source : path, pattern, folder, list of paths, pyarrow.dataset.Dataset, or iterable
        Files of Parquet, Feather (Arrow) or CSV; or record batches, tables of Arrow or data frames
        in an iterable that can be begun anew, or a function that returns an iterator.
    ignore : sequence of str, default=()
        Columns that are left alone.
    memory : int or str, optional
        What a fit may take, in bytes or as in "4GB"; by default what is free when it begins.
    cache_dir : path, optional
        A folder for scratch files, of what does not fit into ``memory``: values that are sorted, bin
        codes, scores. Nothing is left in it, whatever happens. Without one values are sorted where
        the system keeps its temporary files, and all else must fit.
    **reading
        How files are read where their names do not tell, as the command line has it: ``format``,
        ``header``, ``delimiter``, ``decimal``, ``encoding``, ``missing``.

    Attributes
    ----------
    column_names : list of str
        All columns but those that are ignored.
    """

    def __init__(
        self,
        source: Any,
        *,
        ignore: Sequence[str] = (),
        memory: int | str | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        **reading: Any,
    ) -> None:
        self.memory = _bytes(memory)
        self.cache_dir = _folder(cache_dir)
        self._source = open_source(source, _reading(reading))
        self._given = source
        self.column_names = [*self._source.schema.names]
        self.leave_out(ignore)

    def __repr__(self) -> str:
        return f"LargeTable({self._given!r}, {len(self.column_names)} columns)"

    @property
    def source(self) -> Source:
        """Where its parts come from."""
        return self._source

    def leave_out(self, names: Sequence[str]) -> None:
        """Let columns be none of this table."""
        gone = {self.find(name, "ignore") for name in names}
        self.column_names = [name for name in self.column_names if name not in gone]

    def find(self, name: Any, role: str) -> str:
        """Return the name of a column that is there; ``role`` is the argument that names it."""
        if isinstance(name, str) and name in self.column_names:
            return name
        shown = ", ".join(map(repr, self.column_names[:20]))
        more = ", ..." if len(self.column_names) > 20 else ""  # noqa: PLR2004
        raise ValueError(f"{role}={name!r}; expected the name of a column: {shown}{more}")

    def parts(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables; parts without rows are left out."""
        for part in self._source.parts(columns):
            if len(part):
                yield part

    def free_bytes(self) -> int:
        """Return what a fit may take: as given, or what is free."""
        if self.memory is not None:
            return self.memory
        return available_bytes() or _IF_UNKNOWN


def is_large(X: Any) -> bool:
    """Whether a table is one that is read in parts: a path, a data set, a LargeTable."""
    if isinstance(X, LargeTable | str | os.PathLike):
        return True
    return type(X).__module__.startswith("pyarrow._dataset")


def as_large(X: Any) -> LargeTable:
    """Return what a user gave as a table that is read in parts."""
    return X if isinstance(X, LargeTable) else LargeTable(X)


def _reading(given: dict[str, Any]) -> Reading:
    unknown = [name for name in given if name not in _READING]
    if unknown:
        raise TypeError(f"LargeTable has no {unknown[0]!r}; expected some of {', '.join(_READING)}")
    return Reading(**given | {"missing": tuple(given.get("missing", ()))})


def _bytes(given: int | str | None) -> int | None:
    """Return a number of bytes, which may be given as in "4GB"."""
    if given is None:
        return None
    n_bytes = given
    if isinstance(given, str):
        number, unit = given[:-2].strip(), given[-2:].upper()
        is_number = number.replace(".", "", 1).isdecimal() and unit in _UNITS
        n_bytes = int(float(number) * _UNITS[unit]) if is_number else 0
    if not is_integer(n_bytes) or int(n_bytes) < 1:
        raise ValueError(f"memory={given!r}; expected a number of bytes, or a text such as '4GB'")
    return int(n_bytes)


def _folder(given: str | os.PathLike[str] | None) -> str | None:
    if given is None:
        return None
    if not os.path.isdir(given):  # noqa: PTH112
        raise ValueError(f"cache_dir={os.fspath(given)!r} is no folder; expected one that is there")
    if not os.access(given, os.W_OK | os.X_OK):
        raise ValueError(f"cache_dir={os.fspath(given)!r}; expected a folder open for writing")
    return os.fspath(given)
