"""The bare loop in the L1 cache; compare with a stage's time divided by its additions."""

import pytest

from abcgbm import _bench


@pytest.mark.parametrize("n_sums", [2, 3, 8])
def test_seconds_per_add(benchmark, n_sums):
    seconds = benchmark(_bench.limit_seconds, n_sums, 10)
    benchmark.extra_info["seconds_per_add"] = seconds
    assert 0.0 < seconds < 1e-3
