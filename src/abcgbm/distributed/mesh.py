"""All-to-all exchange over connections, with heartbeats."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from distributed.comm import Comm
from distributed.protocol import Serialized
from tornado.iostream import StreamClosedError

from abcgbm.communication.communicator import (
    Buffer,
    Communicator,
    Header,
    RankLostError,
    RanksError,
)

# Bytes of a message. Longer parts are sent in pieces, so that a peer whose bytes take their time is
# heard of nevertheless.
PIECE = 4 << 20
_HEADER, _LAST, _PART = "header", "last", "part"


class Connection:
    """What connects this rank with another.

    Parameters
    ----------
    comm : Comm
        Belongs to the link from now on.
    rank : int
        The number of the other rank.
    name : str
        What errors call it.
    """

    def __init__(self, comm: Comm, rank: int, name: str) -> None:
        comm.deserialize = comm.allow_offload = False
        self.rank, self.name = rank, name
        self.heard = time.monotonic()
        self._comm = comm
        self._stream = getattr(comm, "stream", None)
        self._writing = asyncio.Lock()

    # ---------------------------------------------------------------------------------------- sending

    async def send(self, header: Header, part: Buffer) -> None:
        """Send a part; its bytes must stay as they are until it is flushed."""
        view = memoryview(part).cast("B")
        for begin in range(0, max(len(view), 1), PIECE):
            piece = view[begin : begin + PIECE]
            await self._write(
                {
                    _HEADER: tuple(header),
                    _LAST: begin + PIECE >= len(view),
                    _PART: Serialized({}, [piece if self._stream is not None else bytes(piece)]),
                }
            )

    async def flush(self) -> None:
        """Wait until all bytes are with the system."""
        if self._stream is not None and self._stream.writing():
            try:
                await self._stream.write(b"")
            except StreamClosedError as error:
                raise OSError(f"the connection was closed: {error}") from error

    async def tell(self, news: dict[str, Any]) -> None:
        """Send a message without a part."""
        await self._write(news)

    async def beat(self) -> None:
        """Let the other rank know that this one lives, if nothing else is under way to it."""
        if self._stream is None or not self._stream.writing():
            await self._write({})

    async def _write(self, message: dict[str, Any]) -> None:
        async with self._writing:
            await self._comm.write(message)

    # -------------------------------------------------------------------------------------- receiving

    async def read(self) -> dict[str, Any]:
        """Return the next message that is no sign of life alone, the pieces of a part as one."""
        pieces: list[Any] = []
        while True:
            message: dict[str, Any] = await self._comm.read()
            self.heard = time.monotonic()
            if _PART not in message:
                if message:
                    return message
                continue
            pieces += message[_PART].frames
            if message[_LAST]:
                return {_HEADER: message[_HEADER], _PART: _joined(pieces)}

    # ----------------------------------------------------------------------------------------- ending

    async def close(self, limit: float) -> None:
        """Close the connection once all is sent, or after so many seconds in any case."""
        try:
            await asyncio.wait_for(self._comm.close(), limit)
        except (TimeoutError, OSError):
            self._comm.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        self._comm.abort()


def header_and_part(message: dict[str, Any]) -> tuple[Any, Any]:
    """Take a message of an exchange apart."""
    return message[_HEADER], message[_PART]


def is_exchange(message: dict[str, Any]) -> bool:
    """Tell whether a message belongs to an exchange."""
    return _PART in message


def _joined(pieces: list[Any]) -> Any:
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return b""
    return np.concatenate([np.frombuffer(piece, dtype=np.uint8) for piece in pieces]).data


BEAT = 1.0  # seconds between two signs of life
_GOODBYE = 2.0  # seconds in which a last word must be sent
_LEFT = "left"


class Mesh:
    """A rank among its peers. All methods but `reducer` are called on the event loop.

    Parameters
    ----------
    rank : int
        Number of this one.
    names : sequence of str
        What errors call the ranks, by number.
    heartbeat_timeout : float
        Seconds after which a silent peer is taken to be lost.
    """

    def __init__(self, rank: int, names: Sequence[str], heartbeat_timeout: float) -> None:
        self.rank, self.names = rank, names
        self.error: RanksError | None = None
        self.is_closed = False
        self._heartbeat_timeout = heartbeat_timeout
        self._links: dict[int, Connection] = {}
        self._inboxes: dict[int, asyncio.Queue[dict[str, Any] | None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._goodbyes: set[asyncio.Task[None]] = set()
        self._has_ended = asyncio.Event()
        self._is_whole = asyncio.Event()
        if len(names) == 1:
            self._is_whole.set()

    @property
    def n_ranks(self) -> int:
        """How many ranks there are."""
        return len(self.names)

    def describe(self, rank: int) -> str:
        """Name a rank."""
        return f"worker {self.names[rank]} (rank {rank})"

    # ------------------------------------------------------------------------------------- beginning

    def add(self, link: Connection) -> None:
        """Take a connection with a peer."""
        if self.is_closed or link.rank in self._links:
            link.abort()
            return
        self._links[link.rank] = link
        self._inboxes[link.rank] = asyncio.Queue()
        if not self._tasks:
            self._do(self._watch(), self._tasks)
        self._do(self._listen(link), self._tasks)
        if len(self._links) == self.n_ranks - 1:
            self._is_whole.set()

    async def whole(self, limit: float) -> None:
        """Wait until there is a connection with each peer."""
        try:
            await asyncio.wait_for(self._is_whole.wait(), limit)
        except TimeoutError:
            missing = set(range(self.n_ranks)) - {self.rank, *self._links}
            names = ", ".join(self.describe(rank) for rank in sorted(missing))
            raise RankLostError(
                f"no connection of {self.describe(self.rank)} with {names} within {limit:g} s",
                min(missing),
            ) from None
        self._check()

    def _do(self, work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
        task = asyncio.ensure_future(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    # ------------------------------------------------------------------------------------- exchanges

    async def swap(self, header: Header, parts: Sequence[Buffer]) -> list[Buffer]:
        """Send a part to each rank, and return what each has sent to this one."""
        self._check()
        others = [self._links[rank % self.n_ranks] for rank in self._round()]
        try:
            return await self._swap_with(others, header, parts)
        except BaseException:
            await self._let_go(others)
            raise

    async def _swap_with(
        self, others: Sequence[Connection], header: Header, parts: Sequence[Buffer]
    ) -> list[Buffer]:
        for link in others:
            with self._minding(link):
                await link.send(header, parts[link.rank])
        received = list(parts)
        for link in others:
            received[link.rank] = await self._receive(header, link.rank)
        for link in others:
            with self._minding(link):
                await link.flush()
        return received

    async def _let_go(self, links: Sequence[Connection]) -> None:
        """See to it that nobody reads the parts any more: their memory is about to be freed."""
        for link in links:
            try:
                await asyncio.wait_for(link.flush(), _GOODBYE)
            except (OSError, TimeoutError):
                link.abort()

    def _round(self) -> range:
        """The others, each rank beginning with the one after it."""
        return range(self.rank + 1, self.rank + self.n_ranks)

    async def _receive(self, header: Header, rank: int) -> Buffer:
        inbox = self._inboxes[rank]
        if inbox.empty():
            self._check()
        message = await inbox.get()
        if message is None:
            self._check()
            raise RanksError(f"the session of {self.describe(self.rank)} was closed")
        sent, part = header_and_part(message)
        try:
            header.check(sent, rank)
        except RanksError as error:
            self.fail(error)
            raise
        return part  # type: ignore[no-any-return]

    @contextmanager
    def _minding(self, link: Connection) -> Iterator[None]:
        """Make of a connection that is closed a peer that is lost."""
        try:
            yield
        except OSError as error:
            self._lose(link, f"was lost: {error}")
            self._check()

    def _check(self) -> None:
        if self.error is not None:
            raise _copy(self.error)
        if self.is_closed:
            raise RanksError(f"the session of {self.describe(self.rank)} was closed")

    # -------------------------------------------------------------------------------------- watching

    async def _listen(self, link: Connection) -> None:
        with suppress(RanksError), self._minding(link):
            while True:
                message = await link.read()
                if is_exchange(message):
                    self._inboxes[link.rank].put_nowait(message)
                else:
                    self._hear(message)

    def _hear(self, message: dict[str, Any]) -> None:
        """Take note of why a peer has left, and whose fault it was."""
        rank, reason = message[_LEFT]
        if rank is None:
            self.fail(RanksError(reason))
        else:
            self.fail(RankLostError(reason, rank))

    def _lose(self, link: Connection, how: str) -> None:
        self.fail(RankLostError(f"{self.describe(link.rank)} {how}", link.rank))

    async def _watch(self) -> None:
        """Give signs of life, and look for those of others."""
        before = time.monotonic()
        while not self.is_closed:
            await asyncio.sleep(BEAT)
            now = time.monotonic()
            away, before = now - before - BEAT, now
            for link in list(self._links.values()):
                link.heard += away  # what came while this rank itself was held up is not yet read
                if now - link.heard > self._heartbeat_timeout:
                    self._lose(link, f"has been silent for {self._heartbeat_timeout:g} s")
                    return
                with suppress(RanksError), self._minding(link):
                    await link.beat()

    # ---------------------------------------------------------------------------------------- ending

    def fail(self, error: RanksError) -> None:
        """End the session of this rank, and tell the others why."""
        if self.is_closed:
            return
        self.error = error
        lost = error.rank if isinstance(error, RankLostError) else None
        self._end({_LEFT: (lost, str(error))}, lost)

    async def close(self) -> None:
        """Close all connections, once what was sent is under way."""
        if not self.is_closed:
            self._end(None, None)
        await self._goodbyes_said()
        for task in self._tasks:
            task.cancel()

    def _end(self, last_word: dict[str, Any] | None, lost: int | None) -> None:
        self.is_closed = True
        self._is_whole.set()
        self._has_ended.set()
        for inbox in self._inboxes.values():
            inbox.put_nowait(None)
        for link in self._links.values():
            if link.rank == lost:
                link.abort()
            else:
                self._do(_leave(link, last_word), self._goodbyes)

    async def ended(self) -> None:
        """Wait until all connections are closed."""
        await self._has_ended.wait()
        await self._goodbyes_said()

    async def _goodbyes_said(self) -> None:
        while self._goodbyes:
            await asyncio.wait(self._goodbyes)

    def communicator(self) -> MeshCommunicator:
        """Return the reducer of this rank, for the thread that trains."""
        return MeshCommunicator(self, asyncio.get_running_loop())


class MeshCommunicator(Communicator):
    """A rank on a Dask worker: its thread waits while the worker's event loop sends and receives.

    Parameters
    ----------
    mesh : Mesh
        The connections.
    loop : AbstractEventLoop
        The loop that they live on.
    """

    def __init__(self, mesh: Mesh, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.rank, self.n_ranks = mesh.rank, mesh.n_ranks
        self._mesh, self._loop = mesh, loop

    def swap(self, header: Header, parts: Sequence[Buffer]) -> list[Buffer]:
        """Exchange parts by the event loop."""
        if self._loop.is_closed():
            raise RanksError("the worker of this rank was closed")
        return asyncio.run_coroutine_threadsafe(self._mesh.swap(header, parts), self._loop).result()


async def _leave(link: Connection, last_word: dict[str, Any] | None) -> None:
    try:
        if last_word is not None:
            await asyncio.wait_for(link.tell(last_word), _GOODBYE)
    except (OSError, TimeoutError):
        link.abort()
    else:
        await link.close(_GOODBYE)


def _copy(error: RanksError) -> RanksError:
    """Return an error to raise: one that is raised anew gathers traces."""
    if isinstance(error, RankLostError):
        return RankLostError(str(error), error.rank)
    return RanksError(str(error))
