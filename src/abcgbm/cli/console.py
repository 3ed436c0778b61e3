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
    """A console that raises BrokenPipeError if the pipe is closed; rich would exit with 1."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise the error, from which ``exit_code`` makes 141."""
        raise BrokenPipeError


def screen() -> Console:
    """Return a console on standard output; brackets and colons in labels and names are no markup."""
    return _Screen(soft_wrap=True, highlight=False, markup=False, emoji=False)


FAILED, MISUSED, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141
IS_DEBUG: ContextVar[bool] = ContextVar("IS_DEBUG", default=False)
_EXPECTED = (ValueError, TypeError, OSError, MemoryError, ImportError)

P = ParamSpec("P")
R = TypeVar("R")


class Misuse(Exception):
    """Options that exclude each other, or a missing option."""


def print_message(text: str) -> None:
    """Write a message on standard error; standard output is for data."""
    say(f"abcgbm: {text}")


def report_error_in_one_line(command: Callable[P, R]) -> Callable[P, R]:
    """Wrap a command such that errors and warnings are one line each, without a traceback."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                result = command(*args, **kwargs)
            sys.stdout.flush()
        except BaseException as error:
            if isinstance(error, typer.Exit | typer.TyperException):
                raise
            raise typer.Exit(exit_code(error)) from error
        return result

    return run


def _show_warning(message: Warning | str, *place: Any, **further: Any) -> None:
    """Write a warning without its source line, which is of no use in the shell."""
    print_message(f"warning: {' '.join(str(message).split())}")


def exit_code(error: BaseException) -> int:
    """Write the message of an error; return the exit code. An unexpected error is raised again."""
    if IS_DEBUG.get() and not isinstance(error, SystemExit):
        say("".join(traceback.format_exception(error)).rstrip())
    if isinstance(error, KeyboardInterrupt):
        print_message("interrupted")
        return INTERRUPTED
    if _is_of_broken_pipe(error):
        _discard_output()
        return PIPE_CLOSED
    if not isinstance(error, (*_EXPECTED, Misuse)):
        raise error
    _flush_or_discard_output()
    print_message(f"error: {_text(error)}")
    return MISUSED if isinstance(error, Misuse) else FAILED


def _is_of_broken_pipe(error: BaseException) -> bool:
    """Whether standard output is a pipe without a reader; typer and rich turn that into SystemExit(1)."""
    if isinstance(error, SystemExit):
        return isinstance(error.__context__, BrokenPipeError)
    return isinstance(error, BrokenPipeError)


def _discard_output() -> None:
    """Redirect standard output to the null device, since Python flushes it again at exit."""
    with suppress(OSError, ValueError):  # a stream of the caller may have no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flush_or_discard_output() -> None:
    """Write what was printed before the error; discard it if the disk is full or the pipe closed."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()


def _text(error: Any) -> str:
    """Return the message of an error in one line; for a system error, with the file in front."""
    if isinstance(error, OSError) and error.strerror is not None:
        reason = "there is no such file" if error.errno == errno.ENOENT else error.strerror
        return reason if error.filename is None else f"{error.filename}: {reason}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines) or type(error).__name__
    hint = error.hint if isinstance(error, TableFileError) else None
    return text if hint is None else f"{text} ({_OPTIONS.get(hint, _option(hint))})"


def _option(field: str) -> str:
    """Return the option that sets a field of `Reading`."""
    return f"--{field.replace('_', '-')}"


_OPTIONS = {"header": "--no-header or --header"}
