"""How much each feature matters to a model."""

import numpy as np

from abcgbm.data.columns import Floats
from abcgbm.model.ensemble import Ensemble


def gain_importances(ensemble: Ensemble) -> Floats:
    """Return each feature's share of the gain of all splits; zeros if there is no split."""
    is_split = ensemble.feature >= 0
    total: Floats = np.zeros(ensemble.n_features)
    np.add.at(total, ensemble.feature[is_split], ensemble.gain[is_split])
    share: Floats = total / max(total.sum(), np.finfo(np.float64).tiny)
    return share
