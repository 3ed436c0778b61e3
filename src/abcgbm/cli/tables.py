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
from abcgbm.cli.failure import Misuse
from abcgbm.data.files.delimited import united
from abcgbm.data.files.errors import TableFileError
from abcgbm.data.files.formats import Reading, checked_path
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


def read_to_learn(
    path: Path, columns: Columns, reading: Reading, like: LabelledTable | None = None
) -> LabelledTable:
    """Read a whole table to learn from; all columns are features but those with a part.

    Another table that was read before says which columns are text, and which numbers.
    """
    file = open_table(path, reading)
    if isinstance(file, SvmlightFile):
        _check_no_columns(columns)
        return LabelledTable(*file.read())
    check_label(path, columns.label, reading)
    label = find_column(file.names, str(columns.label), path, "label")
    weight = _found(file, columns.weight, "weight")
    ignored = [find_column(file.names, name, path, "column to ignore") for name in columns.ignored]
    features = [name for name in file.names if name not in (label, weight, *ignored)]
    if not features:
        raise TableFileError(path, "no column is left to learn from")
    wanted = [*features, label, *([] if weight is None else [weight])]
    texts, numbers = _kinds_of(like, label) if like is not None else ([], [])
    table = file.read(
        wanted, [n for n in texts if n in wanted], [n for n in numbers if n in wanted]
    )
    return LabelledTable(table.select(features), *_parts(table, label, weight))


def _kinds_of(table: LabelledTable, label: str) -> tuple[list[str], list[str]]:
    """Return which columns of a table are text, and which numbers."""
    if not hasattr(table.X, "schema"):
        raise Misuse("a LibSVM file beside one with named columns; expected both of one kind")
    texts = [f.name for f in table.X.schema if str(f.type) == "string"]
    numbers = [f.name for f in table.X.schema if str(f.type) in ("int64", "double", "bool")]
    has_text = table.y is not None and table.y.dtype.kind in "UO"
    return [*texts, label] if has_text else texts, numbers


def read_like(
    path: Path,
    model: ABCBoostClassifier,
    columns: Columns,
    reading: Reading,
    others: Sequence[str] = (),
) -> Iterator[LabelledTable]:
    """Yield a table whose columns are those of a model, a part at a time; others are left alone."""
    file = open_table(path, reading)
    if isinstance(file, SvmlightFile):
        _check_no_columns(columns)
        yield from (LabelledTable(*rows) for rows in file.parts(model.n_features_in_))
        return
    label = _found(file, columns.label, "label")
    weight = _found(file, columns.weight, "weight")
    names = _names_like(file, model, apart={label, weight})
    kept = [find_column(file.names, name, path, "column to keep") for name in others]
    wanted = {name for name in (*names, label, weight, *kept) if name is not None}
    texts, numbers = _kinds_like(model, names)
    if label is not None and model.classes_.dtype.kind in "UO":
        texts = [*texts, label]
    for table in file.parts(wanted, texts, numbers):
        X = table.select(names).rename_columns(_asked_names(model, names))
        given = {name: table.column(name) for name in kept}
        yield LabelledTable(X, *_parts(table, label, weight), given)


def read_labelled(
    path: Path, model: ABCBoostClassifier, columns: Columns, reading: Reading
) -> LabelledTable:
    """Read a whole table with labels, whose columns are those of a model."""
    check_label(path, columns.label, reading)
    parts = [*read_like(path, model, columns, reading)]
    if not parts:
        raise TableFileError(path, "no rows; expected a table")
    tables = [part.X for part in parts]
    X = united(tables) if hasattr(tables[0], "schema") else sparse.vstack(tables, format="csr")
    return LabelledTable(X, np.concatenate([part.y for part in parts]))


def check_label(path: Path, label: str | None, reading: Reading) -> None:
    """Refuse to go on without labels, which a LibSVM file has in front."""
    if label is None and reading.format_of(checked_path(path)) != "libsvm":
        raise Misuse("--label is missing; expected the column of labels, by name or position")


def _check_no_columns(columns: Columns) -> None:
    if columns.weight is not None or columns.ignored or columns.label not in (None, "0"):
        raise Misuse("a LibSVM file has its labels in front, and no columns with names")


def _found(file: NamedFile, given: str | None, what: str) -> str | None:
    return None if given is None else find_column(file.names, given, file.path, what)


def _parts(table: Any, label: str | None, weight: str | None) -> tuple[Any, Any]:
    y = None if label is None else labels_of(table.column(label))
    return y, None if weight is None else table.column(weight).to_numpy()


def labels_of(column: Any) -> NDArray[Any]:
    """Return an Arrow column as labels; None where one is missing."""
    encoded = column.combine_chunks().dictionary_encode()
    values = encoded.dictionary.to_pylist()
    if len(values) == 0 or encoded.null_count:
        values = np.array([*values, None], dtype=object)
        return values[encoded.indices.fill_null(len(values) - 1).to_numpy()]  # type: ignore[no-any-return]
    is_number = isinstance(values[0], int | float)  # else objects, as in a data frame
    made = np.array(values, dtype=None if is_number else object)
    labels: NDArray[Any] = made[encoded.indices.to_numpy()]
    return labels


# ---------------------------------------------------------------------------------- as a model has it


def _names_like(file: NamedFile, model: ABCBoostClassifier, apart: set[str | None]) -> list[str]:
    """Return the columns of a file that are the features of a model, in its order.

    Without names, in the file or in the model, they are all columns but those ``apart``.
    """
    known = getattr(model, "feature_names_in_", None)
    others = [name for name in file.names if name not in apart]
    if known is None and len(others) != model.n_features_in_:
        what = f"{len(others)} columns; expected the {model.n_features_in_} of the model"
        raise TableFileError(file.path, what)
    if known is None or (not file.has_header and len(others) == len(known)):
        return others
    missing = [name for name in known.tolist() if name not in file.names]
    if missing:
        what = f"columns of the model are not there: {_listed(missing)}"
        raise TableFileError(file.path, f"{what}; there are {_listed(file.names)}")
    return list(known.tolist())


def _listed(names: list[str], most: int = 10) -> str:
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


def _asked_names(model: ABCBoostClassifier, names: list[str]) -> list[str]:
    known = getattr(model, "feature_names_in_", None)
    return names if known is None else list(known.tolist())


def _kinds_like(model: ABCBoostClassifier, names: list[str]) -> tuple[list[str], list[str]]:
    """Return which columns the model knows as text, and which as numbers."""
    encoding = model.model_.encoding
    texts = [names[feature] for feature, of in encoding.levels.items() if of.has_strings]
    numbers = [
        name
        for name, is_category in zip(names, encoding.schema.is_categorical, strict=True)
        if not is_category
    ]
    return texts, numbers
