"""`eventide run`: its arguments."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from eventide.cli.arguments import Debug, Script

EPILOG = """
[bold]Examples[/bold]

What is there now, without Spark: eventide run traffic.sql --bounded --engine local

Until Ctrl-C, and on from there later: eventide run traffic.sql --checkpoint state

One JSON object a result: eventide run traffic.sql --json | jq .mean

As a filter, where a stream is FROM STDIN: tail -f app.jsonl | eventide run errors.sql

With Kafka: eventide run orders.sql --package org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0

[bold]Exit codes[/bold]

0: done, or stopped by Ctrl-C or SIGTERM after the round under way. 1: a fault of Eventide's own.

2: what was given cannot be used (a file, a statement, an option, a checkpoint of another program).

3: the engine cannot go on (Spark, a disk, a sink); committed rounds are safe.

130, 143: Ctrl-C or SIGTERM before anything ran, or a second one. 141: nobody reads the output any more.
"""


class EngineName(StrEnum):
    """The engines that a run can ask for."""

    spark = "spark"
    local = "local"


def run(
    file: Script,
    bounded: Annotated[
        bool, typer.Option("--bounded", help="Take what is there now, close every window, and end.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each result, and nothing else.")
    ] = False,
    engine: Annotated[
        EngineName | None,
        typer.Option(help="Spark, or this process alone. Default: spark; local where a stream is FROM STDIN."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Where Spark runs. Default: local[*], this machine.")
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A setting of Spark, or one that SET has; may be given again."),
    ] = None,
    package: Annotated[
        list[str] | None,
        typer.Option(metavar="COORDINATES", help="A package for Spark (group:name:version); may be given again."),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Where the state is kept: a later run goes on from it. Default: a temporary one, removed at the end.",
        ),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Delete results of another checkpoint in the directories that this run writes to."
        ),
    ] = False,
    log: Annotated[
        str | None,
        typer.Option(metavar="text|json", help="Write a line a minute about the run to standard error, for a service."),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write one JSON line for every decision of the scheduler into this file."),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where it can be asked. Default: a free port, from this machine only."),
    ] = None,
    no_listen: Annotated[bool, typer.Option("--no-listen", help="Let nobody ask it while it runs.")] = False,
    debug: Debug = False,
) -> None:
    """Run the queries of a script, and show their results as they come."""
    from eventide.commands.run import RunRequest, run_file

    run_file(
        RunRequest(
            file=str(file),
            bounded=bounded,
            json=json,
            engine=engine.value if engine else None,
            master=master,
            conf=conf or [],
            packages=package or [],
            checkpoint=checkpoint,
            trace=trace,
            listen=listen,
            no_listen=no_listen,
            replace=replace,
            log=log,
        )
    )
