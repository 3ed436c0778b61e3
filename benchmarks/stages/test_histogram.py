import numpy as np
import pytest


def expected(table, rows, values):
    """Return the sums of values by bin of the first features, concatenated."""
    return [
        np.bincount(table.codes[rows, f], values, minlength=table.binned.n_bins[f])
        for f in range(3)
    ]


def assert_sums(histogram, table, rows, values):
    """Bins are ordered by feature."""
    assert histogram.sum() == table.binned.n_features * values.sum()
    first = np.concatenate(expected(table, rows, values))
    # Float sums are rounded; those of the core are integers.
    np.testing.assert_allclose(histogram[: len(first)], first, rtol=1e-9, atol=1e-3)


def test_count_roots(benchmark, table):
    stages = table.stages()
    benchmark(stages.count_roots)
    residuals, _ = table.trainer.residuals()
    for k in (0, table.n_classes - 1):
        assert_sums(stages.root_histogram(k), table, slice(None), residuals[k])


@pytest.mark.parametrize("node", [0, 1])
def test_count_node(benchmark, table, node):
    """Rows of the root are in order; those of its child are scattered."""
    stages = table.stages()
    if node > 0:
        stages.count_node()
        stages.find_split()
        stages.split_root()
        stages.use_node(node)
    benchmark(stages.count_node)
    residuals, _ = table.trainer.residuals()
    rows = stages.node_rows()
    histogram = stages.node_histogram()
    assert_sums(histogram[:, 0], table, rows, residuals[0, rows])
    assert_sums(histogram[:, 1], table, rows, table.weight[rows])
