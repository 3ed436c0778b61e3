"""Methods that explain and inspect a fitted classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abcgbm.data.arrays import Floats
from abcgbm.data.labels import class_numbers
from abcgbm.data.samples import AnyTable, CountedRows, GivenRows
from abcgbm.errors import format_bytes
from abcgbm.fitted import FittedAttributes
from abcgbm.model.explanation import (
    Explanation,
    class_gain_importances,
    class_split_importances,
    explain,
    gain_importances,
    permutation_importances,
    split_importances,
)
from abcgbm.model.tree_views import TreeView, trees_to_frame, view_tree
from abcgbm.parameters.hints import with_prediction_hints
from abcgbm.parameters.machine import available_bytes
from abcgbm.parameters.parameters import check_random_state, generator_of
from abcgbm.parameters.validators import check_boolean, check_choice, check_integer

_SMALL = 2**24  # bytes that every machine has: skips the query of free memory, which takes time


class ModelInspection(FittedAttributes):
    """Shapley values, importances and trees of a classifier. Subclasses read tables."""

    @with_prediction_hints
    def explain(self, X: Any, *, n_iter: int | None = None) -> Explanation:
        """Return exact Shapley values of the scores (path-dependent TreeSHAP).

        A feature outside a coalition is averaged over the paths of the trees, weighted by the training
        rows that took them.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            As for ``predict``.
        n_iter : int, optional
            Explain the first iterations only.

        Returns
        -------
        explanation : Explanation
            ``values`` has shape (n_rows, n_features, n_classes), ``base_values`` (n_classes,). The sum
            of both over features is the score of ``decision_function``; with two classes, which have
            one column there, it is the score of each class.
        """
        model, table = self._model, self._read(X)
        _check_memory(len(table), model.ensemble.n_features, model.ensemble.n_classes)
        return explain(model, table, self._n_threads(), n_iter)

    @with_prediction_hints
    def apply(self, X: Any, *, n_iter: int | None = None) -> NDArray[np.int32]:
        """Return the leaf of each row in each tree, of shape (n_rows, n_trees).

        Leaves are node indices as in ``trees_to_dataframe``, for the trees of all or of the first
        ``n_iter`` iterations.
        """
        table = self._read(X)
        return self._model.leaves(table, self._n_threads(), n_iter)

    def feature_importances(
        self,
        kind: str = "gain",
        *,
        per_class: bool = False,
        X: Any = None,
        y: ArrayLike | None = None,
        n_repeats: int = 5,
        random_state: Any = None,
    ) -> Floats:
        """Return the importance of each feature, overall or for each class.

        Parameters
        ----------
        kind : {"gain", "split", "cover", "permutation"}, default="gain"
            Fraction of the total gain, of the number of splits, or of the sample weight of the rows that
            are split (not of their hessians, as in XGBoost); or the increase of the mean log loss when the feature is permuted in ``X``.
        per_class : bool, default=False
            Importances for each class: fractions over the trees of the class (splits of multi-output
            trees count for every class, their gains are recorded by class), or the increase of the
            mean loss of its rows.
        X : table of shape (n_rows, n_features), optional
            Rows for "permutation". Use held-out rows to measure what generalizes.
        y : array-like of shape (n_rows,), optional
            Labels of these rows.
        n_repeats : int, default=5
            Number of permutations of each feature.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the permutations. None means 0.

        Returns
        -------
        importances : ndarray of shape (n_features,) or (n_classes, n_features)
            Fractions sum to 1, or are 0 without splits. An increase of the loss can be negative; it is
            NaN for a class without rows in ``y``.
        """
        check_choice("kind", kind, ("gain", "split", "cover", "permutation"))
        check_boolean("per_class", per_class)
        ensemble = self._model.ensemble
        if kind == "permutation":
            check_integer("n_repeats", n_repeats, 1)
            rng = generator_of(check_random_state("random_state", random_state))
            return self._permutation(self._labelled(X, y), per_class, n_repeats, rng)
        if X is not None or y is not None:
            raise ValueError(f"kind={kind!r} uses no rows; expected neither X nor y")
        if kind == "gain":
            return (class_gain_importances if per_class else gain_importances)(ensemble)
        importances = class_split_importances if per_class else split_importances
        return importances(ensemble, by_weight=kind == "cover")

    def tree(self, iteration: int, class_: Any = None) -> TreeView:
        """Return a tree of the model, to print or draw.

        Parameters
        ----------
        iteration : int
            Iteration that grew the tree, from 0.
        class_ : label, optional
            Class of the tree. Optional if an iteration has one tree; for a multi-output tree, the
            leaves then show the values of this class only.

        Returns
        -------
        tree : TreeView
            ``print(tree)`` shows it as text, ``tree.to_dot()`` returns Graphviz source,
            ``tree.to_graphviz()`` draws it, and ``tree.nodes`` holds its nodes.
        """
        return view_tree(self._model, iteration, class_)

    def trees_to_dataframe(self, backend: str = "pandas") -> Any:
        """Return all trees as a data frame of pandas or polars, one row per node.

        Columns are ``tree``, ``iteration``, ``class`` (None: all classes), ``base_class`` (None: none),
        ``base_scale`` (factor of the base class's part), ``node``, ``depth``, ``feature`` (None for a
        leaf), ``decision`` ("<=" or "in"), ``threshold``, ``levels`` (categories that go left, as text),
        ``missing`` (child of missing values, "left" or "right"), ``left`` and ``right`` (-1 for a leaf),
        ``gain``, ``weight`` and ``value`` (leaf value). With multi-output trees there is a column
        ``value_<label>`` for each class, and ``value`` is NaN.
        """
        return trees_to_frame(self._model, backend)

    def _labelled(self, X: Any, y: ArrayLike | None) -> tuple[AnyTable, NDArray[np.int32]]:
        """Read rows and their class numbers."""
        if X is None or y is None:
            missing = "X" if X is None else "y"
            raise ValueError(f"{missing} is None; kind='permutation' expects rows and their labels")
        table = self._read(X)
        counted = CountedRows.from_given(GivenRows(table, y), has_classes=True)
        return table, class_numbers(counted.labels, self._model.classes)

    def _permutation(
        self,
        labelled: tuple[AnyTable, NDArray[np.int32]],
        per_class: bool,
        n_repeats: int,
        rng: np.random.Generator,
    ) -> Floats:
        """Return the increase of the mean loss, overall or for the rows of each class."""
        table, y = labelled
        model, n_threads = self._model, self._n_threads()
        increase = permutation_importances(
            model.ensemble, model.encoded_values(table), y, n_repeats, rng, n_threads
        )
        if not per_class:
            overall: Floats = increase.sum(axis=0) / len(y)
            return overall
        n_rows = np.bincount(y, minlength=len(increase)).astype(np.float64)
        n_rows[n_rows == 0] = np.nan
        return increase / n_rows[:, None]

    def _read(self, X: Any) -> AnyTable:
        raise NotImplementedError

    def _n_threads(self) -> int:
        raise NotImplementedError


def _check_memory(n_rows: int, n_features: int, n_classes: int) -> None:
    """Raise MemoryError if the Shapley values do not fit into memory."""
    row_bytes = 8 * n_features * n_classes
    if n_rows * row_bytes < _SMALL:
        return
    available = available_bytes()
    if available is None or n_rows * row_bytes <= available:
        return
    raise MemoryError(
        f"Shapley values of {n_rows} rows, {n_features} features and {n_classes} classes need "
        f"{format_bytes(n_rows * row_bytes)}; {format_bytes(available)} are available. "
        f"{available // row_bytes} rows at a time would fit"
    )
