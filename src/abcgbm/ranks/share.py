"""The rows that a rank has of a training, and where they stand among all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abcgbm.ranks.reducer import Alone, Reducer

Part = tuple[int, int]  # the number of a partition, and its rows


class Share(NamedTuple):
    """What a rank has of the rows.

    All rows in their order are the partitions by their numbers, and in each its rows in their order.

    Attributes
    ----------
    reducer : Reducer
        The rank.
    parts : sequence of (int, int), or None
        The number and the rows of each partition that the rank's rows are made of, in their order;
        None: they are a single one, numbered as the rank.
    """

    reducer: Reducer
    parts: Sequence[Part] | None = None


ALONE = Share(Alone())
