"""All-to-all exchange over connections between Dask workers, with heartbeats."""

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

# Bytes of a message. Longer parts are sent in chunks: each chunk shows the receiver that a peer with a
# slow connection is alive.
CHUNK_BYTES = 4 << 20
_HEADER, _LAST, _PART, _FAILURE = "header", "last", "part", "failure"


class Connection:
    """Connection with another rank.

    Parameters
    ----------
    comm : Comm
        Connection of Dask, owned by this object from now on.
    rank : int
        Number of the other rank.
    name : str
        Name of the other rank in error messages.
    """

    def __init__(self, comm: Comm, rank: int, name: str) -> None:
        comm.deserialize = comm.allow_offload = False
        self.rank, self.name = rank, name
        self.last_received = time.monotonic()
        self._comm = comm
        self._stream = getattr(comm, "stream", None)
        self._writing = asyncio.Lock()

    # ---------------------------------------------------------------------------------------- sending

    async def send(self, header: Header, part: Buffer) -> None:
        """Send a part, whose bytes must not change before `flush` returns."""
        view = memoryview(part).cast("B")
        for begin in range(0, max(len(view), 1), CHUNK_BYTES):
            chunk = view[begin : begin + CHUNK_BYTES]
            await self.send_message(
                {
                    _HEADER: tuple(header),
                    _LAST: begin + CHUNK_BYTES >= len(view),
                    _PART: Serialized({}, [chunk if self._stream is not None else bytes(chunk)]),
                }
            )

    async def flush(self) -> None:
        """Wait until the operating system has all bytes."""
        if self._stream is not None and self._stream.writing():
            try:
                await self._stream.write(b"")
            except StreamClosedError as error:
                raise OSError(f"the connection was closed: {error}") from error

    async def send_message(self, message: dict[str, Any]) -> None:
        """Send a message."""
        async with self._writing:
            await self._comm.write(message)

    async def send_heartbeat(self) -> None:
        """Send an empty message, unless other bytes are being sent."""
        if self._stream is None or not self._stream.writing():
            await self.send_message({})

    # -------------------------------------------------------------------------------------- receiving

    async def read(self) -> dict[str, Any]:
        """Return the next message that is not a heartbeat, with the chunks of a part joined."""
        chunks: list[Any] = []
        while True:
            message: dict[str, Any] = await self._comm.read()
            self.last_received = time.monotonic()
            if _PART not in message:
                if message:
                    return message
                continue
            chunks += message[_PART].frames
            if message[_LAST]:
                return {_HEADER: message[_HEADER], _PART: _join(chunks)}

    # ----------------------------------------------------------------------------------------- ending

    async def close(self, timeout: float) -> None:
        """Close the connection once all is sent; abort it after a timeout."""
        try:
            await asyncio.wait_for(self._comm.close(), timeout)
        except (TimeoutError, OSError):
            self._comm.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        self._comm.abort()


def _join(chunks: list[Any]) -> Any:
    if len(chunks) == 1:
        return chunks[0]
    if not chunks:
        return b""
    return np.concatenate([np.frombuffer(chunk, dtype=np.uint8) for chunk in chunks]).data


HEARTBEAT_INTERVAL = 1.0  # seconds
_CLOSE_TIMEOUT = 2.0  # seconds to send the last message and to close a connection


class Mesh:
    """Connections of one rank with all others. All methods are called on the event loop.

    Parameters
    ----------
    rank : int
        Number of this rank.
    names : sequence of str
        Names of all ranks in error messages.
    heartbeat_timeout : float
        Seconds without a message after which a peer is considered lost.
    """

    def __init__(self, rank: int, names: Sequence[str], heartbeat_timeout: float) -> None:
        self.rank, self.names = rank, names
        self.error: RanksError | None = None
        self.is_closed = False
        self._heartbeat_timeout = heartbeat_timeout
        self._connections: dict[int, Connection] = {}
        self._inboxes: dict[int, asyncio.Queue[dict[str, Any] | None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._has_ended = asyncio.Event()
        self._is_connected = asyncio.Event()
        if len(names) == 1:
            self._is_connected.set()

    @property
    def n_ranks(self) -> int:
        """Number of ranks."""
        return len(self.names)

    def describe(self, rank: int) -> str:
        """Return the name of a rank for error messages."""
        return f"worker {self.names[rank]} (rank {rank})"

    # ------------------------------------------------------------------------------------- connecting

    def add(self, connection: Connection) -> None:
        """Add a connection with a peer."""
        if self.is_closed or connection.rank in self._connections:
            connection.abort()
            return
        self._connections[connection.rank] = connection
        self._inboxes[connection.rank] = asyncio.Queue()
        if not self._tasks:
            self._start_task(self._exchange_heartbeats(), self._tasks)
        self._start_task(self._receive_messages(connection), self._tasks)
        if len(self._connections) == self.n_ranks - 1:
            self._is_connected.set()

    async def wait_connected(self, timeout: float) -> None:
        """Wait until there is a connection with each peer."""
        try:
            await asyncio.wait_for(self._is_connected.wait(), timeout)
        except TimeoutError:
            missing = set(range(self.n_ranks)) - {self.rank, *self._connections}
            names = ", ".join(self.describe(rank) for rank in sorted(missing))
            raise RankLostError(
                f"no connection of {self.describe(self.rank)} with {names} within {timeout:g} s",
                min(missing),
            ) from None
        self._check()

    def _start_task(self, work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
        # The event loop keeps weak references only.
        task = asyncio.ensure_future(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    # ------------------------------------------------------------------------------------- exchanging

    async def alltoall(self, header: Header, parts: Sequence[Buffer]) -> list[Buffer]:
        """Send one part to each rank; return the parts sent to this rank, by rank."""
        self._check()
        # Each rank begins with the next one, so that not all send to the same rank at once.
        peers = [
            self._connections[rank % self.n_ranks]
            for rank in range(self.rank + 1, self.rank + self.n_ranks)
        ]
        try:
            return await self._exchange(peers, header, parts)
        except BaseException:
            await self._stop_sending(peers)
            raise

    async def _exchange(
        self, peers: Sequence[Connection], header: Header, parts: Sequence[Buffer]
    ) -> list[Buffer]:
        for peer in peers:
            with self._lost_on_error(peer):
                await peer.send(header, parts[peer.rank])
        received = list(parts)
        for peer in peers:
            received[peer.rank] = await self._receive(header, peer.rank)
        for peer in peers:
            with self._lost_on_error(peer):
                await peer.flush()
        return received

    async def _stop_sending(self, peers: Sequence[Connection]) -> None:
        # The caller frees the memory of the parts, so no connection may read it any more.
        for peer in peers:
            try:
                await asyncio.wait_for(peer.flush(), _CLOSE_TIMEOUT)
            except (OSError, TimeoutError):
                peer.abort()

    async def _receive(self, header: Header, rank: int) -> Buffer:
        inbox = self._inboxes[rank]
        if inbox.empty():
            self._check()
        message = await inbox.get()
        if message is None:
            self._check()
            raise RanksError(f"the session of {self.describe(self.rank)} was closed")
        try:
            header.check(message[_HEADER], rank)
        except RanksError as error:
            self.fail(error)
            raise
        return message[_PART]  # type: ignore[no-any-return]

    @contextmanager
    def _lost_on_error(self, peer: Connection) -> Iterator[None]:
        """Consider a peer lost if its connection fails."""
        try:
            yield
        except OSError as error:
            self._lose(peer, f"was lost: {error}")
            self._check()

    def _check(self) -> None:
        if self.error is not None:
            raise _copy(self.error)
        if self.is_closed:
            raise RanksError(f"the session of {self.describe(self.rank)} was closed")

    # ------------------------------------------------------------------------------------- monitoring

    async def _receive_messages(self, peer: Connection) -> None:
        with suppress(RanksError), self._lost_on_error(peer):
            while True:
                message = await peer.read()
                if _PART in message:
                    self._inboxes[peer.rank].put_nowait(message)
                else:
                    # The peer names the rank that was lost, if that is why it failed.
                    lost, reason = message[_FAILURE]
                    self.fail(RanksError(reason) if lost is None else RankLostError(reason, lost))

    def _lose(self, peer: Connection, how: str) -> None:
        self.fail(RankLostError(f"{self.describe(peer.rank)} {how}", peer.rank))

    async def _exchange_heartbeats(self) -> None:
        before = time.monotonic()
        while not self.is_closed:
            await asyncio.sleep(HEARTBEAT_INTERVAL)
            now = time.monotonic()
            # If this event loop was blocked, messages of its peers are received, but not yet read.
            blocked, before = now - before - HEARTBEAT_INTERVAL, now
            for peer in list(self._connections.values()):
                peer.last_received += blocked
                if now - peer.last_received > self._heartbeat_timeout:
                    self._lose(peer, f"has been silent for {self._heartbeat_timeout:g} s")
                    return
                with suppress(RanksError), self._lost_on_error(peer):
                    await peer.send_heartbeat()

    # ---------------------------------------------------------------------------------------- ending

    def fail(self, error: RanksError) -> None:
        """End the session of this rank, and send the reason to all others."""
        if self.is_closed:
            return
        self.error = error
        lost = error.rank if isinstance(error, RankLostError) else None
        self._end({_FAILURE: (lost, str(error))}, lost)

    async def close(self) -> None:
        """Close all connections once all is sent."""
        if not self.is_closed:
            self._end(None, None)
        await self._wait_for_closing()
        for task in self._tasks:
            task.cancel()

    def _end(self, last_message: dict[str, Any] | None, lost: int | None) -> None:
        self.is_closed = True
        self._is_connected.set()
        self._has_ended.set()
        for inbox in self._inboxes.values():
            inbox.put_nowait(None)
        for peer in self._connections.values():
            if peer.rank == lost:
                peer.abort()
            else:
                self._start_task(_close(peer, last_message), self._closing)

    async def wait_closed(self) -> None:
        """Wait until all connections are closed."""
        await self._has_ended.wait()
        await self._wait_for_closing()

    async def _wait_for_closing(self) -> None:
        while self._closing:
            await asyncio.wait(self._closing)

    def communicator(self) -> MeshCommunicator:
        """Return the communicator of this rank, for the thread that trains."""
        return MeshCommunicator(self, asyncio.get_running_loop())


class MeshCommunicator(Communicator):
    """Communicator of a rank on a Dask worker.

    Its thread waits while the event loop of the worker sends and receives.

    Parameters
    ----------
    mesh : Mesh
        Connections of the rank.
    loop : AbstractEventLoop
        Event loop of the connections.
    """

    def __init__(self, mesh: Mesh, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.rank, self.n_ranks = mesh.rank, mesh.n_ranks
        self._mesh, self._loop = mesh, loop

    def _alltoall(self, header: Header, parts: Sequence[Buffer]) -> list[Buffer]:
        if self._loop.is_closed():
            raise RanksError("the worker of this rank was closed")
        exchange = self._mesh.alltoall(header, parts)
        return asyncio.run_coroutine_threadsafe(exchange, self._loop).result()


async def _close(peer: Connection, last_message: dict[str, Any] | None) -> None:
    try:
        if last_message is not None:
            await asyncio.wait_for(peer.send_message(last_message), _CLOSE_TIMEOUT)
    except (OSError, TimeoutError):
        peer.abort()
    else:
        await peer.close(_CLOSE_TIMEOUT)


def _copy(error: RanksError) -> RanksError:
    """Return a new error to raise: an error that is raised twice collects tracebacks."""
    if isinstance(error, RankLostError):
        return RankLostError(str(error), error.rank)
    return RanksError(str(error))
