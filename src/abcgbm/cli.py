"""The command `abcgbm`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from abcgbm import __version__
from abcgbm.demo import comparison

PICTURES = (".png", ".svg", ".pdf")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    try:
        arguments = _parser().parse_args(argv)
        comparison.run(arguments.output, arguments.max_iter)
    except KeyboardInterrupt:
        print("abcgbm: interrupted", file=sys.stderr)
        return 130
    except (ValueError, TypeError, OSError) as error:
        print(f"abcgbm: error: {error}", file=sys.stderr)
        return 2
    return 0


class _Parser(argparse.ArgumentParser):
    """A parser whose errors take the same way out as all others: one line."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def _parser() -> _Parser:
    parser = _Parser(prog="abcgbm", description="Boosted trees for multi-class classification.")
    parser.add_argument("--version", action="version", version=f"abcgbm {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    about = "train MART and ABC-MART on scikit-learn's digits and compare their test errors"
    demo = commands.add_parser("demo", help=about, description=about)
    demo.add_argument(
        "--output",
        type=_picture,
        default="demo.png",
        metavar="FILE",
        help="where to write the curves (.png, .svg or .pdf; default: %(default)s)",
    )
    demo.add_argument(
        "--max-iter",
        type=_at_least_one,
        default=300,
        metavar="M",
        help="boosting steps of each fit (default: %(default)s)",
    )
    return parser


def _picture(text: str) -> Path:
    """A file that can be written, checked before any training is spent on it."""
    path = Path(text)
    if path.suffix.lower() not in PICTURES:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a name ending in .png, .svg or .pdf")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK) or path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r}; expected a file in a folder open for writing")
    return path


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; expected an integer of at least 1")
    return int(text)
