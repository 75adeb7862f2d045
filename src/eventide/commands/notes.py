"""What a command says beside its results: lines on standard error, and a passing line where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import rich.console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

DRAWN_PER_SECOND = 4


def say(text: str) -> None:
    """A line of our own on standard error; what cannot be said there is not worth failing for."""
    with suppress(OSError):
        print(f"eventide: {text}", file=sys.stderr, flush=True)


@contextmanager
def under_way(what: str) -> Iterator[None]:
    """Something that takes seconds: it is said, and on a terminal it moves and is gone when done."""
    console = rich.console.Console(stderr=True)
    if not console.is_terminal:
        say(what)
        yield
        return
    with Live(Spinner("dots", Text(what)), console=console, transient=True, redirect_stdout=False):
        yield


@contextmanager
def passing(text: Callable[[], str]) -> Iterator[None]:
    """A line on standard error that changes, while results go elsewhere; only where it disturbs nobody."""
    console = rich.console.Console(stderr=True)
    if sys.stdout.isatty() or not console.is_terminal:
        yield
        return

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
