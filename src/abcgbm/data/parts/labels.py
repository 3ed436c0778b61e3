"""The labels and weights of a table that comes in parts, by the names of their columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.cells import is_missing
from abcgbm.data.columns import Floats
from abcgbm.data.files.errors import require_pyarrow
from abcgbm.data.labels import CodedLabels
from abcgbm.data.parts.source import Source


class _LabelCodes:
    """The labels that have occurred, and their numbers in the order in which they came."""

    def __init__(self) -> None:
        self._code_of: dict[Any, int] = {}
        self._codes: list[NDArray[np.int32]] = []

    def add(self, column: Any) -> None:
        """Take note of some rows of an Arrow column."""
        encoded = column.combine_chunks()
        if not require_pyarrow("pyarrow.types").is_dictionary(encoded.type):
            encoded = encoded.dictionary_encode()
        numbers = [self._code(label) for label in encoded.dictionary.to_pylist()]
        of_level = np.array([*numbers, -1], dtype=np.int32)  # the last is for missing ones
        self._codes.append(of_level[encoded.indices.fill_null(len(numbers)).to_numpy()])

    def _code(self, label: Any) -> int:
        return -1 if is_missing(label) else self._code_of.setdefault(label, len(self._code_of))

    def labels(self, of: Any) -> CodedLabels:
        """Return all labels; ``of`` is the type of their column."""
        arrow = require_pyarrow()
        of = of.value_type if arrow.types.is_dictionary(of) else of
        known = np.asarray(arrow.chunked_array([arrow.array([*self._code_of], type=of)]))
        codes = np.concatenate([np.empty(0, dtype=np.int32), *self._codes])
        return CodedLabels(known, codes)


def read_labels(source: Source, label: str, weight: str | None) -> tuple[CodedLabels, Any]:
    """Read the column of labels and that of weights, in one go."""
    codes, weights, columns = _LabelCodes(), [np.empty(0)], [label]
    columns += [] if weight is None else [weight]
    for part in source.parts(columns):
        codes.add(part.column(label))
        if weight is not None:
            weights.append(_floats(part.column(weight), weight))
    found = codes.labels(source.schema.field(label).type)
    return found, None if weight is None else np.concatenate(weights)


def _floats(column: Any, name: str) -> Floats:
    arrow = require_pyarrow()
    try:
        values: Floats = column.cast(arrow.float64(), safe=False).to_numpy()
    except arrow.ArrowException as error:
        raise TypeError(
            f"the column of weights, {name!r}, is of type {column.type}; expected numbers"
        ) from error
    return values
