"""The command `abcgbm`: train, predict, evaluate, inspect, explain, convert, report, demo."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code.

    0: well; 1: a file, a table or a model is not what was expected; 2: the command was not
    understood; 130: Ctrl-C; 141: whoever read the output has gone.
    """
    try:
        from abcgbm.cli.app import run  # noqa: PLC0415 (optional, so imported late)
    except KeyboardInterrupt:
        print("abcgbm: interrupted", file=sys.stderr)
        return 130
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        print('abcgbm: error: the command needs typer: pip install "abcgbm[cli]"', file=sys.stderr)
        return 1
    return run([*sys.argv[1:]] if argv is None else [*argv])
