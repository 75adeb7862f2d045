"""`eventide init`: its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eventide.cli.arguments import CODES, Debug

EPILOG = f"""
[bold]Examples[/bold]

eventide init sensors.csv -o sensors.sql

eventide init 'logs/*.parquet' --time ts --source host

eventide init sensors.csv -o sensors.sql && eventide check sensors.sql && eventide run sensors.sql --bounded
{CODES}"""


def init(
    sample: Annotated[
        Path,
        typer.Argument(
            metavar="SAMPLE",
            help="Some of your data: CSV, JSON lines or Parquet; a directory or a quoted glob of such files.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.sql", help="Write there. Default: standard output.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="COL", help="Column with the time of the event. Default: found, and said.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="COL", help="Column that names the source. Default: found, and said.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    debug: Debug = False,
) -> None:
    """Write a commented script to start with, from a sample of your data."""
    from eventide.commands.init.script import init_file

    init_file(str(sample), output, time, source, force)
