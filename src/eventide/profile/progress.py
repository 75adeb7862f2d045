"""How far something has come that takes seconds: a bar on a terminal, elsewhere a line now and then.

Law: it goes to standard error. What is done within `QUIET` seconds prints no line; then there is one every `EVERY`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

QUIET, EVERY = 3.0, 10.0
"""Seconds before the first line, and between two, where there is no terminal."""

Report: TypeAlias = Callable[[str, float], None]
"""Told the stage, and the share of it that is done."""


@contextmanager
def progress_shown(now: Callable[[], float] = time.monotonic) -> Iterator[Report]:
    """Show what is reported while the block runs."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(now).report
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda stage, share: bar.update(task, description=stage, completed=share)


class _Lines:
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
        with suppress(OSError):
            print(f"eventide: {stage}{done} ...", file=sys.stderr, flush=True)
