"""`eventide run` as a service: a log line every minute (`--log`), and an address where it can be asked.

*Log lines.* There is a line at the start, one a minute, and one at the end, on standard error; results are never among
them.

*Address.* The address that was named, otherwise a free port of this machine. What was asked for by name and cannot be
had is an error; what is only a convenience is left out with a word.
"""

from __future__ import annotations

import json
import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from eventide.endpoint.discovery import EXPOSED, Address
from eventide.endpoint.lifecycle import Endpoint, listen, listen_not
from eventide.engine.running import Running
from eventide.errors import DeclarationError, EngineError
from eventide.launch.logs import say
from eventide.report.status import StatusLine
from eventide.report.why import window_words

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
    entry = {"at": stamp, "round": status.round, "rows_per_second": status.rows_per_second, "results": line.results}
    return json.dumps({**entry, "streams": streams})


def listening(engine: Running, given: str | None, wanted: bool, quiet: bool) -> Endpoint | None:
    """Let an engine be asked, and say how; `quiet` where nobody would have the time to."""
    if not wanted:
        listen_not(engine)
        return None
    address = None if given is None else Address.read(given)
    try:
        endpoint = listen(engine, address, window_words)
    except EngineError as error:
        if given is not None:
            raise
        listen_not(engine)
        say(f"it cannot be asked while it runs: {error}")
        return None
    if not endpoint.address.is_loopback:
        say(f"warning: {endpoint.address.shown}: {EXPOSED} (--listen 127.0.0.1:PORT and a tunnel are safer)")
    if given is not None or (not quiet and sys.stderr.isatty()):
        folder = shlex.quote(str(endpoint.folder))
        say(f"listening at {endpoint.url}; to ask: eventide prod QUERY --checkpoint {folder}")
    return endpoint


def checked_listening(given: str | None, wanted: bool) -> None:
    """Refuse, before anything is started, what cannot be listened on."""
    if given is not None and not wanted:
        raise DeclarationError("--listen and --no-listen contradict each other: give one of them")
    if given is not None:
        Address.read(given)
