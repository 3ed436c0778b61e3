"""The fitted model: all that prediction needs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.arrays import Floats
from abcgbm.data.binned_table import BinnedTable, ColumnEncoder
from abcgbm.data.labels import check_classes, label_objects
from abcgbm.data.once import lazy
from abcgbm.data.samples import AnyTable
from abcgbm.data.table import Table
from abcgbm.model.array_checks import ReadOnly
from abcgbm.model.ensemble import Ensemble
from abcgbm.model.ensemble_checks import check_ensemble
from abcgbm.model.losses import SoftmaxLink, reports_centred_scores
from abcgbm.parameters.validators import check_integer

Chunks = Iterator[tuple[slice, Floats]]


def scores(
    ensemble: Ensemble,
    encoding: ColumnEncoder,
    table: Table | BinnedTable,
    n_threads: int,
    n_iter: int,
) -> Floats:
    """Return the scores after so many steps, of shape (n_rows, n_classes)."""
    trees, chunks = _trees_and_chunks(ensemble, encoding, table)
    parts = [trees.raw(values, n_threads, n_iter) for _, values in chunks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def staged_scores(
    ensemble: Ensemble, encoding: ColumnEncoder, table: Table | BinnedTable, n_threads: int
) -> Iterator[Floats]:
    """Yield the scores after each step. The array is the same each time, and grows.

    All rows go down the trees of a step before those of the next, so all chunks are kept.
    """
    trees, chunks = _trees_and_chunks(ensemble, encoding, table)
    values = [values for _, values in chunks]
    return trees.staged_raw(values[0] if len(values) == 1 else np.concatenate(values), n_threads)


def leaves(
    ensemble: Ensemble,
    encoding: ColumnEncoder,
    table: Table | BinnedTable,
    n_threads: int,
    n_iter: int,
) -> NDArray[np.int32]:
    """Return the leaf of each row in each tree of the first steps, of shape (n_rows, n_trees)."""
    trees, chunks = _trees_and_chunks(ensemble, encoding, table)
    return np.concatenate([trees.leaves(values, n_threads, n_iter) for _, values in chunks])


def numbers(ensemble: Ensemble, encoding: ColumnEncoder, table: Table | BinnedTable) -> Floats:
    """Return all features of all rows as the numbers that trees compare."""
    if isinstance(table, BinnedTable):
        _check_bins(ensemble, encoding, table)
    chunks = table.chunks() if isinstance(table, BinnedTable) else encoding.chunks(table)
    parts = [values for _, values in chunks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _trees_and_chunks(
    ensemble: Ensemble, encoding: ColumnEncoder, table: Table | BinnedTable
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


def _check_bins(ensemble: Ensemble, encoding: ColumnEncoder, table: BinnedTable) -> None:
    """Each threshold of the trees must lie between two bins, and codes of levels be the same."""
    feature, threshold = ensemble.splits()
    known = all(
        np.isin(threshold[feature == f], [*table.thresholds[f], np.inf]).all()
        for f in ensemble.used_features.tolist()
    )
    if not known or table.encoding.categories != encoding.categories:
        raise ValueError(
            "X is a BinnedTable with other bins than the model's; expected the values themselves, "
            "or a table with the bins that the model was trained on"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Model(ReadOnly):
    """What is left of a training.

    It serves prediction, a warm start, and whatever else is made of a model.

    Attributes
    ----------
    ensemble : Ensemble
        The trees, and the scores before the first of them.
    encoding : ColumnEncoder
        How a table becomes the numbers that the trees compare.
    classes : ndarray of shape (n_classes,)
        The labels, sorted.
    recenter : bool
        Whether scores are reported without their row mean in any case.
    """

    ensemble: Ensemble
    encoding: ColumnEncoder
    classes: NDArray[Any]
    recenter: bool = False

    def __repr__(self) -> str:
        return f"Model({len(self.classes)} classes, {self.ensemble!r})"

    def check(self) -> None:
        """Raise a ValueError unless the trees, the encoding and the classes fit each other."""
        self.encoding.check()
        check_classes(self.classes)
        shape = (len(self.encoding.schema.is_categorical), len(self.classes))
        if shape != (self.ensemble.n_features, self.ensemble.n_classes):
            raise ValueError(
                f"trees for {self.ensemble.n_features} features and {self.ensemble.n_classes} "
                f"classes; there are {shape[0]} and {shape[1]}"
            )
        check_ensemble(self.ensemble, self.encoding.n_codes())

    @lazy
    def outputs(self) -> SoftmaxLink:
        """What its scores say."""
        ensemble = self.ensemble
        is_centred = reports_centred_scores(
            recenter=self.recenter, has_base=ensemble.has_base, init=ensemble.init
        )
        return SoftmaxLink(self.classes, is_centred)

    @property
    def n_iter(self) -> int:
        """Number of boosting steps."""
        return self.ensemble.n_iter

    @lazy
    def labels(self) -> list[Any]:
        """The labels of the classes, as Python has them."""
        return label_objects(self.classes)

    @lazy
    def levels_by_code(self) -> dict[int, list[list[Any]]]:
        """The levels of each code, by feature; of categories alone."""
        return {f: levels.by_code() for f, levels in self.encoding.categories.items()}

    @lazy
    def feature_labels(self) -> list[str]:
        """The names of the features; x0, x1 and so on if they had none."""
        names = self.encoding.schema.feature_names
        return (
            [f"x{f}" for f in range(self.ensemble.n_features)]
            if names is None
            else [*map(str, names)]
        )

    def raw(self, table: AnyTable, n_threads: int, n_iter: int | None = None) -> Floats:
        """Return the scores of rows, of shape (n_rows, n_classes), after all steps or the first ones."""
        n_iter = self.check_n_iter(n_iter)
        return scores(self.ensemble, self.encoding, table, n_threads, n_iter)

    def leaves(
        self, table: AnyTable, n_threads: int, n_iter: int | None = None
    ) -> NDArray[np.int32]:
        """Return the leaf of each row in each tree, of shape (n_rows, n_trees)."""
        n_iter = self.check_n_iter(n_iter)
        return leaves(self.ensemble, self.encoding, table, n_threads, n_iter)

    def numbers(self, table: AnyTable) -> Floats:
        """Return all features of rows as the numbers that trees compare."""
        return numbers(self.ensemble, self.encoding, table)

    def check_n_iter(self, n_iter: int | None) -> int:
        """Return a number of steps that the model has; None: all of them."""
        if n_iter is None:
            return self.n_iter
        return check_integer("n_iter", n_iter, 0, self.n_iter, note=" (those of the model)")

    def staged_raw(self, table: AnyTable, n_threads: int) -> Iterator[Floats]:
        """Yield the scores after each step. The array is the same each time, and grows."""
        return staged_scores(self.ensemble, self.encoding, table, n_threads)

    def first_iterations(self, n_iter: int) -> "Model":
        """Return the model of the first steps alone."""
        return replace(self, ensemble=self.ensemble.first_iterations(n_iter))

    def with_unknown(self, handle_unknown: str) -> "Model":
        """Return the same model with another way to handle levels that were not learned."""
        return replace(self, encoding=replace(self.encoding, handle_unknown=handle_unknown))
