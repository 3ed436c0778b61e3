"""The typer application and its exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from abcgbm import __version__
from abcgbm.cli.console import IS_DEBUG, MISUSED, exit_code, print_message, report_error_in_one_line
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
    app.command(no_args_is_help=command is not demo)(report_error_in_one_line(grouped(command)))


def _show_version(is_asked: bool) -> None:
    if is_asked:
        print(f"abcgbm {__version__}")
        raise typer.Exit


@app.callback()
def _app(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error. May stand anywhere.")
    ] = False,
) -> None:
    pass


def _text_of(error: typer.TyperException) -> str:
    """Return typer's message; for an unknown option, with ours if it has one of the same meaning."""
    option = getattr(error, "option_name", None)
    suggestion = option_hint(option) if isinstance(option, str) else ""
    return (
        f"no such option: {option}{suggestion}"
        if suggestion
        else " ".join(error.format_message().split())
    )


def run(argv: list[str]) -> int:
    """Run a command; return its exit code."""
    token = IS_DEBUG.set("--debug" in argv)
    try:
        given = [argument for argument in argv if argument != "--debug"]
        code = app(args=given, prog_name="abcgbm", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        print_message(f"error: {_text_of(error)}")
        return MISUSED
    except BaseException as error:  # noqa: BLE001 (typer also raises for help, version and completion)
        return exit_code(error)
    finally:
        IS_DEBUG.reset(token)
    return code if isinstance(code, int) else 0
