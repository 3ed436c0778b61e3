import numpy as np
import pytest


def best_score(table, residual):
    """Return the best score over all splits with at least 10 rows in each child."""
    best = 0.0
    for f, n_bins in enumerate(table.binned.n_bins):
        codes = table.codes[:, f]
        left = np.cumsum(np.bincount(codes, residual, minlength=n_bins))[:-2]
        n_left = np.cumsum(np.bincount(codes, minlength=n_bins))[:-2]
        right, n_right = residual.sum() - left, len(codes) - n_left
        is_allowed = (n_left >= 10) & (n_right >= 10)
        if is_allowed.any():
            score = (left**2 / np.maximum(n_left, 1) + right**2 / np.maximum(n_right, 1))[
                is_allowed
            ]
            best = max(best, score.max())
    return best


def test_find_cut(benchmark, table):
    stages = table.stages()
    stages.count_node()
    feature, bin_, left, n_left = benchmark(stages.find_split)
    residual = table.trainer.residuals()[0][0]
    goes_left = table.codes[:, feature] <= bin_
    assert (left, n_left) == (residual[goes_left].sum(), goes_left.sum())
    score = left**2 / n_left + (int(residual.sum()) - left) ** 2 / (len(residual) - n_left)
    assert float(score) == pytest.approx(best_score(table, residual.astype(float)))
