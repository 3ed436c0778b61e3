"""Sessions of ranks on Dask workers, controlled by the client."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from distributed import Client, Scheduler, Worker

from abcgbm.communication.communicator import RankLostError, RanksError
from abcgbm.distributed.dask_session import (
    CLIENT_TIMEOUT,
    ProgressUpdate,
    SessionPlan,
    Sessions,
    TaskResult,
)

_RETRY_TIMEOUT = 2.0  # seconds for the answer of a worker that did not answer before

# ------------------------------------------------------------------------- functions run on a worker


async def open_session(plan: SessionPlan, dask_worker: Worker) -> None:
    """Open a session."""
    Sessions.of(dask_worker).open(plan)


async def connect_session(name: str, timeout: float, dask_worker: Worker) -> None:
    """Connect a rank with all others."""
    await Sessions.of(dask_worker)[name].connect(timeout)


async def begin_session(name: str, task: Any, dask_worker: Worker) -> None:
    """Start the task of a rank."""
    Sessions.of(dask_worker)[name].begin(task)


async def poll_session(
    name: str, n_answered: int, stop_requested: bool, dask_worker: Worker
) -> ProgressUpdate:
    """Answer reports of a rank, and wait for further ones."""
    return await Sessions.of(dask_worker)[name].poll(n_answered, stop_requested)


async def keep_session_alive(name: str, dask_worker: Worker) -> None:
    """Note that the client is alive, although it does not poll."""
    Sessions.of(dask_worker)[name].keep_alive()


async def collect_session(
    name: str, timeout: float, view: Callable[[TaskResult], Any], dask_worker: Worker
) -> Any:
    """Return a view of the result of a rank; None if it is not done."""
    done = await Sessions.of(dask_worker)[name].collect(timeout)
    return None if done is None else view(done)


async def end_session(name: str, reason: str, dask_worker: Worker) -> None:
    """End the session of a rank."""
    sessions = Sessions.of(dask_worker)
    if name in sessions:
        sessions[name].end(reason)


async def ping() -> None:
    """Do nothing; that it returns shows that the worker is alive."""


# ------------------------------------------------------------------------- functions run on a client


def run_on_workers(
    client: Client,
    calls: Mapping[str, tuple[Any, ...]],
    function: Callable[..., Any],
    timeout: float,
) -> dict[str, Any]:
    """Call a function on several workers at once; return its results or errors, by address.

    Parameters
    ----------
    client : Client
        Client of the cluster.
    calls : mapping of str to tuple
        Arguments for each worker, by its address.
    function : callable
        One of the functions above.
    timeout : float
        Seconds after which a call becomes a TimeoutError.
    """

    async def run_on(address: str) -> Any:
        try:
            call = client.run(function, *calls[address], workers=[address])
            return (await asyncio.wait_for(call, timeout))[address]
        except TimeoutError:
            return TimeoutError(f"worker {address} has not answered within {timeout:g} s")
        except Exception as error:  # noqa: BLE001
            return error

    async def run_on_all() -> list[Any]:
        return await asyncio.gather(*map(run_on, calls))

    return dict(zip(calls, client.sync(run_on_all), strict=True))


def silent_workers(client: Client, addresses: Iterable[str], timeout: float) -> list[str]:
    """Return the workers that do not answer within a timeout, nor to a second call."""
    silent = list(addresses)
    for seconds in (timeout, _RETRY_TIMEOUT):
        answers = run_on_workers(client, dict.fromkeys(silent, ()), ping, seconds)
        silent = [address for address, answer in answers.items() if isinstance(answer, OSError)]
    return silent


def workers_of(client: Client, keys: Iterable[Any]) -> list[str]:
    """Return the workers that hold or compute some keys or their dependencies."""
    return client.run_on_scheduler(_workers_of, list(keys))  # type: ignore[no-any-return]


async def _workers_of(keys: list[Any], dask_scheduler: Scheduler) -> list[str]:
    tasks = dask_scheduler.tasks
    left, seen = [tasks[key] for key in keys if key in tasks], set()
    workers = set()
    while left:
        task = left.pop()
        if task not in seen:
            seen.add(task)
            at = {*(task.who_has or ()), *filter(None, [task.processing_on])}
            workers |= {worker.address for worker in at}
            left += [] if task.who_has else task.dependencies
    return sorted(workers)


def forget_workers(client: Client, addresses: Iterable[str]) -> None:
    """Remove workers from the scheduler, so that their tasks are computed elsewhere."""
    for address in addresses:
        client.run_on_scheduler(_remove, address)


async def _remove(address: str, dask_scheduler: Scheduler) -> None:
    await dask_scheduler.remove_worker(address, stimulus_id=f"abcgbm-lost-{time.time()}")


# Timeouts in seconds; the first two are longer with a long heartbeat timeout.
_START_TIMEOUT = 20.0  # until all ranks are connected
_ANSWER_TIMEOUT = 8.0  # for an answer of a worker, which may wait for an update for 2 s
_POLL_MARGIN = 2.0  # those 2 s
_END_TIMEOUT = 2.0  # to end a session; without the message it ends by itself


class LostWorkersError(RanksError):
    """Workers of a session are lost.

    Parameters
    ----------
    message : str
        Error message.
    addresses : sequence of str
        Addresses of the workers.
    """

    def __init__(self, message: str, addresses: Sequence[str]) -> None:
        super().__init__(message)
        self.addresses = tuple(addresses)


class Answers(NamedTuple):
    """Answers and errors of workers, by rank."""

    given: dict[int, Any]
    errors: dict[int, BaseException]


class WorkerGroup:
    """The ranks of a session, one on each worker.

    Parameters
    ----------
    client : Client
        Client of the cluster.
    addresses : sequence of str
        Addresses of the workers, by rank.
    heartbeat_timeout : float
        Seconds without a message after which a rank is considered lost.
    waits : bool
        Whether each report waits for the client's answer.
    """

    def __init__(
        self,
        client: Client,
        addresses: Sequence[str],
        heartbeat_timeout: float,
        *,
        waits: bool = False,
    ) -> None:
        self.client, self.addresses = client, tuple(addresses)
        self.name = uuid.uuid4().hex[:12]
        self.silent: set[str] = set()  # workers that did not answer the last `alive()`
        self._heartbeat_timeout, self._waits = heartbeat_timeout, waits
        self._answer_timeout = max(_ANSWER_TIMEOUT, heartbeat_timeout + _POLL_MARGIN)
        self._start_timeout = max(_START_TIMEOUT, heartbeat_timeout)

    def start(self, tasks: Sequence[Callable[..., TaskResult]]) -> None:
        """Start the tasks of all ranks; if one cannot start, end all and raise its error."""
        plans = [
            SessionPlan(self.name, rank, self.addresses, self._heartbeat_timeout, self._waits)
            for rank in range(len(self.addresses))
        ]
        timeout = self._start_timeout
        try:
            self._run_on_all(open_session, [(plan,) for plan in plans], timeout)
            self._run_on_all(connect_session, [(self.name, timeout / 2) for _ in plans], timeout)
            self._run_on_all(begin_session, [(self.name, task) for task in tasks], timeout)
        except BaseException:
            self.end("not all workers could begin")
            raise

    def poll(self, n_answered: int, *, stop_requested: bool) -> ProgressUpdate:
        """Answer reports of rank 0, and wait for further ones."""
        calls = {0: (self.name, n_answered, stop_requested)}
        return self._run_on_all(  # type: ignore[no-any-return]
            poll_session, calls, self._answer_timeout
        )[0]

    @contextmanager
    def kept_alive(self) -> Iterator[None]:
        """Keep the session of rank 0 alive, even while a callback keeps the client from polling."""
        is_over = threading.Event()
        thread = threading.Thread(target=self._keep_alive, args=(is_over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()

    def _keep_alive(self, is_over: threading.Event) -> None:
        while not is_over.wait(CLIENT_TIMEOUT / 3) and self.client.status == "running":
            self._run_on(keep_session_alive, {0: (self.name,)}, self._answer_timeout)

    def alive(self) -> list[int]:
        """Return the ranks whose workers are known to the scheduler and answer."""
        known = {*self.client.nthreads()} & {*self.addresses}
        self.silent = {*silent_workers(self.client, known, self._heartbeat_timeout)}
        alive = known - self.silent
        return [rank for rank, address in enumerate(self.addresses) if address in alive]

    def collect(
        self, view: Callable[[TaskResult], Any], ranks: Sequence[int], timeout: float
    ) -> Answers:
        """Return a view of the results of some ranks."""
        calls = dict.fromkeys(ranks, (self.name, timeout, view))
        return self._run_on(collect_session, calls, timeout + self._answer_timeout)

    def end(self, reason: str) -> None:
        """End the session on all workers."""
        if self.client.status != "running":
            return  # without a client the sessions end by themselves
        ranks = [rank for rank, name in enumerate(self.addresses) if name not in self.silent]
        self._run_on(end_session, dict.fromkeys(ranks, (self.name, reason)), _END_TIMEOUT)

    def _run_on(
        self, function: Callable[..., Any], calls: Mapping[int, tuple[Any, ...]], timeout: float
    ) -> Answers:
        by_address = {self.addresses[rank]: arguments for rank, arguments in calls.items()}
        answers = run_on_workers(self.client, by_address, function, timeout)
        by_rank = {rank: answers[self.addresses[rank]] for rank in calls}
        errors = {rank: a for rank, a in by_rank.items() if isinstance(a, BaseException)}
        return Answers({rank: a for rank, a in by_rank.items() if rank not in errors}, errors)

    def _run_on_all(
        self,
        function: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]] | Mapping[int, tuple[Any, ...]],
        timeout: float,
    ) -> dict[int, Any]:
        """Return the answers; raise an error if a call fails."""
        by_rank = calls if isinstance(calls, Mapping) else dict(enumerate(calls))
        answers = self._run_on(function, by_rank, timeout)
        if answers.errors:
            raise self.merge_errors(answers.errors)
        return answers.given

    def merge_errors(self, errors: Mapping[int, BaseException]) -> BaseException:
        """Return one error for those of several ranks: the cause, not its consequences elsewhere."""
        if not errors:
            return RanksError("the ranks have not ended, and gave no reason")
        causes = [e for e in errors.values() if not isinstance(e, RanksError | OSError)]
        if causes:
            return causes[0]
        lost = {rank for rank, error in errors.items() if isinstance(error, OSError)}
        lost |= {error.rank for error in errors.values() if isinstance(error, RankLostError)}
        if not lost:
            return next(iter(errors.values()))
        message = "; ".join(dict.fromkeys(str(error) for error in errors.values()))
        return LostWorkersError(message, [self.addresses[rank] for rank in sorted(lost)])
