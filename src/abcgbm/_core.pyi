"""The native core of abcgbm: all loops over rows and bins."""

from collections.abc import Sequence
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


def simd_level() -> str:
    """The SIMD level in use: baseline, avx2 or avx512."""

class Storage:
    """
    Where large arrays are allocated: in memory, or in unnamed scratch files of a folder.
    """

    def __init__(self, folder: str | None = None, min_bytes: int = 1048576) -> None:
        """
        Arrays below min_bytes stay in memory. OSError if the folder is not writable.
        """

class Binned:
    """A table of bin codes."""

    @property
    def n_bins(self) -> list[int]:
        """Number of bins of each feature, including the one for missing values."""

    @property
    def is_sparse(self) -> list[bool]:
        """
        Whether only the rows without the feature's most common code are stored.
        """

    @property
    def is_bundled(self) -> list[bool]:
        """Whether a sparse feature is in a bundle."""

    @property
    def is_categorical(self) -> list[bool]:
        """Whether splits on the feature are sets of codes."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def total_bins(self) -> int:
        """Number of bins of all features."""

    @property
    def code_bytes(self) -> int:
        """Bytes of a code: 1 or 2."""

    def state(self) -> dict[str, object]:
        """The table as a dict of flat arrays."""

    @staticmethod
    def from_state(state: dict[str, object]) -> Binned:
        """The table of such a dict; ValueError if it is invalid."""

    def take(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Binned:
        """The given rows, by number, as a table."""

    def codes(self, features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> NDArray[numpy.uint16]:
        """
        A copy of the codes of some or all features, of shape (n_rows, n_features).
        """

def find_thresholds(X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], weight: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], max_bins: int, n_threads: int) -> list[NDArray[numpy.float64]]:
    """Thresholds between the value bins of each column."""

class SparseColumns:
    """
    The columns of a csc matrix, without a copy; rows that are not listed have the fill value.
    """

    @overload
    def __init__(self, n_rows: int, fill: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @overload
    def __init__(self, n_rows: int, fill: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

def find_sparse_thresholds(columns: SparseColumns, weight: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], max_bins: int, n_threads: int) -> list[NDArray[numpy.float64]]:
    """Thresholds between the value bins of each sparse column."""

class BinnedBuilder:
    """Codes a table, a few columns at a time."""

    def __init__(self, n_rows: int, thresholds: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]] | None, is_categorical: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], storage: Storage = ...) -> None: ...

    def set_thresholds(self, feature: int, thresholds: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Set the bins of a feature; to be called before its values are added."""

    def add_block(self, features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], n_threads: int) -> None:
        """Code the given features, which are the columns of X."""

    def add_sparse(self, features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: SparseColumns, n_threads: int) -> None:
        """Code the given features, which are the sparse columns."""

    def add_rows(self, features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], first_row: int, n_threads: int) -> None:
        """Code the rows of the given features from first_row on."""

    def finish_features(self, features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> NDArray[numpy.uint64]:
        """
        Finish features that were coded by add_rows; return the digests of their columns.
        """

    def set_common_code(self, feature: int, common: int, n_listed: int, n_rows: int) -> None:
        """
        Set the common code of a feature, and how many of all rows have another.
        """

    def bundles(self) -> list[list[int]]:
        """Bundles of sparse features that never list the same row."""

    def conflicts(self, bundles: Sequence[Sequence[int]]) -> NDArray[numpy.int32]:
        """
        For each feature, 1 if it conflicts with an earlier one of its bundle in some row, else 0.
        """

    def finish(self, bundles: Sequence[Sequence[int]] | None = None) -> Binned:
        """
        Return the binned table and empty the builder; without bundles, they are found in the rows.
        """

class ValueCounts:
    """Distinct values of columns, counted batch by batch."""

    def __init__(self, n_columns: int) -> None: ...

    def add(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], weight: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first_row: int, n_threads: int) -> None:
        """
        Count the rows from first_row on; rows of weight 0 and NaN are ignored.
        """

    def merge(self, other: ValueCounts, n_threads: int) -> None:
        """Add the counts of other rows of the same columns."""

    def take(self, n_threads: int) -> list[tuple[NDArray[numpy.float64], NDArray[numpy.int64]]]:
        """
        Return values and weights, one run for each column, and clear the counts.
        """

    def thresholds(self, runs: Sequence[Sequence[tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]]]], max_bins: int, n_threads: int) -> list[NDArray[numpy.float64]]:
        """
        The thresholds of each column, from the stored runs and the given ones.
        """

    @property
    def n_columns(self) -> int: ...

    @property
    def n_values(self) -> int:
        """Number of stored values, over all columns."""

    @property
    def digests(self) -> NDArray[numpy.uint64]:
        """Digests of the columns, over all rows so far."""

def softmax(raw: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_threads: int = 1) -> NDArray[numpy.float64]:
    """Probabilities of scores of shape (n_rows, n_classes)."""

def log_softmax(raw: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_threads: int = 1) -> NDArray[numpy.float64]:
    """Logarithms of the probabilities."""

class Shard:
    """The shard of the rows that a rank holds."""

    def __init__(self, communicator: object, row_id: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """
        The communicator has allreduce, reduce_scatter and allgather; row_id numbers the rows among all ranks, for random draws.
        """

class Labels:
    """Class numbers and weights of rows; weights are multiples of the unit."""

    def __init__(self, y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.int64], dict(shape=(None,), device='cpu', writable=False)], unit: float, n_classes: int, storage: Storage = ..., shard: Shard | None = None) -> None: ...

class FeatureRules:
    """Feature sampling and interaction constraints."""

    def __init__(self, max_features: int = 0, max_path_features: int = 0, interaction_groups: Sequence[Sequence[int]] = []) -> None: ...

class GrowParams:
    """Limits on the growth of a tree."""

    def __init__(self, max_leaf_nodes: int = 20, max_depth: int = 0, min_gain: float = 0.0, features: FeatureRules = ...) -> None: ...

class SplitParams:
    """Split criterion and constraints."""

    def __init__(self, hessian_split: bool = False, min_weight: int = 10, min_hessian_leaf: float = 0.0, l2_regularization: float = 0.0, categorical_smoothing: float = 10.0, categorical_penalty: float = 0.0) -> None: ...

class TrainParams:
    """Parameters of training."""

    def __init__(self, grow: GrowParams = ..., split: SplitParams = ..., learning_rate: float = 0.1, subsample: float = 1.0, seed: int = 0, multi_output: bool = False, n_projections: int = 0, base_line_search: bool = False) -> None: ...

def training_bytes(n_rows: int, n_classes: int, total_bins: int, params: TrainParams, n_candidates: int, n_threads: int, has_ranks: bool = False, in_folder: bool = False) -> dict[str, int]:
    """
    The bytes of the large arrays of training by name, without the binned table. in_folder: only those that stay in memory if the others are in scratch files.
    """

def validation_bytes(n_rows: int, n_classes: int, n_threads: int) -> int:
    """The bytes of validation rows, without their codes."""

class IterationResult:
    """The trees of an iteration as flat arrays."""

    @property
    def feature(self) -> NDArray[numpy.int32]: ...

    @property
    def bin(self) -> NDArray[numpy.int32]: ...

    @property
    def left(self) -> NDArray[numpy.int32]: ...

    @property
    def missing_left(self) -> NDArray[numpy.uint8]: ...

    @property
    def value(self) -> NDArray[numpy.float64]: ...

    @property
    def gain(self) -> NDArray[numpy.float64]: ...

    @property
    def weight(self) -> NDArray[numpy.float64]: ...

    @property
    def left_set_size(self) -> NDArray[numpy.int32]: ...

    @property
    def left_set(self) -> NDArray[numpy.uint64]:
        """
        The sets of codes that go left in categorical splits, 64 codes to a word.
        """

    @property
    def leaf_value(self) -> NDArray[numpy.float32]:
        """
        The leaf values of a multi-output tree, in the order of the nodes, by class.
        """

    @property
    def gain_feature(self) -> NDArray[numpy.int32]:
        """The split features of a multi-output tree, ascending."""

    @property
    def class_gain(self) -> NDArray[numpy.float64]:
        """The gain of all splits on each of them, by class."""

    @property
    def tree_start(self) -> NDArray[numpy.int64]: ...

    @property
    def tree_class(self) -> NDArray[numpy.int32]: ...

    @property
    def base(self) -> int:
        """The base class; -1 without one."""

    @property
    def candidate_losses(self) -> list[float]:
        """
        The loss after the step of each candidate for the base class, if there were several.
        """

    @property
    def base_scale(self) -> float:
        """The fraction of the trees' values by which the base class moves."""

    @property
    def n_halvings(self) -> int:
        """How often the line search halved the step; negative: doubled it."""

    @property
    def changed(self) -> bool:
        """Whether the iteration changed any score."""

class Trainer:
    """The state of training."""

    def __init__(self, binned: Binned, labels: Labels, params: TrainParams, n_threads: int, raw: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, storage: Storage = ...) -> None: ...

    def train_iteration(self, classes: Sequence[int], bases: Sequence[int], base_derivatives: bool, leaf_scale: float, iteration: int = 0) -> IterationResult:
        """
        Grow the trees of an iteration, choose among the bases, and update the scores.
        """

    def residuals(self) -> tuple[NDArray[numpy.int64], int]:
        """A copy of the integer residuals, which are multiples of 2^-S, and S."""

    def raw(self) -> NDArray[numpy.float64]:
        """A copy of the scores, of shape (n_classes, n_rows)."""

    def class_losses(self) -> NDArray[numpy.float64]:
        """The loss summed over the rows of each class."""

    def loss(self) -> float:
        """The loss of all rows."""

class Validation:
    """Scores of validation rows, updated tree by tree."""

    def __init__(self, binned: Binned, labels: Labels, n_threads: int, raw: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, storage: Storage = ...) -> None: ...

    def add(self, result: IterationResult) -> None:
        """Update the scores by the trees of an iteration."""

    def leading(self) -> NDArray[numpy.int32]:
        """The class of each row's largest score."""

    def raw(self) -> NDArray[numpy.float64]:
        """A copy of the scores, of shape (n_classes, n_rows)."""

    def loss(self) -> float:
        """The loss of all rows."""

class Forest:
    """Trees packed for prediction; all indices are checked."""

    def __init__(self, ensemble: dict[str, object], n_features: int, n_classes: int) -> None:
        """The arrays of an ensemble by name."""

    def add(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], raw: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], first_tree: int, last_tree: int, n_threads: int) -> None:
        """Add trees [first_tree, last_tree) to the scores, in place."""

    def explain(self, fraction: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], shapley: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu')], n_trees: int, n_threads: int) -> None:
        """
        Add the Shapley values of the first trees, in place; fraction: of the parent's weight, by node.
        """

    def mean_scores(self, fraction: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_trees: int) -> NDArray[numpy.float64]:
        """
        The mean score of each class in the first trees, over the training weights.
        """

    def apply(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], leaves: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], n_threads: int) -> None:
        """
        Write the leaf of each row in each of the first trees; leaves has a column for each tree.
        """
