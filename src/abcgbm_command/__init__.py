"""The script `abcgbm`: beside the package, since to import that takes a second that Ctrl-C may fall into."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command; return its exit code."""
    try:
        from abcgbm.cli import main as run  # noqa: PLC0415 (so that what it raises is caught)
    except KeyboardInterrupt:
        print("abcgbm: interrupted", file=sys.stderr)
        return 130
    return run()
