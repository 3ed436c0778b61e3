"""Ctrl-C stops training, binning and prediction, and leaves the process usable.

No test has a time limit. `pytest -s` shows the delay of the exception.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import core
import reference
from abcgbm import ABCBoostClassifier, BinMapper, Checkpoint, _core
from models import HANGS_AFTER, assert_same_model, noisy_data, run_python, small
from strategies import Problem

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="this system has no interval timers"
)
both_thread_counts = pytest.mark.parametrize("n_threads", [1, 2])
CPU_SECONDS = 0.03  # of work before the signal
SOON = 0.01  # the same in a native call,
LASTS = 0.1  # which takes several times that, and what may pass until signals are looked for: 20 ms


@contextmanager
def signal_soon(
    handler: Callable[..., object] = signal.default_int_handler, cpu_seconds: float = CPU_SECONDS
) -> Iterator[None]:
    """Send a signal that the Ctrl-C handler receives after some CPU time."""
    before = signal.signal(signal.SIGPROF, handler)
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    start = time.perf_counter()
    try:
        yield
    finally:
        sys.stdout.write(f"{time.perf_counter() - start:.3f} s ")
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def is_interrupted(
    native: Callable[[object], object], argument: object, cpu_seconds: float = SOON
) -> bool:
    """Return whether a signal stops a native call before its end.

    Neither `extend` nor `map` runs Python code, so a call that came to its end would leave its
    result in the list before Python could see the signal.
    """
    finished: list[object] = []
    with pytest.raises(KeyboardInterrupt), signal_soon(cpu_seconds=cpu_seconds):
        finished.extend(map(native, [argument]))
    return not finished


def lasting(
    make: Callable[[int], Callable[[object], object]],
    n_rows: int,
    argument: object,
    cpu_seconds: float = LASTS,
) -> Callable[[object], object]:
    """Return a native call on enough rows to take ``cpu_seconds`` on any machine.

    ``make`` gets the number of rows: ``n_rows`` at first, then doubled until they suffice.
    """
    while True:
        native = make(n_rows)
        start = time.process_time()
        native(argument)
        if time.process_time() - start >= cpu_seconds:
            return make(n_rows)  # a new one, for it may be called only once
        n_rows *= 2


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape)


def ones(n_rows: int) -> np.ndarray:
    return np.ones(n_rows, np.int64)


class Cut(Problem):
    """A problem with precomputed bins."""

    def thresholds(self) -> list[list[float]]:
        return [np.arange(-3, 3, 0.1).tolist()] * self.X.shape[1]


# ------------------------------------------------------------------------------------ native loops


@both_thread_counts
@pytest.mark.parametrize("max_bins", [255, 1000])  # some values are sorted, or all of them
def test_threshold_search_is_interrupted(max_bins, n_threads):
    def search(n_rows):
        return partial(_core.find_thresholds, normal(n_rows, 24), ones(n_rows), max_bins)

    assert is_interrupted(lasting(search, 200_000, n_threads, LASTS * n_threads), n_threads)
    assert len(search(99)(n_threads)) == 24


@pytest.mark.parametrize("soon_done", [slice(0, 8), slice(8, 16)], ids=["first", "last"])
def test_threshold_search_is_interrupted_while_the_caller_waits_for_a_worker_thread(soon_done):
    """One thread has eight columns that are soon done, the other one eight that take long.

    Which of them is the caller, the system decides: so both orders are tried, some times.
    """

    def make(n_rows):
        X = normal(n_rows, 16)
        X[:, soon_done] = 0
        return partial(_core.find_thresholds, X, ones(n_rows), 1000)

    make(99)(2)  # starts the worker thread
    search = lasting(make, 500_000, 2, cpu_seconds=0.4)
    assert all(is_interrupted(search, 2, cpu_seconds=0.1) for _ in range(3))


@both_thread_counts
def test_binning_is_interrupted(n_threads):
    def coding(n_rows):
        return partial(core.bin_table, normal(n_rows, 24), [np.linspace(-2, 2, 1000)] * 24)

    assert is_interrupted(lasting(coding, 400_000, n_threads, LASTS * n_threads), n_threads)
    assert coding(99)(n_threads).n_rows == 99


def test_interrupted_builder_is_incomplete():
    builders = []

    def adding(n_rows):
        builders.append(core.builder(n_rows, [np.linspace(-2, 2, 1000)] * 24))
        return partial(builders[-1].add_block, np.arange(24, dtype=np.int32), normal(n_rows, 24))

    assert is_interrupted(lasting(adding, 400_000, 2, LASTS * 2), 2)
    with pytest.raises(ValueError, match="every feature must be added"):
        builders[-1].finish()


@both_thread_counts
@pytest.mark.parametrize(("algorithm", "base"), [("mart", -1), ("abc-mart", 0)])
def test_iteration_is_interrupted(algorithm, base, n_threads):
    *arguments, leaf_scale = reference.iteration_arguments(algorithm, base, 10)

    def step(n_rows):
        y, params = np.arange(n_rows) % 10, {"max_leaf_nodes": 255}
        problem = Cut(normal(n_rows, 16), y, 10, params=params)
        return partial(core.trainer(problem, n_threads).train_iteration, *arguments)

    assert is_interrupted(lasting(step, 400_000, leaf_scale, LASTS * n_threads), leaf_scale)


@both_thread_counts
@pytest.mark.parametrize("n_projections", [0, 7])
def test_multi_output_iteration_is_interrupted(n_projections, n_threads):
    def step(n_rows):
        y = np.arange(n_rows) % 20
        params = {"max_leaf_nodes": 255, "multi_output": True, "n_projections": n_projections}
        problem = Cut(normal(n_rows, 64), y, 20, params=params)
        return partial(core.trainer(problem, n_threads).train_iteration, list(range(20)), -1, False)

    assert is_interrupted(lasting(step, 200_000, 1.0, LASTS * n_threads), 1.0)


@both_thread_counts
def test_prediction_is_interrupted(n_threads):
    X, y = noisy_data(n_classes=10)
    ensemble = small(max_iter=100).fit(X, y).model_.ensemble
    rows = normal(500_000, 4)
    raw = np.zeros((len(rows), 10))
    add = partial(ensemble._forest.add, rows, raw, 0, len(ensemble.tree_class))
    assert is_interrupted(add, n_threads)
    assert not raw.any(axis=1).all()


@both_thread_counts
@pytest.mark.parametrize("algorithm", ["mart", "multi-output"])
def test_explanation_is_interrupted(algorithm, n_threads):
    X, y = noisy_data(n_classes=10)
    model = small(algorithm, max_iter=100, max_leaf_nodes=30).fit(X, y)
    ensemble = model.model_.ensemble
    rows = normal(50_000, 4)
    values = np.zeros((*rows.shape, 10))
    n_trees = len(ensemble.tree_class)
    explain = partial(ensemble._forest.explain, ensemble._fraction_of_parent, rows, values, n_trees)
    assert is_interrupted(explain, n_threads)
    assert not values.any(axis=(1, 2)).all()


@both_thread_counts
def test_leaf_lookup_is_interrupted(n_threads):
    X, y = noisy_data(n_classes=10)
    ensemble = small(max_iter=100).fit(X, y).model_.ensemble
    rows = normal(100_000, 4)
    leaves = np.full((len(rows), len(ensemble.tree_class)), -1, np.int32)
    assert is_interrupted(partial(ensemble._forest.apply, rows, leaves), n_threads)
    assert (leaves == -1).any()


@pytest.mark.parametrize("function", [_core.softmax, _core.log_softmax])
def test_probabilities_are_interrupted(function):
    def of_rows(n_rows):
        raw = normal(n_rows, 100)
        return lambda call: call(raw)

    assert is_interrupted(lasting(of_rows, 200_000, function), function)


def test_copy_of_scores_is_interrupted():
    rows = np.zeros((40_000, 1))
    problem = Problem(rows, np.arange(40_000) % 1000, 1000)
    trainer = core.trainer(problem)
    assert is_interrupted(lambda copy: copy(), trainer.raw)


FILL = """
import os, resource, signal, sys
import numpy as np
from abcgbm import _core

N, K = 40_000, 3_000
megabytes = N * K * 8 / 1e6  # of scores
builder = _core.BinnedBuilder(N, [np.zeros(1)], np.zeros(1, np.uint8))
builder.add_block(np.zeros(1, np.int32), np.zeros((N, 1)), 1)
binned = builder.finish()
labels = _core.Labels(np.zeros(N, np.int32), np.ones(N, np.int64), 1.0, K)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6

def train():
    _core.Trainer(binned, labels, _core.TrainParams(), 1)

def validate():
    _core.Validation(binned, labels, 1)

before = peak()
signal.signal(signal.SIGPROF, signal.default_int_handler)
signal.setitimer(signal.ITIMER_PROF, 0.03)
try:
    {work}()
except KeyboardInterrupt:
    sys.stdout.write("early" if peak() - before < megabytes / 2 else "late")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units")
@pytest.mark.parametrize("work", ["train", "validate"])
def test_filling_of_large_arrays_is_interrupted(work):
    assert run_python(FILL.format(work=work)) == "early"


# ---------------------------------------------------------------------------------------- estimator


def test_model_is_not_fitted_after_an_interrupted_first_fit():
    X, y = noisy_data()
    model = small(max_iter=10**9, learning_rate=1e-6)
    with pytest.raises(KeyboardInterrupt), signal_soon():
        model.fit(X, y)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.predict(X)
    assert_same_model(model.set_params(max_iter=8).fit(X, y), small(learning_rate=1e-6).fit(X, y))


def test_interrupted_fit_leaves_a_checkpoint_of_its_last_iteration(tmp_path):
    X, y = noisy_data()
    slow, path = {"learning_rate": 1e-6}, tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt), signal_soon():
        small(callbacks=[Checkpoint(path)], **slow, max_iter=10**9).fit(X, y)
    n_more = ABCBoostClassifier.load_model(path).n_iter_ + 2
    resumed = small(**slow, max_iter=n_more).fit(X, y, resume_from=path)
    assert_same_model(resumed, small(**slow, max_iter=n_more).fit(X, y))


def test_interrupted_second_fit_removes_the_previous_model():
    X, y = noisy_data()
    model = small().fit(X, y)
    model.set_params(max_iter=10**9, learning_rate=1e-6)
    with pytest.raises(KeyboardInterrupt), signal_soon():
        model.fit(X, y + 10)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.predict(X)
    assert not {"n_iter_", "train_loss_", "stop_reason_"} & vars(model).keys()
    assert getattr(model, "classes_", y + 10).min() == 10


def test_other_signal_handlers_are_called():
    class OutOfTimeError(Exception):
        pass

    def handler(*_):
        raise OutOfTimeError

    X, y = noisy_data()
    with pytest.raises(OutOfTimeError), signal_soon(handler):
        small(max_iter=10**9, learning_rate=1e-6).fit(X, y)
    assert small().fit(X, y).n_iter_ == 8


def test_signal_handler_without_an_exception_does_not_interrupt():
    heard = []
    X = normal(200_000, 24)
    with signal_soon(lambda *_: heard.append(True)):
        mapper = BinMapper().fit(X)
    assert heard
    np.testing.assert_array_equal(mapper.thresholds_[0], BinMapper().fit(X[:, :1]).thresholds_[0])


# -------------------------------------------------------------------- a real Ctrl-C, a real process

CTRL_C = """
import os, signal, sys, threading
import numpy as np
from abcgbm import ABCBoostClassifier, BinMapper

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 10))
y = rng.integers(0, 5, len(X))
signal.signal(signal.SIGINT, signal.default_int_handler)

def bin_for_ever():
    while True:
        BinMapper(n_jobs=2).fit(X).transform(X)

def predict_for_ever():
    model = ABCBoostClassifier(max_iter=5, learning_rate=0.15, n_jobs=2).fit(X, y)
    while True:
        model.predict(X)

def fit_for_ever():
    ABCBoostClassifier(max_iter=10**9, learning_rate=1e-6, n_jobs=2).fit(X, y)

threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    {action}_for_ever()
except KeyboardInterrupt:
    model = ABCBoostClassifier(max_iter=3, learning_rate=0.15, n_jobs=2).fit(X, y)
    sys.stdout.write(f"interrupted, then {{model.n_iter_}} steps, {{len(model.predict(X))}} rows")
"""


@pytest.mark.parametrize("action", ["fit", "bin", "predict"])
def test_process_is_usable_after_ctrl_c(action):
    out = run_python(CTRL_C.format(action=action))
    assert out == "interrupted, then 3 steps, 20000 rows"


IGNORING = """
import signal, sys
from abcgbm import ABCBoostClassifier, KeepOnInterrupt

def interrupt(report):
    signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.SIG_IGN)
callbacks = [interrupt, KeepOnInterrupt()]
model = ABCBoostClassifier(max_iter=3, learning_rate=1.0, callbacks=callbacks)
model.fit([[0.0], [1.0]] * 20, [0, 1] * 20)
sys.stdout.write(f"{model.n_iter_} {model.stop_reason_}")
"""


def test_fit_continues_if_the_process_ignores_ctrl_c():
    assert run_python(IGNORING) == "3 max_iter"


NESTED = """
import signal, sys, pytest
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


def test_interrupt_tests_run_in_background_jobs_too():
    """Background jobs of a script ignore SIGINT, and so do their child processes."""
    folder = Path(__file__).parents[1]
    tests = [
        f"{folder}/distributed/test_shard_fit.py::test_first_interrupt_is_deferred_and_the_second_raised_at_once",
        f"{folder}/data/files/test_batched_table.py::test_broken_off_reading_leaves_nothing",
    ]
    done = subprocess.run(
        [sys.executable, "-c", NESTED, *tests],
        stdout=subprocess.PIPE,
        text=True,
        timeout=HANGS_AFTER,
        check=False,
    )
    assert done.returncode == 0, done.stdout
