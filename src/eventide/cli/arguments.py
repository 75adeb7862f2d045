"""The arguments of every command.

Law: each function loads what it calls when it is called; what a command has in common with others has a name here.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated

import typer

Script = Annotated[
    Path,
    typer.Argument(metavar="FILE.sql", help="The script; - is standard input.", allow_dash=True, show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on one line, and nothing else.")]
Backfill = Annotated[
    list[str] | None,
    typer.Option(metavar="QUERY", help="Let a new or changed query read all rows of its files; may be given again."),
]
ConsoleCert = Annotated[
    str | None, typer.Option(metavar="FILE", help="Encrypt what is asked and shown (HTTPS): a certificate, in PEM.")
]
ConsoleKey = Annotated[
    str | None, typer.Option(metavar="FILE", help="The key of the certificate. Default: in the same file.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


STANDS_ON = ("duckdb", "pyarrow", "pyspark", "sqlglot")


class EngineName(StrEnum):
    """The engines that a run can ask for."""

    spark = "spark"
    local = "local"


class Action(str, Enum):  # noqa: UP042 - typer shows the values of such
    """What can be done with a checkpoint."""

    copy = "copy"
    list = "list"
    rewind = "rewind"
    verify = "verify"


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
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Drop state of queries that changed or are gone, as `eventide plan` tells."),
    ] = False,
    backfill: Backfill = None,
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
    console: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST:PORT]",
            help="Show it in a browser, and print the link. Default: a free port.",
        ),
    ] = None,
    console_cert: ConsoleCert = None,
    console_key: ConsoleKey = None,
    webhook: Annotated[
        str | None, typer.Option(metavar="URL", help="Send every alert there, as JSON: when raised, and when cleared.")
    ] = None,
    otlp: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Send spans of rounds and heartbeats to this collector of OpenTelemetry."),
    ] = None,
    lineage: Annotated[
        str | None,
        typer.Option(metavar="URL|FILE", help="Tell OpenLineage what is read and written, and how the run ends."),
    ] = None,
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
            console=console,
            console_cert=console_cert,
            console_key=console_key,
            webhook=webhook,
            otlp=otlp,
            lineage=lineage,
            replace=replace,
            log=log,
            accept=accept,
            backfill=backfill or [],
        )
    )


def plan(
    file: Script,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="The checkpoint that it would go on from.", show_default=False)
    ] = None,
    backfill: Backfill = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Tell what a changed script would do to each stream and query of a checkpoint."""
    from eventide.commands.checkpoint import plan_file

    plan_file(str(file), checkpoint, backfill or [], json)


def check(
    file: Script,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Tell the errors and warnings of a script, without running it."""
    from eventide.commands.check import check_file

    raise typer.Exit(check_file(str(file), json))


def explain(
    file: Script,
    json: Json = False,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write it as a page, too: one file, no network needed.")
    ] = None,
    analyze: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Say what each step has done in the run that works on this checkpoint."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Show the plan of a script: time, windows, what is kept, what runs where, and the SQL of each step."""
    from eventide.commands.explain import explain_file

    explain_file(str(file), json, html, analyze)


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
    from eventide.commands.init import init_file

    init_file(str(sample), output, time, source, force)


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
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a page of tables and plots: one file, no network needed.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Show the disorder of a recording, and what each policy would have lost and waited on it."""
    from eventide.commands.profile import ProfileRequest, run_profile
    from eventide.profile.amounts import ratio
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
            html=html,
        )
    )


def checkpoint(
    action: Annotated[Action, typer.Argument(help="What to do with it.", show_default=False)],
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The checkpoint.", show_default=False)],
    to: Annotated[
        str | None,
        typer.Argument(metavar="OTHER", help="For copy: a folder that is not there yet.", show_default=False),
    ] = None,
    round: Annotated[int | None, typer.Option(metavar="N", help="For rewind: the round to go back to.")] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Look a checkpoint over, file by file (verify); copy it, list its rounds, or go back to one of them (rewind)."""
    if action is Action.verify:
        from eventide.commands.checkpoint import verify_checkpoint

        raise typer.Exit(verify_checkpoint(folder, json))
    from eventide.commands.checkpoint import copy_checkpoint, list_checkpoint, rewind_checkpoint

    if action is Action.copy:
        copy_checkpoint(folder, to, json)
    elif action is Action.list:
        list_checkpoint(folder, json)
    else:
        rewind_checkpoint(folder, round, json)


def version(
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, also with the versions of what Eventide stands on.")
    ] = False,
) -> None:
    """Print the version of Eventide."""
    if json:
        from json import dumps

        print(dumps(versions()))
    else:
        print(_installed("eventide") or "run from its sources, not installed")


def versions() -> dict[str, str | None]:
    """Versions of Eventide and of what it stands on; None for what is not installed.

    >>> sorted(versions())
    ['duckdb', 'eventide', 'pyarrow', 'pyspark', 'python', 'sqlglot']
    """
    from platform import python_version

    return {name: _installed(name) for name in ("eventide", *STANDS_ON)} | {"python": python_version()}


def _installed(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None
