import numpy as np


def test_split_rows(benchmark, table):
    stages = table.stages()
    stages.count_node()
    feature, bin_, _, _ = stages.find_split()
    n_left = benchmark(stages.split_root)
    goes_left = table.codes[:, feature] <= bin_
    assert n_left == goes_left.sum()
    for node, is_there in ((1, goes_left), (2, ~goes_left)):
        stages.use_node(node)
        np.testing.assert_array_equal(stages.node_rows(), np.flatnonzero(is_there))
