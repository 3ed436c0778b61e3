"""Run cells in child processes, a few at a time, and yield each as it finishes."""

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from experiments.cells import Cell
from experiments.curves import Curves
from experiments.measure import measure
from experiments.store import Line

# New processes instead of forks: they import the current code, and have no threads.
CONTEXT = get_context("spawn")

Finished = tuple[Line, Curves]
Running = dict[Connection, tuple[Cell, BaseProcess]]


def run(cells: Iterable[Cell], n_processes: int, interval: float) -> Iterator[Finished]:
    """Run cells with periodic progress reports; yield each when it is finished.

    A cell that fails is reported and left out. The processes end with this one.
    """
    waiting, running = deque(cells), Running()
    try:
        while waiting or running:
            while waiting and len(running) < n_processes:
                running |= _start(waiting.popleft(), interval)
            for pipe in connection.wait(list(running)):
                finished = _take(*running.pop(pipe), pipe)
                if finished is not None:
                    yield finished
    finally:
        for _, process in running.values():
            process.kill()
            process.join()


def _start(cell: Cell, interval: float) -> Running:
    ours, theirs = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_work, args=(cell, theirs, interval, os.getpid()))
    with _deaf_to_interrupts():
        process.start()
    theirs.close()  # so that the pipe ends with the process
    return {ours: (cell, process)}


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Make processes started here ignore Ctrl-C, which the parent handles."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _take(cell: Cell, process: BaseProcess, pipe: Connection) -> Finished | None:
    """Return the message of a process; print and return None if it ended without one."""
    finished: Finished | None = None
    with pipe, suppress(EOFError, OSError):
        finished = pipe.recv()
    process.join()
    words = f"failed, its process ended with code {process.exitcode}"
    say(f"{cell}: {in_words(finished[0]) if finished else words}")
    return finished


def _work(cell: Cell, pipe: Connection, interval: float, parent: int) -> None:
    """Run a cell in this process."""
    pipe.send(measure(cell, Progress(cell, interval, parent)))


class Progress:
    """Report progress periodically, and stop the fit when the parent process has ended."""

    def __init__(self, cell: Cell, interval: float, parent: int) -> None:
        self._cell = cell
        self._interval = interval
        self._parent = parent
        self._told = time.monotonic()

    def __call__(self, state: str) -> None:
        """Receive the report of an iteration."""
        if os.getppid() != self._parent:
            raise SystemExit("the process that started this one is gone")
        if time.monotonic() - self._told >= self._interval:
            self._told = time.monotonic()
            say(f"{self._cell}: {state}")


def in_words(line: Line) -> str:
    """Return a line of results as a sentence."""
    validated = line["validated_errors"]
    chosen = "" if validated is None else f", {validated} at step {line['validated_step']} (chosen)"
    return (
        f"{line['lowest_errors']} errors at step {line['lowest_step']} (lowest), "
        f"{line['final_errors']} at step {line['stop_step']} (last: {line['stop_reason']}){chosen}; "
        f"the fit took {line['seconds']:.0f} s"
    )


def say(text: str) -> None:
    """Print a line with the time of day."""
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)
