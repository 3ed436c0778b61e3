"""Trees one by one, in the form that all exports start from."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.columns import Floats
from abcgbm.model.ensemble import ALL_CLASSES, NO_BASE
from abcgbm.model.model import Model


@dataclass(frozen=True)
class Tree:
    """A tree, and what its leaves add to the scores of some classes.

    Attributes
    ----------
    feature : ndarray of int32 of shape (n_nodes,)
        Feature of a split; -1 for a leaf.
    threshold : ndarray of float64 of shape (n_nodes,)
        Values at most this go left.
    left : ndarray of int32 of shape (n_nodes,)
        Left child; the right child is the next one.
    missing_left : ndarray of uint8 of shape (n_nodes,)
        Whether missing values go left.
    gain, weight : ndarray of float64 of shape (n_nodes,)
        Gain of a split, sum of sample weights of a node.
    values : ndarray of float64 of shape (n_leaves, 1 or n_classes)
        The values of the leaves in the order of their nodes: one, or in a shared tree one for each
        class.
    step : int
        The step it belongs to, from 0.
    class_number, base : int
        The class it adds to (-1: all), and the one it takes from (-1: none).
    base_scale : float
        The part of the value that is taken.
    left_codes : dict of int to ndarray of int64
        For each split of a category the codes that go left, ascending; all others of the feature,
        but missing ones, go right.
    """

    feature: NDArray[np.int32]
    threshold: Floats
    left: NDArray[np.int32]
    missing_left: NDArray[np.uint8]
    gain: Floats
    weight: Floats
    values: Floats
    step: int
    class_number: int
    base: int = NO_BASE
    base_scale: float = 1.0
    left_codes: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    @property
    def is_shared(self) -> bool:
        """Whether it adds to all classes."""
        return self.class_number == ALL_CLASSES

    @property
    def leaves(self) -> NDArray[np.intp]:
        """The nodes that are leaves."""
        return np.flatnonzero(self.feature < 0)

    def added(self) -> tuple[NDArray[np.intp], Floats]:
        """Return the classes it adds to, and what each leaf adds to each of them."""
        if self.is_shared:
            return np.arange(self.values.shape[1]), self.values
        if self.base == NO_BASE:
            return np.array([self.class_number]), self.values
        taken = -(self.values * self.base_scale)
        return np.array([self.class_number, self.base]), np.hstack([self.values, taken])


def trees_of(model: Model) -> Iterator[Tree]:
    """Yield the trees of a model in order."""
    ensemble = model.ensemble
    set_end = np.cumsum(ensemble.left_set_size, dtype=np.int64)
    step_of_tree = np.repeat(np.arange(model.n_steps), np.diff(ensemble.step_start)).tolist()
    n_shared = 0  # leaves of shared trees so far
    for tree, step in enumerate(step_of_tree):
        nodes = slice(*ensemble.tree_start[tree : tree + 2].tolist())
        feature, class_number = ensemble.feature[nodes], int(ensemble.tree_class[tree])
        is_leaf = feature < 0
        if class_number == ALL_CLASSES:
            first, n_shared = n_shared, n_shared + int(np.count_nonzero(is_leaf))
            values = ensemble.leaf_value[first:n_shared].astype(np.float64)
        else:
            values = ensemble.value[nodes][is_leaf][:, None]
        yield Tree(
            feature,
            ensemble.threshold[nodes],
            ensemble.left[nodes],
            ensemble.missing_left[nodes],
            ensemble.gain[nodes],
            ensemble.weight[nodes],
            values,
            step,
            class_number,
            int(ensemble.tree_base[tree]),
            float(ensemble.tree_base_scale[tree]),
            _left_codes(model, nodes, set_end),
        )


def trees_or_nothing(model: Model) -> Iterator[Tree]:
    """Yield the trees; of a model without any one that adds nothing, for formats that need one."""
    if model.n_steps:
        yield from trees_of(model)
        return
    leaf, zero, no_child = np.array([-1], np.int32), np.zeros(1), np.zeros(1, np.int32)
    no_way = np.zeros(1, np.uint8)
    yield Tree(leaf, zero, no_child, no_way, zero, zero, zero[:, None], step=0, class_number=0)


def _left_codes(
    model: Model, nodes: slice, set_end: NDArray[np.int64]
) -> dict[int, NDArray[np.int64]]:
    """Return the codes that go left at each split of a category."""
    ensemble, levels = model.ensemble, model.encoding.levels
    found = {}
    for node in np.flatnonzero(ensemble.left_set_size[nodes]).tolist():
        at = nodes.start + node
        words = ensemble.left_set[set_end[at] - ensemble.left_set_size[at] : set_end[at]]
        goes_left = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
        n_codes = levels[int(ensemble.feature[at])].n_codes
        # What is beyond the words of a set goes where missing values go.
        beyond = np.full(max(0, n_codes - len(goes_left)), ensemble.missing_left[at])
        codes = np.concatenate([goes_left, beyond])[:n_codes]
        found[node] = np.flatnonzero(codes).astype(np.int64)
    return found
