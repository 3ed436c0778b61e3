"""The fitted trees, as flat arrays."""

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
ALL_CLASSES = -1  # in arrays of trees' classes: a shared tree

# The arrays with an entry for each node, for each tree, and for each feature a step's tree is cut on.
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
_BY_GAIN = ("gain_feature", "class_gain")


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble:
    """All trees of a model, nodes end to end.

    A tree adds its leaf's value to its class and, if it has a base class, takes it from there times
    a scale: one form for all algorithms. A shared tree has a value for each class in its leaves, and
    adds these. Leaf values include the learning rate.

    Attributes
    ----------
    feature : ndarray of int32 of shape (n_nodes,)
        Feature of a split; -1 for a leaf.
    threshold : ndarray of float64 of shape (n_nodes,)
        Values at most this go left.
    left : ndarray of int32 of shape (n_nodes,)
        Left child, counted from the tree's first node; the right child is the next one.
    missing_left : ndarray of uint8 of shape (n_nodes,)
        Whether missing values go left.
    value, gain, weight : ndarray of float64 of shape (n_nodes,)
        Value of a leaf (0 in shared trees), gain of a split, sum of sample weights of a node.
    left_set_size : ndarray of int32 of shape (n_nodes,)
        Words of a categorical split's set; 0 for other nodes.
    left_set : ndarray of uint64
        Those sets end to end: bit c of word w stands for code 64 w + c, and codes in it go left.
    tree_start : ndarray of int64 of shape (n_trees + 1,)
        First node of each tree.
    leaf_value : ndarray of float32 of shape (n_shared_leaves, n_classes)
        The values of the leaves of shared trees, in the order of their nodes.
    gain_feature : ndarray of int32 of shape (n_gains,)
        The features that the shared tree of a step is cut on, ascending; steps end to end.
    class_gain : ndarray of float64 of shape (n_gains, n_classes)
        What the cuts on such a feature gain for each class.
    gain_start : ndarray of int64 of shape (n_steps + 1,)
        First of these features of each step.
    tree_class, tree_base : ndarray of int32 of shape (n_trees,)
        The class a tree adds to (-1: all), and the one it takes from (-1: none).
    tree_base_scale : ndarray of float64 of shape (n_trees,)
        The part of the value that is taken: 1, or less where the guard acted.
    step_start : ndarray of int64 of shape (n_steps + 1,)
        First tree of each step.
    init : ndarray of float64 of shape (n_classes,)
        Scores before the first step.
    n_features, n_classes : int
        Shape of what goes in and comes out.
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
    step_start: NDArray[np.int64]
    init: NDArray[np.float64]
    n_features: int
    n_classes: int

    def __post_init__(self) -> None:
        read_only(self)

    def __repr__(self) -> str:
        shape = f"{self.n_features} features, {self.n_classes} classes"
        return f"Ensemble({self.n_iter} steps, {len(self.tree_class)} trees, {shape})"

    @property
    def n_iter(self) -> int:
        """Number of boosting steps."""
        return len(self.step_start) - 1

    def raw(
        self, X: NDArray[np.float64], n_threads: int, n_iter: int | None = None
    ) -> NDArray[np.float64]:
        """Return the scores after so many steps, or the last, of shape (n_rows, n_classes)."""
        raw = self._start(len(X))
        n_trees = int(self.step_start[-1 if n_iter is None else n_iter])
        self._forest.add(X, raw, 0, n_trees, n_threads)
        return raw

    def staged_raw(self, X: NDArray[np.float64], n_threads: int) -> Iterator[NDArray[np.float64]]:
        """Yield the scores after each step. The array is the same each time, and grows."""
        raw = self._start(len(X))
        for first, last in zip(self.step_start[:-1], self.step_start[1:], strict=True):
            self._forest.add(X, raw, int(first), int(last), n_threads)
            yield raw

    def shapley_values(
        self, X: NDArray[np.float64], n_threads: int, n_iter: int
    ) -> NDArray[np.float64]:
        """Return what each feature adds to each score, of shape (n_rows, n_features, n_classes).

        With the mean scores they add up to the scores after so many steps.
        """
        values = np.zeros((*X.shape, self.n_classes))
        n_trees = int(self.step_start[n_iter])
        self._forest.explain(self._share, X, values, n_trees, n_threads)
        return values

    def mean_scores(self, n_iter: int) -> NDArray[np.float64]:
        """Return the mean scores after so many steps, each leaf weighing what its nodes do."""
        means: NDArray[np.float64] = self._forest.mean_scores(
            self._share, int(self.step_start[n_iter])
        )
        return self.init + means

    def leaves(self, X: NDArray[np.float64], n_threads: int, n_iter: int) -> NDArray[np.int32]:
        """Return the leaf that each row comes to in each tree of the first steps.

        They are counted from the first node of their tree; the shape is (n_rows, n_trees).
        """
        leaves = np.empty((len(X), int(self.step_start[n_iter])), dtype=np.int32)
        self._forest.apply(X, leaves, n_threads)
        return leaves

    def _start(self, n_rows: int) -> NDArray[np.float64]:
        raw = np.empty((n_rows, self.n_classes))
        raw[:] = self.init
        return raw

    def first_iterations(self, n_iter: int) -> "Ensemble":
        """Return the model of the first steps alone."""
        n_trees = int(self.step_start[n_iter])
        n_nodes = int(self.tree_start[n_trees])
        n_gains = int(self.gain_start[n_iter])
        return replace(
            self,
            **{name: getattr(self, name)[:n_nodes] for name in _BY_NODE},
            **{name: getattr(self, name)[:n_trees] for name in _BY_TREE},
            **{name: getattr(self, name)[:n_gains] for name in _BY_GAIN},
            left_set=self.left_set[: self.left_set_start[n_nodes]],
            leaf_value=self.leaf_value[: self.shared_leaf_start[n_trees]],
            tree_start=self.tree_start[: n_trees + 1],
            step_start=self.step_start[: n_iter + 1],
            gain_start=self.gain_start[: n_iter + 1],
        )

    def followed_by(self, later: "Ensemble") -> "Ensemble":
        """Return these steps and then those of another model; the start is that of this one."""
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(later, name)])
            for name in (*_BY_NODE, *_BY_TREE, *_BY_GAIN, "left_set", "leaf_value")
        }
        joined |= {
            name: _joined_starts(getattr(self, name), getattr(later, name))
            for name in ("tree_start", "step_start", "gain_start")
        }
        return replace(self, **joined)

    @property
    def has_base(self) -> bool:
        """Whether any tree has a base class."""
        return bool((self.tree_base != NO_BASE).any())

    @lazy
    def left_set_start(self) -> NDArray[np.int64]:
        """Where the set of each node begins in ``left_set``."""
        return np.append(0, np.cumsum(self.left_set_size, dtype=np.int64))

    @lazy
    def shared_leaf_start(self) -> NDArray[np.int64]:
        """Where the leaves of each tree begin in ``leaf_value``."""
        n_leaves = (np.diff(self.tree_start) + 1) // 2
        return np.append(0, np.cumsum(n_leaves * (self.tree_class == ALL_CLASSES)))

    @lazy
    def used_features(self) -> NDArray[np.intp]:
        """The features that are cut, ascending."""
        return np.unique(self.feature[self.feature >= 0]).astype(np.intp)

    @lazy
    def narrow(self) -> "Ensemble":
        """The same trees for tables of the used features alone."""
        place = np.full(self.n_features + 1, -1, dtype=np.int32)  # the last is a leaf's: -1
        place[self.used_features] = np.arange(len(self.used_features))
        return replace(
            self,
            feature=place[self.feature],
            gain_feature=place[self.gain_feature],
            n_features=len(self.used_features),
        )

    def splits(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the feature and the threshold of each split of numbers."""
        is_split = (self.feature >= 0) & (self.left_set_size == 0)
        return self.feature[is_split], self.threshold[is_split]

    def pack(self) -> None:
        """Pack the trees for prediction, which checks every index; a ValueError if one is wrong."""
        try:
            self._forest  # noqa: B018 - is made when it is first asked for
        except TypeError as error:
            raise ValueError(str(error)) from error

    @lazy
    def _share(self) -> NDArray[np.float64]:
        """The part of its parent's weight that a node has; a half where the parent has none."""
        first = np.repeat(self.tree_start[:-1], np.diff(self.tree_start))
        is_split = self.feature >= 0
        left = (first + self.left)[is_split]
        both = self.weight[left] + self.weight[left + 1]
        of_left = np.full(len(left), 0.5)
        np.divide(self.weight[left], both, out=of_left, where=both > 0)
        share = np.ones(len(self.feature))
        share[left], share[left + 1] = of_left, 1 - of_left
        return share

    @lazy
    def _forest(self) -> _core.Forest:
        return _core.Forest(vars(self), self.n_features, self.n_classes)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        odd = state.keys() ^ {field.name for field in fields(self)}
        if odd:
            raise ValueError(
                f"the pickled Ensemble is one of another version than abcgbm {VERSION}: of "
                f"{sorted(odd)} only one of them knows; a model file (save_model) lasts longer"
            )
        self.__dict__.update(state)
        read_only(self)


def _joined_starts(starts: NDArray[np.int64], later: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where things begin that lie end to end; the last entry is where they end."""
    return np.concatenate([starts, later[1:] + starts[-1]])


class EnsembleBuilder:
    """Collects the trees step by step; ``init`` are the scores before the first one."""

    def __init__(
        self, n_features: int, n_classes: int, init: NDArray[np.float64] | None = None
    ) -> None:
        self.n_features = n_features
        self.n_classes = n_classes
        self._init = np.zeros(n_classes) if init is None else init
        self._trees: list[_core.IterationResult] = []
        self._step_start = [0]
        self._gain_start = [0]

    def add_iteration(self, parts: Sequence[_core.IterationResult]) -> None:
        """Add one step: usually one part; with sequential residuals one for each class."""
        self._trees += parts
        n_trees = sum(len(part.tree_class) for part in parts)
        self._step_start.append(self._step_start[-1] + n_trees)
        n_gains = sum(len(part.gain_feature) for part in parts)
        self._gain_start.append(self._gain_start[-1] + n_gains)

    def build(self, upper_value: Any) -> Ensemble:
        """Put everything end to end; ``upper_value(feature, bin)`` gives the real thresholds."""
        feature = self._joined("feature", np.int32)
        code = self._joined("bin", np.int32)
        threshold = np.zeros(len(feature))
        is_split = feature >= 0
        threshold[is_split] = upper_value(feature[is_split], code[is_split])
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
            step_start=np.array(self._step_start, dtype=np.int64),
            init=self._init,
            n_features=self.n_features,
            n_classes=self.n_classes,
        )

    def _joined(self, name: str, dtype: Any, *shape: int) -> NDArray[Any]:
        parts = [getattr(part, name) for part in self._trees]
        return np.concatenate([np.empty((0, *shape), dtype), *parts]).astype(dtype, copy=False)
