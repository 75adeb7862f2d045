"""`eventide check`: its arguments."""

from __future__ import annotations

import typer

from eventide.cli.arguments import Debug, Json, Script

EPILOG = """
[bold]Examples[/bold]

eventide check traffic.sql

eventide check traffic.sql --json | jq '.findings[].message'

[bold]Exit codes[/bold]

0: no errors (there may be warnings). 2: errors, or the file cannot be read. 1: a fault of Eventide's own.
"""


def check(
    file: Script,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Tell the errors and warnings of a script, without running it."""
    from eventide.commands.check import check_file

    raise typer.Exit(check_file(str(file), json))
