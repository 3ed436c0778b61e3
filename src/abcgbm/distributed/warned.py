"""Warnings of one thread, kept for a client: a worker does other things in other threads."""

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


_kept: dict[int, list[CapturedWarning]] = {}  # by thread
_lock = threading.Lock()


@contextmanager
def warnings_kept() -> Iterator[list[CapturedWarning]]:
    """Keep the warnings of this thread, and show those of all others as before."""
    thread, kept = threading.get_ident(), list[CapturedWarning]()
    with _lock:
        if not getattr(warnings.showwarning, "keeps_for_client", False):
            warnings.showwarning = _keeping(warnings.showwarning)
        _kept[thread] = kept
    try:
        yield kept
    finally:
        del _kept[thread]


def _keeping(show_others: Any) -> Any:
    """Return what stays in the place of ``warnings.showwarning``."""

    def show(message: Warning, category: type[Warning], *where: Any, **named: Any) -> None:
        kept = _kept.get(threading.get_ident())
        if kept is None:
            show_others(message, category, *where, **named)
        else:
            is_known = category.__module__ == "builtins"
            kept.append(CapturedWarning(str(message), category if is_known else UserWarning))

    show.keeps_for_client = True  # type: ignore[attr-defined]
    return show
