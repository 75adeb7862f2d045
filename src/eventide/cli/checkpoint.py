"""`eventide checkpoint`: its arguments."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from eventide.cli.arguments import Debug, Json

EPILOG = """
[bold]Examples[/bold]

Before a copy is thrown away: eventide checkpoint verify state

[bold]Exit codes[/bold]

0: all is as it was written. 2: something is damaged or missing, or there is no checkpoint.
"""


class Action(str, Enum):  # noqa: UP042 - typer shows the values of such
    """What can be done with a checkpoint."""

    verify = "verify"


def checkpoint(
    action: Annotated[Action, typer.Argument(help="What to do with it.", show_default=False)],
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The checkpoint.", show_default=False)],
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Look a checkpoint over: its records, its state files by their checksums, the files of results it stands for."""
    from eventide.commands.checkpoint import verify_checkpoint

    raise typer.Exit(verify_checkpoint(folder, json))
