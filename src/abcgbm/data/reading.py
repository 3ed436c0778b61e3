"""The table of a fit: read as it was given, in parts, or by each rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from abcgbm.data.agreed_schema import Look, agreed_schema, empty_table
from abcgbm.data.binned_table import BinnedTable, check_binned
from abcgbm.data.columns import Floats
from abcgbm.data.labels import CodedLabels
from abcgbm.data.parts.labels import read_labels
from abcgbm.data.parts.large_table import LargeTable, Watch, as_large
from abcgbm.data.parts.parted_table import PartedTable, features_like, features_of
from abcgbm.data.tables import Schema, Table, read_table, read_table_like, with_schema
from abcgbm.ranks.share import Share
from abcgbm.ranks.together import gathered

AnyTable = Table | BinnedTable
RowsTable = AnyTable | PartedTable


class LargeRows(NamedTuple):
    """A table that is read in parts, and what is known of its rows."""

    large: LargeTable
    apart: tuple[str | None, ...]  # columns that are no features
    n_rows: int


def read_large(
    given: tuple[Any, Any, Any], suffix: str = "", watch: Watch | None = None
) -> tuple[LargeRows, CodedLabels, Floats | None]:
    """Read the labels and weights of a table that is read in parts; these are given by name.

    ``given`` are X, y and sample_weight; ``watch`` is told of all that is read of it from now on.
    """
    X, y, sample_weight = given
    large = as_large(X).watched(watch)
    label = large.find(y, f"y{suffix}")
    weight = None if sample_weight is None else large.find(sample_weight, f"sample_weight{suffix}")
    if label == weight:
        raise ValueError(f"sample_weight{suffix}={weight!r}, as y{suffix}; expected another column")
    marks, labels, weights = read_labels(large, label, weight)
    if not len(labels.code):
        raise ValueError(f"X{suffix} is {large!r}, which has no rows; expected at least 1")
    return LargeRows(large.marked(marks), (label, weight), len(labels.code)), labels, weights


def read_to_learn(X: Any, categorical_features: Any, owner: str) -> RowsTable:
    """Read a table to learn from; ``owner`` is the estimator that errors speak of."""
    if isinstance(X, BinnedTable):
        return check_binned(X)
    if isinstance(X, LargeRows):
        schema = features_of(X.large, X.apart, categorical_features)
        return PartedTable(X.large, schema, X.n_rows, owner)
    return read_table(X, categorical_features, owner)


def read_like(X: Any, schema: Schema, owner: str, name: str = "X") -> AnyTable:
    """Read a table that must have the columns known already; ``name`` is what errors call it."""
    if isinstance(X, BinnedTable):
        return check_binned(X, schema, name)
    return read_table_like(X, schema, owner, name)


def read_rows_like(X: Any, schema: Schema, owner: str, name: str = "X") -> RowsTable:
    """Do the same for rows to learn from or to validate on, which may be read in parts."""
    if isinstance(X, LargeRows):
        return PartedTable(X.large, features_like(X.large, X.apart, schema), X.n_rows, owner)
    return read_like(X, schema, owner, name)


# ------------------------------------------------------------------------------------------ by ranks


def read_together(
    share: Share, X: Any, read: Callable[[Any], RowsTable], name: str = "X"
) -> RowsTable:
    """Read the table of this rank; all have the same columns, and some may have no rows."""
    if share.is_alone:
        return read(X)
    tables: list[Table] = []

    def look() -> tuple[str, Look | None]:
        if has_no_rows(X):
            return share.name, None
        tables.append(_in_memory(read(X), name))
        return share.name, Look.of(tables[0])

    schema = agreed_schema(gathered(share, look), name)
    return with_schema(tables[0], schema) if tables else empty_table(schema)


def has_no_rows(X: Any) -> bool:
    """Whether a rank was given no table, or one without rows."""
    shape = getattr(X, "shape", None)
    return X is None or (shape is not None and len(shape) > 0 and shape[0] == 0)


def _in_memory(table: RowsTable, name: str) -> Table:
    if not isinstance(table, Table):
        kind = "binned already" if isinstance(table, BinnedTable) else "read in parts"
        raise TypeError(
            f"{name} is {kind}; expected a table of values in memory, where several ranks share rows"
        )
    return table
