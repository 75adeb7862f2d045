"""Arguments and words that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CODES = """
[bold]Exit codes[/bold]

0: done. 1: a fault of Eventide's own.

2: what was given cannot be used (a file, a statement, an option).

3: it cannot go on (Spark, a disk, a sink).

130, 143: ended by Ctrl-C or SIGTERM. 141: nobody reads the output any more.
"""

Script = Annotated[
    Path,
    typer.Argument(metavar="FILE.sql", help="The script; - is standard input.", allow_dash=True, show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on one line, and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
