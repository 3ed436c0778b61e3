"""The native core of abcgbm: loops over rows and bins."""

from collections.abc import Sequence
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


def simd_level() -> str:
    """The SIMD level in use: baseline, avx2 or avx512."""

class Storage:
    """
    Where arrays as large as the rows lie: in memory, or in unnamed scratch files of a folder.
    """

    def __init__(self, folder: str | None = None, min_bytes: int = 1048576) -> None:
        """
        OSError if no file can be made in the folder. Smaller arrays stay in memory.
        """

class Binned:
    """Bin codes of a table."""

    @property
    def n_bins(self) -> list[int]:
        """Bins of each feature: values, and one for missing."""

    @property
    def is_sparse(self) -> list[bool]:
        """
        Whether one code of a feature is so common that its bin is what the others leave.
        """

    @property
    def is_bundled(self) -> list[bool]:
        """Whether a sparse feature shares a column with others."""

    @property
    def is_categorical(self) -> list[bool]:
        """Whether cuts of a feature are sets of codes."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def total_bins(self) -> int:
        """Bins of all features."""

    @property
    def code_bytes(self) -> int:
        """Bytes of a code: 1 or 2."""

    def state(self) -> dict[str, object]:
        """The table as a dict of flat arrays."""

    @staticmethod
    def from_state(state: dict[str, object]) -> Binned:
        """The table of such a dict; ValueError if it is that of no table."""

    def take(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Binned:
        """The given rows, by number."""

    def codes(self, features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> NDArray[numpy.uint16]:
        """
        A copy of the codes of some or all features, of shape (n_rows, n_features).
        """

def find_thresholds(X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], weight: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], max_bins: int, n_threads: int) -> list[NDArray[numpy.float64]]:
    """Thresholds between the value bins of each column."""

class SparseColumns:
    """
    The columns of a csc matrix, not copied; rows that are not listed have the fill value.
    """

    @overload
    def __init__(self, n_rows: int, fill: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @overload
    def __init__(self, n_rows: int, fill: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

def find_sparse_thresholds(columns: SparseColumns, weight: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], max_bins: int, n_threads: int) -> list[NDArray[numpy.float64]]:
    """The same for sparse columns."""

class BinnedBuilder:
    """Codes a table, some columns at a time."""

    def __init__(self, n_rows: int, thresholds: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]] | None, is_categorical: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], storage: Storage = ...) -> None: ...

    def set_thresholds(self, feature: int, thresholds: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Say what the bins of a feature are, before its values are added."""

    def add_block(self, features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], n_threads: int) -> None:
        """Code the columns of X, which are the given features."""

    def add_sparse(self, features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: SparseColumns, n_threads: int) -> None:
        """Code sparse columns, which are the given features."""

    def add_rows(self, features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], first_row: int, n_threads: int) -> None:
        """Code some rows of the given features."""

    def finish_features(self, features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> NDArray[numpy.uint64]:
        """
        Say that all rows of some features have come; return the digests of their columns.
        """

    def set_common_code(self, feature: int, common: int, n_listed: int, n_rows: int) -> None:
        """
        Say what the common code of a feature is, and how many of all rows have another.
        """

    def bundles(self) -> list[list[int]]:
        """Sparse features that never meet in a row, in bundles."""

    def conflicts(self, bundles: Sequence[Sequence[int]]) -> NDArray[numpy.int32]:
        """
        For each feature, 1 if it conflicts one before it in its bundle in some row; else 0.
        """

    def finish(self, bundles: Sequence[Sequence[int]] | None = None) -> Binned:
        """
        The binned table, with the bundles that its rows allow if none are given; the builder is then empty.
        """

class ValueCounts:
    """The distinct values of columns, part by part."""

    def __init__(self, n_columns: int) -> None: ...

    def add(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], weight: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first_row: int, n_threads: int) -> None:
        """Count the rows from first_row on; those of weight 0 are absent."""

    def merge(self, other: ValueCounts, n_threads: int) -> None:
        """Count what another has counted."""

    def take(self, n_threads: int) -> list[tuple[NDArray[numpy.float64], NDArray[numpy.int64]]]:
        """Hand over values and weights, one run a column, and begin anew."""

    def thresholds(self, runs: Sequence[Sequence[tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]]]], max_bins: int, n_threads: int) -> list[NDArray[numpy.float64]]:
        """
        The thresholds of each column, of what is held and of further runs of each column.
        """

    @property
    def n_columns(self) -> int: ...

    @property
    def n_values(self) -> int:
        """Values that are held, of all columns."""

    @property
    def digests(self) -> NDArray[numpy.uint64]:
        """What the rows so far make of each column."""

def softmax(raw: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_threads: int = 1) -> NDArray[numpy.float64]:
    """Probabilities of scores of shape (n_rows, n_classes)."""

def log_softmax(raw: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_threads: int = 1) -> NDArray[numpy.float64]:
    """Logarithms of the probabilities."""

class Shard:
    """Which of all rows those of a rank are."""

    def __init__(self, communicator: object, row_id: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """
        Of the communicator, sum, maximum, reduce_scatter and gather are called; numbers are for draws.
        """

class Labels:
    """Classes and weights of rows; weights are multiples of the unit."""

    def __init__(self, y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.int64], dict(shape=(None,), device='cpu', writable=False)], unit: float, n_classes: int, storage: Storage = ..., shard: Shard | None = None) -> None: ...

class FeatureRules:
    """Which features a node may be cut on."""

    def __init__(self, max_features: int = 0, max_path_features: int = 0, interaction_groups: Sequence[Sequence[int]] = []) -> None: ...

class GrowParams:
    """How far a tree grows."""

    def __init__(self, max_leaf_nodes: int = 20, max_depth: int = 0, min_gain: float = 0.0, features: FeatureRules = ...) -> None: ...

class SplitParams:
    """What a split is measured by, and what it must leave."""

    def __init__(self, hessian_split: bool = False, min_weight: int = 10, min_hessian_leaf: float = 0.0, l2_regularization: float = 0.0, categorical_smoothing: float = 10.0, categorical_penalty: float = 0.0) -> None: ...

class TrainParams:
    """How trees are grown."""

    def __init__(self, grow: GrowParams = ..., split: SplitParams = ..., learning_rate: float = 0.1, subsample: float = 1.0, seed: int = 0, multi_output: bool = False, n_projections: int = 0, base_line_search: bool = False) -> None: ...

def training_bytes(n_rows: int, n_classes: int, total_bins: int, params: TrainParams, n_candidates: int, n_threads: int, has_ranks: bool = False, in_folder: bool = False) -> dict[str, int]:
    """
    The bytes of each large part of a training, apart from the coded table; only of those that stay in memory, if the others are in a folder.
    """

def validation_bytes(n_rows: int, n_classes: int, n_threads: int) -> int:
    """
    The bytes of rows whose scores follow the trees, apart from their codes.
    """

class IterationResult:
    """The trees of one step as flat arrays."""

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
        The values of the leaves of a shared tree, in the order of their nodes, by class.
        """

    @property
    def gain_feature(self) -> NDArray[numpy.int32]:
        """The features that a shared tree is cut on, ascending."""

    @property
    def class_gain(self) -> NDArray[numpy.float64]:
        """The gain of all its cuts on each of them, by class."""

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
        The loss after the step of each base class tried, if there were several.
        """

    @property
    def base_scale(self) -> float:
        """The base class moves by this part of the trees' values."""

    @property
    def n_halvings(self) -> int:
        """How often the guard halved the step."""

    @property
    def changed(self) -> bool:
        """Whether the step moved any score."""

class Trainer:
    """The state of a training."""

    def __init__(self, binned: Binned, labels: Labels, params: TrainParams, n_threads: int, raw: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, storage: Storage = ...) -> None: ...

    def train_iteration(self, classes: Sequence[int], bases: Sequence[int], base_derivatives: bool, leaf_scale: float, iteration: int = 0) -> IterationResult:
        """Grow the trees of a step, choose among the bases, and move the scores."""

    def residuals(self) -> tuple[NDArray[numpy.int64], int]:
        """A copy of the integer residuals, and S: they are multiples of 2^-S."""

    def raw(self) -> NDArray[numpy.float64]:
        """A copy of the scores, of shape (n_classes, n_rows)."""

    def class_losses(self) -> NDArray[numpy.float64]:
        """The part of the loss that the rows of each class make."""

    def loss(self) -> float:
        """The loss of all rows."""

class Validation:
    """Rows that follow the trees."""

    def __init__(self, binned: Binned, labels: Labels, n_threads: int, raw: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, storage: Storage = ...) -> None: ...

    def add(self, result: IterationResult) -> None:
        """Move the scores by the trees of a step."""

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
        Add the Shapley values of the first trees, in place; fraction: of its parent's weight, by node.
        """

    def mean_scores(self, fraction: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_trees: int) -> NDArray[numpy.float64]:
        """What the first trees add to the score of each class in the mean."""

    def apply(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], leaves: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], n_threads: int) -> None:
        """
        Write the leaf of each row in the first trees, as many as there are columns.
        """
