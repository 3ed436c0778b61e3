"""How much each feature matters to a model, and to each of its classes."""

import numpy as np

from abcgbm.data.columns import Floats
from abcgbm.model.ensemble import ALL_CLASSES, Ensemble


def gain_importances(ensemble: Ensemble) -> Floats:
    """Return each feature's share of the gain of all splits; zeros if there is no split."""
    is_split = ensemble.feature >= 0
    total: Floats = np.zeros(ensemble.n_features)
    np.add.at(total, ensemble.feature[is_split], ensemble.gain[is_split])
    return _shares(total)


def class_gain_importances(ensemble: Ensemble) -> Floats:
    """Return each feature's share of the gain of each class, of shape (n_classes, n_features).

    The gain of a tree per class is that of its class; of shared trees the gains by class are known.
    The row of a class without gain is 0.
    """
    total: Floats = np.zeros((ensemble.n_classes, ensemble.n_features))
    node_class = np.repeat(ensemble.tree_class, np.diff(ensemble.tree_start))
    is_split = (ensemble.feature >= 0) & (node_class != ALL_CLASSES)
    place = (node_class[is_split], ensemble.feature[is_split])
    np.add.at(total, place, ensemble.gain[is_split])
    np.add.at(total.T, ensemble.gain_feature, ensemble.class_gain)
    return _shares(total)


def _shares(total: Floats) -> Floats:
    """Return the shares of numbers in their sum, or in that of their row."""
    sums = total.sum(axis=-1, keepdims=True)
    share: Floats = total / np.maximum(sums, np.finfo(np.float64).tiny)
    return share
