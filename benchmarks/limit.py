"""The limit: training that does nothing but add rows to bins, with everything in the nearest cache.

A method that grows trees from histograms has to add rows to bins. These additions are counted, and
each is given the time that it takes in the bare loop (``cpp/limit``, measured here and now), where
codes, sums and bins never leave the nearest cache. What is counted:

- Roots: in every step all rows, once for each column, for all classes at the same time. Eight
  classes make a line of 64 bytes, so that is ceil(K / 8) lines. LogitBoost sums hessians too: one
  for each tree of the step, eight of them to a line.
- Nodes: for every split the rows of its lighter child, once for each column; the sibling is the
  parent minus that. One addition is of two sums, residual and weight; of three for LogitBoost. A
  split does not count if nobody looks at its children: the last one of a tree that has all its
  leaves, and one whose children are too light to be split.
- Columns: one of a single bin costs nothing. One in which at least 80 % of the rows have the same
  bin is sparse: only its other rows are added, the common bin has what they leave of the total. So
  the one-hot columns of a category cost at most one addition a row together, as if they were one.
  In each node a sparse column is taken to have the share of other rows that it has in all.

All else is left out: binning, softmax, the search for cuts, subtraction, moving rows, waiting for
memory; and trees of base classes that were tried and not taken. So 1 is out of reach, and above all
where a table has few rows for its bins. Rows are counted by the weights of nodes: the fit must be
without sample weights, and with no bound on depth.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from abcgbm import BinMapper
from benchmarks.peers import Floats

try:
    from abcgbm import _bench
except ImportError:  # in no wheel: `make test` builds it
    _bench = None

IS_AVAILABLE = _bench is not None  # else the limit is left out of run and report
SUMS_TO_LINE = 8
SPARSE_FROM = 0.8  # share of the rows in the most common bin


@dataclass(frozen=True)
class Additions:
    """How often a row is added to a bin.

    ``lines`` are additions of eight sums, for roots; ``pairs`` and ``triples`` of two and three, for
    nodes.
    """

    lines: float
    pairs: float = 0.0
    triples: float = 0.0

    def seconds(self) -> float:
        """Return how long they take in the bare loop."""
        numbers = {SUMS_TO_LINE: self.lines, 2: self.pairs, 3: self.triples}
        return sum(n * _bench.limit_seconds(n_sums) for n_sums, n in numbers.items() if n > 0)


def limit_of(model: Any, X: Floats) -> float:
    """Return the CPU seconds, at one thread, of the bare loop that this training cannot do without.

    Parameters
    ----------
    model : ABCBoostClassifier
        Fitted on ``X``; its trees tell which nodes were counted.
    X : ndarray of shape (n_rows, n_features)
    """
    return additions(model, columns_to_add(X, model.max_bins)).seconds()


def additions(model: Any, n_columns: float) -> Additions:
    """Count the additions of a training, where a row is added to so many columns."""
    trees = model.model_.ensemble
    has_hessian = model.algorithm.endswith("logitboost")
    n_lines = np.full(trees.n_iter, _lines(trees.n_classes))
    if has_hessian:
        n_lines += _lines(np.diff(trees.step_start))
    first_nodes = trees.tree_start[trees.step_start[:-1]]
    to_roots = float(trees.weight[first_nodes] @ n_lines) * n_columns
    to_nodes = rows_of_lighter_children(model) * n_columns
    name = "triples" if has_hessian else "pairs"
    return Additions(lines=to_roots, **{name: to_nodes})


def rows_of_lighter_children(model: Any) -> float:
    """Sum up the rows of the lighter child of each split whose children are looked at."""
    trees = model.model_.ensemble
    is_split = trees.feature >= 0
    tree_start = np.repeat(trees.tree_start[:-1], np.diff(trees.tree_start))
    left = (tree_start + trees.left)[is_split]
    children = np.stack([trees.weight[left], trees.weight[left + 1]])
    is_last = trees.left[is_split] == 2 * model.max_leaf_nodes - 3
    is_looked_at = ~is_last & (children.max(axis=0) >= 2 * model.min_samples_leaf)
    return float(children.min(axis=0)[is_looked_at].sum())


def columns_to_add(X: Floats, max_bins: int) -> float:
    """Return how many columns a row of a table is added to, on average."""
    binned = BinMapper(max_bins).fit(X).transform(X).binned
    return sum(
        _share_to_add(binned.codes(np.array([feature], np.int32)).ravel())
        for feature in range(binned.n_features)
    )


def _share_to_add(codes: np.ndarray) -> float:
    in_common = int(np.bincount(codes).max()) / len(codes)
    return 1.0 - in_common if in_common >= SPARSE_FROM else 1.0


def _lines(n_sums: Any) -> Any:
    return -(-n_sums // SUMS_TO_LINE)
