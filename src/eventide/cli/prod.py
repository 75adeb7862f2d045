"""`eventide prod`: its arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from eventide.cli.arguments import CODES, Debug

EPILOG = f"""
[bold]Examples[/bold]

All open windows of a query: eventide prod speeds --checkpoint state

One group, and windows that end by noon (UTC): eventide prod speeds --group detector=1045 --up-to '2026-01-31 12:00'

For a program: eventide prod speeds --checkpoint state --json | jq .mean
{CODES}"""


def prod(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A query of the running script.", show_default=False)],
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="The checkpoint it works on. Default: your one run with a temporary one."),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Only groups with this value; may be given again."),
    ] = None,
    null: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only groups in which this is NULL; may be given again.")
    ] = None,
    up_to: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only windows that end by then: a time (UTC), or a number.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the engine listens, in the place of --checkpoint.")
    ] = None,
    token_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="The file with the engine's token, for --url.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each row, and nothing else.")] = False,
    debug: Debug = False,
) -> None:
    """Ask a running query for early results, from the windows that are still open."""
    from eventide.commands.prod import ProdRequest, prod_query

    prod_query(ProdRequest(query, checkpoint, url, token_file, group or [], null or [], up_to, json))
