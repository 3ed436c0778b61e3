"""`LargeTable`: a table read in batches, and its labels and weights."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.arrays import Floats, is_missing, naming
from abcgbm.data.counting import digest_of
from abcgbm.data.files.formats import Reading
from abcgbm.data.files.sources import Source, files_of, is_paths, open_source
from abcgbm.data.labels import ALLOWED_LABELS, CodedLabels, check_no_time_zone
from abcgbm.errors import require_pyarrow, shortened
from abcgbm.parameters.machine import available_bytes
from abcgbm.parameters.validators import is_integer

_MISSING, _OTHER = -1, -2  # codes of a label that is missing, and of one that never came


class _LabelCodes:
    """The labels that have occurred, and their numbers in the order in which they came."""

    def __init__(self) -> None:
        self._code_of: dict[Any, int] = {}

    def learned(self, column: Any) -> NDArray[np.int32]:
        """Return the numbers of the labels of an Arrow column, in which new ones may occur."""
        return _codes(column, lambda label: self._code_of.setdefault(label, len(self._code_of)))

    def known(self, column: Any) -> NDArray[np.int32]:
        """Do the same where no new ones should occur."""
        return _codes(column, lambda label: self._code_of.get(label, _OTHER))

    def values(self, of: Any) -> NDArray[Any]:
        """Return all labels; ``of`` is the type of their column."""
        arrow = require_pyarrow()
        of = of.value_type if arrow.types.is_dictionary(of) else of
        return np.asarray(arrow.chunked_array([arrow.array([*self._code_of], type=of)]))


def _codes(column: Any, code_of: Any) -> NDArray[np.int32]:
    encoded = column.combine_chunks()
    if not require_pyarrow("pyarrow.types").is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    labels = encoded.dictionary.to_pylist()
    numbers = [_MISSING if is_missing(label) else code_of(label) for label in labels]
    of_level = np.array([*numbers, _MISSING], dtype=np.int32)  # the last is for missing ones
    codes: NDArray[np.int32] = of_level[encoded.indices.fill_null(len(numbers)).to_numpy()]
    return codes


class RowMarks:
    """What rows are told from each other by when a table is read again: labels and weights.

    Parameters
    ----------
    label : str
        The column of labels.
    weight : str or None
        That of weights.

    Attributes
    ----------
    columns : list of str
        These columns.
    n_rows : int
        Number of rows that were learned.
    """

    def __init__(self, label: str, weight: str | None) -> None:
        self.columns = [label] if weight is None else [label, weight]
        self._codes = _LabelCodes()
        self._read: list[tuple[NDArray[np.int32], Floats | None]] = []
        self._digest = 0
        self.n_rows = 0

    def learn(self, part: Any) -> None:
        """Take note of some rows, as an Arrow table."""
        with naming(f"column {self.columns[0]!r}"):
            codes = self._codes.learned(part.column(self.columns[0]))
        self._read.append((codes, self._weights(part)))
        self._digest += _digest(*self._read[-1], self.n_rows)
        self.n_rows += len(part)

    def digest(self, part: Any, first_row: int) -> int:
        """Return what rows from ``first_row`` on make of themselves; those of parts add up."""
        codes = self._codes.known(part.column(self.columns[0]))
        return _digest(codes, self._weights(part), first_row)

    def are_same(self, digest: int) -> bool:
        """Whether all rows are those that were learned."""
        return (digest - self._digest) % 2**64 == 0

    def taken(self, of: Any) -> tuple[CodedLabels, Floats | None]:
        """Return the labels, whose column is of an Arrow type, and the weights; keep neither."""
        read, self._read = self._read, []
        codes = np.concatenate([np.empty(0, dtype=np.int32), *(codes for codes, _ in read)])
        weights = [weights for _, weights in read if weights is not None]
        labels = CodedLabels(self._codes.values(of), codes)
        return labels, np.concatenate(weights) if len(self.columns) > 1 and weights else None

    def _weights(self, part: Any) -> Floats | None:
        return None if len(self.columns) == 1 else _floats(part.column(self.columns[1]))


def _digest(codes: NDArray[np.int32], weights: Floats | None, first_row: int) -> int:
    of_weights = 0 if weights is None else digest_of(weights.view(np.uint64), first_row)
    return digest_of(codes.astype(np.int64).view(np.uint64), first_row) + 3 * of_weights


def read_labels(
    large: LargeTable, label: str, weight: str | None
) -> tuple[RowMarks, CodedLabels, Floats | None]:
    """Read the column of labels and that of weights, in one go."""
    marks = RowMarks(label, weight)
    _check_type(large, label, _may_be_labels, f"labels: {ALLOWED_LABELS}")
    check_no_time_zone(large.source.schema.field(label).type, f"column {label!r} of {large!r}")
    if weight is not None:
        _check_type(large, weight, _may_be_weights, "weights: numbers")
    for part in large.parts(marks.columns):
        marks.learn(part)
    of_labels = large.source.schema.field(label).type  # as wide as all batches need it
    return marks, *marks.taken(of_labels)


def _check_type(large: LargeTable, name: str, may_be: Any, expected: str) -> None:
    of = large.source.schema.field(name).type
    types = require_pyarrow("pyarrow.types")
    if not may_be(types, of.value_type if types.is_dictionary(of) else of):
        raise TypeError(f"column {name!r} of {large!r} is of type {of}; expected {expected}")


def _may_be_labels(types: Any, of: Any) -> bool:
    return not (types.is_nested(of) or types.is_decimal(of))


def _may_be_weights(types: Any, of: Any) -> bool:
    is_real = types.is_integer(of) or types.is_floating(of) or types.is_decimal(of)
    return bool(is_real or types.is_boolean(of) or types.is_null(of))


def _floats(column: Any) -> Floats:
    values: Floats = column.cast(require_pyarrow().float64(), safe=False).to_numpy()
    return values


_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_READING = ("format", "header", "delimiter", "decimal", "encoding", "missing")
_BINARY_UNITS = {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_IF_UNKNOWN = 4 * 10**9  # bytes of memory, where nobody can tell how many there are
_MAX_CHARACTERS = 60  # of what was given, in an error

Shown = Callable[[int], None]  # is told how many rows were read so far


class Watch(Protocol):
    """Who is told of each reading: of so many columns, and rows and bytes if these are known."""

    def __call__(
        self, n_columns: int, n_rows: int | None, n_bytes: int | None
    ) -> AbstractContextManager[Shown]:
        """Return what is open while rows are read."""
        ...


class Marks(Protocol):
    """What tells whether rows are those that were read before."""

    columns: list[str]
    n_rows: int

    def digest(self, part: Any, first_row: int) -> int:
        """Return what rows make of themselves; those of parts add up."""
        ...

    def are_same(self, digest: int) -> bool:
        """Whether all rows are those that were read before."""
        ...


class ChangedTableError(ValueError):
    """A table that was read again, and was another then."""


def _unwatched(n_columns: int, n_rows: int | None, n_bytes: int | None) -> Any:
    return nullcontext(lambda n_read: None)


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
        self._watch: Watch = _unwatched
        self._marks: Marks | None = None
        self._source = open_source(source, _reading(reading))
        self._given = source
        self.column_names = [*self._source.schema.names]
        self.leave_out(ignore)

    def __repr__(self) -> str:
        given = os.fspath(self._given) if isinstance(self._given, os.PathLike) else self._given
        return f"LargeTable({_shortly(given)}, {len(self.column_names)} columns)"

    @property
    def given(self) -> Any:
        """The source as the user gave it."""
        return self._given

    @property
    def source(self) -> Source:
        """Where its parts come from."""
        return self._source

    def leave_out(self, names: Sequence[str]) -> None:
        """Let columns be none of this table."""
        gone = {self.find(name, "ignore") for name in _names(names, "ignore")}
        self.column_names = [name for name in self.column_names if name not in gone]

    def find(self, name: Any, role: str) -> str:
        """Return the name of a column that is there; ``role`` is the argument that names it."""
        if isinstance(name, str) and name in self.column_names:
            return name
        raise ValueError(
            f"{role}={_shortly(name)}; expected the name of a column of {self!r}: "
            f"{shortened(self.column_names, 20)}"
        )

    def watched(self, watch: Watch | None) -> Self:
        """Return the same table, of whose readings somebody is told."""
        other = copy.copy(self)
        other._watch = watch or _unwatched
        return other

    def marked(self, marks: Marks) -> Self:
        """Return the same table, whose rows must be those that are known already."""
        other = copy.copy(self)
        other._marks = marks
        return other

    def parts(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables; parts without rows are left out."""
        source, n_bytes, n_read = self._source, self._source.n_bytes, 0
        if source.is_columnar and n_bytes is not None:
            n_bytes = n_bytes * len(columns) // len(source.schema)  # about
        with self._watch(len(columns), source.n_rows, n_bytes) as shown:
            for part in self._same_parts(columns):
                n_read += len(part)
                shown(n_read)
                if len(part):
                    yield part

    def _same_parts(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read rows, with what tells whether they are the same as before if nobody else can."""
        marks, n_rows, digest = self._marks, 0, 0
        if marks is None or self._source.is_steady:
            yield from self._source.parts(columns)
            return
        others = [name for name in marks.columns if name not in columns]
        for part in self._source.parts([*columns, *others]):
            digest += marks.digest(part, n_rows)
            n_rows += len(part)
            yield part.select([*columns])
        if n_rows == marks.n_rows and not marks.are_same(digest):  # others count them
            raise ChangedTableError(
                f"{self!r} had other rows, or in another order, when it was read again: its labels "
                "or weights are others; expected the same rows each time"
            )

    def free_bytes(self) -> int:
        """Return what a fit may take: as given, or what is free."""
        if self.memory is not None:
            return self.memory
        return available_bytes() or _IF_UNKNOWN


def is_large(X: Any) -> bool:
    """Whether a table is one that is read in parts: paths, batches, a data set, a LargeTable."""
    if isinstance(X, LargeTable | str | os.PathLike) or is_paths(X) or _is_batches(X):
        return True
    return type(X).__module__.startswith("pyarrow._dataset")


def _is_batches(X: Any) -> bool:
    """Whether these are tables or record batches of Arrow, and nothing else."""
    is_list = isinstance(X, list | tuple) and len(X) > 0
    return is_list and all(hasattr(b, "schema") and hasattr(b, "num_rows") for b in X)


def files_read(X: Any) -> list[Path]:
    """Return the files that a table is read from during a fit, as far as they are known."""
    if not is_large(X):
        return []
    return files_of(X.given if isinstance(X, LargeTable) else X)


def as_large(X: Any) -> LargeTable:
    """Return what a user gave as a table that is read in parts."""
    return X if isinstance(X, LargeTable) else LargeTable(X)


def _reading(given: dict[str, Any]) -> Reading:
    unknown = [name for name in given if name not in _READING]
    if unknown:
        raise TypeError(f"LargeTable has no {unknown[0]!r}; expected some of {', '.join(_READING)}")
    return Reading(**given | {"missing": _names(given.get("missing", ()), "missing")})


def _bytes(given: int | str | None) -> int | None:
    """Return a number of bytes, which may be given as in "4GB"."""
    if given is None:
        return None
    n_bytes = given
    if isinstance(given, str):
        units = _BINARY_UNITS if given[-2:].upper() == "IB" else _UNITS
        size = 3 if units is _BINARY_UNITS else 2
        number, unit = given[:-size].strip(), given[-size:].upper()
        is_number = number.replace(".", "", 1).isdecimal() and unit in units
        n_bytes = int(float(number) * units[unit]) if is_number else 0
    if not is_integer(n_bytes) or int(n_bytes) < 1:
        raise ValueError(f"memory={given!r}; expected a number of bytes, or a text such as '4GB'")
    return int(n_bytes)


def _folder(given: str | os.PathLike[str] | None) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"cache_dir={_shortly(given)}; expected the path of a folder")
    folder = os.fsdecode(given)
    if not os.path.isdir(folder):  # noqa: PTH112
        raise ValueError(f"cache_dir={folder!r} is no folder; expected one that is there")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"cache_dir={folder!r}; expected a folder open for writing")
    return folder


def _names(given: Any, name: str) -> tuple[str, ...]:
    """Return some texts; a single one is one of them, not its letters."""
    texts = (given,) if isinstance(given, str) else tuple(given)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{name}={_shortly(given)}; expected texts")
    return texts


def _shortly(given: Any) -> str:
    """Return what was given as text that fits into an error."""
    if isinstance(given, str):
        return repr(given)
    text = " ".join(repr(given).split())
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}..."
