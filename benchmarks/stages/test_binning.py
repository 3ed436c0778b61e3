import numpy as np

from abcgbm import _core
from benchmarks.stages.tables import MAX_BINS, code


def test_find_thresholds(benchmark, table):
    thresholds = benchmark(_core.find_thresholds, table.X, table.weight, MAX_BINS, 1)
    for column, of_column in zip(table.X.T, thresholds, strict=True):
        n_values = len(np.unique(column))
        assert len(of_column) == min(n_values, MAX_BINS) - 1
        assert len(np.unique(np.searchsorted(of_column, column))) == len(of_column) + 1


def test_code(benchmark, table):
    codes = benchmark(code, table).codes()
    for f, thresholds in enumerate(table.thresholds):
        np.testing.assert_array_equal(codes[:, f], np.searchsorted(thresholds, table.X[:, f]))
