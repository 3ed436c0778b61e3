"""When checkpoints are written, and what happens if one cannot be."""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from abcgbm.training.checkpoint import Checkpoint

Save = Callable[[Checkpoint, Path], None]

_SECONDS = 60.0  # between two checkpoints, where no number of steps is given
_TIMES_ITS_COST = 20  # that much time lies between two of them at least: 5% of a fit at most


class CheckpointWriter:
    """Writes a file every so many steps, and when training ends for whatever reason.

    A file that cannot be written is no reason to lose the training: it is warned of, once, and the
    next one is tried all the same.

    Parameters
    ----------
    path : Path or None
        The file; None: nothing is written.
    every : int or None
        Steps from one checkpoint to the next; None: about a minute.
    save : callable
        Writes a checkpoint to a path, whole or not at all.
    clock : callable
        Gives the time, in seconds.
    """

    def __init__(
        self,
        path: Path | None,
        every: int | None,
        save: Save,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._every = every
        self._save = save
        self._clock = clock
        self._take: Callable[[], Checkpoint | None] = lambda: None
        self._n_steps = 0  # since the last attempt
        self._has_news = self._has_warned = False
        self._not_before = clock() + _SECONDS

    @contextmanager
    def watching(self, take: Callable[[], Checkpoint | None]) -> Iterator[Self]:
        """Watch a training; ``take`` gives its state after the last whole step, if there is one."""
        self._take = take
        try:
            yield self
        finally:
            if self._has_news:
                self._write()
            self._take = lambda: None  # a training is not kept longer than it lasts

    def end_step(self) -> None:
        """Hear that a step was made."""
        self._n_steps += 1
        self._has_news = self._path is not None
        if self._has_news and self._is_due():
            self._write()

    def _is_due(self) -> bool:
        if self._every is not None:
            return self._n_steps >= self._every
        return self._clock() >= self._not_before

    def _write(self) -> None:
        began = self._clock()
        self._n_steps = 0
        try:
            self._try_to_write()
        except (OSError, MemoryError, TypeError, ValueError) as error:
            self._warn(error)
        now = self._clock()
        self._not_before = now + max(_SECONDS, _TIMES_ITS_COST * (now - began))

    def _try_to_write(self) -> None:
        checkpoint = self._take()
        if checkpoint is not None and self._path is not None:
            self._save(checkpoint, self._path)
        self._has_news = False

    def _warn(self, error: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"checkpoint={str(self._path)!r} could not be written: {error!r}; training goes on, "
                "and tries again at the next checkpoint",
                UserWarning,
                stacklevel=2,
            )
