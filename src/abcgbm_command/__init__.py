"""The script `abcgbm`: beside the package, since to import that takes a second that Ctrl-C may fall into."""

from __future__ import annotations

from abcgbm_command.streams import replace_closed_streams, say


def main() -> int:
    """Run the command; return its exit code."""
    replace_closed_streams()
    try:
        from abcgbm.cli import main as run  # noqa: PLC0415 (so that what it raises is caught)
    except KeyboardInterrupt:
        say("abcgbm: interrupted")
        return 130
    return run()
