"""Ranks as threads of one process, for tests without an engine."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from abcgbm.communication.communicator import (
    Buffer,
    Communicator,
    Header,
    RankLostError,
    RanksError,
)

WAIT = 60.0  # seconds, enough for a busy machine


class Meeting:
    """A barrier with the messages of ranks that are threads."""

    def __init__(self, n_ranks: int, wait: float = WAIT) -> None:
        self.n_ranks = n_ranks
        self.sent: list[Any] = [None] * n_ranks
        self._wait = wait
        self._changed = threading.Condition()
        self._n_waiting = self._n_meetings = 0
        self._gone: list[tuple[int, str]] = []  # ranks that left early, and why

    def leave(self, rank: int, reason: str) -> None:
        """Notify the other ranks that a rank is lost."""
        with self._changed:
            self._gone.append((rank, reason))
            self._changed.notify_all()

    def meet(self, rank: int) -> None:
        """Wait for all ranks; a rank that leaves after that raises no error."""
        with self._changed:
            number = self._n_meetings
            self._n_waiting += 1
            if self._n_waiting == self.n_ranks:
                self._n_waiting, self._n_meetings = 0, number + 1
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._n_meetings > number or self._gone, self._wait)
            if self._n_meetings == number:
                lost, reason = self._gone[0] if self._gone else (-1, "timeout")
                raise RankLostError(f"rank {lost} is gone: {reason}", lost)


class ThreadCommunicator(Communicator):
    """A rank that is a thread; it leaves at the exchange ``leaves_at``, as if it was killed."""

    def __init__(self, meeting: Meeting, rank: int, leaves_at: int | None = None) -> None:
        super().__init__()
        self.rank, self.n_ranks = rank, meeting.n_ranks
        self.n_exchanges = self.n_bytes = 0  # exchanges so far, and bytes sent to others
        self._meeting, self._leaves_at = meeting, leaves_at

    def _alltoall(self, header: Header, parts: Sequence[Buffer]) -> list[Buffer]:
        if header.number == self._leaves_at:
            raise RanksError(f"rank {self.rank} leaves at exchange {header.number} for the test")
        self.n_exchanges += 1
        self.n_bytes += sum(len(part) for to, part in enumerate(parts) if to != self.rank)
        self._meeting.sent[self.rank] = (header, parts)
        self._meeting.meet(self.rank)
        sent = list(self._meeting.sent)
        received = [bytes(others[self.rank]) for _, others in sent]
        self._meeting.meet(self.rank)  # all ranks have copied before one continues
        for rank, (other, _) in enumerate(sent):
            header.check(other, rank)
        received[self.rank] = parts[self.rank]
        return received


def outcomes(
    n_ranks: int,
    work: Callable[[ThreadCommunicator], Any],
    leaves: tuple[int, int] = (-1, -1),
    wait: float = WAIT,
) -> list[Any]:
    """Run work on each rank; return the result or the error of each rank.

    ``leaves`` is a rank and the number of the exchange at which it leaves.
    """
    meeting = Meeting(n_ranks, wait)

    def on(rank: int) -> Any:
        communicator = ThreadCommunicator(meeting, rank, leaves[1] if rank == leaves[0] else None)
        try:
            return work(communicator)
        except Exception as error:  # noqa: BLE001
            meeting.leave(rank, str(error))
            return error

    with ThreadPoolExecutor(n_ranks) as pool:
        return list(pool.map(on, range(n_ranks)))


def on_ranks(
    n_ranks: int, work: Callable[[ThreadCommunicator], Any], wait: float = WAIT
) -> list[Any]:
    """Run work on each rank; return the results, or raise the first error."""
    returned = outcomes(n_ranks, work, wait=wait)
    errors = [value for value in returned if isinstance(value, BaseException)]
    for error in errors:
        if not isinstance(error, RankLostError):
            raise error
    if errors:
        raise errors[0]
    return returned
