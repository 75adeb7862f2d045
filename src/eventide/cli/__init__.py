"""The command line: arguments become calls. What the commands do is in `eventide.commands` and `eventide.profile`.

Law: a command loads what it needs, and nothing else. Each has a file here with its arguments, which imports what it
calls when it is called. Exit codes are those of `eventide.commands.process`.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import Annotated

import typer

COMMANDS = ("run", "check", "explain", "why", "prod", "init", "profile", "checkpoint", "version")
"""In the order in which help lists them."""

ALLOCATIONS = 100_000
"""New objects before Python looks for garbage. Loading makes many, all to stay: its 700 cost a tenth of a start."""


def app(*names: str) -> typer.Typer:
    """The command line with these commands, or with all."""
    made = typer.Typer(
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        help="Eventide: a data stream management system whose subject is event time.",
        epilog="Start with your own data: [bold]eventide init sample.csv -o first.sql[/bold], then check, then run.",
    )
    made.callback()(_options)
    for name in names or COMMANDS:
        command = import_module(f"eventide.cli.{name}")
        made.command(epilog=getattr(command, "EPILOG", None))(getattr(command, name))
    return made


def _version(asked: bool) -> None:
    if asked:
        from eventide.commands.version import show_version

        show_version(False)
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version of Eventide.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run a command; tell an error in one sentence, unless `--debug` asks for all of it."""
    from eventide.commands.process import run_to_its_end

    gc.set_threshold(ALLOCATIONS)
    # To make the others ready takes longer than to read the arguments of one.
    command = app(*(name for name in sys.argv[1:2] if name in COMMANDS))
    # However it was called: `python -m eventide` is no name that a shell could complete.
    run_to_its_end(lambda: command(prog_name="eventide"), debug="--debug" in sys.argv)
