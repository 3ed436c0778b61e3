"""How much each feature matters to a model, and to each of its classes."""

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm.data.columns import Floats
from abcgbm.model.ensemble import ALL_CLASSES, Ensemble

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
