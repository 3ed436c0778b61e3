"""Entry point of the script `abcgbm`.

It is outside of the package, whose import takes a second, so that Ctrl-C during the import is handled.
"""

from __future__ import annotations

from abcgbm_command.streams import replace_closed_streams, say


def main() -> int:
    """Run the command; return its exit code."""
    replace_closed_streams()
    try:
        from abcgbm.cli import main as run  # noqa: PLC0415 (inside try: Ctrl-C during the import)
    except KeyboardInterrupt:
        say("abcgbm: interrupted")
        return 130
    return run()
