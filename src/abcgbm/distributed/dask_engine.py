"""Ranks on Dask workers."""

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
    PATIENCE,
    ProgressUpdate,
    SessionPlan,
    Sessions,
    TaskResult,
)

_AGAIN = 2.0  # seconds that a worker has for an answer when it is asked once more

# ------------------------------------------------------------------------------------------ on a worker


async def open_session(plan: SessionPlan, dask_worker: Worker) -> None:
    """Let a worker know of a session."""
    Sessions.of(dask_worker).open(plan)


async def connect_session(name: str, limit: float, dask_worker: Worker) -> None:
    """Connect a rank with all others."""
    await Sessions.of(dask_worker)[name].connect(limit)


async def begin_session(name: str, work: Any, dask_worker: Worker) -> None:
    """Let a rank begin."""
    Sessions.of(dask_worker)[name].begin(work)


async def ask_session(
    name: str, n_answered: int, asks_to_stop: bool, dask_worker: Worker
) -> ProgressUpdate:
    """Wait for news of a rank, and answer the last."""
    return await Sessions.of(dask_worker)[name].ask(n_answered, asks_to_stop)


async def touch_session(name: str, dask_worker: Worker) -> None:
    """Say that the client is there, whatever keeps it from asking."""
    Sessions.of(dask_worker)[name].touch()


async def collect_session(
    name: str, limit: float, view: Callable[[TaskResult], Any], dask_worker: Worker
) -> Any:
    """Return something of what has come of a rank's work, once it is done; None if it is not."""
    done = await Sessions.of(dask_worker)[name].collect(limit)
    return None if done is None else view(done)


async def end_session(name: str, reason: str, dask_worker: Worker) -> None:
    """End a rank, whatever it does."""
    sessions = Sessions.of(dask_worker)
    if name in sessions:
        sessions[name].end(reason)


async def say_nothing() -> None:
    """Be there."""


# ------------------------------------------------------------------------------------------ on a client


def call_on(
    client: Client,
    calls: Mapping[str, tuple[Any, ...]],
    function: Callable[..., Any],
    limit: float,
) -> dict[str, Any]:
    """Call a function on workers at once; return what came of it by address, errors too.

    Parameters
    ----------
    client : Client
        Of the cluster.
    calls : mapping of str to tuple
        The arguments for each worker, by its address.
    function : callable
        One of those above.
    limit : float
        Seconds after which a worker's answer is not waited for any longer.
    """

    async def one(address: str) -> Any:
        try:
            call = client.run(function, *calls[address], workers=[address])
            return (await asyncio.wait_for(call, limit))[address]
        except TimeoutError:
            return TimeoutError(f"worker {address} has not answered within {limit:g} s")
        except Exception as error:  # noqa: BLE001
            return error

    async def every() -> list[Any]:
        return await asyncio.gather(*map(one, calls))

    return dict(zip(calls, client.sync(every), strict=True))


def silent_workers(client: Client, addresses: Iterable[str], limit: float) -> list[str]:
    """Return the workers that do not answer within so many seconds, nor when they are asked again."""
    silent = list(addresses)
    for seconds in (limit, _AGAIN):
        answers = call_on(client, dict.fromkeys(silent, ()), say_nothing, seconds)
        silent = [address for address, answer in answers.items() if isinstance(answer, OSError)]
    return silent


def workers_of(client: Client, keys: Iterable[Any]) -> list[str]:
    """Return the workers that have or compute some keys, or what these are computed from."""
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
    """Let the scheduler forget workers, so that nobody waits for them."""
    for address in addresses:
        client.run_on_scheduler(_remove, address)


async def _remove(address: str, dask_scheduler: Scheduler) -> None:
    await dask_scheduler.remove_worker(address, stimulus_id=f"abcgbm-lost-{time.time()}")


# Seconds; the first two are longer where a rank may be silent for longer.
START = 20.0  # within which all ranks must be ready
ANSWER = 8.0  # that a worker has for an answer, two of which it may wait for news
_WAITED = 2.0  # these two
_GOODBYE = 2.0  # within which a worker hears that a session ends, or not at all


class LostWorkersError(RanksError):
    """Workers of a session are gone.

    Parameters
    ----------
    message : str
        What is known.
    addresses : sequence of str
        Theirs.
    """

    def __init__(self, message: str, addresses: Sequence[str]) -> None:
        super().__init__(message)
        self.addresses = tuple(addresses)


class Answers(NamedTuple):
    """What workers answered, and which did not, by rank."""

    given: dict[int, Any]
    errors: dict[int, BaseException]


class WorkerGroup:
    """The ranks of a session: one for each of some workers.

    Parameters
    ----------
    client : Client
        Of the cluster.
    addresses : sequence of str
        The workers.
    heartbeat_timeout : float
        Seconds after which a silent rank is taken to be lost.
    waits : bool
        Whether each report waits for an answer.
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
        self.silent: set[str] = set()  # workers that have not answered when they were looked for
        self._heartbeat_timeout, self._waits = heartbeat_timeout, waits
        self._answer, self._start = (
            max(ANSWER, heartbeat_timeout + _WAITED),
            max(START, heartbeat_timeout),
        )

    def start(self, works: Sequence[Callable[..., TaskResult]]) -> None:
        """Let all ranks begin their work, or none: then all are ended and the reason is raised."""
        plans = [
            SessionPlan(self.name, rank, self.addresses, self._heartbeat_timeout, self._waits)
            for rank in range(len(self.addresses))
        ]
        try:
            self._all(open_session, [(plan,) for plan in plans], self._start)
            half = self._start / 2
            self._all(connect_session, [(self.name, half) for _ in plans], self._start)
            self._all(begin_session, [(self.name, work) for work in works], self._start)
        except BaseException:
            self.end("not all workers could begin")
            raise

    def ask(self, n_answered: int, *, asks_to_stop: bool) -> ProgressUpdate:
        """Wait for news of rank 0, and answer the last."""
        arguments = (self.name, n_answered, asks_to_stop)
        return self._all(ask_session, {0: arguments}, self._answer)[0]  # type: ignore[no-any-return]

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Let rank 0 know that its client is there while this one does something else."""
        is_over = threading.Event()
        thread = threading.Thread(target=self._touch, args=(is_over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()

    def _touch(self, is_over: threading.Event) -> None:
        while not is_over.wait(PATIENCE / 3) and self.client.status == "running":
            self._some(touch_session, {0: (self.name,)}, self._answer)

    def answering(self) -> list[int]:
        """Return the ranks whose workers are known to the scheduler and answer."""
        known = {*self.client.nthreads()} & {*self.addresses}
        self.silent = {*silent_workers(self.client, known, self._heartbeat_timeout)}
        there = known - self.silent
        return [rank for rank, address in enumerate(self.addresses) if address in there]

    def collect(
        self, view: Callable[[TaskResult], Any], ranks: Sequence[int], limit: float
    ) -> Answers:
        """Return something of what has come of the work of ranks, and which ranks answer nothing."""
        arguments = (self.name, limit, view)
        return self._some(collect_session, dict.fromkeys(ranks, arguments), limit + self._answer)

    def end(self, reason: str) -> None:
        """End whatever the ranks do; without a connection they end by themselves."""
        if self.client.status != "running":
            return
        ranks = [rank for rank, name in enumerate(self.addresses) if name not in self.silent]
        self._some(end_session, dict.fromkeys(ranks, (self.name, reason)), _GOODBYE)

    def _some(
        self, function: Callable[..., Any], calls: Mapping[int, tuple[Any, ...]], limit: float
    ) -> Answers:
        by_address = {self.addresses[rank]: arguments for rank, arguments in calls.items()}
        answers = call_on(self.client, by_address, function, limit)
        by_rank = {rank: answers[self.addresses[rank]] for rank in calls}
        errors = {rank: a for rank, a in by_rank.items() if isinstance(a, BaseException)}
        return Answers({rank: a for rank, a in by_rank.items() if rank not in errors}, errors)

    def _all(
        self,
        function: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]] | Mapping[int, tuple[Any, ...]],
        limit: float,
    ) -> dict[int, Any]:
        """Return what all answered; raise if one did not."""
        by_rank = calls if isinstance(calls, Mapping) else dict(enumerate(calls))
        answers = self._some(function, by_rank, limit)
        if answers.errors:
            raise self.error_of(answers.errors)
        return answers.given

    def error_of(self, errors: Mapping[int, BaseException]) -> BaseException:
        """Make of the errors of ranks one: of several reasons not that somebody else is lost."""
        if not errors:
            return RanksError("the ranks have not ended, but not said why")
        ours = [error for error in errors.values() if not _is_of_transport(error)]
        if ours:
            return ours[0]
        lost = {rank for rank, error in errors.items() if isinstance(error, OSError)}
        lost |= {error.rank for error in errors.values() if isinstance(error, RankLostError)}
        if not lost:
            return next(iter(errors.values()))
        message = "; ".join(dict.fromkeys(str(error) for error in errors.values()))
        return LostWorkersError(message, [self.addresses[rank] for rank in sorted(lost)])


def _is_of_transport(error: BaseException) -> bool:
    return isinstance(error, RanksError | OSError)
