"""Ctrl-C where several ranks train: it waits for the end of a step, so that all stop at the same one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Self, TypeVar

from abcgbm.ranks.reducer import Reducer
from abcgbm.ranks.together import on_first

T = TypeVar("T")


class Interrupts:
    """Keeps the first Ctrl-C until it is asked for; a second one interrupts at once.

    Where a rank is alone, or in another thread than the main one, nothing is kept.

    Parameters
    ----------
    reducer : Reducer
        The rank.
    """

    def __init__(self, reducer: Reducer) -> None:
        in_main_thread = threading.current_thread() is threading.main_thread()
        self._keeps = (
            reducer.n_ranks > 1
            and in_main_thread
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        self._was_asked = False

    def __enter__(self) -> Self:
        if self._keeps:
            signal.signal(signal.SIGINT, self._keep)
        return self

    def __exit__(self, *_: object) -> None:
        if self._keeps:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def raise_if_asked(self) -> None:
        """Raise KeyboardInterrupt if there was a Ctrl-C."""
        if self._was_asked:
            self._was_asked = False
            raise KeyboardInterrupt

    def _keep(self, number: int, frame: FrameType | None) -> None:
        if self._was_asked:
            signal.default_int_handler(number, frame)
        self._was_asked = True


def uninterrupted(reducer: Reducer, work: Callable[[], T]) -> T:
    """Do some work of all ranks; a Ctrl-C waits for its end, and is one of all then."""
    with Interrupts(reducer) as interrupts:
        done = work()
        on_first(reducer, interrupts.raise_if_asked)
    return done
