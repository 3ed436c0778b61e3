"""The labels and weights of a table that comes in parts, by the names of their columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.cells import is_missing, naming
from abcgbm.data.columns import Floats
from abcgbm.data.files.errors import require_pyarrow
from abcgbm.data.labels import ALLOWED_LABELS, CodedLabels
from abcgbm.data.parts.digests import digest_of
from abcgbm.data.parts.large_table import LargeTable
from abcgbm.data.plain_labels import check_no_time_zone

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
