"""Progress of reading and training on standard error: a live line, or log lines."""

import os
import shutil
import sys
import time
import unicodedata
import warnings
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from abcgbm.errors import format_bytes

_EVERY = 0.1  # seconds between two updates of the live line
_LOG_EVERY = 10.0  # seconds between two log lines
_MIN_TIMED = 1.0  # seconds; a speed measured over less varies too much
_WIDTH = 30  # characters of the bar


class ProgressOutput:
    """Standard error for the progress of one fit.

    A fit does not fail if its progress cannot be written: the first error causes a warning, after
    which nothing more is written.
    """

    def __init__(self) -> None:
        self._is_writable = True

    def is_terminal(self) -> bool:
        """Whether standard error is a terminal, where a line can be replaced."""
        try:
            return bool(sys.stderr.isatty())
        except Exception:  # noqa: BLE001 (a stream set by the user may raise anything)
            return False

    def write(self, text: str) -> None:
        """Write a text and flush, unless an earlier write failed."""
        if not self._is_writable:
            return
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except Exception as error:  # noqa: BLE001 (as above)
            self._is_writable = False
            self._warn("sys.stderr is None" if sys.stderr is None else repr(error))

    def _warn(self, reason: str) -> None:
        # Warning fails, too, if the stream is closed or warnings are errors.
        with suppress(Exception):
            warnings.warn(
                f"progress cannot be written to standard error: {reason}; the fit continues "
                "without it",
                UserWarning,
                stacklevel=3,
            )


class _Line:
    """A live line on standard error if that is a terminal, else log lines."""

    def __init__(self, verbose: int, output: ProgressOutput | None) -> None:
        self._verbose = verbose
        self._output = output or ProgressOutput()
        self._is_live = verbose == 1 and self._output.is_terminal()
        self._last_drawn = 0.0
        self._text = self._written = ""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._text and (self._is_live or self._text != self._written):
            self._write(self._text + ("\n" if self._is_live else ""))

    def _write(self, text: str) -> None:
        self._written = text
        self._output.write("\r\x1b[K" + text if self._is_live else text + "\n")


class ReadingLine(_Line):
    """Progress of reading a table out of core.

    In a terminal a live line, else a log line every ten seconds and at the end.

    Parameters
    ----------
    verbose : int
        0 shows nothing.
    n_columns : int
        Number of columns that are read.
    n_rows, n_bytes : int or None
        Total number of rows and bytes; None: unknown.
    output : ProgressOutput, optional
        Output shared with other lines.
    """

    def __init__(
        self,
        verbose: int,
        n_columns: int,
        n_rows: int | None,
        n_bytes: int | None,
        output: ProgressOutput | None = None,
    ) -> None:
        super().__init__(verbose, output)
        self._what = f"reading {n_columns} column{'' if n_columns == 1 else 's'}: "
        self._n_rows, self._n_bytes = n_rows, n_bytes
        self._last_drawn = 0.0 if self._is_live else time.monotonic()

    def __enter__(self) -> Callable[[int], None]:
        return self.show

    def show(self, n_read: int) -> None:
        """Show the number of rows read so far."""
        if not self._verbose:
            return
        self._text = f"{self._what}{n_read:,} rows"
        if self._n_rows:
            self._text = f"{self._what}{n_read:,} of {self._n_rows:,} rows"
            self._text += self._bytes_read(min(n_read / self._n_rows, 1.0))
        now = time.monotonic()
        if now - self._last_drawn >= (_EVERY if self._is_live else _LOG_EVERY):
            self._last_drawn = now
            self._write(_clipped(self._text, _n_columns()) if self._is_live else self._text)

    def _bytes_read(self, fraction: float) -> str:
        """Estimate the bytes of a fraction of the rows."""
        if not self._n_bytes:
            return ""
        return f", {format_bytes(round(fraction * self._n_bytes))} of {format_bytes(self._n_bytes)}"


class ProgressLine(_Line):
    """Progress of training.

    Parameters
    ----------
    n_iter : int or None
        Maximum number of iterations; None: no limit, so there is no bar.
    verbose : int
        0 shows nothing. 1 shows a live line in a terminal, else a log line after the first iteration,
        every ten seconds and at the end. A larger number n shows a log line every n iterations.
    output : ProgressOutput, optional
        Output shared with other lines.
    """

    def __init__(
        self, n_iter: int | None, verbose: int, output: ProgressOutput | None = None
    ) -> None:
        super().__init__(verbose, output)
        self._n_iter = n_iter
        self._bar = ""
        self._start: tuple[int, float] | None = None  # the first iteration shown, and when

    @property
    def enabled(self) -> bool:
        """Whether anything is shown."""
        return self._verbose > 0

    def __enter__(self) -> Self:
        self.show(0, float("nan"))
        return self

    def show(
        self,
        n_iter: int,
        loss: float,
        validation_loss: float | None = None,
        phase: str = "train",
        base_class: Any = None,
    ) -> None:
        """Show a finished iteration; losses are means."""
        if not self.enabled:
            return
        now = time.monotonic()
        self._text = ("" if phase == "train" else f"{phase}: ") + self._count(n_iter)
        if n_iter > 0:
            self._text += f"  loss {loss:.6g}"
        if n_iter > 0 and validation_loss is not None:
            self._text += f"  validation loss {validation_loss:.6g}"
        if base_class is not None:
            self._text += f"  base class {_on_one_line(str(base_class))}"
        self._text += self._speed(n_iter, now)
        if self._is_due(n_iter, now):
            self._write(self._fitted_text() if self._is_live else self._text)

    def _fitted_text(self) -> str:
        """Return the line cut to the width of the terminal, without the bar if it is too long."""
        n_columns = _n_columns()
        if _clipped(self._text, n_columns) == self._text:
            return self._text
        return _clipped(self._text.replace(self._bar, "", 1), n_columns)

    def _speed(self, n_iter: int, now: float) -> str:
        """Return the speed and, if the number of iterations is limited, the time left."""
        if self._start is None or n_iter <= self._start[0]:
            self._start = (n_iter, now)
            return ""
        since = now - self._start[1]
        if not self._is_live or since < _MIN_TIMED:
            return ""
        seconds = since / (n_iter - self._start[0])
        speed = f"  {1 / seconds:.3g} iterations/s"
        if self._n_iter is None or n_iter >= self._n_iter:
            return speed
        return f"{speed}  {_format_time((self._n_iter - n_iter) * seconds)} left"

    def _is_due(self, n_iter: int, now: float) -> bool:
        if self._verbose > 1:
            return n_iter > 0 and n_iter % self._verbose == 0
        wait = _EVERY if self._is_live else _LOG_EVERY
        is_first = n_iter == (0 if self._is_live else 1)
        if not is_first and (n_iter == 0 or now - self._last_drawn < wait):
            return False
        self._last_drawn = now
        return True

    def _count(self, n_iter: int) -> str:
        if self._n_iter is None:
            return f"iteration {n_iter}"
        filled = _WIDTH * n_iter // self._n_iter if self._n_iter else 0
        self._bar = f"[{'#' * filled}{'-' * (_WIDTH - filled)}] " if self._is_live else ""
        return f"{self._bar}iteration {n_iter}/{self._n_iter}"

    def finish(self, reason: str) -> None:
        """Show why training stopped."""
        if self.enabled:
            self._text += f"  stopped: {reason}"


def _n_columns() -> int:
    """Return the width of the terminal."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError, AttributeError):  # a stream set by the user may have no fileno
        return shutil.get_terminal_size().columns


def _clipped(text: str, n_columns: int) -> str:
    """Cut a text to fewer columns than the terminal has: in the last one some begin a new line."""
    width = 0
    for index, character in enumerate(text):
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if width >= max(n_columns, 2):
            return text[:index]
    return text


def _on_one_line(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


def _format_time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
