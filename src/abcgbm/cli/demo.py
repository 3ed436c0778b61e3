"""`abcgbm demo`: the default model and the comparison of the paper on scikit-learn's digits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from abcgbm import demo as comparison
from abcgbm.cli.console import Misuse
from abcgbm.cli.options import Force, writable

PICTURES = (".png", ".svg", ".pdf")


def demo(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File of the learning curves: .png, .svg or .pdf."),
    ] = Path("demo.png"),
    max_iter: Annotated[
        int, typer.Option("--max-iter", min=1, help="Iterations of MART and ABC-MART.")
    ] = 300,
    force: Force = False,
) -> None:
    """Train on scikit-learn's digits: the default model, then MART and ABC-MART as in the paper."""
    comparison.run(_picture(output, force=force), max_iter)


def _picture(path: Path, *, force: bool) -> Path:
    """Return the file to write, after checking it: an error is found before training."""
    if path.suffix.lower() not in PICTURES:
        raise Misuse(f"--output {str(path)!r}; expected a name ending in .png, .svg or .pdf")
    return writable(path, force=force)
