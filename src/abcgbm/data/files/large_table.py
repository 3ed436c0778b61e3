"""`LargeTable`: a table that is read in batches, and its labels and weights."""

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
from abcgbm.errors import quoted_list, require_pyarrow, shorten
from abcgbm.parameters.machine import available_bytes
from abcgbm.parameters.validators import is_integer

_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY_UNITS = {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_DEFAULT_BYTES = 4 * 10**9  # memory of a fit if the free memory is unknown
_READING = ("format", "header", "delimiter", "decimal", "encoding", "missing")
_MISSING, _OTHER = -1, -2  # codes of a missing label, and of one that did not occur before
OnRowsRead = Callable[[int], None]  # called with the number of rows read so far


class ReadObserver(Protocol):
    """Called at the beginning of each pass over a table, for example to show progress."""

    def __call__(
        self, n_columns: int, n_rows: int | None, n_bytes: int | None
    ) -> AbstractContextManager[OnRowsRead]:
        """Return a context manager for the pass; it provides a function to call with the rows read.

        ``n_rows`` and ``n_bytes`` are None if they are unknown.
        """
        ...


class ChangedTableError(ValueError):
    """A table that has other rows than when it was read before."""


class LargeTable:
    """A table that is read in batches and need not fit into memory.

    Pass it to ``ABCBoostClassifier.fit`` as ``X``; ``y`` and ``sample_weight`` are then names of
    its columns, and all other columns are features. The model is identical, byte for byte, to that
    of the whole table in memory.

    Parameters
    ----------
    source : path, pattern, folder, list of paths, pyarrow.dataset.Dataset, or iterable
        Parquet, Feather (Arrow) or CSV files; or an iterable of Arrow record batches, Arrow tables
        or data frames that can be iterated several times, or a function that returns an iterator.
    ignore : sequence of str, default=()
        Columns to ignore.
    memory : int or str, optional
        Memory that a fit may use, in bytes or as in "4GB"; by default the memory that is free when
        it starts.
    cache_dir : path, optional
        Folder for temporary files of data that exceed ``memory``: values to sort, bin codes and
        scores. They are always removed. By default values are sorted in the system's folder for
        temporary files, and everything else must fit into memory.
    **reading
        How files are read, as in the command line: ``format``, ``header``, ``delimiter``,
        ``decimal``, ``encoding``, ``missing``.

    Attributes
    ----------
    column_names : list of str
        All columns except ignored ones.
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
        self._observer: ReadObserver = _no_observer
        self._fingerprint: RowFingerprint | None = None
        self._source = open_source(source, _reading(reading))
        self._given = source
        self.column_names = [*self._source.schema.names]
        self.leave_out(ignore)

    def __repr__(self) -> str:
        given = os.fspath(self._given) if isinstance(self._given, os.PathLike) else self._given
        return f"LargeTable({shorten(given)}, {len(self.column_names)} columns)"

    @property
    def given(self) -> Any:
        """The source as passed by the user."""
        return self._given

    @property
    def source(self) -> Source:
        """The source of the batches."""
        return self._source

    def leave_out(self, names: Sequence[str]) -> None:
        """Ignore columns."""
        ignored = {self.find(name, "ignore") for name in _names(names, "ignore")}
        self.column_names = [name for name in self.column_names if name not in ignored]

    def find(self, name: Any, role: str) -> str:
        """Return a column that must exist; ``role`` is the argument's name in errors."""
        if isinstance(name, str) and name in self.column_names:
            return name
        raise ValueError(
            f"{role}={shorten(name)}; expected the name of a column of {self!r}: "
            f"{quoted_list(self.column_names, 20)}"
        )

    def with_observer(self, observer: ReadObserver | None) -> Self:
        """Return a copy whose passes are observed."""
        other = copy.copy(self)
        other._observer = observer or _no_observer
        return other

    def with_fingerprint(self, fingerprint: RowFingerprint) -> Self:
        """Return a copy that raises a ChangedTableError if rows have changed."""
        other = copy.copy(self)
        other._fingerprint = fingerprint
        return other

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as Arrow tables, none of them empty."""
        source, n_bytes, n_read = self._source, self._source.n_bytes, 0
        if source.is_columnar and n_bytes is not None:
            n_bytes = n_bytes * len(columns) // len(source.schema)  # an estimate
        with self._observer(len(columns), source.n_rows, n_bytes) as on_rows_read:
            for batch in self._same_batches(columns):
                n_read += len(batch)
                on_rows_read(n_read)
                if len(batch):
                    yield batch

    def _same_batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield batches, and compare the fingerprint unless the source detects changes itself."""
        fingerprint, n_rows, digest = self._fingerprint, 0, 0
        if fingerprint is None or self._source.detects_changes:
            yield from self._source.batches(columns)
            return
        others = [name for name in fingerprint.columns if name not in columns]
        for batch in self._source.batches([*columns, *others]):
            digest += fingerprint.digest(batch, n_rows)
            n_rows += len(batch)
            yield batch.select([*columns])
        if n_rows == fingerprint.n_rows and not fingerprint.matches(digest):  # callers check n_rows
            raise ChangedTableError(
                f"{self!r} had other rows, or in another order, when it was read again: its labels "
                "or weights have changed; expected the same rows each time"
            )

    def free_bytes(self) -> int:
        """Return the memory that a fit may use: as given, or what is free."""
        if self.memory is not None:
            return self.memory
        return available_bytes() or _DEFAULT_BYTES


def _no_observer(n_columns: int, n_rows: int | None, n_bytes: int | None) -> Any:
    return nullcontext(lambda n_read: None)


def is_large(X: Any) -> bool:
    """Whether a table is read in batches: paths, a list of batches, a dataset, a LargeTable."""
    if isinstance(X, LargeTable | str | os.PathLike) or is_paths(X) or _is_batches(X):
        return True
    return type(X).__module__.startswith("pyarrow._dataset")


def _is_batches(X: Any) -> bool:
    """Whether it is a non-empty list of Arrow tables or record batches."""
    is_list = isinstance(X, list | tuple) and len(X) > 0
    return is_list and all(hasattr(b, "schema") and hasattr(b, "num_rows") for b in X)


def files_read(X: Any) -> list[Path]:
    """Return the files that a fit reads, as far as they are known."""
    if not is_large(X):
        return []
    return files_of(X.given if isinstance(X, LargeTable) else X)


def as_large(X: Any) -> LargeTable:
    """Wrap any source of batches in a LargeTable."""
    return X if isinstance(X, LargeTable) else LargeTable(X)


# -------------------------------------------------------------------------------------- arguments


def _reading(given: dict[str, Any]) -> Reading:
    unknown = [name for name in given if name not in _READING]
    if unknown:
        raise TypeError(
            f"LargeTable has no parameter {unknown[0]!r}; expected some of {', '.join(_READING)}"
        )
    return Reading(**given | {"missing": _names(given.get("missing", ()), "missing")})


def _bytes(given: int | str | None) -> int | None:
    """Parse a number of bytes, which may be given as in "4GB"."""
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
        raise ValueError(f"memory={given!r}; expected a number of bytes, or a string such as '4GB'")
    return int(n_bytes)


def _folder(given: str | os.PathLike[str] | None) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"cache_dir={shorten(given)}; expected the path of a folder")
    folder = os.fsdecode(given)
    if not os.path.isdir(folder):  # noqa: PTH112
        raise ValueError(f"cache_dir={folder!r}; expected an existing folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"cache_dir={folder!r}; expected a writable folder")
    return folder


def _names(given: Any, name: str) -> tuple[str, ...]:
    """Return names as a tuple; a single string is one name."""
    texts = (given,) if isinstance(given, str) else tuple(given)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{name}={shorten(given)}; expected strings")
    return texts


# ----------------------------------------------------------------------------- labels and weights


def read_labels(
    large: LargeTable, label: str, weight: str | None
) -> tuple[RowFingerprint, CodedLabels, Floats | None]:
    """Read the columns of labels and weights in one pass."""
    fingerprint = RowFingerprint(label, weight)
    _check_type(large, label, _may_be_labels, f"labels: {ALLOWED_LABELS}")
    check_no_time_zone(large.source.schema.field(label).type, f"column {label!r} of {large!r}")
    if weight is not None:
        _check_type(large, weight, _may_be_weights, "weights: numbers")
    for batch in large.batches(fingerprint.columns):
        fingerprint.add(batch)
    # After the pass, the type of the column fits the labels of all batches.
    label_type = large.source.schema.field(label).type
    return fingerprint, *fingerprint.pop_columns(label_type)


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


class RowFingerprint:
    """Digest of labels and weights, which detects rows that changed between two passes.

    Parameters
    ----------
    label : str
        Column of labels.
    weight : str or None
        Column of weights.

    Attributes
    ----------
    columns : list of str
        These columns.
    n_rows : int
        Number of rows.
    """

    def __init__(self, label: str, weight: str | None) -> None:
        self.columns = [label] if weight is None else [label, weight]
        self._codes = _LabelCodes()
        self._read: list[tuple[NDArray[np.int32], Floats | None]] = []
        self._digest = 0
        self.n_rows = 0

    def add(self, batch: Any) -> None:
        """Add a batch of the first pass, as an Arrow table."""
        with naming(f"column {self.columns[0]!r}"):
            codes = self._codes.add(batch.column(self.columns[0]))
        self._read.append((codes, self._weights(batch)))
        self._digest += _digest(*self._read[-1], self.n_rows)
        self.n_rows += len(batch)

    def digest(self, batch: Any, first_row: int) -> int:
        """Return the digest of a batch of a later pass; digests of batches add up."""
        codes = self._codes.known(batch.column(self.columns[0]))
        return _digest(codes, self._weights(batch), first_row)

    def matches(self, digest: int) -> bool:
        """Whether a total digest is that of the first pass."""
        return (digest - self._digest) % 2**64 == 0

    def pop_columns(self, of: Any) -> tuple[CodedLabels, Floats | None]:
        """Return labels, with their Arrow type, and weights, and free their memory."""
        read, self._read = self._read, []
        codes = np.concatenate([np.empty(0, dtype=np.int32), *(codes for codes, _ in read)])
        weights = [weights for _, weights in read if weights is not None]
        labels = CodedLabels(self._codes.values(of), codes)
        return labels, np.concatenate(weights) if len(self.columns) > 1 and weights else None

    def _weights(self, batch: Any) -> Floats | None:
        return None if len(self.columns) == 1 else _floats(batch.column(self.columns[1]))


def _digest(codes: NDArray[np.int32], weights: Floats | None, first_row: int) -> int:
    of_weights = 0 if weights is None else digest_of(weights.view(np.uint64), first_row)
    return digest_of(codes.astype(np.int64).view(np.uint64), first_row) + 3 * of_weights


def _floats(column: Any) -> Floats:
    values: Floats = column.cast(require_pyarrow().float64(), safe=False).to_numpy()
    return values


class _LabelCodes:
    """Codes of labels, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._code_of: dict[Any, int] = {}

    def add(self, column: Any) -> NDArray[np.int32]:
        """Return the codes of the labels of an Arrow column, which may include new labels."""
        return _codes(column, lambda label: self._code_of.setdefault(label, len(self._code_of)))

    def known(self, column: Any) -> NDArray[np.int32]:
        """Return the codes of labels that have occurred before; others get ``_OTHER``."""
        return _codes(column, lambda label: self._code_of.get(label, _OTHER))

    def values(self, of: Any) -> NDArray[Any]:
        """Return all labels, with the given type of their column."""
        arrow = require_pyarrow()
        of = of.value_type if arrow.types.is_dictionary(of) else of
        return np.asarray(arrow.chunked_array([arrow.array([*self._code_of], type=of)]))


def _codes(column: Any, code_of: Any) -> NDArray[np.int32]:
    encoded = column.combine_chunks()
    if not require_pyarrow("pyarrow.types").is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    labels = encoded.dictionary.to_pylist()
    numbers = [_MISSING if is_missing(label) else code_of(label) for label in labels]
    code_of_value = np.array([*numbers, _MISSING], dtype=np.int32)  # the last is for null
    codes: NDArray[np.int32] = code_of_value[encoded.indices.fill_null(len(numbers)).to_numpy()]
    return codes
