"""The native core of abcgbm: loops over rows and bins."""

from collections.abc import Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray


def simd_level() -> str:
    """The SIMD level in use: baseline, avx2 or avx512."""

class Binned:
    """Bin codes of a table."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def n_bins(self) -> list[int]:
        """Bins of each feature: values, and one for missing."""

    @property
    def code_bytes(self) -> int:
        """Bytes of a code: 1 or 2."""

    def take(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Binned:
        """The given rows, by number."""

    def codes(self) -> NDArray[numpy.uint16]:
        """A copy of the codes, of shape (n_rows, n_features)."""

def find_thresholds(X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], weight: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], max_bins: int, n_threads: int) -> list[NDArray[numpy.float64]]:
    """Thresholds between the value bins of each column."""

def bin_table(X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], thresholds: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], n_threads: int) -> Binned:
    """Code a table by the thresholds of its columns."""

def softmax(raw: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_threads: int = 1) -> NDArray[numpy.float64]:
    """Probabilities of scores of shape (n_rows, n_classes)."""

def log_softmax(raw: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_threads: int = 1) -> NDArray[numpy.float64]:
    """Logarithms of the probabilities."""

class TrainParams:
    """How trees are grown."""

    def __init__(self, *, max_leaf_nodes: int = 20, max_depth: int = 0, min_weight: int = 10, min_gain: float = 0.0, learning_rate: float = 0.1, hessian_split: bool = False, l2_regularization: float = 0.0, min_hessian_leaf: float = 0.0) -> None: ...

class Step:
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

    def __init__(self, binned: Binned, y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], unit: float, n_classes: int, params: TrainParams, n_threads: int) -> None: ...

    def step(self, classes: Sequence[int], bases: Sequence[int], base_derivatives: bool, leaf_scale: float) -> Step:
        """Grow the trees of a step, choose among the bases, and move the scores."""

    def raw(self) -> NDArray[numpy.float64]:
        """A copy of the scores, of shape (n_classes, n_rows)."""

    def residuals(self) -> tuple[NDArray[numpy.int64], int]:
        """A copy of the integer residuals, and S: they are multiples of 2^-S."""

    def class_losses(self) -> NDArray[numpy.float64]:
        """The part of the loss that the rows of each class make."""

    def loss(self) -> float:
        """The training loss."""

class Forest:
    """Trees packed for prediction; all indices are checked."""

    def __init__(self, feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], left: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], missing_left: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], value: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], tree_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], tree_class: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], tree_base: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], tree_base_scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_features: int, n_classes: int) -> None: ...

    def add(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], raw: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], first_tree: int, last_tree: int, n_threads: int) -> None:
        """Add trees [first_tree, last_tree) to the scores, in place."""
