"""A connection of two ranks: one of `distributed`'s comms, on the event loop of a worker."""

import asyncio
import time
from typing import Any

import numpy as np
from distributed.comm import Comm
from distributed.protocol import Serialized
from tornado.iostream import StreamClosedError

from abcgbm.ranks.reducer import Buffer, Header

# Bytes of a message. Longer parts are sent in pieces, so that a peer whose bytes take their time is
# heard of nevertheless.
PIECE = 4 << 20
_HEADER, _LAST, _PART = "header", "last", "part"


class Link:
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
