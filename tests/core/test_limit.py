"""The lower limit of training time: the additions of rows to bins that are required, and their cost."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

if not (Path(__file__).parents[2] / "benchmarks").is_dir():
    pytest.skip("benchmarks/ is not in the source distribution", allow_module_level=True)

from benchmarks import limit

from abcgbm import _bench
from models import noisy_data, small

X, Y = noisy_data(n_rows=300, n_features=3, n_classes=4)


def tree_model(**changed):
    """Return a model of one iteration, two trees and 100 rows: 100 -> 30 + 70 -> 50 + 20, and 100 -> 40 + 60."""
    trees = SimpleNamespace(
        feature=np.array([0, -1, 0, -1, -1, 0, -1, -1]),
        left=np.array([1, -1, 3, -1, -1, 1, -1, -1]),
        weight=np.array([100.0, 30.0, 70.0, 50.0, 20.0, 100.0, 40.0, 60.0]),
        tree_start=np.array([0, 5, 8]),
        iteration_start=np.array([0, 2]),
        n_iter=1,
        n_classes=9,
    )
    given = {"algorithm": "mart", "max_leaf_nodes": 4, "min_samples_leaf": 10}
    return SimpleNamespace(model_=SimpleNamespace(ensemble=trees), **(given | changed))


@pytest.mark.parametrize(
    ("changed", "rows"),
    [
        ({}, 30 + 20 + 40),
        ({"max_leaf_nodes": 3}, 30 + 40),  # the last split of the first tree, which is full
        ({"min_samples_leaf": 25}, 30 + 20 + 40),  # 50 rows can just be split again
        ({"min_samples_leaf": 26}, 30 + 40),
        ({"min_samples_leaf": 31}, 30),
    ],
)
def test_lighter_children_are_counted_where_a_split_is_searched(changed, rows):
    assert limit.rows_of_lighter_children(tree_model(**changed)) == rows


def test_roots_add_lines_of_eight_classes_and_other_nodes_add_pairs():
    assert limit.additions(tree_model(), 3.0) == limit.Additions(lines=2 * 300, pairs=3 * 90)


def test_logitboost_adds_the_hessians_of_each_tree():
    of = limit.additions(tree_model(algorithm="logitboost"), 3.0)
    assert of == limit.Additions(lines=(2 + 1) * 300, triples=3 * 90)


@pytest.mark.parametrize("algorithm", ["mart", "abc-mart"])
def test_additions_follow_from_a_fitted_model(algorithm):
    of = limit.additions(small(algorithm, max_iter=5).fit(X, Y), 1.0)
    assert of.lines == 5 * len(X)
    assert 0 < of.pairs <= 5 * 4 * 5 * len(X) / 2  # iterations, trees, splits


@pytest.mark.parametrize(
    ("columns", "n"),
    [
        ([np.arange(10)], 1.0),
        ([np.arange(10), np.ones(10), np.full(10, np.nan)], 1.0),
        ([np.arange(10) == 3], 0.1),
        ([np.arange(10) < 2], 0.2),
        ([np.arange(10) < 3], 1.0),
        ([np.where(np.arange(10) < 8, np.nan, 5.0)], 0.2),
        ([np.arange(10) == value for value in range(10)], 1.0),
    ],
    ids=["dense", "constant", "sparse", "just sparse", "not sparse", "missing", "one-hot"],
)
def test_sparse_columns_add_only_rows_outside_the_common_bin(columns, n):
    table = np.column_stack(columns).astype(np.float64)
    assert limit.columns_to_add(table, 255) == pytest.approx(n)


def test_limit_is_the_sum_of_additions_times_their_seconds(monkeypatch):
    monkeypatch.setattr(_bench, "limit_seconds", {8: 1.0, 2: 100.0, 3: 10_000.0}.__getitem__)
    assert limit.Additions(lines=3, pairs=4, triples=5).seconds() == 50_403
    model = small("mart").fit(X, Y)
    assert limit.limit_of(model, X) == limit.additions(model, 3.0).seconds()


@pytest.mark.parametrize("n_sums", [2, 3, 8])
def test_bare_loop_takes_time(n_sums):
    assert 0.0 < _bench.limit_seconds(n_sums, 3) < 1e-3


def test_bare_loop_rejects_wrong_input():
    with pytest.raises(ValueError, match="n_sums: 2, 3 or 8"):
        _bench.limit_seconds(4)
    with pytest.raises(ValueError, match="n_repeats: 1 to 10000"):
        _bench.limit_seconds(2, 0)
