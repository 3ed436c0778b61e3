"""A failed allocation is an error that names its purpose; the process stays usable."""

import sys

import pytest

from models import run_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no limit of memory here")

LIMITED = """
import resource, sys
import numpy as np
from abcgbm import _core

N, K = 30_000, 1_000
labels = _core.Labels(np.zeros(N, np.int32), np.ones(N, np.int64), 1.0, K)
builder = _core.BinnedBuilder(N, [np.zeros(1)], np.zeros(1, np.uint8))
builder.add_block(np.zeros(1, np.int32), np.zeros((N, 1)), 1)
binned, raw = builder.finish(), np.zeros((N, K))
long = np.arange(20_000_000.0)[:, None]
weight_of_long = np.ones(len(long), np.int64)
weight_of_long[0] = 0  # so that the other rows are copied

def train():
    _core.Trainer(binned, labels, _core.TrainParams(), 1)

def bin():
    _core.find_thresholds(long, weight_of_long, 255, 1)

def predict():
    _core.softmax(raw)

used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 30_000_000,) * 2)
try:
    {work}()
except MemoryError as error:
    sys.stdout.write(f"{{error}}; ")
sys.stdout.write(str(_core.softmax(np.zeros((1, 2))).tolist()))
"""


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ("train", "while training; fewer rows, classes, bins (max_bins) or threads (n_jobs)"),
        ("bin", "while binning a table; fewer rows or columns"),
        ("predict", "while predicting; fewer rows at a time"),
    ],
)
def test_memory_error_names_the_operation_and_a_remedy(work, said):
    expected = f"out of memory in the native core {said} need less; [[0.5, 0.5]]"
    assert run_python(LIMITED.format(work=work)) == expected
