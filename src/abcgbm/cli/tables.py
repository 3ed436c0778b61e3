"""Table files as commands need them: to learn from, or to ask a model about, a part at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abcgbm import ABCBoostClassifier
from abcgbm.cli.class_labels import ClassLabels, labels_of
from abcgbm.cli.failure import Misuse
from abcgbm.data.cells import naming
from abcgbm.data.files.column_types import (
    columns_of_type,
    end_to_end,
    is_number,
    is_text,
    without,
)
from abcgbm.data.files.delimited import DelimitedFile
from abcgbm.data.files.errors import TableFileError
from abcgbm.data.files.formats import Reading, checked_path, looks_undivided, shortened
from abcgbm.data.files.svmlight import SvmlightFile
from abcgbm.data.files.table_file import NamedFile, find_column, open_table


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


def _labels_like(file: NamedFile, label: str, y: Any, like: LabelledTable) -> Any:
    """Return labels as they were in training: one that is no number makes text of its column."""
    if y.dtype != object or like.y.dtype == object:
        return y
    known = ClassLabels(np.unique(like.y).tolist())
    found = known.of_array(y)
    texts = [*dict.fromkeys(value for value in found.tolist() if isinstance(value, str))]
    if texts and known.are_numbers:
        what = f"the labels {shortened(texts, 5)}; expected numbers, as in training"
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
        parts = file.parts(model.n_features_in_)
        yield from (LabelledTable(X, labels.of_array(y)) for X, y in parts)
        return
    label = _found(file, label, "label")
    names = _names_like(file, model, label)
    others = [find_column(file, name, "column to keep") for name in kept]
    written = [*others, *([] if label is None else [label])]
    missing = file.missing if isinstance(file, DelimitedFile) else ()
    for table, as_written in file.parts_with(
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
    X = end_to_end(tables) if hasattr(tables[0], "schema") else sparse.vstack(tables, format="csr")
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
        what = f"columns of the model are not there: {shortened(missing)}"
        hint = "delimiter" if looks_undivided(file.names) else None
        what += f"; there are {shortened(file.names)}"
        raise TableFileError(file.path, what, hint=hint)
    return list(known.tolist())


def _asked_names(model: ABCBoostClassifier, names: list[str]) -> list[str]:
    known = getattr(model, "feature_names_in_", None)
    return names if known is None else list(known.tolist())


def _kinds_like(model: ABCBoostClassifier, names: list[str]) -> tuple[list[str], list[str]]:
    """Return which columns the model knows as text, and which as numbers."""
    encoding = model.model_.encoding
    # A category without levels has seen nothing: any cell is as new to it as any other.
    texts = {n for n, of in encoding.levels.items() if of.has_strings or not of.code_of}
    numbers = [name for feature, name in enumerate(names) if feature not in texts]
    return [names[feature] for feature in sorted(texts)], numbers
