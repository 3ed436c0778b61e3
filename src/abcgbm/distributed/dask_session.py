"""A rank on a Dask worker, in a thread beside Dask's tasks, so that it occupies none of their slots."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from distributed import Worker
from distributed.comm import Comm, connect
from distributed.core import Status

from abcgbm.communication.communicator import Communicator, RankLostError, RanksError
from abcgbm.distributed.mesh import Connection, Mesh

CLIENT_TIMEOUT = 30.0  # seconds without a request of the client after which a session ends
_POLL_TIMEOUT = 2.0  # seconds that a request of the client waits for an update
_JOIN = "abcgbm_join"
_EXTENSION = "abcgbm"


class SessionPlan(NamedTuple):
    """Plan of a session, as each rank has it.

    Attributes
    ----------
    name : str
        Name of the session, the same on all ranks.
    rank : int
        Number of this rank.
    addresses : tuple of str
        Addresses of the workers, by rank.
    heartbeat_timeout : float
        Seconds without a message after which a rank is considered lost.
    waits : bool
        Whether each report waits for the client's answer.
    """

    name: str
    rank: int
    addresses: tuple[str, ...]
    heartbeat_timeout: float
    waits: bool = False


class TaskResult(NamedTuple):
    """Result of the task of a rank, or the error that ended it."""

    result: Any
    error: BaseException | None


class ProgressUpdate(NamedTuple):
    """Update for the client: new reports, and whether the task is done."""

    reports: list[Any]
    is_done: bool


class Session:
    """One rank of a fit. All methods except `report` are called on the event loop.

    Parameters
    ----------
    plan : SessionPlan
        Plan of the session.
    worker : Worker
        Dask worker of the rank.
    """

    def __init__(self, plan: SessionPlan, worker: Worker) -> None:
        self.plan, self.worker = plan, worker
        self.done: TaskResult | None = None
        self.mesh = Mesh(plan.rank, plan.addresses, plan.heartbeat_timeout)
        self._last_request = time.monotonic()
        self._loop = asyncio.get_running_loop()
        self._has_update = asyncio.Event()
        self._reports: list[Any] = []
        self._n_answered = 0
        self._stop_requested = False
        self._end_reason: str | None = None
        self._answered = threading.Condition()
        self._thread: threading.Thread | None = None

    # -------------------------------------------------------------------------------------- starting

    async def connect(self, timeout: float) -> None:
        """Connect with all ranks."""
        self._last_request = time.monotonic()
        later = range(self.plan.rank + 1, self.mesh.n_ranks)
        await asyncio.gather(*(self._connect_with(rank, timeout) for rank in later))
        await self.mesh.wait_connected(timeout)

    async def _connect_with(self, rank: int, timeout: float) -> None:
        address, own_rank = self.plan.addresses[rank], self.plan.rank
        message = {"op": _JOIN, "session": self.plan.name, "rank": own_rank, "reply": False}
        try:
            comm = await connect(address, timeout=timeout, **self.worker.connection_args)
            await comm.write(message)
        except OSError as error:
            lost = self.mesh.describe(rank)
            raise RankLostError(f"{lost} cannot be reached: {error}", rank) from error
        self.mesh.add(Connection(comm, rank, address))

    def begin(self, task: Callable[[Session, Communicator], TaskResult]) -> None:
        """Start the thread of the task."""
        self._last_request = time.monotonic()
        name = f"abcgbm {self.plan.name} rank {self.plan.rank}"
        arguments = (task, self.mesh.communicator())
        self._thread = threading.Thread(target=self._run, args=arguments, name=name, daemon=True)
        self._thread.start()

    def _run(
        self, task: Callable[[Session, Communicator], TaskResult], communicator: Communicator
    ) -> None:
        try:
            done = task(self, communicator)
        except BaseException as error:  # noqa: BLE001
            done = TaskResult(None, error)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._finish, done)

    def _finish(self, done: TaskResult) -> None:
        self.done, self._last_request = done, time.monotonic()
        if done.error is not None:
            name, error = self.mesh.describe(self.plan.rank), done.error
            self.mesh.fail(RanksError(f"{name} failed: {type(error).__name__}: {error}"))
        self._has_update.set()
        self._closing = asyncio.ensure_future(self.mesh.close())

    # --------------------------------------------------------------------------------------- running

    def report(self, item: Any) -> bool:
        """Send a report to the client, from the thread of the task; return whether to stop."""
        with self._answered:
            self._reports.append(item)
            number = self._n_answered + len(self._reports)
            if self._loop.is_running():
                self._loop.call_soon_threadsafe(self._has_update.set)
            if self.plan.waits:
                self._answered.wait_for(lambda: self._n_answered >= number or self._has_ended())
            if self._has_ended():
                raise RanksError(self._end_reason or "the worker was closed")
            return self._stop_requested

    def _has_ended(self) -> bool:
        return self._end_reason is not None or not self._loop.is_running()

    async def poll(self, n_answered: int, stop_requested: bool) -> ProgressUpdate:
        """Take the client's answer to its first reports; return further ones, once there are any."""
        self._last_request = time.monotonic()
        self._has_update.clear()
        with self._answered:
            del self._reports[: n_answered - self._n_answered]
            self._n_answered, self._stop_requested = n_answered, stop_requested
            self._answered.notify_all()
            must_wait = not self._reports and self.done is None
        if must_wait:
            await _wait(self._has_update, _POLL_TIMEOUT)
        self._last_request = time.monotonic()
        with self._answered:
            return ProgressUpdate(list(self._reports), self.done is not None)

    def keep_alive(self) -> None:
        """Note that the client is alive."""
        self._last_request = time.monotonic()

    async def collect(self, timeout: float) -> TaskResult | None:
        """Return the result of the task; None if it is not done within the timeout."""
        until = time.monotonic() + timeout
        while self.done is None and time.monotonic() < until:
            self._last_request = time.monotonic()
            self._has_update.clear()
            await _wait(self._has_update, min(_POLL_TIMEOUT, timeout))
        return self.done

    # ---------------------------------------------------------------------------------------- ending

    def end(self, reason: str) -> None:
        """Make the task fail at its next exchange or report."""
        with self._answered:
            self._end_reason = reason
            self._answered.notify_all()
        self.mesh.fail(RanksError(reason))

    async def supervise(self) -> None:
        """Keep the session until it is ended, or until the client has not asked for too long."""
        while self._end_reason is None or self._is_running():
            await asyncio.sleep(1)
            if self._end_reason is None and self._has_timed_out():
                self.end(f"no request of the client for {CLIENT_TIMEOUT:g} s")
        await self.mesh.close()

    def _has_timed_out(self) -> bool:
        # The client polls rank 0 only while tasks run; the other ranks end when rank 0 does.
        is_polled = self.plan.rank == 0 or not self._is_running()
        return is_polled and time.monotonic() - self._last_request > CLIENT_TIMEOUT

    def _is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()


class Sessions:
    """Sessions of a worker, by name; peers connect with them through the port of the worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._by_name: dict[str, Session] = {}
        self._supervisors: set[asyncio.Task[None]] = set()
        worker.handlers[_JOIN] = self.join

    @classmethod
    def of(cls, worker: Worker) -> Sessions:
        """Return the sessions of a worker."""
        if _EXTENSION not in worker.extensions:
            worker.extensions[_EXTENSION] = cls(worker)
        return worker.extensions[_EXTENSION]  # type: ignore[no-any-return]

    def __getitem__(self, name: str) -> Session:
        if name not in self._by_name:
            raise RanksError(f"worker {self._worker.address} has no session {name!r}: it has ended")
        return self._by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def open(self, plan: SessionPlan) -> None:
        """Open a session."""
        session = self._by_name[plan.name] = Session(plan, self._worker)
        task = asyncio.ensure_future(self._supervise(session))
        self._supervisors.add(task)
        task.add_done_callback(self._supervisors.discard)

    async def _supervise(self, session: Session) -> None:
        try:
            await session.supervise()
        finally:
            self._by_name.pop(session.plan.name, None)

    async def join(self, comm: Comm, session: str, rank: int) -> Status:
        """Pass the connection of a peer to its session, until it is closed."""
        if session not in self._by_name:
            comm.abort()
        else:
            joined = self._by_name[session]
            joined.mesh.add(Connection(comm, rank, joined.plan.addresses[rank]))
            await joined.mesh.wait_closed()
        return Status.dont_reply


async def _wait(event: asyncio.Event, timeout: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), timeout)
