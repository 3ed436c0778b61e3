"""Scores of tables: rows are made numbers chunk by chunk, and sent down the trees."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.binned_table import BinnedTable
from abcgbm.data.columns import Floats
from abcgbm.data.encoding import Encoding
from abcgbm.data.tables import Table
from abcgbm.model.ensemble import Ensemble

Chunks = Iterator[tuple[slice, Floats]]


def scores(
    ensemble: Ensemble, encoding: Encoding, table: Table | BinnedTable, n_threads: int, n_steps: int
) -> Floats:
    """Return the scores after so many steps, of shape (n_rows, n_classes)."""
    trees, chunks = _trees_and_chunks(ensemble, encoding, table)
    parts = [trees.raw(values, n_threads, n_steps) for _, values in chunks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def staged_scores(
    ensemble: Ensemble, encoding: Encoding, table: Table | BinnedTable, n_threads: int
) -> Iterator[Floats]:
    """Yield the scores after each step. The array is the same each time, and grows.

    All rows go down the trees of a step before those of the next, so all chunks are kept.
    """
    trees, chunks = _trees_and_chunks(ensemble, encoding, table)
    values = [values for _, values in chunks]
    return trees.staged_raw(values[0] if len(values) == 1 else np.concatenate(values), n_threads)


def leaves(
    ensemble: Ensemble, encoding: Encoding, table: Table | BinnedTable, n_threads: int, n_steps: int
) -> NDArray[np.int32]:
    """Return the leaf of each row in each tree of the first steps, of shape (n_rows, n_trees)."""
    trees, chunks = _trees_and_chunks(ensemble, encoding, table)
    return np.concatenate([trees.leaves(values, n_threads, n_steps) for _, values in chunks])


def numbers(ensemble: Ensemble, encoding: Encoding, table: Table | BinnedTable) -> Floats:
    """Return all features of all rows as the numbers that trees compare."""
    if isinstance(table, BinnedTable):
        _check_bins(ensemble, encoding, table)
    chunks = table.chunks() if isinstance(table, BinnedTable) else encoding.chunks(table)
    parts = [values for _, values in chunks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _trees_and_chunks(
    ensemble: Ensemble, encoding: Encoding, table: Table | BinnedTable
) -> tuple[Ensemble, Chunks]:
    """Return the trees, and what they are to be shown: only features that they cut, if any change.

    An array of floats needs no change, so all of it is shown; and so is all where an unknown level
    is an error, in whichever column.
    """
    if isinstance(table, BinnedTable):
        _check_bins(ensemble, encoding, table)
        return _narrow(ensemble), table.chunks(ensemble.used_features)
    if encoding.is_matrix(table) or encoding.handle_unknown == "error":
        return ensemble, encoding.chunks(table)
    # Whether a type is refused must not depend on which features the trees use.
    encoding.check_unused(table, ensemble.used_features)
    return _narrow(ensemble), encoding.chunks(table, ensemble.used_features)


def _narrow(ensemble: Ensemble) -> Ensemble:
    """Return the trees for tables of the used features; if these are all, the trees are packed once."""
    all_used = len(ensemble.used_features) == ensemble.n_features
    return ensemble if all_used else ensemble.narrow


def _check_bins(ensemble: Ensemble, encoding: Encoding, table: BinnedTable) -> None:
    """Each threshold of the trees must lie between two bins, and codes of levels be the same."""
    feature, threshold = ensemble.splits()
    known = all(
        np.isin(threshold[feature == f], [*table.thresholds[f], np.inf]).all()
        for f in ensemble.used_features.tolist()
    )
    if not known or table.encoding.levels != encoding.levels:
        raise ValueError(
            "X is a BinnedTable with other bins than the model's; expected the values themselves, "
            "or a table with the bins that the model was trained on"
        )
