"""What a command says beside its results: lines on standard error, and a passing line where that is a terminal.

Rich is loaded only to draw: a command that prints into a pipe does not wait for it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

DRAWN_PER_SECOND = 4


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


def _terminal() -> Console | None:
    """Standard error, if somebody looks at it."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console

    return Console(stderr=True)
