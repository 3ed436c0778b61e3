"""What a client calls on workers, beside Dask's tasks, and how: with a limit of time for each worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from distributed import Client, Scheduler, Worker

from abcgbm.distributed.session import Done, News, SessionPlan, Sessions

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


async def ask_session(name: str, n_answered: int, asks_to_stop: bool, dask_worker: Worker) -> News:
    """Wait for news of a rank, and answer the last."""
    return await Sessions.of(dask_worker)[name].ask(n_answered, asks_to_stop)


async def touch_session(name: str, dask_worker: Worker) -> None:
    """Say that the client is there, whatever keeps it from asking."""
    Sessions.of(dask_worker)[name].touch()


async def collect_session(
    name: str, limit: float, view: Callable[[Done], Any], dask_worker: Worker
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
