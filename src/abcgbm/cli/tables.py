"""Table files as the commands read them, and labels as text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abcgbm import ABCBoostClassifier
from abcgbm.cli.console import Misuse
from abcgbm.data.arrays import naming
from abcgbm.data.files.column_types import (
    columns_of_type,
    concat_tables,
    is_number,
    is_text,
    reads_as_number,
    without,
)
from abcgbm.data.files.csv import DelimitedFile
from abcgbm.data.files.file_source import NamedFile, find_column, open_table
from abcgbm.data.files.formats import Reading, checked_path, looks_undivided
from abcgbm.data.files.svmlight import SvmlightFile
from abcgbm.data.labels import check_no_time_zone
from abcgbm.errors import TableFileError, quoted_list, require_pyarrow


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


@dataclass(frozen=True)
class Columns:
    """Which columns of a table play a part of their own, by name or position.

    Attributes
    ----------
    label : str or None
        The labels.
    weight : str or None
        The sample weights.
    ignored : sequence of str
        Columns that are not looked at.
    """

    label: str | None = None
    weight: str | None = None
    ignored: Sequence[str] = ()


@dataclass(frozen=True)
class LabelledTable:
    """A table, its labels and its weights.

    Attributes
    ----------
    X : Arrow table, or scipy csr matrix
        The features.
    y : ndarray of shape (n_rows,) or None
        The labels.
    weight : ndarray of shape (n_rows,) or None
        The weights.
    others : dict of str to Arrow array
        Columns that were asked for beside these.
    """

    X: Any
    y: Any = None
    weight: NDArray[Any] | None = None
    others: dict[str, Any] | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def with_labels_only(self) -> LabelledTable:
        """Return the rows that have a label."""
        has_label = np.array([label is not None for label in self.y.tolist()], dtype=bool)
        if has_label.all():
            return self
        X = self.X.filter(has_label) if hasattr(self.X, "schema") else self.X[has_label]
        return LabelledTable(X, self.y[has_label])


def read_to_learn(
    path: Path, columns: Columns, reading: Reading, like: LabelledTable | None = None
) -> LabelledTable:
    """Read a whole table to learn from; all columns are features but those with a part.

    Another table that was read before says which columns are text, and which numbers.
    """
    file = open_table(path, reading)
    if isinstance(file, SvmlightFile):
        _check_no_columns(columns)
        return LabelledTable(*file.read(None if like is None else _n_sparse_features(like)))
    check_label(path, columns.label, reading)
    label = find_column(file, str(columns.label), "label")
    weight = _found(file, columns.weight, "weight")
    ignored = [find_column(file, name, "column to ignore") for name in columns.ignored]
    features = without(file.names, [label, *([] if weight is None else [weight]), *ignored])
    if not features:
        raise TableFileError(path, "no column is left to learn from")
    if like is not None:
        _check_features_of(like, features, file)
    wanted = {*features, label, *([] if weight is None else [weight])}
    texts, numbers = _kinds_of(like, label) if like is not None else ([], [])
    table = file.read(
        wanted, [n for n in texts if n in wanted], [n for n in numbers if n in wanted]
    )
    _check_no_label_is_missing(file, label, table)
    with naming(_place(file, label)):
        y = labels_of(table.column(label))
    if like is not None:
        y = _labels_like(file, label, y, like)
    return LabelledTable(table.select(features), y, _weights(file, weight, table))


def _check_features_of(like: LabelledTable, features: list[str], file: NamedFile) -> None:
    """Refuse a table that lacks features of another one."""
    missing = without(like.X.column_names, features)
    if missing:
        what = f"columns of the table to learn from are not there: {quoted_list(missing)}"
        raise TableFileError(file.path, f"{what}; there are {quoted_list(file.names)}")


def _labels_like(file: NamedFile, label: str, y: Any, like: LabelledTable) -> Any:
    """Return labels as they were in training: one that is no number makes text of its column."""
    if y.dtype != object or like.y.dtype == object:
        return y
    known = ClassLabels(np.unique(like.y).tolist())
    found = known.of_array(y)
    texts = [*dict.fromkeys(value for value in found.tolist() if isinstance(value, str))]
    if texts and known.are_numbers:
        what = f"the labels {quoted_list(texts, 5)}; expected numbers, as in training"
        raise TableFileError(file.path, what, column=label)
    return found


def _n_sparse_features(like: LabelledTable) -> int:
    if hasattr(like.X, "schema"):
        raise Misuse("a LibSVM file beside one with named columns; expected both of one kind")
    return int(like.X.shape[1])


def _check_no_label_is_missing(file: NamedFile, label: str, table: Any) -> None:
    n_missing = table.column(label).null_count
    if n_missing:
        what = f"{n_missing:,} of {len(table):,} rows have no label; expected one in each row"
        raise TableFileError(file.path, what, column=label)


def _kinds_of(table: LabelledTable, label: str) -> tuple[list[str], list[str]]:
    """Return which columns of a table are text, and which numbers."""
    if not hasattr(table.X, "schema"):
        raise Misuse("a LibSVM file beside one with named columns; expected both of one kind")
    texts = columns_of_type(table.X.schema, is_text)
    numbers = columns_of_type(table.X.schema, is_number)
    has_text = table.y is not None and table.y.dtype.kind in "UO"
    return [*texts, label] if has_text else texts, numbers


def read_like(
    path: Path,
    model: ABCBoostClassifier,
    label: str | None,
    reading: Reading,
    kept: Sequence[str] = (),
) -> Iterator[LabelledTable]:
    """Yield a table whose columns are those of a model, a part at a time; others are left alone.

    Labels are the model's own where it knows them, None where they are missing, else as they are in
    the file. There is a part at least, perhaps without rows.
    """
    file, labels = open_table(path, reading), ClassLabels(model.model_.labels, reading.decimal)
    if isinstance(file, SvmlightFile):
        _check_no_columns(Columns(label), kept)
        parts = file.batches(model.n_features_in_)
        yield from (LabelledTable(X, labels.of_array(y)) for X, y in parts)
        return
    label = _found(file, label, "label")
    names = _names_like(file, model, label)
    others = [find_column(file, name, "column to keep") for name in kept]
    written = [*others, *([] if label is None else [label])]
    missing = file.missing if isinstance(file, DelimitedFile) else ()
    for table, as_written in file.batches_with_text(
        dict.fromkeys(written), names, *_kinds_like(model, names)
    ):
        X = table.select(names).rename_columns(_asked_names(model, names))
        with naming(_place(file, label)):
            y = None if label is None else labels.of_column(as_written.column(label), missing)
        yield LabelledTable(X, y, None, {name: as_written.column(name) for name in others})


def read_labelled(
    path: Path, model: ABCBoostClassifier, label: str | None, reading: Reading
) -> LabelledTable:
    """Read a whole table with labels, whose columns are those of a model; None is a missing one."""
    check_label(path, label, reading)
    parts = [*read_like(path, model, label, reading)]
    if not sum(map(len, parts)):
        raise TableFileError(path, "no rows; expected a table")
    tables = [part.X for part in parts]
    X = (
        concat_tables(tables)
        if hasattr(tables[0], "schema")
        else sparse.vstack(tables, format="csr")
    )
    return LabelledTable(X, np.concatenate([part.y for part in parts]))


def check_label(path: Path, label: str | None, reading: Reading) -> None:
    """Refuse to go on without labels, which a LibSVM file has in front."""
    if label is None and reading.format_of(checked_path(path)) != "libsvm":
        raise Misuse("--label is missing; expected the column of labels, by name or position")


def _check_no_columns(columns: Columns, kept: Sequence[str] = ()) -> None:
    has_named = columns.weight is not None or columns.ignored or kept
    if has_named or columns.label not in (None, "0"):
        raise Misuse("a LibSVM file has its labels in front, and no columns with names")


def _found(file: NamedFile, given: str | None, what: str) -> str | None:
    return None if given is None else find_column(file, given, what)


def _weights(file: NamedFile, weight: str | None, table: Any) -> NDArray[Any] | None:
    with naming(_place(file, weight)):
        return None if weight is None else table.column(weight).to_numpy()


def _place(file: NamedFile, column: str | None) -> str:
    """Return what errors call a column of a file."""
    return f"{file.path}, column {column!r}"


# ---------------------------------------------------------------------------------- as a model has it


def _names_like(file: NamedFile, model: ABCBoostClassifier, label: str | None) -> list[str]:
    """Return the columns of a file that are the features of a model, in its order.

    Without names, in the file or in the model, they are all columns but that of labels.
    """
    known = getattr(model, "feature_names_in_", None)
    others = [name for name in file.names if name != label]
    if known is None and len(others) != model.n_features_in_:
        what = f"{len(others)} columns; expected the {model.n_features_in_} of the model"
        raise TableFileError(file.path, what)
    if known is None or (not file.has_header and len(others) == len(known)):
        return others
    missing = without(known.tolist(), [*file.names, *file.index_names])
    if missing:
        what = f"columns of the model are not there: {quoted_list(missing)}"
        hint = "delimiter" if looks_undivided(file.names) else None
        what += f"; there are {quoted_list(file.names)}"
        raise TableFileError(file.path, what, hint=hint)
    return list(known.tolist())


def _asked_names(model: ABCBoostClassifier, names: list[str]) -> list[str]:
    known = getattr(model, "feature_names_in_", None)
    return names if known is None else list(known.tolist())


def _kinds_like(model: ABCBoostClassifier, names: list[str]) -> tuple[list[str], list[str]]:
    """Return which columns the model knows as text, and which as numbers."""
    encoding = model.model_.encoding
    # A category without levels has seen nothing: any cell is as new to it as any other.
    texts = {n for n, of in encoding.categories.items() if of.has_strings or not of.code_of}
    numbers = [name for feature, name in enumerate(names) if feature not in texts]
    return [names[feature] for feature in sorted(texts)], numbers
