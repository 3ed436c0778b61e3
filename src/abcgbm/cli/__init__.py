"""The command `abcgbm`: train, predict, evaluate, inspect, explain, convert, report, demo."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from abcgbm_command.streams import open_streams, say


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code, or exit with it if ``argv`` is None.

    0: success; 1: an invalid file, table or model; 2: an invalid command line; 130: Ctrl-C;
    141: standard output is closed, or a pipe without a reader.
    """
    if argv is None:
        _exit(_run(sys.argv[1:]))
    return _run([*argv])


def _run(argv: list[str]) -> int:
    try:
        from abcgbm.cli.app import run  # noqa: PLC0415 (optional, so imported late)
    except KeyboardInterrupt:
        say("abcgbm: interrupted")
        return 130
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        say('abcgbm: error: the command needs typer: pip install "abcgbm[cli]"')
        return 1
    with open_streams():
        return run(argv)


def _exit(code: int) -> NoReturn:
    """Exit without the interpreter's shutdown, during which running threads of pyarrow would abort."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
