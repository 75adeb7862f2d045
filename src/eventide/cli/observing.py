"""The arguments of the commands that look at a run from outside: `prod`, `console`, `trace` and `watch`.

Law: as in `arguments.py`, each function loads what it calls when it is called.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eventide.cli.arguments import ConsoleCert, ConsoleKey, Debug, Json

RanWith = Annotated[
    str, typer.Option(metavar="DIR", help="The checkpoint it runs with, or ran with.", show_default=False)
]
KeptScript = Annotated[
    Path | None,
    typer.Argument(metavar="FILE.sql", help="The script. Default: as the checkpoint keeps it.", show_default=False),
]


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
    where: Annotated[
        str | None,
        typer.Option(metavar="CONDITION", help="Only groups like these: 'segment BETWEEN 3 AND 7 AND lane IN (1, 2)'."),
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

    prod_query(ProdRequest(query, checkpoint, url, token_file, group or [], where, null or [], up_to, json))


def console(
    checkpoint: RanWith,
    file: KeptScript = None,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where a stopped run is shown. Default: a free port.")
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="A link that may look, and not ask for early results.")
    ] = False,
    console_cert: ConsoleCert = None,
    console_key: ConsoleKey = None,
    debug: Debug = False,
) -> None:
    """Print a link to the console of a run; of one that has stopped, show how it stood."""
    from eventide.commands.console import show_run

    show_run(checkpoint, None if file is None else str(file), listen, read_only, console_cert, console_key)


def trace(
    checkpoint: RanWith,
    file: KeptScript = None,
    last: Annotated[int, typer.Option(metavar="N", help="How many heartbeats are shown, the newest first.")] = 5,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Follow heartbeats from their sources through every operator, with the time they waited in each."""
    from eventide.commands.trace import trace_run

    trace_run(checkpoint, None if file is None else str(file), last, json)


def watch(
    checkpoint: Annotated[str, typer.Option(metavar="DIR", help="The checkpoint it works on.", show_default=False)],
    once: Annotated[bool, typer.Option("--once", help="Print the alerts that stand now, and end.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each alert.")] = False,
    debug: Debug = False,
) -> None:
    """Print the alerts of a running engine: silent sources, clocks that jump, broken bounds, slow sinks, rules."""
    from eventide.commands.watch import watch_run

    watch_run(checkpoint, once, json)
