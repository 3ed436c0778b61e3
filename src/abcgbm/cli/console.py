"""Output of the commands: messages, exit codes and the screen."""

from __future__ import annotations

import errno
import functools
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, NoReturn, ParamSpec, TypeVar

import typer
from rich.console import Console

from abcgbm.errors import TableFileError
from abcgbm_command.streams import say


class _Screen(Console):
    """A console that leaves it to the command what a closed pipe means; rich would end with 1."""

    def on_broken_pipe(self) -> NoReturn:
        """Go on as any other writer to a pipe whose reader has gone."""
        raise BrokenPipeError


def screen() -> Console:
    """Return standard output; brackets and colons in labels and names are what they are."""
    return _Screen(soft_wrap=True, highlight=False, markup=False, emoji=False)


FAILED, MISUSED, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141
IS_DEBUG: ContextVar[bool] = ContextVar("IS_DEBUG", default=False)
_EXPECTED = (ValueError, TypeError, OSError, MemoryError, ImportError)

P = ParamSpec("P")
R = TypeVar("R")


class Misuse(Exception):
    """Options that do not go together, or of which one is missing."""


def tell(text: str) -> None:
    """Say something to the user; standard output is for data."""
    say(f"abcgbm: {text}")


def told(command: Callable[P, R]) -> Callable[P, R]:
    """Let a command end in one line instead of a traceback."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _tell_warning
                done = command(*args, **kwargs)
            sys.stdout.flush()
        except BaseException as error:
            if isinstance(error, typer.Exit | typer.TyperException):
                raise
            raise typer.Exit(exit_code(error)) from error
        return done

    return run


def _tell_warning(message: Warning | str, *place: Any, **further: Any) -> None:
    """Say what a warning says; where in the code it comes from helps nobody who has a file."""
    tell(f"warning: {' '.join(str(message).split())}")


def exit_code(error: BaseException) -> int:
    """Say what went wrong; return the exit code. An unexpected error is raised again."""
    if IS_DEBUG.get() and not isinstance(error, SystemExit):
        say("".join(traceback.format_exception(error)).rstrip())
    if isinstance(error, KeyboardInterrupt):
        tell("interrupted")
        return INTERRUPTED
    if _is_of_broken_pipe(error):
        _leave_pipe()
        return PIPE_CLOSED
    if not isinstance(error, (*_EXPECTED, Misuse)):
        raise error
    _leave_full_output()
    tell(f"error: {_text(error)}")
    return MISUSED if isinstance(error, Misuse) else FAILED


def _is_of_broken_pipe(error: BaseException) -> bool:
    """Whether standard output is a pipe without a reader: typer and rich exit with 1 in that case."""
    if isinstance(error, SystemExit):
        return isinstance(error.__context__, BrokenPipeError)
    return isinstance(error, BrokenPipeError)


def _leave_pipe() -> None:
    """Let what is left for standard output go nowhere: Python would try once more to write it."""
    with suppress(OSError, ValueError):  # a stream of the caller may have no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _leave_full_output() -> None:
    """Write what was printed before the error; where that fails, too, it goes nowhere."""
    try:
        sys.stdout.flush()
    except OSError:
        _leave_pipe()


def _text(error: Any) -> str:
    """What an error says, in one line; of the system, the file first."""
    if isinstance(error, OSError) and error.strerror is not None:
        reason = "there is no such file" if error.errno == errno.ENOENT else error.strerror
        return reason if error.filename is None else f"{error.filename}: {reason}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines) or type(error).__name__
    hint = error.hint if isinstance(error, TableFileError) else None
    return text if hint is None else f"{text} ({_OPTIONS.get(hint, _option(hint))})"


def _option(field: str) -> str:
    """Return the option for a field of `Reading`."""
    return f"--{field.replace('_', '-')}"


_OPTIONS = {"header": "--no-header or --header"}
