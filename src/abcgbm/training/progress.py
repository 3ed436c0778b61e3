"""What is shown of how far reading and training are: one live line, or a line now and then."""

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

_EVERY = 0.1  # seconds between two drawings of the live line
_LOG_EVERY = 10.0  # seconds between two lines where it cannot change
_SETTLED = 1.0  # seconds after which the pace of steps tells something
_WIDTH = 30


class ProgressOutput:
    """Standard error as the progress of one fit uses it.

    A fit never fails because its progress cannot be written: the first write that fails causes a
    warning and is the last one.
    """

    def __init__(self) -> None:
        self._is_writable = True

    def is_terminal(self) -> bool:
        """Whether a line can be replaced; a closed or incomplete stream is no terminal."""
        try:
            return bool(sys.stderr.isatty())
        except Exception:  # noqa: BLE001 (a stream of the user may raise anything)
            return False

    def write(self, text: str) -> None:
        """Write a text at once, unless an earlier one could not be written."""
        if not self._is_writable:
            return
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except Exception as error:  # noqa: BLE001 (as above)
            self._is_writable = False
            self._warn("sys.stderr is None" if sys.stderr is None else repr(error))

    def _warn(self, reason: str) -> None:
        """Warn if that is possible: it fails for a closed stream, and where warnings are errors."""
        with suppress(Exception):
            warnings.warn(
                f"progress cannot be written to standard error: {reason}; the fit continues "
                "without it",
                UserWarning,
                stacklevel=3,
            )


class _Line:
    """A line on standard error that changes, if that is a terminal; else lines, one after another."""

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
    """Shows how many rows were read of a table that need not fit into memory.

    Where it cannot change it is written every ten seconds and at the end.

    Parameters
    ----------
    verbose : int
        0 shows nothing.
    n_columns : int
        How many columns are read.
    n_rows, n_bytes : int or None
        Rows and bytes to come; None: nobody knows.
    output : ProgressOutput, optional
        Where to write, if several lines share it.
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
        """Take note of how many rows were read so far."""
        if not self._verbose:
            return
        self._text = f"{self._what}{n_read:,} rows"
        if self._n_rows:
            self._text = f"{self._what}{n_read:,} of {self._n_rows:,} rows"
            self._text += self._bytes(min(n_read / self._n_rows, 1.0))
        now = time.monotonic()
        if now - self._last_drawn >= (_EVERY if self._is_live else _LOG_EVERY):
            self._last_drawn = now
            self._write(_clipped(self._text, _n_columns()) if self._is_live else self._text)

    def _bytes(self, shard: float) -> str:
        """Tell the bytes of this share of the rows; rows are taken to be of one size."""
        if not self._n_bytes:
            return ""
        return f", {format_bytes(round(shard * self._n_bytes))} of {format_bytes(self._n_bytes)}"


class ProgressLine(_Line):
    """Writes on standard error: in a terminal a line that changes, else a line now and then.

    Parameters
    ----------
    n_iter : int or None
        Steps to come, at most; None: nobody knows, so there is no bar.
    verbose : int
        0 shows nothing. 1 shows a live line or, where standard error is no terminal, a line after the
        first step, every ten seconds and at the end. A larger number n shows a line every n steps.
    output : ProgressOutput, optional
        Where to write, if several lines share it.
    """

    def __init__(
        self, n_iter: int | None, verbose: int, output: ProgressOutput | None = None
    ) -> None:
        super().__init__(verbose, output)
        self._n_iter = n_iter
        self._bar = ""
        self._begun: tuple[int, float] | None = None  # the first step that was seen, and when

    @property
    def enabled(self) -> bool:
        """Whether anything is shown."""
        return self._verbose > 0

    def __enter__(self) -> Self:
        self.show(0, float("nan"))
        return self

    def show(
        self,
        step: int,
        loss: float,
        validation_loss: float | None = None,
        phase: str = "train",
        base_class: Any = None,
    ) -> None:
        """Take note of a finished step; losses are means over rows."""
        if not self.enabled:
            return
        now = time.monotonic()
        self._text = ("" if phase == "train" else f"{phase}: ") + self._count(step)
        if step > 0:
            self._text += f"  loss {loss:.6g}"
        if step > 0 and validation_loss is not None:
            self._text += f"  validation loss {validation_loss:.6g}"
        if base_class is not None:
            self._text += f"  base class {_on_one_line(str(base_class))}"
        self._text += self._pace(step, now)
        if self._is_due(step, now):
            self._write(self._fitting() if self._is_live else self._text)

    def _fitting(self) -> str:
        """Return the line as the terminal has room for it: numbers are worth more than the bar."""
        n_columns = _n_columns()
        if _clipped(self._text, n_columns) == self._text:
            return self._text
        return _clipped(self._text.replace(self._bar, "", 1), n_columns)

    def _pace(self, step: int, now: float) -> str:
        """Tell how quick steps are and, if their number is known, how long the others will take."""
        if self._begun is None or step <= self._begun[0]:
            self._begun = (step, now)
            return ""
        since = now - self._begun[1]
        if not self._is_live or since < _SETTLED:
            return ""
        seconds = since / (step - self._begun[0])
        pace = f"  {1 / seconds:.3g} iterations/s"
        if self._n_iter is None or step >= self._n_iter:
            return pace
        return f"{pace}  {_shown_time((self._n_iter - step) * seconds)} left"

    def _is_due(self, step: int, now: float) -> bool:
        if self._verbose > 1:
            return step > 0 and step % self._verbose == 0
        wait = _EVERY if self._is_live else _LOG_EVERY
        is_first = step == (0 if self._is_live else 1)
        if not is_first and (step == 0 or now - self._last_drawn < wait):
            return False
        self._last_drawn = now
        return True

    def _count(self, step: int) -> str:
        if self._n_iter is None:
            return f"iteration {step}"
        filled = _WIDTH * step // self._n_iter if self._n_iter else 0
        self._bar = f"[{'#' * filled}{'-' * (_WIDTH - filled)}] " if self._is_live else ""
        return f"{self._bar}iteration {step}/{self._n_iter}"

    def finish(self, reason: str) -> None:
        """Say why training stopped."""
        if self.enabled:
            self._text += f"  stopped: {reason}"


def _n_columns() -> int:
    """Return how many columns the terminal has that is standard error."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError, AttributeError):  # a stream of the user may have no fileno
        return shutil.get_terminal_size().columns


def _clipped(text: str, n_columns: int) -> str:
    """Cut a line so that it stays one: in the last column some terminals begin a new one."""
    width = 0
    for place, character in enumerate(text):
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if width >= max(n_columns, 2):
            return text[:place]
    return text


def _on_one_line(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


def _shown_time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
