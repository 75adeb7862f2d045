"""The command line: arguments become calls. What the commands do is in `eventide.commands`.

Law: a command loads what it needs, and nothing else. `arguments.py` and `observing.py` have a function for each, which
imports what it calls when it is called. Exit codes are those of `eventide.commands.process`.
"""

from __future__ import annotations

import gc
import sys
from typing import Annotated

import typer

from eventide.cli import arguments, observing

COMMANDS = (
    "run", "plan", "check", "explain", "why", "prod", "console", "trace", "watch", "init", "profile", "checkpoint",
    "version",
)  # fmt: skip
"""In the order in which help lists them."""

ALLOCATIONS = 100_000
"""New objects before Python looks for garbage. Loading makes many, all to stay: its 700 cost a tenth of a start."""

CODES = """
[bold]Exit codes[/bold]

0: done. 1: a fault of Eventide's own.

2: what was given cannot be used (a file, a statement, an option).

3: it cannot go on (Spark, a disk, a sink).

130, 143: ended by Ctrl-C or SIGTERM. 141: nobody reads the output any more.
"""

EPILOGS = {
    "run": """
[bold]Examples[/bold]

What is there now, without Spark: eventide run traffic.sql --bounded --engine local

Until Ctrl-C, and on from there later: eventide run traffic.sql --checkpoint state

One JSON object a result: eventide run traffic.sql --json | jq .mean

As a filter, where a stream is FROM STDIN: tail -f app.jsonl | eventide run errors.sql

With another connector of Spark: eventide run orders.sql --package group:name:version

[bold]Exit codes[/bold]

0: done, or stopped by Ctrl-C or SIGTERM after the round under way. 1: a fault of Eventide's own.

2: what was given cannot be used (a file, a statement, an option, a checkpoint of another program).

3: the engine cannot go on (Spark, a disk, a sink); committed rounds are safe.

130, 143: Ctrl-C or SIGTERM before anything ran, or a second one. 141: nobody reads the output any more.
""",
    "plan": f"""
[bold]Examples[/bold]

What would change: eventide plan new.sql --checkpoint state

With the past of its files for a new query: eventide plan new.sql --checkpoint state --backfill busy

Then: eventide run new.sql --checkpoint state --accept
{CODES}""",
    "check": """
[bold]Examples[/bold]

eventide check traffic.sql

eventide check traffic.sql --json | jq '.findings[].message'

[bold]Exit codes[/bold]

0: no errors (there may be warnings). 2: errors, or the file cannot be read. 1: a fault of Eventide's own.
""",
    "explain": f"""
[bold]Examples[/bold]

eventide explain traffic.sql

eventide explain traffic.sql --json | jq '.queries[].window'
{CODES}""",
    "why": f"""
[bold]Examples[/bold]

Every open window of a query: eventide why traffic.sql speeds --checkpoint state

One of them, by its start (in UTC): eventide why traffic.sql speeds 12:05 --checkpoint state

For a program: eventide why traffic.sql speeds --checkpoint state --json | jq '.windows[].closes_at'
{CODES}""",
    "prod": f"""
[bold]Examples[/bold]

All open windows of a query: eventide prod speeds --checkpoint state

One group, and windows that end by noon (UTC): eventide prod speeds --group detector=1045 --up-to '2026-01-31 12:00'

For a program: eventide prod speeds --checkpoint state --json | jq .mean
{CODES}""",
    "console": f"""
[bold]Examples[/bold]

While it runs (with --console), or after: eventide console --checkpoint state

For somebody who is only to look: eventide console --checkpoint state --read-only
{CODES}""",
    "trace": f"""
[bold]Examples[/bold]

Where do heartbeats wait, and for whom: eventide trace --checkpoint state

For a program: eventide trace --checkpoint state --json | jq '.waits[]'
{CODES}""",
    "watch": f"""
[bold]Examples[/bold]

Until Ctrl-C: eventide watch --checkpoint state

For a program: eventide watch --checkpoint state --json | jq .words
{CODES}""",
    "init": f"""
[bold]Examples[/bold]

eventide init sensors.csv -o sensors.sql

eventide init 'logs/*.parquet' --time ts --source host

eventide init sensors.csv -o sensors.sql && eventide check sensors.sql && eventide run sensors.sql --bounded
{CODES}""",
    "profile": f"""
[bold]Examples[/bold]

eventide profile trades.csv.gz --time event_time --arrival received --source symbol

eventide profile 'logs/*.parquet' --time ts --arrival seen --source host,channel --drop-ratio 0.1% --plot plots

eventide profile sensors.jsonl --time t --unit ms --run day --policy eventide --policy kim --json
{CODES}""",
    "checkpoint": """
[bold]Examples[/bold]

Before a copy is thrown away: eventide checkpoint verify state

A copy of one moment, while a run goes on: eventide checkpoint copy state saved

Back to a round that is kept: eventide checkpoint list state; eventide checkpoint rewind state --round 41

[bold]Exit codes[/bold]

0: all is as it was written, or done. 2: something is damaged or missing, or there is no checkpoint.
""",
}
"""Below the arguments of a command: examples and exit codes."""


def app(*names: str) -> typer.Typer:
    """The command line with these commands, or with all."""
    made = typer.Typer(
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        help="Eventide: a data stream management system whose subject is event time.",
        epilog="Start with your own data: [bold]eventide init sample.csv -o first.sql[/bold], then check, then run.",
    )
    made.callback()(_options)
    for name in names or COMMANDS:
        made.command(epilog=EPILOGS.get(name))(getattr(arguments, name, None) or getattr(observing, name))
    return made


def _version(asked: bool) -> None:
    if asked:
        arguments.version()
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version of Eventide.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run a command; tell an error in one sentence, unless `--debug` asks for all of it."""
    from eventide.commands.process import run_to_its_end

    gc.set_threshold(ALLOCATIONS)
    # To make the others ready takes longer than to read the arguments of one.
    command = app(*(name for name in sys.argv[1:2] if name in COMMANDS))
    # However it was called: `python -m eventide` is no name that a shell could complete.
    given = with_address(sys.argv[1:])
    run_to_its_end(lambda: command(args=given, prog_name="eventide"), debug="--debug" in sys.argv)


def with_address(given: list[str]) -> list[str]:
    """The arguments, `--console` of a run with an address: without one it is any free port.

    >>> with_address(["run", "q.sql", "--console", "--bounded"])
    ['run', 'q.sql', '--console=', '--bounded']
    >>> with_address(["run", "--console", "8080", "q.sql"])
    ['run', '--console', '8080', 'q.sql']
    """
    found = list(given)
    if given[:1] == ["run"]:
        for place, one in enumerate(given):
            if one == "--console" and not is_address(given[place + 1] if place + 1 < len(given) else ""):
                found[place] = "--console="
    return found


def is_address(text: str) -> bool:
    """Whether a word behind `--console` is meant for it: a port, or a host with one.

    >>> [is_address(one) for one in ("8080", "localhost:0", "[::1]:80", "q.sql", "-", "--bounded", "localhost")]
    [True, True, True, False, False, False, False]
    """
    return text.rpartition(":")[2].isdigit()
