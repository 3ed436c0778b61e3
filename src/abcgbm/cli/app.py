"""The commands, and how they end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from abcgbm import __version__
from abcgbm.cli.console import IS_DEBUG, MISUSED, exit_code, tell, told
from abcgbm.cli.demo import demo
from abcgbm.cli.evaluate import evaluate
from abcgbm.cli.explain import explain
from abcgbm.cli.inspect import convert, inspect
from abcgbm.cli.options import grouped
from abcgbm.cli.predict import predict
from abcgbm.cli.report import report
from abcgbm.cli.train import train
from abcgbm.parameters.hints import option_hint

COMMANDS: tuple[Callable[..., Any], ...] = (
    train, predict, evaluate, inspect, explain, convert, report, demo,
)  # fmt: skip
app = typer.Typer(
    help="Boosted trees for multi-class classification.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
)
for command in COMMANDS:
    app.command(no_args_is_help=command is not demo)(told(grouped(command)))


def _show_version(is_asked: bool) -> None:
    if is_asked:
        print(f"abcgbm {__version__}")
        raise typer.Exit


@app.callback()
def _app(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error comes from; anywhere in the line.")
    ] = False,
) -> None:
    pass


def _text_of(error: typer.TyperException) -> str:
    """Return the message of typer; an option of another name gets ours."""
    option = getattr(error, "option_name", None)
    said = option_hint(option) if isinstance(option, str) else ""
    return f"no such option: {option}{said}" if said else " ".join(error.format_message().split())


def run(argv: list[str]) -> int:
    """Run a command; return its exit code."""
    token = IS_DEBUG.set("--debug" in argv)
    try:
        given = [argument for argument in argv if argument != "--debug"]
        code = app(args=given, prog_name="abcgbm", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        tell(f"error: {_text_of(error)}")
        return MISUSED
    except BaseException as error:  # noqa: BLE001 (of help, the version and completions, too)
        return exit_code(error)
    finally:
        IS_DEBUG.reset(token)
    return code if isinstance(code, int) else 0
