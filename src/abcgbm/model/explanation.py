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

_TWO = 2  # with two classes one tree changes the scores of both


def gain_importances(ensemble: Ensemble) -> Floats:
    """Return each feature's fraction of the total gain; zeros if there is no split."""
    return _normalized(_by_feature(ensemble, ensemble.gain))


def class_gain_importances(ensemble: Ensemble) -> Floats:
    """Return each feature's fraction of the gain of each class, of shape (n_classes, n_features).

    The gain of a single-output tree counts for its class; multi-output trees record gains by class.
    The row of a class without gain is 0.
    """
    total = _by_class(ensemble, ensemble.gain)
    np.add.at(total.T, ensemble.gain_feature, ensemble.class_gain)
    return _normalized(total)


def split_importances(ensemble: Ensemble, *, by_weight: bool) -> Floats:
    """Return each feature's fraction of all splits, counted or weighted by their nodes' weights."""
    return _normalized(_by_feature(ensemble, _split_weights(ensemble, by_weight)))


def class_split_importances(ensemble: Ensemble, *, by_weight: bool) -> Floats:
    """Return the same for each class, of shape (n_classes, n_features).

    A split of a multi-output tree counts for every class.
    """
    weights = _split_weights(ensemble, by_weight)
    is_multi_output = (_node_class(ensemble) == ALL_CLASSES) & (ensemble.feature >= 0)
    total = _by_class(ensemble, weights)
    np.add.at(total.T, ensemble.feature[is_multi_output], weights[is_multi_output, None])
    return _normalized(total)


def _split_weights(ensemble: Ensemble, by_weight: bool) -> Floats:
    return ensemble.weight if by_weight else np.ones(len(ensemble.feature))


def _node_class(ensemble: Ensemble) -> NDArray[np.int32]:
    """Return the class of each node's tree."""
    return np.repeat(ensemble.tree_class, np.diff(ensemble.tree_start))


def _by_feature(ensemble: Ensemble, amounts: Floats) -> Floats:
    """Sum amounts of nodes over the splits on each feature."""
    is_split = ensemble.feature >= 0
    total: Floats = np.zeros(ensemble.n_features)
    np.add.at(total, ensemble.feature[is_split], amounts[is_split])
    return total


def _by_class(ensemble: Ensemble, amounts: Floats) -> Floats:
    """Sum amounts over the splits of single-output trees, by class and feature."""
    node_class = _node_class(ensemble)
    is_own = (ensemble.feature >= 0) & (node_class != ALL_CLASSES)
    total: Floats = np.zeros((ensemble.n_classes, ensemble.n_features))
    np.add.at(total, (node_class[is_own], ensemble.feature[is_own]), amounts[is_own])
    if ensemble.n_classes == _TWO:  # every tree counts for both classes
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
    """Return the increase of each class's total loss when a feature is permuted.

    A mean over ``n_repeats`` permutations, of shape (n_classes, n_features); 0 for features that no
    tree uses.
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


def _normalized(total: Floats) -> Floats:
    """Divide by the sum over the last axis, or leave zeros where it is 0."""
    sums = total.sum(axis=-1, keepdims=True)
    fractions: Floats = total / np.maximum(sums, np.finfo(np.float64).tiny)
    return fractions


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Shapley values: ``base_values + values.sum(axis=1)`` are the scores of the rows by class.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features, n_classes)
        Contribution of each feature to the score of each class.
    base_values : ndarray of shape (n_classes,)
        Mean scores.
    data : ndarray of shape (n_rows, n_features)
        The rows, with categories as codes.
    display_data : ndarray of object of shape (n_rows, n_features), or None
        The rows with categories in place of codes; None without categorical features.
    feature_names : list of str
        Feature names; x0, x1 and so on if the training table had none.
    classes : ndarray of shape (n_classes,)
        Class labels.
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
        """Return a ``shap.Explanation`` indexed by row, feature and class.

        ``explanation[:, :, 0]`` explains the first class. Feature names and string labels can take the
        place of indices.
        """
        return self.to_shap()[place]

    def to_shap(self, class_: Any = None) -> Any:
        """Return a ``shap.Explanation`` for the plots of ``shap``.

        Parameters
        ----------
        class_ : label, optional
            Explain the scores of this class only, as most plots of ``shap`` need; by default all
            classes, as the last axis.
        """
        try:
            import shap
        except ImportError as error:
            raise ImportError('to_shap requires shap: pip install "abcgbm[explain]"') from error
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
        """Return the index of a class."""
        labels = label_objects(self.classes)
        return labels.index(known_label(class_, labels))


def explain(model: Model, table: AnyTable, n_threads: int, n_iter: int | None) -> Explanation:
    """Return Shapley values of rows, after all or the first ``n_iter`` iterations."""
    n_iter = model.check_n_iter(n_iter)
    data = model.encoded_values(table)
    values = model.ensemble.shapley_values(data, n_threads, n_iter)
    if model.link.is_centred:
        values -= values.mean(axis=2, keepdims=True)
    return Explanation(
        values,
        model.link.by_class(model.ensemble.mean_scores(n_iter)),
        data,
        _display_data(model, data),
        [*model.feature_labels],
        model.classes,
    )


def _display_data(model: Model, data: Floats) -> NDArray[Any] | None:
    """Return rows with categories in place of codes; None without categorical features."""
    if not model.encoding.categories:
        return None
    shown = data.astype(object)
    for feature, by_code in model.categories_by_code.items():
        names = np.array([*map(_display_name, by_code), None], dtype=object)
        codes = data[:, feature]
        shown[:, feature] = names[np.where(np.isnan(codes), len(names) - 1, codes).astype(np.intp)]
    return shown


def _display_name(categories: list[Any]) -> Any:
    """Return the category of a code, or text for several that share it."""
    return categories[0] if len(categories) == 1 else f"one of {len(categories)} rare categories"
