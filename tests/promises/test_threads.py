"""Threads: how many, many at once, and after a fork."""

import os
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from abcgbm import BinMapper
from abcgbm.parameters.machine import effective_n_threads
from models import assert_same_model, model_bytes, noisy_data, run_python, small

X, Y = noisy_data(n_rows=3000, n_classes=5)
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


# ----------------------------------------------------------------------------------------- how many


def test_no_number_means_all_cpus_of_the_process():
    assert effective_n_threads(None) == joblib.cpu_count()


@pytest.mark.parametrize("n_jobs", [1, 2, 7])
def test_positive_number_is_used_unchanged(n_jobs):
    assert effective_n_threads(n_jobs) == n_jobs


def test_negative_number_counts_back_from_all():
    n_cpus = joblib.cpu_count()
    assert effective_n_threads(-1) == n_cpus
    assert effective_n_threads(-2) == max(1, n_cpus - 1)
    assert effective_n_threads(-1000) == 1


def test_zero_is_refused():
    with pytest.raises(ValueError, match="n_jobs=0; expected None or an integer other than 0"):
        effective_n_threads(0)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity here")
def test_only_cpus_of_the_affinity_mask_count():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert effective_n_threads(None) == effective_n_threads(-1) == 1
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_one_thread_inside_a_joblib_worker(backend):
    jobs = (joblib.delayed(effective_n_threads)(n_jobs) for n_jobs in (None, 3))
    assert joblib.Parallel(n_jobs=2, backend=backend)(jobs) == [1, 3]
    assert effective_n_threads(None) == joblib.cpu_count()


def test_sequential_joblib_is_not_a_worker():
    [inside] = joblib.Parallel(n_jobs=1)([joblib.delayed(effective_n_threads)(None)])
    assert inside == joblib.cpu_count()


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_joblib_workers_fit_the_same_models(backend):
    grid = {"algorithm": ["mart", "abc-mart"], "max_leaf_nodes": [3, 6]}
    search = GridSearchCV(small(), grid, cv=2, scoring="neg_log_loss")
    alone = search.fit(X, Y).cv_results_["mean_test_score"]
    with joblib.parallel_config(backend=backend, n_jobs=2):
        together = search.set_params(n_jobs=2).fit(X, Y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(together, alone)


def test_more_threads_than_work_are_harmless():
    assert_same_model(small(n_jobs=64).fit(X[:50], Y[:50]), small(n_jobs=1).fit(X[:50], Y[:50]))


# ------------------------------------------------------------------------------------- many at once


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_many_threads_predict_with_one_model(n_jobs):
    expected = small(n_jobs=1).fit(X, Y).predict_proba(X).tobytes()
    model = small(n_jobs=n_jobs).fit(X, Y)  # nothing predicted, so nothing cached, yet
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda _: model.predict_proba(X).tobytes(), range(64))
        assert all(answer == expected for answer in answers)


def test_many_threads_iterate_over_the_stages_of_one_model():
    model = small(n_jobs=2).fit(X, Y)
    expected = np.stack(list(model.staged_predict_proba(X)))
    with ThreadPoolExecutor(8) as pool:
        for stages in pool.map(lambda _: np.stack(list(model.staged_predict_proba(X))), range(16)):
            np.testing.assert_array_equal(stages, expected)


def test_many_threads_fit_from_one_binned_table():
    table = BinMapper().fit(X).transform(X)
    expected = model_bytes(small(n_jobs=1).fit(X, Y))
    with ThreadPoolExecutor(6) as pool:
        models = pool.map(lambda n_jobs: small(n_jobs=n_jobs).fit(table, Y), [1, 2, 3] * 6)
        assert all(model_bytes(model) == expected for model in models)


def test_fit_in_another_thread_gives_the_same_model():
    with ThreadPoolExecutor(1) as pool:
        model = pool.submit(small(n_jobs=2).fit, X, Y).result()
    assert_same_model(model, small().fit(X, Y))


# ----------------------------------------------------------------------------------------- the pool


def test_worker_threads_are_woken_without_allocation():
    """A partially queued job would run after its end."""
    _bench = pytest.importorskip("abcgbm._bench", reason="the module is in no wheel")
    if not _bench.memory_can_fail():
        pytest.skip("a sanitizer allocates")
    sums = {_bench.sum_without_memory(1000, n_threads) for n_threads in [2, 4, 8] * 100}
    assert sums == {999 * 1000 // 2}


# --------------------------------------------------------------------------------------------- fork

FORK = """
import os, sys, warnings
import numpy as np
from abcgbm import ABCBoostClassifier

warnings.filterwarnings("ignore", "This process.*is multi-threaded")  # intended here
rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 5))
y = rng.integers(0, 5, len(X))

def fit():
    return ABCBoostClassifier(max_iter=4, learning_rate=0.15, n_jobs=2).fit(X, y)

def answers(model):
    return model.predict_proba(X).tobytes() == expected

model = fit()
expected = model.predict_proba(X).tobytes()

def generations(n):
    pid = os.fork()
    if pid == 0:
        good = answers(model) and answers(fit()) and (n == 1 or generations(n - 1))
        os._exit(0 if good else 1)
    good = answers(fit())  # the parent works on at the same time
    return os.waitpid(pid, 0)[1] == 0 and good

sys.stdout.write(str([generations(2) for _ in range(3)]))
"""


@needs_fork
def test_children_and_grandchildren_of_a_fork_fit_and_predict():
    assert run_python(FORK) == "[True, True, True]"


FORK_WHILE_BUSY = """
import os, sys, threading, warnings
import numpy as np
from abcgbm import ABCBoostClassifier

warnings.filterwarnings("ignore", "This process.*is multi-threaded")
rng = np.random.default_rng(0)
X = rng.normal(size=(5_000, 5))
y = rng.integers(0, 5, len(X))
expected = ABCBoostClassifier(max_iter=3, learning_rate=0.15, n_jobs=2).fit(X, y).predict_proba(X).tobytes()
done = threading.Event()

def work():
    while not done.is_set():
        ABCBoostClassifier(max_iter=3, learning_rate=0.15, n_jobs=2).fit(X, y)

worker = threading.Thread(target=work)
worker.start()
codes = []
for _ in range(10):
    pid = os.fork()
    if pid == 0:
        model = ABCBoostClassifier(max_iter=3, learning_rate=0.15, n_jobs=2).fit(X, y)
        os._exit(0 if model.predict_proba(X).tobytes() == expected else 1)
    codes.append(os.waitpid(pid, 0)[1])
done.set()
worker.join()
sys.stdout.write(str(codes))
"""


@needs_fork
def test_fork_while_another_thread_trains():
    assert run_python(FORK_WHILE_BUSY) == str([0] * 10)
