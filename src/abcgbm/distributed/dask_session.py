"""A rank of a training on a Dask worker: a thread beside Dask's tasks, so that it takes none of their places."""

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

PATIENCE = 30.0  # seconds after which a session that its client does not ask about ends
_POLL = 2.0  # seconds that a client waits at most for news
_JOIN = "abcgbm_join"
_EXTENSION = "abcgbm"


class SessionPlan(NamedTuple):
    """What a rank knows of a session.

    Attributes
    ----------
    name : str
        That of the session, the same for all ranks.
    rank : int
        Number of this one.
    addresses : tuple of str
        The workers, by rank.
    heartbeat_timeout : float
        Seconds after which a silent rank is taken to be lost.
    waits : bool
        Whether each report waits for what the client says to it.
    """

    name: str
    rank: int
    addresses: tuple[str, ...]
    heartbeat_timeout: float
    waits: bool = False


class TaskResult(NamedTuple):
    """What has come of a rank's work; an error is told to the other ranks."""

    result: Any
    error: BaseException | None


class ProgressUpdate(NamedTuple):
    """What a client hears: the reports that are new, and whether the work is done."""

    reports: list[Any]
    is_done: bool


class Session:
    """One rank of a training. All methods but `report` are called on the event loop.

    Parameters
    ----------
    plan : SessionPlan
        Its place.
    worker : Worker
        The Dask worker that it is on.
    """

    def __init__(self, plan: SessionPlan, worker: Worker) -> None:
        self.plan, self.worker = plan, worker
        self.done: TaskResult | None = None
        self.mesh = Mesh(plan.rank, plan.addresses, plan.heartbeat_timeout)
        self._asked = time.monotonic()
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._reports: list[Any] = []
        self._n_answered = 0
        self._asks_to_stop = False
        self._ended_by: str | None = None
        self._answered = threading.Condition()
        self._thread: threading.Thread | None = None

    # ------------------------------------------------------------------------------------- beginning

    async def connect(self, limit: float) -> None:
        """Connect with all ranks, or fail within so many seconds."""
        self._asked = time.monotonic()
        later = range(self.plan.rank + 1, self.mesh.n_ranks)
        await asyncio.gather(*(self._connect_with(rank, limit) for rank in later))
        await self.mesh.whole(limit)

    async def _connect_with(self, rank: int, limit: float) -> None:
        address, me = self.plan.addresses[rank], self.plan.rank
        try:
            comm = await connect(address, timeout=limit, **self.worker.connection_args)
            await comm.write({"op": _JOIN, "session": self.plan.name, "rank": me, "reply": False})
        except OSError as error:
            lost = self.mesh.describe(rank)
            raise RankLostError(f"{lost} cannot be reached: {error}", rank) from error
        self.mesh.add(Connection(comm, rank, address))

    def begin(self, work: Callable[[Session, Communicator], TaskResult]) -> None:
        """Start the thread."""
        self._asked = time.monotonic()
        name = f"abcgbm {self.plan.name} rank {self.plan.rank}"
        arguments = (work, self.mesh.communicator())
        self._thread = threading.Thread(target=self._run, args=arguments, name=name, daemon=True)
        self._thread.start()

    def _run(
        self, work: Callable[[Session, Communicator], TaskResult], communicator: Communicator
    ) -> None:
        try:
            done = work(self, communicator)
        except BaseException as error:  # noqa: BLE001
            done = TaskResult(None, error)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._finish, done)

    def _finish(self, done: TaskResult) -> None:
        self.done, self._asked = done, time.monotonic()
        if done.error is not None:
            me, error = self.mesh.describe(self.plan.rank), done.error
            self.mesh.fail(RanksError(f"{me} failed: {type(error).__name__}: {error}"))
        self._news.set()
        self._ending = asyncio.ensure_future(self.mesh.close())

    # --------------------------------------------------------------------------------- while it runs

    def report(self, item: Any) -> bool:
        """Tell the client something, on the thread of the work; return whether it asks to stop."""
        with self._answered:
            self._reports.append(item)
            number = self._n_answered + len(self._reports)
            self._wake()
            if self.plan.waits:
                self._answered.wait_for(lambda: self._n_answered >= number or self._is_ended())
            if self._is_ended():
                raise RanksError(self._ended_by or "the worker was closed")
            return self._asks_to_stop

    def _is_ended(self) -> bool:
        return self._ended_by is not None or not self._loop.is_running()

    def _wake(self) -> None:
        if self._loop.is_running():
            self._loop.call_soon_threadsafe(self._news.set)

    async def ask(self, n_answered: int, asks_to_stop: bool) -> ProgressUpdate:
        """Hear how many reports the client has dealt with; return others, soon after there are any."""
        self._asked = time.monotonic()
        self._news.clear()
        with self._answered:
            del self._reports[: n_answered - self._n_answered]
            self._n_answered, self._asks_to_stop = n_answered, asks_to_stop
            self._answered.notify_all()
            is_waiting = not self._reports and self.done is None
        if is_waiting:
            await _wait(self._news, _POLL)
        self._asked = time.monotonic()
        with self._answered:
            return ProgressUpdate(list(self._reports), self.done is not None)

    def touch(self) -> None:
        """Take note that the client is there."""
        self._asked = time.monotonic()

    async def collect(self, limit: float) -> TaskResult | None:
        """Return what has come of the work; None if it is not done within so many seconds."""
        until = time.monotonic() + limit
        while self.done is None and time.monotonic() < until:
            self._asked = time.monotonic()
            self._news.clear()
            await _wait(self._news, min(_POLL, limit))
        return self.done

    # ---------------------------------------------------------------------------------------- ending

    def end(self, reason: str) -> None:
        """Let the work end at its next exchange or report."""
        with self._answered:
            self._ended_by = reason
            self._answered.notify_all()
        self.mesh.fail(RanksError(reason))

    async def mind(self) -> None:
        """Wait until nobody needs the session any more, or nobody asks about it."""
        while self._ended_by is None or self._is_running():
            await asyncio.sleep(1)
            if self._ended_by is None and self._is_forgotten():
                self.end(f"the client has not been heard of for {PATIENCE:g} s")
        await self.mesh.close()

    def _is_forgotten(self) -> bool:
        """Other ranks than the first are not asked while they work; they end with it."""
        is_asked = self.plan.rank == 0 or not self._is_running()
        return is_asked and time.monotonic() - self._asked > PATIENCE

    def _is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()


class Sessions:
    """The sessions of a worker, by name; peers join them through the worker's own port."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._by_name: dict[str, Session] = {}
        self._minders: set[asyncio.Task[None]] = set()
        worker.handlers[_JOIN] = self.join

    @classmethod
    def of(cls, worker: Worker) -> Sessions:
        """Return those of a worker."""
        if _EXTENSION not in worker.extensions:
            worker.extensions[_EXTENSION] = cls(worker)
        return worker.extensions[_EXTENSION]  # type: ignore[no-any-return]

    def __getitem__(self, name: str) -> Session:
        if name not in self._by_name:
            raise RanksError(
                f"worker {self._worker.address} knows no session {name!r}: it has ended"
            )
        return self._by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def open(self, plan: SessionPlan) -> None:
        """Begin to know a session."""
        session = self._by_name[plan.name] = Session(plan, self._worker)
        task = asyncio.ensure_future(self._mind(session))
        self._minders.add(task)
        task.add_done_callback(self._minders.discard)

    async def _mind(self, session: Session) -> None:
        try:
            await session.mind()
        finally:
            self._by_name.pop(session.plan.name, None)

    async def join(self, comm: Comm, session: str, rank: int) -> Status:
        """Hand a connection over to the session that a peer wants to join, as long as it lasts."""
        if session not in self._by_name:
            comm.abort()
        else:
            joined = self._by_name[session]
            joined.mesh.add(Connection(comm, rank, joined.plan.addresses[rank]))
            await joined.mesh.ended()
        return Status.dont_reply


async def _wait(event: asyncio.Event, limit: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), limit)
