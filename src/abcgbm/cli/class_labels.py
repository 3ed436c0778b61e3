"""Columns of labels: as a table has them to learn from, or as the classes of a model are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.files.column_types import is_text, reads_as_number
from abcgbm.data.files.errors import require_pyarrow
from abcgbm.data.plain_labels import check_no_time_zone


def labels_of(column: Any) -> NDArray[Any]:
    """Return an Arrow column as labels, of the type that pandas would give them.

    Where one is missing it is None, among objects.
    """
    types, of = require_pyarrow("pyarrow.types"), column.type
    check_no_time_zone(of, "the column of labels")
    if types.is_dictionary(of):
        return labels_of(column.cast(of.value_type))
    if types.is_decimal(of):
        return labels_of(column.cast(require_pyarrow().float64()))
    is_plain = types.is_primitive(of) and not types.is_date(of) and not types.is_time(of)
    if is_plain and not column.null_count:
        labels: NDArray[Any] = column.to_numpy()
        return labels
    if is_text(of):
        return _text_labels(column)
    return np.fromiter(column.to_pylist(), dtype=object, count=len(column))


def _text_labels(column: Any) -> NDArray[Any]:
    """Return text as objects, each string once."""
    values, which = _distinct(column)
    labels: NDArray[Any] = values[which]
    return labels


def _distinct(column: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the distinct values of a column as objects, None last, and which each row has."""
    if is_text(column.type):
        column = column.cast(require_pyarrow().large_string())
    elif require_pyarrow("pyarrow.types").is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = column.combine_chunks().dictionary_encode()
    values = [*encoded.dictionary.to_pylist(), None]
    which = encoded.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False)
    return np.fromiter(values, dtype=object, count=len(values)), which


class ClassLabels:
    """Finds the class that a value of a table stands for, whatever the type of its column.

    Parameters
    ----------
    labels : sequence of labels
        The classes of a model.
    decimal : {".", ","}
        What is before the decimals of a number in text.
    """

    def __init__(self, labels: Sequence[Any], decimal: str = ".") -> None:
        self._decimal = decimal
        self._own = {label: label for label in labels}
        self._by_text = {text: label for label in labels for text in _spellings(label)}
        self.are_numbers = all(isinstance(label, int | float | np.number) for label in labels)

    def of_column(self, column: Any, missing: Collection[str] = ()) -> NDArray[Any]:
        """Return the labels of a column of a file; text that is among ``missing`` is None."""
        values, which = _distinct(column)
        found: NDArray[Any] = self._found(values, missing)[which]
        return found

    def of_array(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the labels of an array."""
        distinct, which = np.unique(values, return_inverse=True)
        found: NDArray[Any] = self._found(distinct.astype(object), ())[which]
        return found

    def _found(self, values: NDArray[Any], missing: Collection[str]) -> NDArray[Any]:
        found = [None if value in missing else self.label(value) for value in values]
        return np.fromiter(found, dtype=object, count=len(found))

    def label(self, value: Any) -> Any:
        """Return the label that a value is; the value itself if it is none of them."""
        if value is None or value != value:  # noqa: PLR0124 (NaN)
            return None
        if value in self._own:
            return self._own[value]
        if str(value) in self._by_text:
            return self._by_text[str(value)]
        is_number = isinstance(value, str) and reads_as_number(value, self._decimal)
        return self._of_number(value) if self.are_numbers and is_number else value

    def _of_number(self, text: str) -> Any:
        """Return the label that a number is, as an integer or as a float; else the text."""
        for read in (int, float):
            with suppress(ValueError):
                number = read(text.replace(self._decimal, "."))
                if number in self._own:
                    return self._own[number]
        return text


def _spellings(label: Any) -> list[str]:
    """Return how a label is spelled in a file."""
    text = str(label)
    is_truth = isinstance(label, bool | np.bool_)
    return [text, text.lower(), text.upper()] if is_truth else [text]
