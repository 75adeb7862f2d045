"""The command line: arguments become calls.

Exit codes: 0, all went well; 2, what was given cannot be used (a file, a column, a ratio, an option); 1, a fault of
Eventide's own.
"""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Eventide: a data stream management system whose subject is event time.",
)

_EXAMPLES = """
[bold]Examples[/bold]

eventide profile trades.csv.gz --time event_time --arrival received --source symbol

eventide profile 'logs/*.parquet' --time ts --arrival seen --source host,channel --drop-ratio 0.1% --plot plots

eventide profile sensors.jsonl --time t --unit ms --run day --policy eventide --policy kim --json

[bold]Exit codes[/bold]

0: done. 2: a file, a column or an option cannot be used. 1: a fault of Eventide's own.
"""


@app.command(epilog=_EXAMPLES)
def profile(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Recordings: CSV, JSON lines (also .gz) or Parquet. "
            "A directory or a quoted glob is one recording written in parts.",
        ),
    ],
    time: Annotated[str, typer.Option(metavar="COL", help="Column with the time of the event.")],
    arrival: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Column with the time of arrival. Without it rows arrive in file order."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="COL", help="Column that names the source; several: host,channel.")
    ] = None,
    run: Annotated[
        str | None, typer.Option(metavar="COL", help="Column that tells separate recordings apart; never mixed.")
    ] = None,
    drop_ratio: Annotated[
        str, typer.Option(metavar="RATIO", help="Share of rows that may be lost: 1% or 0.01.")
    ] = "1%",
    round: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="'row' to decide row by row, or the length of a round such as 1s. "
            "Default: row up to 20,000 rows; beyond, 1s, or longer for long recordings.",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="UNIT",
            help="Unit of numeric times: s, ms, us, ns, or none for sequence numbers; 'ms,ns' for time and arrival. "
            "Default: guessed, and said.",
        ),
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Compare this policy only; may be given again.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on one line, and nothing else.")] = False,
    plot: Annotated[
        str | None, typer.Option(metavar="DIR", help="Draw plots (PNG and SVG) into this directory.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Show the disorder of a recording, and what each policy would have lost and waited on it."""
    from eventide.profile.amounts import ratio
    from eventide.profile.command import Request, run_profile
    from eventide.profile.files import Columns
    from eventide.profile.rounds import chosen

    run_profile(
        Request(
            files=files,
            columns=Columns(time, arrival, tuple(source.split(",")) if source else (), run),
            drop_ratio=ratio(drop_ratio),
            round=chosen(round),
            unit=unit,
            policies=policy or [],
            json=json,
            plot=plot,
        )
    )


@app.command()
def version() -> None:
    """Print the version of Eventide."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        typer.echo(installed("eventide"))
    except PackageNotFoundError:
        typer.echo("run from its sources, not installed")


def main() -> None:
    """Run a command; tell an error in one sentence, unless `--debug` asks for all of it."""
    from eventide.errors import EventideError

    try:
        app()
    except Exception as error:
        if "--debug" in sys.argv:
            traceback.print_exc()
        elif isinstance(error, EventideError):
            typer.echo(f"eventide: {error}", err=True)
        else:
            typer.echo(f"eventide: a fault of our own: {type(error).__name__}: {error} (--debug shows more)", err=True)
        raise SystemExit(2 if isinstance(error, EventideError) else 1) from None


if __name__ == "__main__":
    main()
