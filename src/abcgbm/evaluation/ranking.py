"""Which of many are shown."""

from __future__ import annotations

import numpy as np

from abcgbm.data.columns import Floats


def largest(values: Floats, most: int) -> list[int]:
    """Return the places of the largest values, at most so many, without those that are not above 0."""
    order = np.argsort(-values, kind="stable")[:most].tolist()
    return [place for place in order if values[place] > 0]
