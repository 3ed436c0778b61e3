"""A lower limit of training time: only the additions of rows to bins, with all data in the L1 cache.

A method that grows trees from histograms has to add rows to bins. These additions are counted, and
multiplied by the time of one in the bare loop (``cpp/limit``, measured in the same run), where codes, sums
and bins never leave the L1 cache. It counts:

- Roots: in every iteration all rows, once for each column, for all classes at the same time. Eight
  classes make a cache line of 64 bytes, so that is ceil(K / 8) lines. LogitBoost sums hessians too: one
  for each tree of the iteration, eight of them in a line.
- Nodes: for every split the rows of its lighter child, once for each column; the sibling is the
  parent minus that. One addition has two sums, residual and weight; LogitBoost has three. A split does
  not count if the children need no histogram: the last split of a full tree, and one whose children have
  too few rows to be split.
- Columns: one with a single bin costs nothing. One in which at least 80 % of the rows have the same
  bin is sparse: only its other rows are added, and the common bin is the remainder of the total. So
  the one-hot columns of a categorical feature cost at most one addition for a row, as if they were one.
  In each node a sparse column is assumed to have the same fraction of other rows as in the whole table.

Everything else is left out: binning, softmax, split search, subtraction, partitioning rows, memory latency,
and trees of rejected base classes. So a multiple of 1 is out of reach, above all for tables with few rows
and many bins. Rows are counted by node weights, so the fit must have no sample weights and no maximum depth.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from abcgbm import BinMapper
from benchmarks.peers import Floats

try:
    from abcgbm import _bench
except ImportError:  # not in wheels; `make test` builds it
    _bench = None

IS_AVAILABLE = _bench is not None  # else run and report omit the limit
SUMS_TO_LINE = 8
SPARSE_FROM = 0.8  # fraction of the rows in the most common bin


@dataclass(frozen=True)
class Additions:
    """Numbers of additions of a row to a bin.

    ``lines`` are additions of eight sums, for roots; ``pairs`` and ``triples`` of two and three, for
    nodes.
    """

    lines: float
    pairs: float = 0.0
    triples: float = 0.0

    def seconds(self) -> float:
        """Return the time of the additions in the bare loop."""
        numbers = {SUMS_TO_LINE: self.lines, 2: self.pairs, 3: self.triples}
        return sum(n * _bench.limit_seconds(n_sums) for n_sums, n in numbers.items() if n > 0)


def limit_of(model: Any, X: Floats) -> float:
    """Return the CPU seconds of the required additions in the bare loop, one thread.

    Parameters
    ----------
    model : ABCBoostClassifier
        Fitted on ``X``; its trees show which nodes needed histograms.
    X : ndarray of shape (n_rows, n_features)
    """
    return additions(model, columns_to_add(X, model.max_bins)).seconds()


def additions(model: Any, n_columns: float) -> Additions:
    """Count the additions of a training, given the number of columns to which a row is added."""
    trees = model.model_.ensemble
    has_hessian = _name_or_criterion(model.algorithm).endswith("logitboost")
    n_lines = np.full(trees.n_iter, _lines(trees.n_classes))
    if has_hessian:
        n_lines += _lines(np.diff(trees.iteration_start))
    first_nodes = trees.tree_start[trees.iteration_start[:-1]]
    to_roots = float(trees.weight[first_nodes] @ n_lines) * n_columns
    to_nodes = rows_of_lighter_children(model) * n_columns
    name = "triples" if has_hessian else "pairs"
    return Additions(lines=to_roots, **{name: to_nodes})


def _name_or_criterion(algorithm: Any) -> str:
    """Return an algorithm's name, such as "abc-logitboost", or the criterion of an object."""
    return algorithm if isinstance(algorithm, str) else str(algorithm.criterion)


def rows_of_lighter_children(model: Any) -> float:
    """Sum the rows of the lighter child of each split whose children need histograms."""
    trees = model.model_.ensemble
    is_split = trees.feature >= 0
    tree_start = np.repeat(trees.tree_start[:-1], np.diff(trees.tree_start))
    left = (tree_start + trees.left)[is_split]
    children = np.stack([trees.weight[left], trees.weight[left + 1]])
    is_last = trees.left[is_split] == 2 * model.max_leaf_nodes - 3
    needs_histograms = ~is_last & (children.max(axis=0) >= 2 * model.min_samples_leaf)
    return float(children.min(axis=0)[needs_histograms].sum())


def columns_to_add(X: Floats, max_bins: int) -> float:
    """Return the mean number of columns to which a row is added."""
    binned = BinMapper(max_bins).fit(X).transform(X).binned
    return sum(
        _fraction_to_add(binned.codes(np.array([feature], np.int32)).ravel())
        for feature in range(binned.n_features)
    )


def _fraction_to_add(codes: np.ndarray) -> float:
    in_common = int(np.bincount(codes).max()) / len(codes)
    return 1.0 - in_common if in_common >= SPARSE_FROM else 1.0


def _lines(n_sums: Any) -> Any:
    return -(-n_sums // SUMS_TO_LINE)
