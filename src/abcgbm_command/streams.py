"""Standard output and error when they are closed or cannot be written to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


def say(text: str) -> None:
    """Write a line to standard error; ignore a failure to do so."""
    with suppress(OSError, ValueError, AttributeError):  # full disk or broken pipe, closed, None
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def replace_closed_streams() -> None:
    """Open standard output and error if they are closed.

    Otherwise the next opened file gets their descriptor, and Python prints to standard output if
    standard error is None. A closed standard output becomes a pipe without a reader, so the first
    text ends the command; a closed standard error becomes the null device.
    """
    if _is_closed(sys.stdout):
        reads, writes = os.pipe()
        os.close(reads)
        sys.stdout = _opened(writes, 1)
    if _is_closed(sys.stderr):
        sys.stderr = _opened(os.open(os.devnull, os.O_WRONLY), 2)


@contextmanager
def open_streams() -> Iterator[None]:
    """Replace closed streams while a command runs."""
    before = sys.stdout, sys.stderr
    replace_closed_streams()
    try:
        yield
    finally:
        opened = {sys.stdout, sys.stderr} - {*before}
        sys.stdout, sys.stderr = before
        for stream in opened:
            with suppress(OSError):  # a pipe without a reader
                stream.close()


def _is_closed(stream: Any) -> bool:
    return stream is None or getattr(stream, "closed", False)


def _opened(descriptor: int, usual: int) -> Any:
    """Open a descriptor for text, moved to its usual number if that is free."""
    try:
        os.fstat(usual)
    except OSError:
        os.dup2(descriptor, usual)
        os.close(descriptor)
        descriptor = usual
    keeps_open = descriptor == usual
    return open(
        descriptor, "w", encoding="utf-8", errors="backslashreplace", closefd=not keeps_open
    )
