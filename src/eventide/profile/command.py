"""The command `eventide profile`: read, profile, show; recording by recording.

Tables go to standard output; with JSON asked for, one line does, and nothing else. Progress goes to standard error,
on a terminal only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from eventide.errors import InputError
from eventide.profile.as_json import as_json
from eventide.profile.candidates import check_names
from eventide.profile.files import Columns
from eventide.profile.profiling import Profile, profile
from eventide.profile.reading import read, time_and_arrival_unit
from eventide.profile.report import show
from eventide.profile.rounds import RoundChoice
from eventide.profile.trade_off import trade_off


@dataclass(frozen=True)
class Request:
    """What the user asked for; no policies named means all."""

    files: list[str]
    columns: Columns
    drop_ratio: float
    round: RoundChoice
    unit: str | None
    policies: list[str]
    json: bool
    plot: str | None


def run_profile(request: Request) -> None:
    """Do what was asked, showing each recording as soon as it is done."""
    check_names(request.policies)
    time_and_arrival_unit(request.unit)
    drawn_into = None if request.plot is None else _directory(request.plot)
    # In a file or a pipe there is no edge to wrap at.
    console = Console(width=None if sys.stdout.isatty() else 120)
    found: list[Profile] = []
    with _progress() as progress:
        progress("reading", 0.0)
        for reading in read(request.files, request.columns, request.unit):
            length = request.round(reading.recording, reading.plain)
            one = profile(reading, request.drop_ratio, length, request.policies, progress)
            if drawn_into is not None:
                for path in _draw(one, drawn_into, progress):
                    print(f"plot: {path}", file=sys.stderr)
            if request.json:
                found.append(one)
            else:
                show(one, console)
            progress("reading", 0.0)
    if request.json:
        print(as_json(found))


def _draw(one: Profile, directory: Path, progress: Callable[[str, float], None]) -> list[Path]:
    # Loading the plotting library takes longer than most dry runs: only who draws waits for it.
    from eventide.profile.plots import draw

    return draw(one, trade_off(one, progress=progress), directory)


def _directory(name: str) -> Path:
    directory = Path(name)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{name}: plots cannot be written there: {error.strerror}") from error
    return directory


@contextmanager
def _progress() -> Iterator[Callable[[str, float], None]]:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda stage, share: bar.update(task, description=stage, completed=share)
