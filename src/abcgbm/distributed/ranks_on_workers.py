"""A session on the workers of a cluster, as its client sees it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from distributed import Client

from abcgbm.distributed.calls import (
    ask_session,
    begin_session,
    call_on,
    collect_session,
    connect_session,
    end_session,
    open_session,
    silent_workers,
    touch_session,
)
from abcgbm.distributed.session import PATIENCE, Done, News, SessionPlan
from abcgbm.ranks.reducer import RankLostError, RanksError

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


class RanksOnWorkers:
    """The ranks of a session: one for each of some workers.

    Parameters
    ----------
    client : Client
        Of the cluster.
    addresses : sequence of str
        The workers.
    stall : float
        Seconds after which a silent rank is taken to be lost.
    waits : bool
        Whether each report waits for an answer.
    """

    def __init__(
        self, client: Client, addresses: Sequence[str], stall: float, *, waits: bool = False
    ) -> None:
        self.client, self.addresses = client, tuple(addresses)
        self.name = uuid.uuid4().hex[:12]
        self.silent: set[str] = set()  # workers that have not answered when they were looked for
        self._stall, self._waits = stall, waits
        self._answer, self._start = max(ANSWER, stall + _WAITED), max(START, stall)

    def start(self, works: Sequence[Callable[..., Done]]) -> None:
        """Let all ranks begin their work, or none: then all are ended and the reason is raised."""
        plans = [
            SessionPlan(self.name, rank, self.addresses, self._stall, self._waits)
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

    def ask(self, n_answered: int, *, asks_to_stop: bool) -> News:
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
        self.silent = {*silent_workers(self.client, known, self._stall)}
        there = known - self.silent
        return [rank for rank, address in enumerate(self.addresses) if address in there]

    def collect(self, view: Callable[[Done], Any], ranks: Sequence[int], limit: float) -> Answers:
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
