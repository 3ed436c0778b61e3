"""Tables of any input type as named columns, read for training or for a fitted model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_array

from abcgbm.data.arrays import (
    OBJECT_KINDS,
    REAL_KINDS,
    ArrayColumns,
    Category,
    Floats,
    ObjectColumns,
    Rows,
    as_array,
    to_table_array,
)
from abcgbm.data.frames import (
    Frame,
    FrameColumns,
    as_frame,
    holds_plain_numbers,
    sparse_columns_of,
    sparse_frame,
)
from abcgbm.data.once import lazy
from abcgbm.data.schema import (
    Kind,
    Schema,
    bulleted_names,
    chosen_columns,
    column_label,
    names_of,
)
from abcgbm.data.sparse import SparseColumns, SparsePart, compressed, sparse_columns


@dataclass(frozen=True)
class Table:
    """Rows of features, in the storage in which they were passed.

    Attributes
    ----------
    schema : Schema
        Names and kinds of the features.
    n_rows : int
        Number of rows.
    is_sparse : ndarray of bool of shape (n_features,)
        Mask of the features in ``sparse``; the others are in ``dense``, both in order.
    dense : ArrayColumns (or ObjectColumns) or FrameColumns
        Columns with all values stored.
    sparse : SparseColumns or None
        Columns with few values stored.
    """

    schema: Schema
    n_rows: int
    is_sparse: NDArray[np.bool_]
    dense: ArrayColumns | FrameColumns
    sparse: SparseColumns | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return self.n_rows, len(self.is_sparse)

    def __len__(self) -> int:
        return self.n_rows

    @property
    def feature_names(self) -> NDArray[Any] | None:
        """Names of the features, if all are strings."""
        return self.schema.feature_names

    @lazy
    def kind(self) -> NDArray[np.int8]:
        """Kind of each feature."""
        kind = np.where(self.is_sparse, Kind.SPARSE, Kind.NUMERIC)
        return np.where(self.schema.is_categorical, Kind.CATEGORICAL, kind).astype(np.int8)

    def features(self, kind: Kind) -> NDArray[np.intp]:
        """Return the features of a kind."""
        return np.flatnonzero(self.kind == kind)

    def take(self, rows: Rows) -> Table:
        """Return some of the rows, argument as a slice or as row numbers."""
        n_rows = len(range(*rows.indices(self.n_rows))) if isinstance(rows, slice) else len(rows)
        stored = None if self.sparse is None else self.sparse.take(rows)
        return Table(self.schema, n_rows, self.is_sparse, self.dense.take(rows), stored)

    def __getitem__(self, rows: Rows) -> Table:
        return self.take(rows)

    def floats(self, features: NDArray[np.intp]) -> Floats:
        """Return numeric features as floats of shape (n_rows, len(features)); NaN is missing.

        Only these are converted; float64 columns are not copied.
        """
        if not self.is_sparse[features].any():
            return self.dense.floats(self._column[features])
        values = np.empty((self.n_rows, len(features)))
        self.write(values, np.arange(len(features)), features)
        return values

    def write(self, values: Floats, places: NDArray[np.intp], features: NDArray[np.intp]) -> None:
        """Write numeric features into the given columns (``places``) of an array."""
        columns, is_sparse = self._column[features], self.is_sparse[features]
        self.dense.write(values, places[~is_sparse], columns[~is_sparse])
        if self.sparse is not None and is_sparse.any():
            self.sparse.write(values, places[is_sparse], columns[is_sparse])

    def categories(self, feature: int) -> Iterator[list[Category]]:
        """Yield the values of a categorical feature, one chunk of rows at a time.

        Values are strings or floats; None is missing.
        """
        columns = self.sparse if self.is_sparse[feature] else None
        return (columns or self.dense).categories(int(self._column[feature]))

    def sparse_part(self) -> SparsePart | None:
        """Return the sparse features in the format of the core; None if there are none."""
        features = self.features(Kind.SPARSE)
        if self.sparse is None or not len(features):
            return None
        return self.sparse.part(self._column[features], features)

    @lazy
    def _column(self) -> NDArray[np.intp]:
        """Index of each feature among the dense or the sparse ones."""
        return np.where(self.is_sparse, np.cumsum(self.is_sparse), np.cumsum(~self.is_sparse)) - 1


# ------------------------------------------------------------------------------------------ reading


class _Argument(NamedTuple):
    """An argument that is a table, as named in errors.

    Attributes
    ----------
    owner : str
        The estimator it is passed to.
    name : str
        The argument.
    """

    owner: str
    name: str

    @property
    def suffix(self) -> str:
        """Suffix that distinguishes columns of another argument from those of X."""
        return "" if self.name == "X" else f" of {self.name}"


def read_table(
    X: Any, categorical_features: Any = "auto", owner: str = "abcgbm", name: str = "X"
) -> Table:
    """Read a table to train on.

    Parameters
    ----------
    X : table of shape (n_rows, n_features)
        An array-like of numbers, a data frame, an Arrow table or a sparse matrix.
    categorical_features : "auto", None, or list of names, of indices or of booleans
        Categorical columns. "auto": columns of strings, categories, enums and dictionaries.
    owner, name : str
        Names of the estimator and of the table in errors.
    """
    argument, frame = _Argument(owner, name), as_frame(X, name)
    is_auto = isinstance(categorical_features, str) and categorical_features == "auto"
    if frame is None:
        named = None if is_auto else categorical_features
        table = _from_array(X, argument, lambda n: chosen_columns(named, n, None))
    else:
        table = _from_frame(frame, argument)
    names, n_features = table.feature_names, table.shape[1]
    if is_auto:
        chosen = _auto_categorical(table)
    else:
        chosen = chosen_columns(categorical_features, n_features, names)
    table = with_schema(table, Schema(chosen, names))
    _refuse_strings(table, "is not among categorical_features")
    return table


def read_table_like(X: Any, schema: Schema, owner: str = "abcgbm", name: str = "X") -> Table:
    """Read a table with the columns of an earlier one, matched by name if both have names.

    Kinds of features are those of ``schema``, whatever the types of the columns.

    Parameters
    ----------
    X : table of shape (n_rows, n_features)
        As in `read_table`.
    schema : Schema
        The expected columns.
    owner, name : str
        Names of the estimator and of the table in errors.
    """
    argument, frame = _Argument(owner, name), as_frame(X, name)
    names = None if frame is None else names_of(frame.columns)
    _check_names(names, schema, argument)
    if frame is None:
        table = _from_array(X, argument, schema.categories_among)
    else:
        table = _from_frame(_in_order(frame, names, schema.feature_names), argument)
    n_features, expected = table.shape[1], len(schema.is_categorical)
    if n_features != expected:
        raise ValueError(
            f"{name} has {n_features} features, but {owner} is expecting {expected} features as "
            "input."
        )
    table = with_schema(table, schema)
    _refuse_strings(table, "was not categorical in fit")
    return table


def with_schema(table: Table, schema: Schema) -> Table:
    """Return the same columns with other names or kinds."""
    return Table(schema, table.n_rows, table.is_sparse, table.dense, table.sparse)


# ------------------------------------------------------------------------------------------- arrays


def _from_array(
    X: Any, argument: _Argument, categories: Callable[[int], NDArray[np.bool_]]
) -> Table:
    """Read an array or a sparse matrix.

    ``categories`` returns the mask of categorical features, which alone may hold strings, for a
    number of features.
    """
    if sparse.issparse(X):
        X = compressed(X, argument.name)
    elif not _is_checked(X):
        X = to_table_array(X, argument.name)
        is_flat = getattr(X, "ndim", 0) == 2  # noqa: PLR2004
        if is_flat and getattr(X.dtype, "kind", "") in OBJECT_KINDS:
            is_category = categories(X.shape[1])
            if is_category.any():
                return _from_objects(X, is_category, argument)
    values = X if _is_checked(X) else _checked(as_array(X, argument.name), argument)
    n_rows, n_features = values.shape
    schema = Schema(np.zeros(n_features, dtype=bool))
    if sparse.issparse(values):
        is_sparse, no_columns = np.ones(n_features, dtype=bool), ArrayColumns(np.empty((n_rows, 0)))
        return Table(schema, n_rows, is_sparse, no_columns, sparse_columns(values, argument.name))
    return Table(schema, n_rows, np.zeros(n_features, dtype=bool), ArrayColumns(values))


def _from_objects(X: NDArray[Any], is_category: NDArray[np.bool_], argument: _Argument) -> Table:
    """Read an array of objects or strings with categorical columns."""
    objects = np.ma.filled(X.astype(object), np.nan)
    numbers = np.full(objects.shape, np.nan)
    numbers[:, ~is_category] = as_array(objects[:, ~is_category], argument.name)
    n_rows, n_features = _checked(numbers, argument).shape
    nowhere, labels = np.zeros(n_features, dtype=bool), _labels([*range(n_features)], argument)
    return Table(Schema(nowhere), n_rows, nowhere, ObjectColumns(numbers, objects, tuple(labels)))


def _is_checked(X: Any) -> bool:
    """Whether scikit-learn's checks, which are slow for a single row, would change nothing."""
    return type(X) is np.ndarray and X.ndim == 2 and X.size > 0 and X.dtype.kind in REAL_KINDS  # noqa: PLR2004


def _checked(array: Any, argument: _Argument) -> Any:
    is_real = getattr(array.dtype, "kind", "") in REAL_KINDS
    return check_array(
        array,
        accept_sparse=("csr", "csc"),
        dtype="numeric" if is_real else np.float64,  # real types are kept
        ensure_all_finite=False,
        estimator=argument.owner,
        input_name=argument.name,
    )


# ------------------------------------------------------------------------------------------- frames


def _in_order(frame: Frame, names: Any, expected: Any) -> Frame:
    """Reorder columns by name, if both tables have names."""
    if names is None or expected is None or np.array_equal(names, expected):
        return frame
    place = {name: column for column, name in enumerate(names)}
    return frame[:, [place[name] for name in expected]]


def _from_frame(frame: Frame, argument: _Argument) -> Table:
    n_rows, columns = _checked_length(frame, argument), frame.columns
    nowhere, labels = np.zeros(len(columns), dtype=bool), _labels(columns, argument)
    schema = Schema(nowhere, names_of(columns))
    if holds_plain_numbers(frame):
        return Table(schema, n_rows, nowhere, FrameColumns.from_plain_numbers(frame, labels))
    is_sparse = sparse_columns_of(frame)
    if not is_sparse.any():
        return Table(schema, n_rows, is_sparse, FrameColumns.from_frame(frame, labels))
    stored = sparse_frame(frame[:, np.flatnonzero(is_sparse).tolist()])
    if is_sparse.all():  # a frame without columns has no rows
        return Table(schema, n_rows, is_sparse, ArrayColumns(np.empty((n_rows, 0))), stored)
    others = frame[:, np.flatnonzero(~is_sparse).tolist()]
    dense = FrameColumns.from_frame(others, _labels(others.columns, argument))
    return Table(schema, n_rows, is_sparse, dense, stored)


def _labels(columns: list[Any], argument: _Argument) -> list[str]:
    return [column_label(column) + argument.suffix for column in columns]


def _checked_length(frame: Frame, argument: _Argument) -> int:
    for size, what in zip(frame.shape[::-1], ("feature", "sample"), strict=True):
        if size == 0:
            raise ValueError(
                f"Found {argument.name} with 0 {what}(s) (shape={frame.shape}) while a minimum of 1 "
                f"is required by {argument.owner}."
            )
    return frame.shape[0]


def _check_names(names: Any, schema: Schema, argument: _Argument) -> None:
    """Compare feature names like scikit-learn, except that order is free and warnings come once."""
    expected = schema.feature_names
    if names is None and expected is None:
        return
    if expected is None:
        schema.warn_of_names(
            f"{argument.name} has feature names, but {argument.owner} was fitted without feature names"
        )
    elif names is None:
        schema.warn_of_names(
            f"{argument.name} does not have valid feature names, but {argument.owner} was fitted with "
            "feature names"
        )
    elif set(names) != set(expected):
        raise ValueError(
            f"The feature names{argument.suffix} should match those that were passed during fit.\n"
            + bulleted_names("unseen at fit time", set(names) - set(expected))
            + bulleted_names("seen at fit time, yet now missing", set(expected) - set(names))
        )


# --------------------------------------------------------------------------------------- categories


def _auto_categorical(table: Table) -> NDArray[np.bool_]:
    """Return the mask of columns of strings, categories, enums or dictionaries, even if empty."""
    mask = np.zeros(table.shape[1], dtype=bool)
    if isinstance(table.dense, FrameColumns):
        columns = range(len(table.dense.contents))
        mask[~table.is_sparse] = list(map(table.dense.holds_categories, columns))
    return mask


def _refuse_strings(table: Table, why: str) -> None:
    """Raise a ValueError that names the first numeric column of strings."""
    if not isinstance(table.dense, FrameColumns):
        return
    is_category = table.schema.is_categorical[~table.is_sparse]
    for column in np.flatnonzero(~is_category).tolist():
        if table.dense.holds_strings(column):
            raise ValueError(  # the type of error for strings in an array
                f"{table.dense.labels[column]} holds strings and {why}; expected numbers"
            )
