"""Fitted model: everything that prediction needs."""

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
from abcgbm.model.array_checks import ReadOnly
from abcgbm.model.ensemble import Ensemble
from abcgbm.model.ensemble_checks import check_ensemble
from abcgbm.model.losses import SoftmaxLink, reports_centred_scores
from abcgbm.parameters.validators import check_integer


@dataclass(frozen=True, eq=False, repr=False)
class Model(ReadOnly):
    """Trees, column encoding and labels: all that prediction, a warm start and exports need.

    Attributes
    ----------
    ensemble : Ensemble
        Trees and baseline scores.
    encoding : ColumnEncoder
        Conversion of tables to the numbers that trees compare with thresholds.
    classes : ndarray of shape (n_classes,)
        Class labels, sorted.
    recenter : bool
        Whether to always report centred scores, that is without their mean over classes.
    """

    ensemble: Ensemble
    encoding: ColumnEncoder
    classes: NDArray[Any]
    recenter: bool = False

    def __repr__(self) -> str:
        return f"Model({len(self.classes)} classes, {self.ensemble!r})"

    def check(self) -> None:
        """Raise ValueError unless trees, encoding and classes are valid and consistent."""
        self.encoding.check()
        check_classes(self.classes)
        n_features, n_classes = len(self.encoding.schema.is_categorical), len(self.classes)
        if (n_features, n_classes) != (self.ensemble.n_features, self.ensemble.n_classes):
            raise ValueError(
                f"trees for {self.ensemble.n_features} features and {self.ensemble.n_classes} "
                f"classes; there are {n_features} and {n_classes}"
            )
        check_ensemble(self.ensemble, self.encoding.n_codes())

    @lazy
    def link(self) -> SoftmaxLink:
        """Link from raw scores to probabilities and labels."""
        ensemble = self.ensemble
        is_centred = reports_centred_scores(
            recenter=self.recenter, has_base=ensemble.has_base, init=ensemble.init
        )
        return SoftmaxLink(self.classes, is_centred)

    @property
    def n_iter(self) -> int:
        """Number of boosting iterations."""
        return self.ensemble.n_iter

    @lazy
    def labels(self) -> list[Any]:
        """Class labels as Python objects."""
        return label_objects(self.classes)

    @lazy
    def categories_by_code(self) -> dict[int, list[list[Any]]]:
        """Categories of each code, for each categorical feature."""
        return {f: categories.by_code() for f, categories in self.encoding.categories.items()}

    @lazy
    def feature_labels(self) -> list[str]:
        """Feature names; x0, x1 and so on if the training table had none."""
        names = self.encoding.schema.feature_names
        return (
            [f"x{f}" for f in range(self.ensemble.n_features)]
            if names is None
            else [*map(str, names)]
        )

    def raw_scores(self, table: AnyTable, n_threads: int, n_iter: int | None = None) -> Floats:
        """Return raw scores of shape (n_rows, n_classes), after all or the first ``n_iter`` iterations."""
        n_iter = self.check_n_iter(n_iter)
        trees, chunks = self._on_used_features(table)
        return _joined([trees.raw(values, n_threads, n_iter) for values in chunks])

    def staged_raw_scores(self, table: AnyTable, n_threads: int) -> Iterator[Floats]:
        """Yield raw scores after each iteration, always in the same array, which is updated in place."""
        # All rows pass the trees of an iteration before those of the next, so all chunks stay in memory.
        trees, chunks = self._on_used_features(table)
        return trees.staged_raw(_joined([*chunks]), n_threads)

    def leaves(
        self, table: AnyTable, n_threads: int, n_iter: int | None = None
    ) -> NDArray[np.int32]:
        """Return the leaf index of each row in each tree, of shape (n_rows, n_trees)."""
        n_iter = self.check_n_iter(n_iter)
        trees, chunks = self._on_used_features(table)
        return np.concatenate([trees.leaves(values, n_threads, n_iter) for values in chunks])

    def encoded_values(self, table: AnyTable) -> Floats:
        """Return all features of all rows as the numbers that trees compare with thresholds."""
        if isinstance(table, BinnedTable):
            self._check_bins(table)
            return _joined([values for _, values in table.chunks()])
        return _joined([values for _, values in self.encoding.chunks(table)])

    def check_n_iter(self, n_iter: int | None) -> int:
        """Return a valid number of iterations; None means all."""
        if n_iter is None:
            return self.n_iter
        return check_integer("n_iter", n_iter, 0, self.n_iter, note=" (those of the model)")

    def first_iterations(self, n_iter: int) -> "Model":
        """Return the model of the first ``n_iter`` iterations."""
        return replace(self, ensemble=self.ensemble.first_iterations(n_iter))

    def with_unknown(self, handle_unknown: str) -> "Model":
        """Return the same model with another treatment of unknown categories."""
        return replace(self, encoding=replace(self.encoding, handle_unknown=handle_unknown))

    def _on_used_features(self, table: AnyTable) -> tuple[Ensemble, Iterator[Floats]]:
        """Return the trees and chunks of encoded rows, restricted to the features that trees split on."""
        # Only features that trees split on are converted, a chunk of rows at a time, so a wide sparse
        # table or data frame never becomes dense. A float array needs no conversion, and
        # handle_unknown="error" has to see every feature.
        encoding, used = self.encoding, self.ensemble.used_features
        if isinstance(table, BinnedTable):
            self._check_bins(table)
            return self._narrow_trees(), (values for _, values in table.chunks(used))
        if encoding.is_matrix(table) or encoding.handle_unknown == "error":
            return self.ensemble, (values for _, values in encoding.chunks(table))
        # Unused categorical columns have only their type checked: whether numbers are refused in a
        # column of strings must not depend on the trees.
        encoding.check_unused(table, used)
        return self._narrow_trees(), (values for _, values in encoding.chunks(table, used))

    def _narrow_trees(self) -> Ensemble:
        """Return the trees for tables that hold the used features only."""
        # With all features in use the ensemble itself serves, so its trees are packed only once.
        all_used = len(self.ensemble.used_features) == self.ensemble.n_features
        return self.ensemble if all_used else self.ensemble.narrow

    def _check_bins(self, table: BinnedTable) -> None:
        """Raise ValueError unless all thresholds of the trees are bin edges and categories are equal."""
        feature, threshold = self.ensemble.splits()
        order = np.argsort(feature, kind="stable")
        used, first = np.unique(feature[order], return_index=True)
        # The first segment, before the first feature at position 0, is empty.
        by_feature = np.split(threshold[order], first)[1:]
        known = all(
            # inf: a split of missing from present values
            np.isin(of_feature, np.append(table.thresholds[f], np.inf)).all()
            for f, of_feature in zip(used.tolist(), by_feature, strict=True)
        )
        if not known or table.encoding.categories != self.encoding.categories:
            raise ValueError(
                "X is a BinnedTable with other bins than the model's; expected raw values, or a "
                "BinnedTable with the bins of the training table"
            )


def _joined(parts: list[Floats]) -> Floats:
    """Concatenate the parts; a single part is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
