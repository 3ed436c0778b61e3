"""Tables: named columns of any input, read for training or as a fitted model needs them."""

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
    Floats,
    Level,
    ObjectColumns,
    Rows,
    as_array,
    made_table,
)
from abcgbm.data.frames import (
    Content,
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
    _label,
    _listed,
    _names_of,
    chosen_columns,
)
from abcgbm.data.sparse import SparseColumns, SparsePart, compressed, sparse_columns


@dataclass(frozen=True)
class Table:
    """Rows of features, still in the form they came in.

    Attributes
    ----------
    schema : Schema
        Names, and which features are categories.
    n_rows : int
        Number of rows.
    is_sparse : ndarray of bool of shape (n_features,)
        Which features are in ``sparse``; the others are in ``dense``, each in order.
    dense : ArrayColumns (or ObjectColumns) or FrameColumns
        Columns of which every value is stored.
    sparse : SparseColumns or None
        Columns of which few are.
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
        """The Kind of each feature."""
        kind = np.where(self.is_sparse, Kind.SPARSE, Kind.NUMERIC)
        return np.where(self.schema.is_categorical, Kind.CATEGORICAL, kind).astype(np.int8)

    def features(self, kind: Kind) -> NDArray[np.intp]:
        """Return the features of a kind."""
        return np.flatnonzero(self.kind == kind)

    def take(self, rows: Rows) -> Table:
        """Return some rows: a slice, or row numbers."""
        n_rows = len(range(*rows.indices(self.n_rows))) if isinstance(rows, slice) else len(rows)
        stored = None if self.sparse is None else self.sparse.take(rows)
        return Table(self.schema, n_rows, self.is_sparse, self.dense.take(rows), stored)

    def __getitem__(self, rows: Rows) -> Table:
        return self.take(rows)

    def floats(self, features: NDArray[np.intp]) -> Floats:
        """Return numeric features as floats of shape (n_rows, len(features)); NaN is missing.

        Only these are converted, and columns that are float64 already are not copied.
        """
        if not self.is_sparse[features].any():
            return self.dense.floats(self._column[features])
        values = np.empty((self.n_rows, len(features)))
        self.write(values, np.arange(len(features)), features)
        return values

    def write(self, values: Floats, places: NDArray[np.intp], features: NDArray[np.intp]) -> None:
        """Write numeric features into the columns of an array, at the given places."""
        columns, is_sparse = self._column[features], self.is_sparse[features]
        self.dense.write(values, places[~is_sparse], columns[~is_sparse])
        if self.sparse is not None and is_sparse.any():
            self.sparse.write(values, places[is_sparse], columns[is_sparse])

    def levels(self, feature: int) -> Iterator[list[Level]]:
        """Yield the values of a categorical feature, a chunk of rows at a time.

        They are strings or floats; None is missing.
        """
        columns = self.sparse if self.is_sparse[feature] else None
        return (columns or self.dense).levels(int(self._column[feature]))

    def sparse_part(self) -> SparsePart | None:
        """Return the sparse features as the core takes them; None if there are none."""
        features = self.features(Kind.SPARSE)
        if self.sparse is None or not len(features):
            return None
        return self.sparse.part(self._column[features], features)

    @lazy
    def _column(self) -> NDArray[np.intp]:
        """The place of each feature among the dense or the sparse ones."""
        return np.where(self.is_sparse, np.cumsum(self.is_sparse), np.cumsum(~self.is_sparse)) - 1


# ------------------------------------------------------------------------------------------ reading


class _Given(NamedTuple):
    """What errors speak of: the estimator that was given a table, and the argument's name."""

    owner: str
    name: str

    @property
    def suffix(self) -> str:
        """What tells apart columns and names of another argument than X."""
        return "" if self.name == "X" else f" of {self.name}"


def read_table(
    X: Any, categorical_features: Any = "auto", owner: str = "abcgbm", name: str = "X"
) -> Table:
    """Read a table to learn from.

    Parameters
    ----------
    X : table of shape (n_rows, n_features)
        An array-like of numbers, a data frame, an Arrow table or a sparse matrix.
    categorical_features : "auto", None, or list of names, of indices or of truth values
        Which columns are categories. "auto": those of strings, categories, enums and dictionaries.
    owner : str
        The estimator that errors speak of.
    name : str
        What errors call the table.
    """
    given, frame = _Given(owner, name), as_frame(X, name)
    is_auto = isinstance(categorical_features, str) and categorical_features == "auto"
    if frame is None:
        named = None if is_auto else categorical_features
        table = _from_array(X, given, lambda n: chosen_columns(named, n, None))
    else:
        table = _from_frame(frame, given)
    names, n_features = table.feature_names, table.shape[1]
    if is_auto:
        chosen = _are_levels(table)
    else:
        chosen = chosen_columns(categorical_features, n_features, names)
    table = with_schema(table, Schema(chosen, names))
    _refuse_strings(table, "is not among categorical_features")
    return table


def read_table_like(X: Any, schema: Schema, owner: str = "abcgbm", name: str = "X") -> Table:
    """Read a table whose columns must be those of an earlier one, found by name where it has any.

    A column is a category if it was one, whatever its type is now. Errors speak of the table's
    owner, an estimator, and call it by name.
    """
    given, frame = _Given(owner, name), as_frame(X, name)
    names = None if frame is None else _names_of(frame.columns)
    _check_names(names, schema, given)
    if frame is None:
        table = _from_array(X, given, schema.categories_among)
    else:
        table = _from_frame(_in_order(frame, names, schema.feature_names), given)
    n_features, expected = table.shape[1], len(schema.is_categorical)
    if n_features != expected:
        raise ValueError(
            f"{name} has {n_features} features, but {owner} is expecting {expected} features as "
            "input."
        )
    table = with_schema(table, schema)
    _refuse_strings(table, "was no category in fit")
    return table


def with_schema(table: Table, schema: Schema) -> Table:
    """Return the same columns by other names, or as other kinds."""
    return Table(schema, table.n_rows, table.is_sparse, table.dense, table.sparse)


# ------------------------------------------------------------------------------------------- arrays


def _from_array(X: Any, given: _Given, categories: Callable[[int], NDArray[np.bool_]]) -> Table:
    """Read what scikit-learn takes for an array or a sparse matrix.

    ``categories`` tells which of so many features are categories; those alone may be strings.
    """
    if sparse.issparse(X):
        X = compressed(X, given.name)
    elif not _is_checked(X):
        X = made_table(X, given.name)
        is_flat = getattr(X, "ndim", 0) == 2  # noqa: PLR2004
        if is_flat and getattr(X.dtype, "kind", "") in OBJECT_KINDS:
            is_category = categories(X.shape[1])
            if is_category.any():
                return _from_objects(X, is_category, given)
    values = X if _is_checked(X) else _checked(as_array(X, given.name), given)
    n_rows, n_features = values.shape
    schema = Schema(np.zeros(n_features, dtype=bool))
    if sparse.issparse(values):
        everywhere, nothing = np.ones(n_features, dtype=bool), ArrayColumns(np.empty((n_rows, 0)))
        return Table(schema, n_rows, everywhere, nothing, sparse_columns(values, given.name))
    return Table(schema, n_rows, np.zeros(n_features, dtype=bool), ArrayColumns(values))


def _from_objects(X: NDArray[Any], is_category: NDArray[np.bool_], given: _Given) -> Table:
    """Read an array of objects or strings of which some columns are categories."""
    objects = np.ma.filled(X.astype(object), np.nan)
    numbers = np.full(objects.shape, np.nan)
    numbers[:, ~is_category] = as_array(objects[:, ~is_category], given.name)
    n_rows, n_features = _checked(numbers, given).shape
    nowhere, labels = np.zeros(n_features, dtype=bool), _labels([*range(n_features)], given)
    return Table(Schema(nowhere), n_rows, nowhere, ObjectColumns(numbers, objects, tuple(labels)))


def _is_checked(X: Any) -> bool:
    """Whether it is an array that the checks would leave as it is: they take long for a row."""
    return type(X) is np.ndarray and X.ndim == 2 and X.size > 0 and X.dtype.kind in REAL_KINDS  # noqa: PLR2004


def _checked(array: Any, given: _Given) -> Any:
    is_real = getattr(array.dtype, "kind", "") in REAL_KINDS
    return check_array(
        array,
        accept_sparse=("csr", "csc"),
        dtype="numeric" if is_real else np.float64,  # real numbers stay as they are
        ensure_all_finite=False,
        estimator=given.owner,
        input_name=given.name,
    )


# ------------------------------------------------------------------------------------------- frames


def _in_order(frame: Frame, names: Any, expected: Any) -> Frame:
    """Put columns in the expected order, if both have names."""
    if names is None or expected is None or np.array_equal(names, expected):
        return frame
    place = {name: column for column, name in enumerate(names)}
    return frame[:, [place[name] for name in expected]]


def _from_frame(frame: Frame, given: _Given) -> Table:
    n_rows, columns = _checked_length(frame, given), frame.columns
    nowhere, labels = np.zeros(len(columns), dtype=bool), _labels(columns, given)
    schema = Schema(nowhere, _names_of(columns))
    if holds_plain_numbers(frame):
        return Table(schema, n_rows, nowhere, FrameColumns.from_plain_numbers(frame, labels))
    sparse_ones = sparse_columns_of(frame)
    if not sparse_ones.any():
        return Table(schema, n_rows, sparse_ones, FrameColumns.from_frame(frame, labels))
    stored = sparse_frame(frame[:, np.flatnonzero(sparse_ones).tolist()])
    if sparse_ones.all():  # a frame without columns would have no rows either
        return Table(schema, n_rows, sparse_ones, ArrayColumns(np.empty((n_rows, 0))), stored)
    others = frame[:, np.flatnonzero(~sparse_ones).tolist()]
    dense = FrameColumns.from_frame(others, _labels(others.columns, given))
    return Table(schema, n_rows, sparse_ones, dense, stored)


def _labels(columns: list[Any], given: _Given) -> list[str]:
    return [_label(column) + given.suffix for column in columns]


def _checked_length(frame: Frame, given: _Given) -> int:
    for size, what in zip(frame.shape[::-1], ("feature", "sample"), strict=True):
        if size == 0:
            raise ValueError(
                f"Found {given.name} with 0 {what}(s) (shape={frame.shape}) while a minimum of 1 "
                f"is required by {given.owner}."
            )
    return frame.shape[0]


def _check_names(names: Any, schema: Schema, given: _Given) -> None:
    """Raise or warn as scikit-learn does, except that order does not matter and warnings come once."""
    expected = schema.feature_names
    if names is None and expected is None:
        return
    if expected is None:
        schema.warn_of_names(
            f"{given.name} has feature names, but {given.owner} was fitted without feature names"
        )
    elif names is None:
        schema.warn_of_names(
            f"{given.name} does not have valid feature names, but {given.owner} was fitted with "
            "feature names"
        )
    elif set(names) != set(expected):
        raise ValueError(
            f"The feature names{given.suffix} should match those that were passed during fit.\n"
            + _listed("unseen at fit time", set(names) - set(expected))
            + _listed("seen at fit time, yet now missing", set(expected) - set(names))
        )


# --------------------------------------------------------------------------------------- categories


def _are_levels(table: Table) -> NDArray[np.bool_]:
    """Tell which columns are of strings, categories, enums or dictionaries, missing all or not."""
    mask = np.zeros(table.shape[1], dtype=bool)
    if isinstance(table.dense, FrameColumns):
        levels = (Content.STRINGS, Content.CATEGORIES, Content.NO_LEVELS)
        mask[~table.is_sparse] = [content in levels for content in table.dense.contents]
    return mask


def _refuse_strings(table: Table, why: str) -> None:
    """Raise an error that names the first column of strings which is not a category."""
    if not isinstance(table.dense, FrameColumns):
        return
    is_category = table.schema.is_categorical[~table.is_sparse]
    for column in np.flatnonzero(~is_category).tolist():
        if table.dense.holds_strings(column):
            raise ValueError(  # as for strings in an array
                f"{table.dense.labels[column]} holds strings and {why}; expected numbers"
            )
