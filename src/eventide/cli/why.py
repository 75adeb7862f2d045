"""`eventide why`: its arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from eventide.cli.arguments import CODES, Debug, Json, Script

EPILOG = f"""
[bold]Examples[/bold]

Every open window of a query: eventide why traffic.sql speeds --checkpoint state

One of them, by its start (in UTC): eventide why traffic.sql speeds 12:05 --checkpoint state

For a program: eventide why traffic.sql speeds --checkpoint state --json | jq '.windows[].closes_at'
{CODES}"""


def why(
    file: Script,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A query of the script.", show_default=False)],
    checkpoint: Annotated[
        str, typer.Option(metavar="DIR", help="The checkpoint it runs with, or ran with.", show_default=False)
    ],
    window: Annotated[
        str | None,
        typer.Argument(
            metavar="WINDOW", help="The start of one window: a time (UTC), or a number.", show_default=False
        ),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Tell why windows of a query are open: who holds them, by which rule, since when, and when they close."""
    from eventide.commands.why import why_file

    why_file(str(file), query, window, checkpoint, json)
