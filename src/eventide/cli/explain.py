"""`eventide explain`: its arguments."""

from __future__ import annotations

from eventide.cli.arguments import CODES, Debug, Json, Script

EPILOG = f"""
[bold]Examples[/bold]

eventide explain traffic.sql

eventide explain traffic.sql --json | jq '.queries[].window'
{CODES}"""


def explain(
    file: Script,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the plan of a script: time, windows, what is kept, what runs where, and the SQL of each step."""
    from eventide.commands.explain import explain_file

    explain_file(str(file), json)
