"""`eventide profile`: its arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from eventide.cli.arguments import CODES, Debug, Json

EPILOG = f"""
[bold]Examples[/bold]

eventide profile trades.csv.gz --time event_time --arrival received --source symbol

eventide profile 'logs/*.parquet' --time ts --arrival seen --source host,channel --drop-ratio 0.1% --plot plots

eventide profile sensors.jsonl --time t --unit ms --run day --policy eventide --policy kim --json
{CODES}"""


def profile(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
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
    json: Json = False,
    plot: Annotated[
        str | None, typer.Option(metavar="DIR", help="Draw plots (PNG and SVG) into this directory.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Show the disorder of a recording, and what each policy would have lost and waited on it."""
    from eventide.profile.amounts import ratio
    from eventide.profile.command import ProfileRequest, run_profile
    from eventide.profile.files import ColumnNames
    from eventide.profile.reading import chosen

    run_profile(
        ProfileRequest(
            files=files,
            columns=ColumnNames(time, arrival, tuple(source.split(",")) if source else (), run),
            drop_ratio=ratio(drop_ratio),
            round=chosen(round),
            unit=unit,
            policies=policy or [],
            json=json,
            plot=plot,
        )
    )
