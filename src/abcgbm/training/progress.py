"""One live line that shows how far training is."""

import sys
import time
from types import TracebackType
from typing import Self

_EVERY = 0.1  # seconds between two drawings
_WIDTH = 30


class ProgressLine:
    """Draws on standard error: in a terminal as a line that changes, else only at the end.

    Parameters
    ----------
    n_steps : int or None
        Steps to come, at most; None: nobody knows, so there is no bar.
    enabled : bool
        Whether anything is shown.
    """

    def __init__(self, n_steps: int | None, *, enabled: bool) -> None:
        self._n_steps = n_steps
        self.enabled = enabled
        self._last_drawn = 0.0
        self._text = ""

    def __enter__(self) -> Self:
        self.show(0, float("nan"))
        return self

    def show(self, step: int, loss: float, validation_loss: float | None = None) -> None:
        """Take note of a finished step."""
        if not self.enabled:
            return
        self._text = self._count(step)
        if step > 0:
            self._text += f"  loss {loss:.6g}"
        if step > 0 and validation_loss is not None:
            self._text += f"  validation loss {validation_loss:.6g}"
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._last_drawn >= _EVERY:
            self._last_drawn = now
            self._write("\r\x1b[K" + self._text)

    def _count(self, step: int) -> str:
        if self._n_steps is None:
            return f"step {step}"
        filled = _WIDTH * step // self._n_steps
        return f"[{'#' * filled}{'-' * (_WIDTH - filled)}] step {step}/{self._n_steps}"

    def finish(self, reason: str) -> None:
        """Say why training stopped."""
        if self.enabled:
            self._text += f"  stopped: {reason}"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._text:
            self._write(("\r\x1b[K" if sys.stderr.isatty() else "") + self._text + "\n")

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
