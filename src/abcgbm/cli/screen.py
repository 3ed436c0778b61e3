"""Where tables for people are drawn."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class _Screen(Console):
    """A console that leaves it to the command what a closed pipe means; rich would end with 1."""

    def on_broken_pipe(self) -> NoReturn:
        """Go on as any other writer to a pipe whose reader has gone."""
        raise BrokenPipeError


def screen() -> Console:
    """Return standard output; brackets and colons in labels and names are what they are."""
    return _Screen(soft_wrap=True, highlight=False, markup=False, emoji=False)
