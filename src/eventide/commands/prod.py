"""`eventide prod`: early results of a query of an engine that runs in another process.

Law: asking changes nothing. Rows go to standard output, as `eventide run` shows or writes them; how the prod came goes
to standard error, where there is something to say about it.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import rich.console

from eventide.commands.outputs import ALL_ROWS
from eventide.commands.process import ReaderGoneError
from eventide.endpoint.auth import as_json
from eventide.endpoint.client import Client
from eventide.endpoint.discovery import ENDPOINT, Published
from eventide.errors import DeclarationError, EventideError
from eventide.language.select.group_patterns import patterns_of_text
from eventide.launch.logs import say
from eventide.results.results import Results
from eventide.sinks.console import Console

TEMPORARY = "eventide-checkpoint-*"
SAID = {
    "too early": "too early: no row of such a window has come yet",
    "too late": "too late: all these windows have their final results",
    "repeated": "repeated: nothing has come since the same answer",
}
INSTANT = re.compile(r"-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z?")


@dataclass(frozen=True)
class ProdRequest:
    """What the user asked for, and whom."""

    query: str
    checkpoint: str | None = None
    url: str | None = None
    token_file: str | None = None
    groups: list[str] = field(default_factory=list)
    where: str | None = None
    nulls: list[str] = field(default_factory=list)
    up_to: str | None = None
    json: bool = False


def prod_query(request: ProdRequest) -> None:
    """Ask, and print the answer."""
    groups: dict[str, Any] = {} if request.where is None else patterns_of_text(request.where)
    for name, value in groups_of(request.groups, request.nulls).items():
        _add(groups, name, value)
    answer = client_of(request).prod(request.query, groups, request.up_to)
    rows = answer["rows"]
    if request.json:
        _print_lines(rows)
    elif rows:
        _show(request.query, int(answer["round"]), table_of(rows))
    timing = str(answer.get("timing"))
    if timing in SAID:
        say(SAID[timing])
    elif not rows:
        say("no rows")


def client_of(request: ProdRequest) -> Client:
    """Whom to ask: the engine at an address, that of a checkpoint, or the only one with a temporary checkpoint."""
    if request.url is not None:
        if request.checkpoint is not None:
            raise DeclarationError("--url and --checkpoint both say which engine to ask: give one of them")
        if request.token_file is None:
            raise DeclarationError("--url needs the token too: --token-file FILE, the engine's endpoint.token")
        return Client.of_url(request.url, request.token_file)
    if request.token_file is not None:
        raise DeclarationError("--token-file goes with --url; a checkpoint has its token beside it")
    if request.checkpoint is not None:
        return Client.of_checkpoint(request.checkpoint)
    running = list(_temporary())
    if len(running) != 1:
        found = f"{len(running)} of them run" if running else "none runs"
        raise DeclarationError(
            "say which engine to ask: --checkpoint DIR, or --url and --token-file. Without, it is the one run of yours "
            f"that has a temporary checkpoint, and {found}"
        )
    return Client.of_checkpoint(running[0])


def _temporary() -> Iterable[Path]:
    """The temporary checkpoints of this user, in which an engine listens."""
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{TEMPORARY}/{ENDPOINT}")):
        # Others may write here too: what is theirs is none of our business.
        with suppress(OSError, EventideError):
            about = folder.parent.lstat()
            if about.st_uid == os.getuid() and not about.st_mode & 0o077:
                Published.read(folder.parent)
                yield folder.parent


def groups_of(given: list[str], nulls: list[str]) -> dict[str, str | None]:
    """Groups as the command line names them.

    >>> groups_of(["door=north", "note=a=b"], ["floor"])
    {'door': 'north', 'note': 'a=b', 'floor': None}
    """
    found: dict[str, str | None] = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name.strip():
            raise DeclarationError(f"--group {one!r} names no value: write --group NAME=VALUE (NULL: --null NAME)")
        _add(found, name.strip(), value)
    for name in nulls:
        _add(found, name, None)
    return found


def _add(found: dict[str, Any], name: str, value: Any) -> None:
    if name in found:
        raise DeclarationError(f"group {name!r} is given twice: give one value for each group")
    found[name] = value


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of JSON as a table for the screen; times are times again.

    >>> table_of([{"window_start": "2026-01-31T09:00:00.000000Z", "n": 1}]).schema.types
    [TimestampType(timestamp[us, tz=UTC]), DataType(int64)]
    """
    return pa.table({name: _column([row.get(name) for row in rows]) for name in rows[0]})


def _column(values: list[Any]) -> pa.Array:
    try:
        column = pa.array(values)
        if pa.types.is_string(column.type) and all(v is None or INSTANT.fullmatch(v) for v in values):
            column = column.cast(pa.timestamp("us", "UTC" if any(v and v.endswith("Z") for v in values) else None))
    except (pa.ArrowException, OverflowError):
        # Numbers and NaN, which is a text in JSON; or a moment beyond Arrow's calendar.
        column = pa.array([None if value is None else str(value) for value in values], pa.string())
    return column


def _show(query: str, round: int, rows: pa.Table) -> None:
    """All rows: drawn once on a terminal, however many there are, and as lines elsewhere."""
    output = rich.console.Console()
    screen = Console(ALL_ROWS, output)
    if screen.is_live:
        output.print(screen.table(query, rows))
    else:
        screen.emit(Results.of_table(query, round, rows))


def _print_lines(rows: list[dict[str, Any]]) -> None:
    if sys.stdout is None:
        raise DeclarationError("--json has nowhere to write: standard output is closed")
    try:
        sys.stdout.buffer.write(b"".join(as_json(row) for row in rows))
        sys.stdout.flush()
    except BrokenPipeError as gone:
        raise ReaderGoneError("nobody reads the results on standard output any more") from gone
