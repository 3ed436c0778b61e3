"""The process exits with its code while daemon threads run native code."""

import subprocess
import sys
from contextlib import ExitStack

import pytest

from models import HANGS_AFTER

EXIT = """
import sys, threading, time
import numpy as np
from abcgbm import ABCBoostClassifier, BinMapper

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 10))
y = rng.integers(0, 5, len(X))
model = ABCBoostClassifier(max_iter=5, learning_rate=0.15, n_jobs=2).fit(X, y)

def fit():
    ABCBoostClassifier(max_iter=10**9, learning_rate=1e-6, n_jobs=2).fit(X, y)

def predict():
    while True:
        model.predict_proba(X)

def bin():
    while True:
        BinMapper(n_jobs=2).fit(X).transform(X)

threading.Thread(target={work}, daemon=True).start()
time.sleep({seconds})
sys.exit({code})
"""


@pytest.mark.parametrize(
    ("work", "code"), [("fit", 0), ("fit", 7), ("predict", 0), ("predict", 7), ("bin", 7)]
)
def test_process_exits_quietly_while_a_daemon_thread_runs_native_code(work, code):
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", EXIT.format(work=work, seconds=seconds, code=code)],
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for seconds in (0.05, 0.2)
        ]
        ends = [(p.communicate(timeout=HANGS_AFTER)[1], p.returncode) for p in processes]
    assert ends == [("", code)] * 2
