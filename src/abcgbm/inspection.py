"""Looking into a fitted model: what it says of rows, of features, and of its trees."""

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

_SMALL = 2**24  # bytes that any machine has, so that it need not be asked, which takes its time


class ModelInspection(FittedAttributes):
    """What an estimator with a model can tell of it; whoever inherits reads tables."""

    @with_prediction_hints
    def explain(self, X: Any, *, n_iter: int | None = None) -> Explanation:
        """Tell what each feature adds to the scores of rows: exact Shapley values (TreeSHAP).

        A feature that is not known counts with the means of the training rows along the paths of
        the trees ("path-dependent"), by their sample weights.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            As for ``predict``.
        n_iter : int, optional
            Explain the model of its first iterations.

        Returns
        -------
        explanation : Explanation
            Its ``values`` have the shape (n_rows, n_features, n_classes), its ``base_values``
            (n_classes,). For each row and class the values add up, with the base value, to the
            score: for three or more classes that of ``decision_function``. For two classes the
            scores of both are explained, whose difference that is.
        """
        model, table = self._model, self._read(X)
        _check_memory(len(table), model.ensemble.n_features, model.ensemble.n_classes)
        return explain(model, table, self._n_threads(), n_iter)

    @with_prediction_hints
    def apply(self, X: Any, *, n_iter: int | None = None) -> NDArray[np.int32]:
        """Return the leaf that each row comes to in each tree, of shape (n_rows, n_trees).

        A leaf is the number of its node in the tree, as in ``trees_to_dataframe``; trees are in
        order, those of the first ``n_iter`` iterations or of all.
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
        """Return how much each feature matters, to the model or to each class.

        Parameters
        ----------
        kind : {"gain", "split", "cover", "permutation"}, default="gain"
            The feature's share in the gain of all splits, in their number, or in the weight of
            the rows that they cut; or how much the mean loss (minus the log of the probability of
            the row's label) rises when the feature's values are shuffled among the rows of ``X``.
        per_class : bool, default=False
            The same of each class: shares in the splits of its trees (gain in shared trees is known
            by class, and their splits count for every class), or the rise of the mean loss of
            its rows.
        X : table of shape (n_rows, n_features), optional
            Rows for "permutation"; not those of the training, if it is to tell what generalises.
        y : array-like of shape (n_rows,), optional
            Their labels.
        n_repeats : int, default=5
            How often each feature is shuffled.
        random_state : int, RandomState, Generator or None, default=None
            Draws the permutations. None means 0.

        Returns
        -------
        importances : ndarray of shape (n_features,) or (n_classes, n_features)
            Shares sum to 1, or are 0 if there is no split. A rise may be negative; it is NaN for a
            class without rows in ``y``.
        """
        check_choice("kind", kind, ("gain", "split", "cover", "permutation"))
        check_boolean("per_class", per_class)
        ensemble = self._model.ensemble
        if kind == "permutation":
            check_integer("n_repeats", n_repeats, 1)
            rng = generator_of(check_random_state("random_state", random_state))
            return self._permutation(self._labelled(X, y), per_class, n_repeats, rng)
        if X is not None or y is not None:
            raise ValueError(f"kind={kind!r} needs no rows; expected neither X nor y")
        if kind == "gain":
            return (class_gain_importances if per_class else gain_importances)(ensemble)
        of = class_split_importances if per_class else split_importances
        return of(ensemble, by_weight=kind == "cover")

    def tree(self, iteration: int, class_: Any = None) -> TreeView:
        """Return a tree of the model, to be printed or drawn.

        Parameters
        ----------
        iteration : int
            The iteration that grew it, from 0.
        class_ : label, optional
            The class whose tree it is. Not needed where an iteration has one tree; with it, the
            leaves of a tree for all classes show the values of this class alone.

        Returns
        -------
        tree : TreeView
            ``print(tree)`` shows it as text, ``tree.to_dot()`` is its source for Graphviz,
            ``tree.to_graphviz()`` draws it, and ``tree.nodes`` are its nodes.
        """
        return view_tree(self._model, iteration, class_)

    def trees_to_dataframe(self, backend: str = "pandas") -> Any:
        """Return all trees as a data frame of pandas or polars, a row for each node.

        Its columns are ``tree``, ``iteration``, ``class`` (None: all), ``base_class`` (None: none),
        ``base_scale`` (the part of a value that is taken from the base class), ``node``, ``depth``, ``feature`` (None for a leaf), ``decision`` ("<=" or "in"), ``threshold``,
        ``levels`` (those that go left, as text), ``missing`` (where missing values go), ``left`` and
        ``right`` (-1 for a leaf), ``gain``, ``weight`` and ``value`` (what a leaf adds to the class).
        With shared trees there is a column ``value_<label>`` for each class, and ``value`` is NaN.
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
        """Return the rise of the mean loss, of all rows or of those of each class."""
        table, y = labelled
        model, n_threads = self._model, self._n_threads()
        rise = permutation_importances(
            model.ensemble, model.numbers(table), y, n_repeats, rng, n_threads
        )
        if not per_class:
            of_all: Floats = rise.sum(axis=0) / len(y)
            return of_all
        n_rows = np.bincount(y, minlength=len(rise)).astype(np.float64)
        n_rows[n_rows == 0] = np.nan
        return rise / n_rows[:, None]

    def _read(self, X: Any) -> AnyTable:
        raise NotImplementedError

    def _n_threads(self) -> int:
        raise NotImplementedError


def _check_memory(n_rows: int, n_features: int, n_classes: int) -> None:
    """Raise MemoryError if there is no room for the values of so many rows; say how many fit."""
    of_row = 8 * n_features * n_classes
    if n_rows * of_row < _SMALL:
        return
    available = available_bytes()
    if available is None or n_rows * of_row <= available:
        return
    raise MemoryError(
        f"the values of {n_rows} rows, {n_features} features and {n_classes} classes need "
        f"{format_bytes(n_rows * of_row)}; {format_bytes(available)} are available. "
        f"{available // of_row} rows at a time would fit"
    )
