"""Shapley values and feature importances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.data.arrays import Floats
from abcgbm.data.labels import known_label, label_objects
from abcgbm.data.samples import AnyTable
from abcgbm.model.ensemble import ALL_CLASSES, Ensemble
from abcgbm.model.model import Model

_TWO = 2  # classes, of which one tree moves both


def gain_importances(ensemble: Ensemble) -> Floats:
    """Return each feature's share of the gain of all splits; zeros if there is no split."""
    return _shares(_by_feature(ensemble, ensemble.gain))


def class_gain_importances(ensemble: Ensemble) -> Floats:
    """Return each feature's share of the gain of each class, of shape (n_classes, n_features).

    The gain of a tree per class is that of its class; of shared trees the gains by class are known.
    The row of a class without gain is 0.
    """
    total = _by_class(ensemble, ensemble.gain)
    np.add.at(total.T, ensemble.gain_feature, ensemble.class_gain)
    return _shares(total)


def split_importances(ensemble: Ensemble, *, by_weight: bool) -> Floats:
    """Return each feature's share of all splits, which may count by the weight of their nodes."""
    return _shares(_by_feature(ensemble, _amounts(ensemble, by_weight)))


def class_split_importances(ensemble: Ensemble, *, by_weight: bool) -> Floats:
    """Return the same of each class, of shape (n_classes, n_features).

    A split of a tree per class counts for its class, one of a shared tree for every class.
    """
    amounts = _amounts(ensemble, by_weight)
    is_shared = (_node_class(ensemble) == ALL_CLASSES) & (ensemble.feature >= 0)
    total = _by_class(ensemble, amounts)
    np.add.at(total.T, ensemble.feature[is_shared], amounts[is_shared, None])
    return _shares(total)


def _amounts(ensemble: Ensemble, by_weight: bool) -> Floats:
    return ensemble.weight if by_weight else np.ones(len(ensemble.feature))


def _node_class(ensemble: Ensemble) -> NDArray[np.int32]:
    """Return the class of the tree that each node is of."""
    return np.repeat(ensemble.tree_class, np.diff(ensemble.tree_start))


def _by_feature(ensemble: Ensemble, amounts: Floats) -> Floats:
    """Return the sum of amounts of nodes over the splits on each feature."""
    is_split = ensemble.feature >= 0
    total: Floats = np.zeros(ensemble.n_features)
    np.add.at(total, ensemble.feature[is_split], amounts[is_split])
    return total


def _by_class(ensemble: Ensemble, amounts: Floats) -> Floats:
    """Return the same for each class and the trees that are its own; of two classes all are of both."""
    node_class = _node_class(ensemble)
    is_own = (ensemble.feature >= 0) & (node_class != ALL_CLASSES)
    total: Floats = np.zeros((ensemble.n_classes, ensemble.n_features))
    np.add.at(total, (node_class[is_own], ensemble.feature[is_own]), amounts[is_own])
    if ensemble.n_classes == _TWO:
        total[:] = total.sum(axis=0)
    return total


def permutation_importances(
    ensemble: Ensemble,
    X: Floats,
    y: NDArray[np.int32],
    n_repeats: int,
    rng: np.random.Generator,
    n_threads: int,
) -> Floats:
    """Return how much the losses of a class's rows rise in sum when a feature is shuffled.

    Each feature in turn is handed to other rows, ``n_repeats`` times; the shape is (n_classes,
    n_features), and the sums are means over the repeats. Features that no tree cuts are 0.
    """
    shuffled = X.copy()
    rows = np.arange(len(X))

    def class_losses() -> Floats:
        loss = -_core.log_softmax(ensemble.raw(shuffled, n_threads), n_threads)[rows, y]
        sums: Floats = np.zeros(ensemble.n_classes)
        np.add.at(sums, y, loss)
        return sums

    before = class_losses()
    rise: Floats = np.zeros((ensemble.n_classes, ensemble.n_features))
    for feature in ensemble.used_features:
        for _ in range(n_repeats):
            shuffled[:, feature] = X[rng.permutation(len(X)), feature]
            rise[:, feature] += class_losses() - before
        shuffled[:, feature] = X[:, feature]
    return rise / n_repeats


def _shares(total: Floats) -> Floats:
    """Return the shares of numbers in their sum, or in that of their row."""
    sums = total.sum(axis=-1, keepdims=True)
    share: Floats = total / np.maximum(sums, np.finfo(np.float64).tiny)
    return share


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Shapley values: ``base_values + values.sum(axis=1)`` are the scores of the rows by class.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features, n_classes)
        What each feature adds to the score of each class.
    base_values : ndarray of shape (n_classes,)
        The mean scores, to which that is added.
    data : ndarray of shape (n_rows, n_features)
        The rows as the numbers that trees compare: a level of a category is its code.
    display_data : ndarray of object of shape (n_rows, n_features), or None
        The rows with levels in place of codes, if any feature is a category.
    feature_names : list of str
        The names of the features; x0, x1 and so on if they had none.
    classes : ndarray of shape (n_classes,)
        The labels.
    """

    values: Floats
    base_values: Floats
    data: Floats
    display_data: NDArray[Any] | None
    feature_names: list[str]
    classes: NDArray[Any]

    def __repr__(self) -> str:
        n_rows, n_features, n_classes = self.values.shape
        return f"Explanation({n_rows} rows, {n_features} features, {n_classes} classes)"

    def __getitem__(self, place: Any) -> Any:
        """Return a part as a ``shap.Explanation``, indexed by row, feature and class.

        ``explanation[:, :, 0]`` is that of the first class; names of features, and labels that are
        strings, stand for their numbers.
        """
        return self.to_shap()[place]

    def to_shap(self, class_: Any = None) -> Any:
        """Return a ``shap.Explanation``, which the plots of ``shap`` take.

        Parameters
        ----------
        class_ : label, optional
            The class whose scores are explained: most plots are of one. By default all of them, as
            the last axis.
        """
        try:
            import shap
        except ImportError as error:
            raise ImportError('to_shap needs shap: pip install "abcgbm[explain]"') from error
        which: Any = slice(None) if class_ is None else self._number(class_)
        base_values = np.repeat(self.base_values[None, :], len(self.values), axis=0)
        return shap.Explanation(
            self.values[:, :, which],
            base_values[:, which],
            self.data,
            display_data=self.display_data,
            feature_names=self.feature_names,
            output_names=np.array([str(label) for label in label_objects(self.classes)])[which],
        )

    def _number(self, class_: Any) -> int:
        """Return the number of a class by its label."""
        labels = label_objects(self.classes)
        return labels.index(known_label(class_, labels))


def explain(model: Model, table: AnyTable, n_threads: int, n_iter: int | None) -> Explanation:
    """Explain the scores of rows after all steps, or after the first ones."""
    n_iter = model.check_n_iter(n_iter)
    data = model.numbers(table)
    values = model.ensemble.shapley_values(data, n_threads, n_iter)
    if model.outputs.is_centred:
        values -= values.mean(axis=2, keepdims=True)
    return Explanation(
        values,
        model.outputs.by_class(model.ensemble.mean_scores(n_iter)),
        data,
        _with_levels(model, data),
        [*model.feature_labels],
        model.classes,
    )


def _with_levels(model: Model, data: Floats) -> NDArray[Any] | None:
    """Put levels in place of their codes; None if there are no categories."""
    if not model.encoding.categories:
        return None
    shown = data.astype(object)
    for feature, levels in model.encoding.categories.items():
        names = np.array([*(_shown_levels(some) for some in levels.by_code()), None], dtype=object)
        codes = data[:, feature]
        shown[:, feature] = names[np.where(np.isnan(codes), len(names) - 1, codes).astype(np.intp)]
    return shown


def _shown_levels(levels: list[Any]) -> Any:
    """Return the level of a code, or text for several that share it."""
    return levels[0] if len(levels) == 1 else f"one of {len(levels)} rare levels"
