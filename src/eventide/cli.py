"""The command line: arguments become calls. What the commands do is in `eventide.commands` and `eventide.profile`.

Nothing heavy is imported here: each command loads what it needs. Exit codes are those of `eventide.commands.endings`.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from eventide.commands import help_texts

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Start with your own data: [bold]eventide init sample.csv -o first.sql[/bold], then check, then run.",
)


class EngineName(StrEnum):
    """The engines."""

    spark = "spark"
    local = "local"


Script = Annotated[
    Path,
    typer.Argument(metavar="FILE.sql", help="The script; - is standard input.", allow_dash=True, show_default=False),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def _tell_version(asked: bool) -> None:
    if asked:
        from eventide.commands.version import show_version

        show_version(as_json=False)
        raise typer.Exit


@app.callback()
def eventide(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version of Eventide.")
    ] = False,
) -> None:
    """Eventide: a data stream management system whose subject is event time."""


@app.command(epilog=help_texts.RUN_EXAMPLES)
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
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting of Spark; may be given again.")
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
        )
    )


@app.command(epilog=help_texts.CHECK_EXAMPLES)
def check(
    file: Script,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on one line, and nothing else.")] = False,
    debug: Debug = False,
) -> None:
    """Tell the errors and warnings of a script, without running it."""
    from eventide.commands.check import check_file

    raise typer.Exit(check_file(str(file), json))


@app.command(epilog=help_texts.EXPLAIN_EXAMPLES)
def explain(
    file: Script,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on one line, and nothing else.")] = False,
    debug: Debug = False,
) -> None:
    """Show the plan of a script: time, windows, what is kept, what runs where, and the SQL of each step."""
    from eventide.commands.explain import explain_file

    explain_file(str(file), json)


@app.command(epilog=help_texts.WHY_EXAMPLES)
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
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on one line, and nothing else.")] = False,
    debug: Debug = False,
) -> None:
    """Tell why windows of a query are open: who holds them, by which rule, since when, and when they close."""
    from eventide.commands.why import why_file

    why_file(str(file), query, window, checkpoint, json)


@app.command(epilog=help_texts.PROD_EXAMPLES)
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


@app.command(epilog=help_texts.INIT_EXAMPLES)
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


@app.command(epilog=help_texts.PROFILE_EXAMPLES)
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
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on one line, and nothing else.")] = False,
    plot: Annotated[
        str | None, typer.Option(metavar="DIR", help="Draw plots (PNG and SVG) into this directory.")
    ] = None,
    debug: Debug = False,
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
def version(
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, also with the versions of what Eventide stands on.")
    ] = False,
) -> None:
    """Print the version of Eventide."""
    from eventide.commands.version import show_version

    show_version(json)


def main() -> None:
    """Run a command; tell an error in one sentence, unless `--debug` asks for all of it."""
    from eventide.commands.leaving import run_to_its_end

    # However it was called: `python -m eventide` is no name that a shell could complete.
    run_to_its_end(lambda: app(prog_name="eventide"), debug="--debug" in sys.argv)


if __name__ == "__main__":
    main()
