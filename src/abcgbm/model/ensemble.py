"""Fitted trees as flat arrays."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm import _core
from abcgbm._version import VERSION
from abcgbm.data.once import lazy
from abcgbm.model.array_checks import read_only

NO_BASE = -1  # in arrays of base classes
ALL_CLASSES = -1  # in arrays of trees' classes: a multi-output tree

# Arrays with one entry per node, per tree, and per feature that the multi-output tree of an iteration uses.
_BY_NODE = (
    "feature",
    "threshold",
    "left",
    "missing_left",
    "value",
    "gain",
    "weight",
    "left_set_size",
)
_BY_TREE = ("tree_class", "tree_base", "tree_base_scale")
_BY_GAIN_ENTRY = ("gain_feature", "class_gain")


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble:
    """All trees of a model, with their nodes concatenated.

    A tree of one class adds its leaf values to the score of its class; with a base class, it also
    subtracts them, times ``tree_base_scale``, from the score of the base class. Leaves of a
    multi-output tree hold one value per class. Leaf values include the learning rate.

    Attributes
    ----------
    feature : ndarray of int32 of shape (n_nodes,)
        Feature of a split; -1 for a leaf.
    threshold : ndarray of float64 of shape (n_nodes,)
        Values less than or equal to it go left.
    left : ndarray of int32 of shape (n_nodes,)
        Left child, as an offset from the tree's first node; the right child follows it.
    missing_left : ndarray of uint8 of shape (n_nodes,)
        Whether missing values go left.
    value, gain, weight : ndarray of float64 of shape (n_nodes,)
        Value of a leaf (0 in multi-output trees), gain of a split, sum of sample weights of a node.
    left_set_size : ndarray of int32 of shape (n_nodes,)
        Number of words in the bit set of a categorical split; 0 for other nodes.
    left_set : ndarray of uint64
        Concatenated bit sets of the codes that go left: bit c of word w is code 64 w + c.
    tree_start : ndarray of int64 of shape (n_trees + 1,)
        First node of each tree.
    leaf_value : ndarray of float32 of shape (n_multi_output_leaves, n_classes)
        Leaf values of multi-output trees, in the order of their nodes.
    gain_feature : ndarray of int32 of shape (n_gains,)
        Features that the multi-output tree of an iteration uses, ascending; iterations concatenated.
    class_gain : ndarray of float64 of shape (n_gains, n_classes)
        Gain of the splits on such a feature for each class.
    gain_start : ndarray of int64 of shape (n_iter + 1,)
        First entry of each iteration in ``gain_feature``.
    tree_class, tree_base : ndarray of int32 of shape (n_trees,)
        Class of a tree (-1: all classes) and its base class (-1: none).
    tree_base_scale : ndarray of float64 of shape (n_trees,)
        Factor of the base class's part: 1, or less where the line search scaled it back.
    iteration_start : ndarray of int64 of shape (n_iter + 1,)
        First tree of each iteration.
    init : ndarray of float64 of shape (n_classes,)
        Baseline: the scores before the first iteration.
    n_features, n_classes : int
        Number of features and classes.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    missing_left: NDArray[np.uint8]
    value: NDArray[np.float64]
    gain: NDArray[np.float64]
    weight: NDArray[np.float64]
    left_set_size: NDArray[np.int32]
    left_set: NDArray[np.uint64]
    leaf_value: NDArray[np.float32]
    gain_feature: NDArray[np.int32]
    class_gain: NDArray[np.float64]
    gain_start: NDArray[np.int64]
    tree_start: NDArray[np.int64]
    tree_class: NDArray[np.int32]
    tree_base: NDArray[np.int32]
    tree_base_scale: NDArray[np.float64]
    iteration_start: NDArray[np.int64]
    init: NDArray[np.float64]
    n_features: int
    n_classes: int

    def __post_init__(self) -> None:
        read_only(self)

    def __repr__(self) -> str:
        shape = f"{self.n_features} features, {self.n_classes} classes"
        return f"Ensemble({self.n_iter} iterations, {len(self.tree_class)} trees, {shape})"

    @property
    def n_iter(self) -> int:
        """Number of boosting iterations."""
        return len(self.iteration_start) - 1

    def raw(
        self, X: NDArray[np.float64], n_threads: int, n_iter: int | None = None
    ) -> NDArray[np.float64]:
        """Return raw scores of shape (n_rows, n_classes), after all or the first ``n_iter`` iterations."""
        raw = self._start(len(X))
        n_trees = int(self.iteration_start[-1 if n_iter is None else n_iter])
        self._forest.add(X, raw, 0, n_trees, n_threads)
        return raw

    def staged_raw(self, X: NDArray[np.float64], n_threads: int) -> Iterator[NDArray[np.float64]]:
        """Yield raw scores after each iteration, always in the same array, which is updated in place."""
        raw = self._start(len(X))
        for first, last in zip(self.iteration_start[:-1], self.iteration_start[1:], strict=True):
            self._forest.add(X, raw, int(first), int(last), n_threads)
            yield raw

    def shapley_values(
        self, X: NDArray[np.float64], n_threads: int, n_iter: int
    ) -> NDArray[np.float64]:
        """Return Shapley values of shape (n_rows, n_features, n_classes).

        Their sum over features, plus ``mean_scores``, is the raw score after ``n_iter`` iterations.
        """
        values = np.zeros((*X.shape, self.n_classes))
        n_trees = int(self.iteration_start[n_iter])
        self._forest.explain(self._fraction_of_parent, X, values, n_trees, n_threads)
        return values

    def mean_scores(self, n_iter: int) -> NDArray[np.float64]:
        """Return mean raw scores after ``n_iter`` iterations, weighted by the weights of the nodes."""
        means: NDArray[np.float64] = self._forest.mean_scores(
            self._fraction_of_parent, int(self.iteration_start[n_iter])
        )
        return self.init + means

    def leaves(self, X: NDArray[np.float64], n_threads: int, n_iter: int) -> NDArray[np.int32]:
        """Return the leaf of each row in each tree, of shape (n_rows, n_trees).

        A leaf is an offset from the first node of its tree.
        """
        leaves = np.empty((len(X), int(self.iteration_start[n_iter])), dtype=np.int32)
        self._forest.apply(X, leaves, n_threads)
        return leaves

    def _start(self, n_rows: int) -> NDArray[np.float64]:
        raw = np.empty((n_rows, self.n_classes))
        raw[:] = self.init
        return raw

    def first_iterations(self, n_iter: int) -> "Ensemble":
        """Return the trees of the first ``n_iter`` iterations."""
        n_trees = int(self.iteration_start[n_iter])
        n_nodes = int(self.tree_start[n_trees])
        n_gains = int(self.gain_start[n_iter])
        return replace(
            self,
            **{name: getattr(self, name)[:n_nodes] for name in _BY_NODE},
            **{name: getattr(self, name)[:n_trees] for name in _BY_TREE},
            **{name: getattr(self, name)[:n_gains] for name in _BY_GAIN_ENTRY},
            left_set=self.left_set[: self.left_set_start[n_nodes]],
            leaf_value=self.leaf_value[: self.leaf_value_start[n_trees]],
            tree_start=self.tree_start[: n_trees + 1],
            iteration_start=self.iteration_start[: n_iter + 1],
            gain_start=self.gain_start[: n_iter + 1],
        )

    def followed_by(self, later: "Ensemble") -> "Ensemble":
        """Return these iterations followed by those of another ensemble, with the baseline of this one."""
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(later, name)])
            for name in (*_BY_NODE, *_BY_TREE, *_BY_GAIN_ENTRY, "left_set", "leaf_value")
        }
        joined |= {
            name: _joined_starts(getattr(self, name), getattr(later, name))
            for name in ("tree_start", "iteration_start", "gain_start")
        }
        return replace(self, **joined)

    @property
    def has_base(self) -> bool:
        """Whether any tree has a base class."""
        return bool((self.tree_base != NO_BASE).any())

    @lazy
    def left_set_start(self) -> NDArray[np.int64]:
        """Start of the bit set of each node in ``left_set``."""
        return np.append(0, np.cumsum(self.left_set_size, dtype=np.int64))

    @lazy
    def leaf_value_start(self) -> NDArray[np.int64]:
        """Start of the leaves of each tree in ``leaf_value``."""
        n_leaves = (np.diff(self.tree_start) + 1) // 2
        return np.append(0, np.cumsum(n_leaves * (self.tree_class == ALL_CLASSES)))

    @lazy
    def used_features(self) -> NDArray[np.intp]:
        """Features that trees split on, ascending."""
        return np.unique(self.feature[self.feature >= 0]).astype(np.intp)

    @lazy
    def narrow(self) -> "Ensemble":
        """The same trees for tables that hold the used features only."""
        place = np.full(self.n_features + 1, -1, dtype=np.int32)  # place[-1], for leaves, stays -1
        place[self.used_features] = np.arange(len(self.used_features))
        return replace(
            self,
            feature=place[self.feature],
            gain_feature=place[self.gain_feature],
            n_features=len(self.used_features),
        )

    def splits(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return feature and threshold of each numeric split."""
        is_split = (self.feature >= 0) & (self.left_set_size == 0)
        return self.feature[is_split], self.threshold[is_split]

    def pack(self) -> None:
        """Pack the trees for prediction, which checks every index; raise ValueError if one is invalid."""
        try:
            self._forest  # noqa: B018 - built on first access
        except TypeError as error:
            raise ValueError(str(error)) from error

    @lazy
    def _fraction_of_parent(self) -> NDArray[np.float64]:
        """Fraction of the parent's weight in each node; a half where the parent has no weight."""
        first = np.repeat(self.tree_start[:-1], np.diff(self.tree_start))
        is_split = self.feature >= 0
        left = (first + self.left)[is_split]
        both = self.weight[left] + self.weight[left + 1]
        of_left = np.full(len(left), 0.5)
        np.divide(self.weight[left], both, out=of_left, where=both > 0)
        fraction = np.ones(len(self.feature))
        fraction[left] = of_left
        fraction[left + 1] = 1 - of_left
        return fraction

    @lazy
    def _forest(self) -> _core.Forest:
        return _core.Forest(vars(self), self.n_features, self.n_classes)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out cached properties."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        unexpected = state.keys() ^ {field.name for field in fields(self)}
        if unexpected:
            raise ValueError(
                f"the pickled Ensemble is of another version than abcgbm {VERSION}: only one of the two "
                f"has the fields {sorted(unexpected)}; expected a pickle of the same version, or a model "
                "file (save_model)"
            )
        self.__dict__.update(state)
        read_only(self)


def _joined_starts(starts: NDArray[np.int64], later: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate two arrays of start offsets, which end with the total length."""
    return np.concatenate([starts, later[1:] + starts[-1]])


class EnsembleBuilder:
    """Collects the trees of each iteration; ``init`` is the baseline, zeros by default."""

    def __init__(
        self, n_features: int, n_classes: int, init: NDArray[np.float64] | None = None
    ) -> None:
        self.n_features = n_features
        self.n_classes = n_classes
        self._init = np.zeros(n_classes) if init is None else init
        self._trees: list[_core.IterationResult] = []
        self._iteration_start = [0]
        self._gain_start = [0]

    def add_iteration(self, parts: Sequence[_core.IterationResult]) -> None:
        """Add one iteration: usually one part; with sequential residuals one for each class."""
        self._trees += parts
        n_trees = sum(len(part.tree_class) for part in parts)
        self._iteration_start.append(self._iteration_start[-1] + n_trees)
        n_gains = sum(len(part.gain_feature) for part in parts)
        self._gain_start.append(self._gain_start[-1] + n_gains)

    def build(self, threshold_of_bin: Any) -> Ensemble:
        """Concatenate all trees; ``threshold_of_bin(feature, bin)`` returns thresholds in feature values."""
        feature = self._joined("feature", np.int32)
        split_bin = self._joined("bin", np.int32)
        threshold = np.zeros(len(feature))
        is_split = feature >= 0
        threshold[is_split] = threshold_of_bin(feature[is_split], split_bin[is_split])
        sizes = [np.diff(part.tree_start) for part in self._trees]
        n_trees = [len(part.tree_class) for part in self._trees]
        return Ensemble(
            feature=feature,
            threshold=threshold,
            left=self._joined("left", np.int32),
            missing_left=self._joined("missing_left", np.uint8),
            value=self._joined("value", np.float64),
            gain=self._joined("gain", np.float64),
            weight=self._joined("weight", np.float64),
            left_set_size=self._joined("left_set_size", np.int32),
            left_set=self._joined("left_set", np.uint64),
            leaf_value=self._joined("leaf_value", np.float32, self.n_classes),
            gain_feature=self._joined("gain_feature", np.int32),
            class_gain=self._joined("class_gain", np.float64, self.n_classes),
            gain_start=np.array(self._gain_start, dtype=np.int64),
            tree_start=np.cumsum(np.concatenate([[0], *sizes]), dtype=np.int64),
            tree_class=self._joined("tree_class", np.int32),
            tree_base=np.repeat([part.base for part in self._trees], n_trees).astype(np.int32),
            tree_base_scale=np.repeat([part.base_scale for part in self._trees], n_trees),
            iteration_start=np.array(self._iteration_start, dtype=np.int64),
            init=self._init,
            n_features=self.n_features,
            n_classes=self.n_classes,
        )

    def _joined(self, name: str, dtype: Any, *shape: int) -> NDArray[Any]:
        parts = [getattr(part, name) for part in self._trees]
        return np.concatenate([np.empty((0, *shape), dtype), *parts]).astype(dtype, copy=False)
