"""Warnings of one thread of a worker, captured for the client."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class CapturedWarning(NamedTuple):
    """A warning that can be sent."""

    text: str
    category: type[Warning]


_captured: dict[int, list[CapturedWarning]] = {}  # by thread
_lock = threading.Lock()


@contextmanager
def capture_warnings() -> Iterator[list[CapturedWarning]]:
    """Capture the warnings of this thread, and show those of other threads as before."""
    # warnings.catch_warnings() would catch those of all threads.
    thread, captured = threading.get_ident(), list[CapturedWarning]()
    with _lock:
        if not getattr(warnings.showwarning, "is_capturing", False):
            warnings.showwarning = _capturing(warnings.showwarning)
        _captured[thread] = captured
    try:
        yield captured
    finally:
        del _captured[thread]


def _capturing(show_others: Any) -> Any:
    """Return a replacement of ``warnings.showwarning``."""

    def show(message: Warning, category: type[Warning], *where: Any, **named: Any) -> None:
        captured = _captured.get(threading.get_ident())
        if captured is None:
            show_others(message, category, *where, **named)
        else:
            # Categories of other packages may be unknown to the client.
            is_known = category.__module__ == "builtins"
            captured.append(CapturedWarning(str(message), category if is_known else UserWarning))

    show.is_capturing = True  # type: ignore[attr-defined]
    return show
