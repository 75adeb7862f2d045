"""A line about a running engine every minute, for logs of services: `eventide run --log text`, `--log json`.

Law: there is a line at the start, one a minute, and one at the end, on standard error; results are never among them.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from eventide.commands.screen_status import StatusLine
from eventide.engine.running import Running
from eventide.errors import DeclarationError

FORMS = ("text", "json")
EVERY = 60.0
"""Seconds between two lines."""


def checked_log(form: str | None) -> str | None:
    """The form of lines, if there is such a one.

    >>> checked_log("xml")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: --log 'xml': choose text or json
    """
    if form is not None and form not in FORMS:
        raise DeclarationError(f"--log {form!r}: choose text or json")
    return form


@contextmanager
def logging_of(
    engine: Running, line: StatusLine, form: str | None, every: float = EVERY, now: Callable[[], datetime] | None = None
) -> Iterator[None]:
    """Write lines about an engine while the block runs; `form` None writes none."""
    if form is None:
        yield
        return
    clock = now or (lambda: datetime.now(UTC))
    ended = threading.Event()

    def write() -> None:
        with suppress(OSError):
            print(line_of(engine, line, form, clock()), file=sys.stderr, flush=True)

    def work() -> None:
        while not ended.wait(every):
            write()

    write()
    thread = threading.Thread(target=work, name="eventide-log", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        write()


def line_of(engine: Running, line: StatusLine, form: str, at: datetime) -> str:
    """One line: how many rows and results there were, how far time is behind, what was lost."""
    stamp = at.isoformat(timespec="seconds").replace("+00:00", "Z")
    if form == "text":
        return f"{stamp} {line.text()}, {line.results:,} results"
    status = engine.status()
    streams = [
        {
            "name": stream.name,
            "rows": stream.rows,
            "late": stream.late,
            "rejected": stream.rejected,
            "lag": stream.lag,
        }
        for stream in status.streams
    ]
    told = {"at": stamp, "round": status.round, "rows_per_second": status.rows_per_second, "results": line.results}
    return json.dumps({**told, "streams": streams})
