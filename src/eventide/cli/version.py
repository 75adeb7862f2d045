"""`eventide version`: its arguments."""

from __future__ import annotations

from typing import Annotated

import typer


def version(
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, also with the versions of what Eventide stands on.")
    ] = False,
) -> None:
    """Print the version of Eventide."""
    from eventide.commands.version import show_version

    show_version(json)
