"""Training on a Dask cluster gives the model of one process."""

import io
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

pytest.importorskip("distributed", reason="needs abcgbm[dask]")

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
from distributed import Client, LocalCluster, Security

import dask_work as work
from abcgbm import ABCBoostClassifier, Checkpoint, KeepOnInterrupt, TimeLimit
from abcgbm.distributed import DaskABCBoostClassifier
from abcgbm.distributed import concat as joining
from abcgbm.distributed import dask_estimator as dask_classifier
from abcgbm.distributed import recovery as driver
from abcgbm.distributed.dask_engine import LostWorkersError, WorkerGroup, workers_of
from abcgbm.distributed.dask_partitions import LostDataError

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
N_ROWS = 400
FEW = {"max_iter": 4, "learning_rate": 0.15, "max_leaf_nodes": 5}
OPENSSL = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
QUIET = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=3, **QUIET) as started:
        yield started


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as connected:
        yield connected


def bytes_of(model) -> bytes:
    file = io.BytesIO()
    model.save_model(file)
    return file.getvalue()


def table() -> tuple[pd.DataFrame, pd.Series]:
    """Numbers, some missing, a category, and labels."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N_ROWS, 4)), columns=list("abcd"))
    X.loc[::7, "b"] = np.nan
    X["e"] = pd.Categorical(rng.choice(["u", "v", "w"], N_ROWS))
    y = pd.Series(np.where(X["a"] > 0, "yes", np.where(X["e"] == "u", "no", "perhaps")), name="y")
    return X, y


def arrays() -> tuple[np.ndarray, np.ndarray]:
    X, y = table()
    return X[list("abcd")].to_numpy(), y.to_numpy().astype("U7")


def on_workers(client, column, ends, n_workers):
    """Return parts of a column as futures, distributed round-robin over ``n_workers`` workers."""
    addresses = sorted(client.nthreads())[:n_workers]
    parts = [column[begin:end] for begin, end in zip([0, *ends], [*ends, N_ROWS], strict=True)]
    return [
        client.scatter(part, workers=[addresses[number % n_workers]], hash=False)
        for number, part in enumerate(parts)
    ]


# ----------------------------------------------------------------------------------------- transport


def run(client, function, view=work.result_of, *, heartbeat_timeout=6.0):
    """Run a function on all workers as ranks and return their results."""
    addresses = sorted(client.nthreads())
    ranks = WorkerGroup(client, addresses, heartbeat_timeout)
    ranks.start([function] * len(addresses))
    try:
        answers = ranks.collect(view, range(len(addresses)), 30)
    finally:
        ranks.end("the test is over")
    return answers


def test_ranks_on_workers_sum_and_exchange(client):
    answers = run(client, work.sums, heartbeat_timeout=30.0)  # also on a busy machine
    assert answers.errors == {}
    for rank, (first, last, largest, received, gathered) in answers.given.items():
        assert first == 3
        assert last == 3 * (work.CHUNK_BYTES // 4 + 2) + 3
        assert largest.tolist() == [2, 0]
        assert received == [bytes([other]) * rank for other in range(3)]
        assert gathered == [0, 1, 2]


def test_ranks_out_of_step_are_an_error_on_every_worker(client):
    errors = run(client, work.out_of_step, work.error_of).given
    assert len(errors) == 3
    assert all("is out of step: it sent (1, 'sum', '<i" in text for text in errors.values())


def test_error_of_a_rank_reaches_the_other_ranks(client):
    errors = run(client, work.failing, work.error_of).given
    address = sorted(client.nthreads())[1]
    assert errors[1] == "MemoryError: 8 GiB are not available"
    expected = f"RanksError: worker {address} (rank 1) failed: MemoryError: 8 GiB are not available"
    assert errors[0] == errors[2] == expected


def test_stopped_worker_is_detected(client):
    address = sorted(client.nthreads())[1]
    pid = client.run(os.getpid)[address]
    addresses = sorted(client.nthreads())
    ranks = WorkerGroup(client, addresses, 2.0)
    ranks.start([work.stopped] * 3)
    try:
        errors = ranks.collect(work.error_of, [0, 2], 30).given
    finally:
        os.kill(pid, signal.SIGCONT)
        ranks.end("the test is over")
    lost = f"RankLostError: worker {address} (rank 1) has been silent for 2 s"
    assert errors == {0: lost, 2: lost}


def test_sessions_are_cleaned_up(client):
    run(client, work.sums)
    until = time.monotonic() + 20
    while any(client.run(work.unclosed_connections).values()) and time.monotonic() < until:
        time.sleep(0.1)
    assert [*client.run(work.unclosed_connections).values()] == [[], [], []]


# ---------------------------------------------------------------------------------------- the same model


@pytest.mark.parametrize("n_workers", [1, 2, 3])
@pytest.mark.parametrize("algorithm", ["abc-mart", "multi-output"])
def test_model_equals_that_of_one_process(client, n_workers, algorithm):
    X, y = table()
    ends = [30, 30, 250, 251]  # one partition without rows, one with one
    given = [on_workers(client, column, ends, n_workers) for column in (X, y)]
    model = DaskABCBoostClassifier(algorithm, **FEW, client=client).fit(*given)
    local = ABCBoostClassifier(algorithm, **FEW).fit(X, y)
    assert bytes_of(model.to_local()) == bytes_of(model) == bytes_of(local)
    assert type(model.to_local()) is ABCBoostClassifier
    np.testing.assert_array_equal(model.train_loss_, local.train_loss_)


def test_frames_with_weights_and_validation_give_the_model_of_one_process(client):
    X, y = table()
    weight = pd.Series(np.arange(N_ROWS) % 4 / 2, name="weight")
    lazy = [dd.from_pandas(column, npartitions=4) for column in (X, y, weight)]
    held_out = {"X_val": X[:100], "y_val": y[:100], "sample_weight_val": weight[:100]}
    lazily_held_out = {
        name: dd.from_pandas(column, npartitions=1) for name, column in held_out.items()
    }
    parameters = FEW | {"max_iter": 30, "n_iter_no_change": 2, "class_weight": "balanced"}
    model = DaskABCBoostClassifier(**parameters).fit(*lazy, **lazily_held_out)
    local = ABCBoostClassifier(**parameters).fit(X, y, weight, **held_out)
    assert bytes_of(model) == bytes_of(local)
    assert (model.stop_reason_, model.best_iteration_) == (
        local.stop_reason_,
        local.best_iteration_,
    )


def test_arrays_of_any_chunks_give_the_model_of_one_process(client):
    X, y = arrays()
    local = bytes_of(ABCBoostClassifier(**FEW).fit(X, y))
    lazy = da.from_array(X, chunks=(90, 2)), da.from_array(y, chunks=150)
    assert bytes_of(DaskABCBoostClassifier(**FEW).fit(*lazy)) == local
    unknown = dd.from_pandas(pd.DataFrame(X), npartitions=3).to_dask_array()
    numbers = np.unique(y, return_inverse=True)[1]
    labels = dd.from_pandas(pd.Series(numbers), npartitions=3).to_dask_array()
    local = bytes_of(ABCBoostClassifier(**FEW).fit(X, numbers))
    assert bytes_of(DaskABCBoostClassifier(**FEW).fit(unknown, labels)) == local


def test_sparse_parts_give_the_model_of_one_process(client):
    X = sparse.random(N_ROWS, 30, density=0.1, format="csr", random_state=0)
    y = np.asarray(X[:, :3].sum(axis=1) > 0).ravel().astype(int) + (np.arange(N_ROWS) % 2)
    stops = range(0, N_ROWS, 100)
    parts = [[dask.delayed(c[i : i + 100]) for i in stops] for c in (X, y)]
    model = DaskABCBoostClassifier(**FEW).fit(*parts)
    assert bytes_of(model) == bytes_of(ABCBoostClassifier(**FEW).fit(X, y))


def test_concurrent_fits_on_one_cluster_do_not_block_each_other(client):
    X, y = arrays()
    lazy = da.from_array(X, chunks=(90, 4)), da.from_array(y, chunks=90)
    models = [DaskABCBoostClassifier(**FEW, client=client) for _ in range(3)]
    threads = [threading.Thread(target=model.fit, args=lazy) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {bytes_of(model) for model in models} == {bytes_of(ABCBoostClassifier(**FEW).fit(X, y))}


@pytest.mark.slow
def test_connections_may_be_encrypted(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    if shutil.which("openssl") is None:
        pytest.skip("openssl draws up the certificate")
    subprocess.run(
        [*OPENSSL.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    security = Security(
        require_encryption=True,
        tls_ca_file=str(certificate),
        **{
            f"tls_{role}_{part}": str(path)
            for role in ("client", "scheduler", "worker")
            for part, path in (("key", key), ("cert", certificate))
        },
    )
    X, y = arrays()
    lazy = da.from_array(X, chunks=(200, 4)), da.from_array(y, chunks=200)
    with (
        LocalCluster(n_workers=2, protocol="tls", security=security, **QUIET) as cluster,
        Client(cluster, security=security) as client,
    ):
        model = DaskABCBoostClassifier(**FEW).fit(*lazy)
        assert all(address.startswith("tls://") for address in client.nthreads())
    assert bytes_of(model) == bytes_of(ABCBoostClassifier(**FEW).fit(X, y))


def test_workers_may_be_threads_of_one_process():
    X, y = arrays()
    lazy = da.from_array(X, chunks=(90, 4)), da.from_array(y, chunks=90)
    with LocalCluster(n_workers=2, processes=False, **QUIET) as cluster, Client(cluster):
        model = DaskABCBoostClassifier(**FEW).fit(*lazy)
    assert bytes_of(model) == bytes_of(ABCBoostClassifier(**FEW).fit(X, y))


# ------------------------------------------------------------------------------------------ prediction


def test_predictions_of_collections_are_lazy_and_equal_those_of_tables(client):
    X, y = table()
    frame, column = (dd.from_pandas(c, npartitions=3) for c in (X, y))
    model = DaskABCBoostClassifier(**FEW).fit(frame, column)
    for method in ("predict", "predict_proba", "decision_function"):
        lazily = getattr(model, method)(frame)
        assert dask.is_dask_collection(lazily)
        assert model.n_jobs is None
        np.testing.assert_array_equal(lazily.compute(), getattr(model, method)(X))
        assert lazily.compute().index.equals(X.index)
    assert list(model.predict_proba(frame).columns) == ["no", "perhaps", "yes"]
    np.testing.assert_array_equal(model.predict(frame, n_iter=1), model.predict(X, n_iter=1))


def no_client():
    raise ValueError("no client")


def test_predictions_of_arrays_are_arrays_and_need_no_client(monkeypatch):
    X, y = arrays()
    lazy = da.from_array(X, chunks=(90, 2))
    local = ABCBoostClassifier(**FEW).fit(X, y)
    model = DaskABCBoostClassifier(**FEW)._copy_fitted(local)
    monkeypatch.setattr(distributed, "get_client", no_client)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        lazily = getattr(model, method)(lazy)
        assert isinstance(lazily, da.Array)
        assert lazily.shape == getattr(local, method)(X).shape
        np.testing.assert_array_equal(lazily.compute(scheduler="sync"), getattr(local, method)(X))


def test_other_methods_refuse_unsupported_arguments():
    X, y = arrays()
    model = DaskABCBoostClassifier(**FEW)._copy_fitted(ABCBoostClassifier(**FEW).fit(X, y))
    with pytest.raises(
        TypeError, match=r"X is a dask.array.core.Array; expected a table that is not"
    ):
        model.explain(da.from_array(X))


# ---------------------------------------------------------------------------------- during training


def test_callbacks_run_after_each_iteration_and_can_stop(client):
    X, y = arrays()
    lazy = da.from_array(X, chunks=(90, 4)), da.from_array(y, chunks=90)
    steps = []

    def stop_at_three(report):
        steps.append(report.iteration)
        return report.iteration == 3

    model = DaskABCBoostClassifier(callbacks=stop_at_three).fit(*lazy)
    assert steps == [1, 2, 3]
    assert (model.n_iter_, model.stop_reason_) == (3, "callback")

    def fail(report):
        raise ZeroDivisionError("in a callback")

    with pytest.raises(ZeroDivisionError, match="in a callback"):
        model.set_params(callbacks=fail).fit(*lazy)
    assert not hasattr(model, "model_")


def test_user_is_warned_where_fit_was_called(client):
    X, y = arrays()
    weight = np.where(np.arange(N_ROWS) == 7, 1e-30, 1.0)
    lazy = [da.from_array(c, chunks=(90, 4)[: c.ndim]) for c in (X, y, weight)]
    with pytest.warns(UserWarning, match=r"1 row\(s\) weigh at most") as warned:
        DaskABCBoostClassifier(**FEW).fit(*lazy)
    assert [warning.filename for warning in warned] == [__file__]
    with pytest.warns(UserWarning, match="no tree can be split, so"):
        DaskABCBoostClassifier(min_samples_leaf=10**6).fit(*lazy[:2])


def test_progress_is_shown_where_fit_was_called(client, capsys):
    X, y = arrays()
    lazy = da.from_array(X, chunks=(90, 4)), da.from_array(y, chunks=90)
    model = DaskABCBoostClassifier(max_iter=4, learning_rate=0.15, max_leaf_nodes=5, verbose=2).fit(
        *lazy
    )
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"iteration 4/4  loss {model.train_loss_[-1]:.6g}")


def test_refit_calls_callbacks_again_after_one_stopped_training(client):
    X, y = arrays()
    lazy = da.from_array(X, chunks=(90, 4)), da.from_array(y, chunks=90)
    parameters = FEW | {"max_iter": 9, "early_stopping": True, "refit": True, "random_state": 0}

    def stop(report):
        return (report.phase, report.iteration) == ("train", 5)

    fitted = DaskABCBoostClassifier(**parameters, callbacks=stop).fit(*lazy)
    local = ABCBoostClassifier(**parameters, callbacks=stop).fit(X, y)
    assert local.refit_history_ is not None
    same = [model.set_params(callbacks=None) for model in (fitted, local)]
    assert bytes_of(same[0]) == bytes_of(same[1])
    assert fitted.stop_reason_ == local.stop_reason_ == "callback"


@pytest.mark.usefixtures("heeds_interrupts")
@pytest.mark.parametrize("after", [0.0, 0.2], ids=["in a callback", "between"])
@pytest.mark.parametrize("keep", [[], [KeepOnInterrupt()]], ids=["raise", "keep"])
def test_ctrl_c_ends_the_fit(client, keep, after):
    X, y = arrays()
    lazy = da.from_array(X, chunks=(90, 4)), da.from_array(y, chunks=90)
    model = DaskABCBoostClassifier(max_iter=10**6)
    heard = []

    def interrupt(report):
        heard.append(report.iteration)
        if len(heard) == 2:
            threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()
            time.sleep(0.2 - after)

    model.set_params(callbacks=[interrupt, TimeLimit(60), *keep])
    if not keep:
        with pytest.raises(KeyboardInterrupt):
            model.fit(*lazy)
        assert not hasattr(model, "model_")
    else:
        assert model.fit(*lazy).stop_reason_ == "interrupted"


def test_fit_warns_once_if_its_progress_cannot_be_written(client, monkeypatch):
    X, y = arrays()
    lazy = da.from_array(X, chunks=(90, 4)), da.from_array(y, chunks=90)
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.warns(UserWarning, match="progress cannot be written") as caught:
        fitted = DaskABCBoostClassifier(**FEW, verbose=1).fit(*lazy)
    assert len(caught) == 1
    assert bytes_of(fitted.set_params(verbose=0)) == bytes_of(ABCBoostClassifier(**FEW).fit(X, y))


# ------------------------------------------------------------------------------------- lost workers


def lost_once(method, at):
    """Return a method that counts its calls and fails at one, like an unresponsive worker."""
    calls = []

    def failing(ranks, *arguments, **named):
        calls.append(arguments)
        if len(calls) == at:
            raise LostWorkersError("no answer", [ranks.addresses[0]])
        return method(ranks, *arguments, **named)

    return failing, calls


def test_responding_ranks_are_awaited_until_done(client, monkeypatch):
    X, y = arrays()
    lazy = da.from_array(X, chunks=(90, 4)), da.from_array(y, chunks=90)
    poll, polled = lost_once(WorkerGroup.poll, 3)
    start, started = lost_once(WorkerGroup.start, 0)
    monkeypatch.setattr(WorkerGroup, "poll", poll)
    monkeypatch.setattr(WorkerGroup, "start", start)
    monkeypatch.setattr(driver, "_END_TIMEOUT", 0.1)
    steps = []
    model = DaskABCBoostClassifier(**FEW, callbacks=lambda report: steps.append(report.iteration))
    model.fit(*lazy).set_params(callbacks=None)
    assert bytes_of(model) == bytes_of(ABCBoostClassifier(**FEW).fit(X, y))
    assert steps == [1, 2, 3, 4]
    assert len(polled) > 3
    assert len(started) == 1


def test_retry_after_a_callback_stopped_the_fit_runs_no_iteration(client, monkeypatch):
    X, y = arrays()
    lazy = da.from_array(X, chunks=(90, 4)), da.from_array(y, chunks=90)
    poll, alive, lost, steps = WorkerGroup.poll, WorkerGroup.alive, [], []

    def failing(ranks, n_answered, *, stop_requested):
        if stop_requested and not lost:
            lost.append(ranks)
            ranks.end("rank 0 is lost")
            raise LostWorkersError("no answer", [ranks.addresses[0]])
        return poll(ranks, n_answered, stop_requested=stop_requested)

    def stop_at_three(report):
        steps.append(report.iteration)
        return report.iteration == 3

    left = lambda ranks: alive(ranks)[1 if ranks in lost else 0 :]
    monkeypatch.setattr(WorkerGroup, "poll", failing)
    monkeypatch.setattr(WorkerGroup, "alive", left)
    model = DaskABCBoostClassifier(callbacks=stop_at_three).fit(*lazy).set_params(callbacks=None)
    local = ABCBoostClassifier(callbacks=lambda report: report.iteration == 3).fit(X, y)
    assert bytes_of(model) == bytes_of(local.set_params(callbacks=None))
    assert (steps, model.stop_reason_, len(lost)) == ([1, 2, 3], "callback", 1)


def test_workers_of_keys_are_only_those_that_have_or_compute_them(client):
    first, second, third = sorted(client.nthreads())
    future = client.scatter(np.zeros(3), workers=[second], hash=False)
    slow = client.submit(time.sleep, 1, workers=[third], pure=False)
    after = client.submit(lambda waited: waited, slow, workers=[first], pure=False)
    assert workers_of(client, [future.key]) == [second]
    while not (found := workers_of(client, [after.key])):
        time.sleep(0.01)
    assert found == [third]
    assert workers_of(client, ["unknown"]) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["kill", "stop"])
def test_fit_resumes_after_a_worker_is_lost(number):
    faults = pytest.importorskip("benchmarks.distributed_faults", reason="not beside the sources")
    assert faults.series(number, 1, 1.0, 2) == 1


@pytest.mark.slow
def test_lost_data_are_an_error_that_keeps_the_model_so_far():
    X, y = arrays()
    with LocalCluster(n_workers=2, **QUIET) as cluster, Client(cluster) as client:
        given = [on_workers(client, column, [100, 200, 300], 2) for column in (X, y)]
        pids = client.run(os.getpid)
        victim = pids[sorted(pids)[1]]

        def kill(report):
            if report.iteration == 3:
                os.kill(victim, signal.SIGKILL)

        model = DaskABCBoostClassifier(max_iter=10**5, callbacks=kill, client=client)
        with pytest.raises(
            LostDataError, match=r"cannot be computed again.*partitions 1 of X, 3 of X"
        ):
            model.fit(*given)
    assert model.n_iter_ >= 3
    assert model.stop_reason_ == "checkpoint"


@pytest.mark.parametrize("gone", ["client", "cluster"])
@pytest.mark.parametrize("by", ["callback", "thread"])
def test_client_or_cluster_that_is_closed_during_fit_is_named(gone, by):
    X, y = arrays()
    with LocalCluster(n_workers=2, **QUIET) as cluster, Client(cluster) as client:
        lazy = da.from_array(X, chunks=(200, 4)), da.from_array(y, chunks=200)
        closing = threading.Thread(target={"client": client, "cluster": cluster}[gone].close)

        def close(report):
            if report.iteration == 3:
                closing.start()
                if by == "callback":
                    closing.join()

        model = DaskABCBoostClassifier(max_iter=10**5, callbacks=close, client=client)
        with pytest.raises(
            RuntimeError, match=r"the client is (closed|closing).*or its cluster has gone"
        ):
            model.fit(*lazy)
        closing.join()
    assert not hasattr(model, "model_")


# ------------------------------------------------------------------------------------------- bad input


def bad_input() -> list[object]:
    X, y = arrays()
    frame = pd.DataFrame(X)
    lazy, labels = da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100)
    pieces = [dask.delayed(y[:100])] * 2
    renamed = [dask.delayed(frame[:100]), dask.delayed(frame[:100].rename(columns={3: 9}))]
    typed = [dask.delayed(frame[:100]), dask.delayed(frame[:100].astype(str))]
    return [
        pytest.param(
            X, labels, TypeError, "X is a numpy.ndarray; expected a dask DataFrame", id="X"
        ),
        pytest.param([X], [y], TypeError, r"X\[0\] is a ndarray; expected a future", id="list"),
        pytest.param(lazy, "y", TypeError, "y is a builtins.str; expected a dask", id="name"),
        pytest.param(lazy, None, ValueError, "y is None; expected the labels of X", id="no labels"),
        pytest.param(
            lazy, labels[:-150], ValueError, "X has 4, y has 3 partitions", id="partitions"
        ),
        pytest.param(
            lazy,
            labels[:-1],
            ValueError,
            "partition 3 has 100 rows of X, but 99 of y; expected the same number",
            id="rows",
        ),
        pytest.param([], [], ValueError, "X has no partitions; expected at least 1", id="none"),
        pytest.param(renamed, pieces, ValueError, r"columns.*9", id="columns"),
        pytest.param(
            typed,
            pieces,
            TypeError,
            r"0.* holds strings .*partition 1.*, but numbers .*partition 0",
            id="types",
        ),
    ]


@pytest.mark.parametrize(("X", "y", "kind", "message"), bad_input())
def test_bad_input_is_an_error_that_names_it(client, X, y, kind, message):
    with pytest.raises(kind, match=message):
        DaskABCBoostClassifier(client=client).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_iter": 0}, "max_iter=0; expected"),
        ({"warm_start": True}, "warm_start=True; expected none with DaskABC"),
        ({"scoring": "accuracy"}, "scoring='accuracy'; expected 'loss' or 'error' with DaskABC"),
        ({"scoring": lambda model, X, y: 0.0}, "scoring=<function.*no worker has all rows"),
        (
            {"callbacks": [Checkpoint("path")]},
            "callbacks with a Checkpoint; expected none with DaskABC",
        ),
    ],
)
def test_parameters_are_checked_before_anything_is_computed(client, parameters, message):
    X, y = (da.from_array(column, chunks=100) for column in arrays())
    with pytest.raises(ValueError, match=message):
        DaskABCBoostClassifier(**parameters).fit(X, y)


def test_invalid_closed_or_workerless_client_is_an_error(monkeypatch):
    X, y = (da.from_array(column, chunks=100) for column in arrays())
    monkeypatch.setattr(dask_classifier, "_WORKERS_TIMEOUT", 0.2)
    with LocalCluster(n_workers=0, processes=False, **QUIET) as cluster:
        with Client(cluster, set_as_default=False) as empty:
            model = DaskABCBoostClassifier(client=empty)
            with pytest.raises(ValueError, match=r"has no workers, and none came within 0\.2 s"):
                model.fit(X, y)
        with pytest.raises(
            ValueError, match="the client is closed; expected one that is connected"
        ):
            model.fit(X, y)
    with pytest.raises(
        TypeError, match=r"client='tcp://here' is a str; expected a distributed\.Client"
    ):
        DaskABCBoostClassifier(client="tcp://here").fit(X, y)


@pytest.mark.parametrize(("module", "extra"), [("distributed", "dask"), ("mpi4py", "mpi")])
def test_missing_extra_is_named(monkeypatch, module, extra):
    name = {"dask": "DaskABCBoostClassifier", "mpi": "MPICommunicator"}[extra]
    file = {"dask": "dask_estimator", "mpi": "mpi"}[extra]
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"abcgbm.distributed.{file}", raising=False)
    import abcgbm.distributed  # noqa: PLC0415

    with pytest.raises(ImportError, match=rf"{name} needs .*abcgbm\[{extra}\]"):
        getattr(abcgbm.distributed, name)


# ---------------------------------------------------------------------------- estimator conventions


def test_estimator_supports_clone_pickle_and_repr(client):
    model = DaskABCBoostClassifier("mart", max_iter=7, learning_rate=0.1, client=client)
    copied = clone(model)
    assert copied.client is client
    assert copied.get_params() == model.get_params()
    assert set(model.get_params()) == {*ABCBoostClassifier().get_params(), "client"}
    assert clone(model.set_params(max_iter=9)).max_iter == 9
    assert repr(DaskABCBoostClassifier("mart", max_iter=7, learning_rate=0.1)) == (
        "DaskABCBoostClassifier(algorithm='mart', learning_rate=0.1, max_iter=7)"
    )
    read = pickle.loads(pickle.dumps(model))
    assert read.client is None
    assert read.max_iter == 9
    with pytest.raises(TypeError, match="did you mean max_iter"):
        DaskABCBoostClassifier(n_estimators=3)


# ------------------------------------------------------------------------- partitions of one worker


def test_partitions_with_different_categories_are_concatenated():
    parts = [pd.DataFrame({"c": pd.Categorical(values)}) for values in (["b"], ["a", "b"], [])]
    joined = joining.concat_partitions(list(enumerate(parts)), "X")
    assert joined["c"].dtype == pd.CategoricalDtype(["b", "a"])
    assert joined["c"].tolist() == ["b", "a", "b"]


@pytest.mark.parametrize("kind", ["numpy", "csr", "polars", "arrow", "pandas"])
def test_empty_partition_is_a_table(kind):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    made = {
        "numpy": frame.to_numpy,
        "csr": lambda: sparse.coo_matrix(frame.to_numpy()),
        "polars": lambda: pytest.importorskip("polars").DataFrame(frame.to_dict("list")),
        "arrow": lambda: pytest.importorskip("pyarrow").Table.from_pandas(frame),
        "pandas": lambda: frame,
    }[kind]()
    none = joining.without_rows(made)
    assert none.shape == (0, 2)
    assert joining.concat_partitions([(0, none), (1, made), (2, made)], "X").shape == (4, 2)
