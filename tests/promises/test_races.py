"""Everything that runs on the thread pool, from several threads: small tests for ThreadSanitizer.

Without it, these tests check that the results equal those of one thread.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import core
import reference as ref
from abcgbm import _core
from strategies import mixed_problem, random_problem

_bench = pytest.importorskip("abcgbm._bench", reason="the module of the benchmarks is in no wheel")

N_THREADS = 3


def test_pool_runs_many_jobs_of_many_threads():
    sizes = [1, 2, 3, 10, 100] * 60
    with ThreadPoolExecutor(4) as callers:
        sums = list(callers.map(lambda n: _bench.sum_without_memory(n, N_THREADS), sizes))
    assert sums == [n * (n - 1) // 2 for n in sizes]


@pytest.mark.parametrize("hessian_split", [False, True])
@pytest.mark.parametrize("algorithm", core.ALGORITHMS, ids=str)
def test_training_validation_and_prediction_equal_those_of_one_thread(algorithm, hessian_split):
    """More trees than threads."""
    args = (algorithm, 8, hessian_split)
    assert results(*args, N_THREADS) == results(*args, 1)


@pytest.mark.parametrize("n_projections", [0, 3])
@pytest.mark.parametrize("hessian_split", [False, True])
def test_multi_output_trees_equal_those_of_one_thread(hessian_split, n_projections):
    params = {"hessian_split": hessian_split, "multi_output": True, "n_projections": n_projections}

    def trained(n_threads: int) -> bytes:
        problem = random_problem(5, 6000, 4, 6, **params)
        trainer = core.trainer(problem, n_threads)
        for _ in range(3):
            trainer.train_iteration(list(range(6)), -1, False, 5 / 6)
        return trainer.raw().tobytes() + trainer.residuals()[0].tobytes()

    assert trained(N_THREADS) == trained(1)


def results(
    algorithm: ref.Algorithm, n_classes: int, hessian_split: bool, n_threads: int
) -> tuple[bytes, ...]:
    problem = random_problem(3, 3000, 4, n_classes, hessian_split=hessian_split)
    trainer = core.trainer(problem, n_threads)
    held_out = core.validation(problem, n_threads)
    rounds = ref.boost(trainer, algorithm, n_classes, 2)
    for this in rounds:
        held_out.add(this.result)
    arrays = core.forest_arrays(rounds, problem.thresholds())
    forest = core.forest(arrays, 4, n_classes)
    raw = core.predict(forest, problem.X, n_classes, len(arrays["tree_class"]), n_threads)
    proba = _core.softmax(raw, n_threads)
    return trainer.raw().tobytes(), held_out.raw().tobytes(), raw.tobytes(), proba.tobytes()


def test_threads_sharing_a_tree_grow_that_of_one_thread():
    """Fewer trees than threads: each thread counts some of the columns."""
    problem = mixed_problem(4, 6000, 2)
    steps = [core.trainer(problem, n).train_iteration([1], 0, True, 1.0) for n in (1, N_THREADS)]
    core.assert_same_result(*steps)


def test_guarded_step_equals_that_of_one_thread():
    problem = random_problem(60, 900, 4, 60, learning_rate=1.0)
    classes = list(range(1, 60))
    one, several = (
        core.trainer(problem, n).train_iteration(classes, 0, True, 1.0) for n in (1, N_THREADS)
    )
    assert one.base_scale < 1
    core.assert_same_result(one, several)


def test_many_threads_train_and_predict_at_once():
    with ThreadPoolExecutor(4) as callers:
        jobs = [
            callers.submit(results, ref.Algorithm("mart", None), 5, False, n) for n in [1, 2, 3] * 4
        ]
    assert len({job.result() for job in jobs}) == 1


def test_binning_is_the_same_for_any_thread_count():
    X, weight = np.random.default_rng(0).normal(size=(3000, 9)), np.ones(3000, np.int64)
    one, several = (core.find_thresholds(X, weight, 50, n) for n in (1, N_THREADS))
    for ours, theirs in zip(one, several, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    codes = [core.bin_table(X, one, n).codes() for n in (1, N_THREADS)]
    np.testing.assert_array_equal(*codes)
