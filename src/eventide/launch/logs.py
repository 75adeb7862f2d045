"""Logs of the engine, one line an event, and what a command says on standard error beside its results.

Laws. A line of the log says when, how grave, what happened, and then every figure under its name: `round=3 late=2`, or
one JSON object with the same names. Nothing is written anywhere until `configure` is called, or the user sets up
`logging` himself: all loggers are below `eventide`, and a figure is an attribute of the record (`extra`). Each event has
a name that stays the same from version to version (`docs/operations.md` lists them); where a line says more than that
in a sentence, this is its `message`. *Commands*
write lines on standard error, and a passing line or a bar where that is a terminal. Rich is loaded only to draw: a
command that prints into a pipe does not wait for it.

>>> record = logging.LogRecord("eventide.engine.running", logging.INFO, "", 0, "ended", None, None)
>>> record.round, record.created = 41, 1_700_000_000.25
>>> KeyValueFormatter().format(record)
'2023-11-14T22:13:20.250Z INFO ended round=41'
>>> JsonFormatter().format(record)
'{"time": "2023-11-14T22:13:20.250Z", "level": "INFO", "logger": "eventide.engine.running", "event": "ended", "round": 41}'
"""  # noqa: E501 - what is printed

from __future__ import annotations

import json as json_text
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from eventide.errors import EngineError
from eventide.masking import masked_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

ROOT = "eventide"
# What every record has; the rest was given as `extra`.
ORDINARY = frozenset(vars(logging.LogRecord("", 0, "", 0, "", None, None))) | {"message", "asctime", "taskName"}


def configure(
    json: bool = False, file: str | os.PathLike[str] | None = None, level: int | str = logging.INFO
) -> logging.Handler:
    """Write the engine's log to standard error, or to a file; every round is logged at level DEBUG.

    Called again it replaces what was set up before. Gives the handler, for those who want to take it away.
    """
    root = logging.getLogger(ROOT)
    try:
        handler = logging.StreamHandler(sys.stderr) if file is None else logging.FileHandler(file, encoding="utf-8")
        root.setLevel(level.upper() if isinstance(level, str) else level)
    except OSError as error:
        raise EngineError(f"cannot write the log to {os.fspath(file or '')}: {error.strerror}: name another") from error
    except ValueError as error:
        raise EngineError(f"{level!r} is no level of a log: write DEBUG, INFO, WARNING or ERROR") from error
    handler.setFormatter(JsonFormatter() if json else KeyValueFormatter())
    for former in [former for former in root.handlers if isinstance(former.formatter, KeyValueFormatter)]:
        root.removeHandler(former)
        former.close()
    root.addHandler(handler)
    # Otherwise a root logger that was set up too would say everything twice.
    root.propagate = False
    return handler


class KeyValueFormatter(logging.Formatter):
    """Lines for people: `key=value`, texts in quotes where they need them."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and below it the stack of an exception."""
        figures = "".join(f" {name}={_quoted(value)}" for name, value in figures_of(record).items())
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return masked_text(f"{_time(record)} {record.levelname} {record.getMessage()}{figures}{trace}")


class JsonFormatter(KeyValueFormatter):
    """Lines for machines: one JSON object each."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever happens."""
        event, message = event_of(record), record.getMessage()
        entry = {"time": _time(record), "level": record.levelname, "logger": record.name, "event": event}
        if message != event:
            entry["message"] = message
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json_text.dumps(_masked(entry | figures_of(record)), default=str)


def event_of(record: logging.LogRecord) -> str:
    """The name of what happened: given beside a sentence, or the whole text."""
    return str(getattr(record, "event", None) or record.getMessage())


def figures_of(record: logging.LogRecord) -> dict[str, Any]:
    """The values that a log record has besides its text and the name of its event."""
    return {name: value for name, value in vars(record).items() if name not in ORDINARY and name != "event"}


def _masked(entry: dict[str, Any]) -> dict[str, Any]:
    """Without secrets, before quotes are escaped."""
    return {name: masked_text(value) if isinstance(value, str) else value for name, value in entry.items()}


def _quoted(value: Any) -> str:
    text = str(value)
    return json_text.dumps(text) if not text or any(sign in text for sign in ' "=\n') else text


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")


DRAWN_PER_SECOND = 4
QUIET, EVERY = 3.0, 10.0
"""Seconds before the first line about something that takes long, and between two, where there is no terminal."""

Report: TypeAlias = Callable[[str, float], None]
"""Told the stage, and the share of it that is done."""


def say(text: str) -> None:
    """A line of our own on standard error; what cannot be said there is not worth failing for."""
    with suppress(OSError):
        print(f"eventide: {text}", file=sys.stderr, flush=True)


class _StderrHandler(logging.Handler):
    """Says what parts of Eventide have to tell while they work; what ends a command, the command says itself."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.ERROR:
            say(record.getMessage())


def say_warnings() -> None:
    """Say what sources and sinks warn of, such as a file that cannot be read any more."""
    log = logging.getLogger("eventide")
    if not any(isinstance(handler, _StderrHandler) for handler in log.handlers):
        log.addHandler(_StderrHandler(logging.WARNING))


@contextmanager
def events_as_json() -> Iterator[None]:
    """Write every event of the log as a line of JSON on standard error while the block runs."""
    root, handler = logging.getLogger(ROOT), logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    handler.setLevel(logging.INFO)
    before = root.level
    root.setLevel(min(before or logging.INFO, logging.INFO))
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


@contextmanager
def under_way(what: str) -> Iterator[None]:
    """Something that takes seconds: it is said, and on a terminal it moves and is gone when done."""
    console = _terminal()
    if console is None:
        say(what)
        yield
        return
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    with Live(Spinner("dots", Text(what)), console=console, transient=True, redirect_stdout=False):
        yield


@contextmanager
def passing(text: Callable[[], str]) -> Iterator[None]:
    """A line on standard error that changes, while results go elsewhere; only where it disturbs nobody."""
    # What functions of the user print may have been sent to standard error: the process' own output counts.
    output = sys.__stdout__ or sys.stdout
    console = None if output.isatty() else _terminal()
    if console is None:
        yield
        return
    from rich.live import Live
    from rich.text import Text

    def drawn() -> Text:
        return Text(text(), style="dim", no_wrap=True, overflow="ellipsis")

    with Live(
        console=console,
        get_renderable=drawn,
        refresh_per_second=DRAWN_PER_SECOND,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield


@contextmanager
def progress_shown(now: Callable[[], float] = time.monotonic) -> Iterator[Report]:
    """Tell how far something has come while the block runs: a bar on a terminal, elsewhere a line now and then."""
    console = _terminal()
    if console is None:
        yield _ProgressLines(now).report
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda stage, share: bar.update(task, description=stage, completed=share)


class _ProgressLines:
    """A line for a report, unless another was printed just before."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._due = now() + QUIET

    def report(self, stage: str, share: float) -> None:
        """Say how far the stage is, if it is time to."""
        if self._now() < self._due:
            return
        self._due = self._now() + EVERY
        done = f", {share:.0%}" if share else ""
        say(f"{stage}{done} ...")


def _terminal() -> Console | None:
    """Standard error, if somebody looks at it."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console

    return Console(stderr=True)
