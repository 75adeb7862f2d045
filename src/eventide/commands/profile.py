"""`eventide profile`: read recordings, profile them one by one, and show the findings as tables, plots or JSON.

Tables go to standard output; with JSON asked for, one line does, and nothing else. Progress goes to standard error.

*JSON.* One object has all findings: `{"runs": [{"file", "run", "rows", "sources", "disorder", "policies", ...}]}`.
Lengths of time are milliseconds. For plain sequence numbers (`"unit": "none"`) they are plain numbers under the same
keys. A ratio that is not known (no source with 1,000 rows, no row after the first 1,000) is null.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from eventide.errors import InputError
from eventide.launch.logs import Report, progress_shown
from eventide.pages.page import write_page
from eventide.pages.profile_page import Curves, profile_page
from eventide.profile.files import ColumnNames
from eventide.profile.findings import findings
from eventide.profile.profiling import Profile, check_names, profile, trade_off
from eventide.profile.reading import RoundChoice, read, time_and_arrival_unit
from eventide.profile.report import show


def as_json(profiles: Iterable[Profile]) -> str:
    """One line of JSON for all recordings."""
    return json.dumps({"runs": [findings(profile) for profile in profiles]}, allow_nan=False, ensure_ascii=False)


@dataclass(frozen=True)
class ProfileRequest:
    """What the user asked for; no policies named means all."""

    files: list[str]
    columns: ColumnNames
    drop_ratio: float
    round: RoundChoice
    unit: str | None
    policies: list[str]
    json: bool
    plot: str | None
    html: str | None


def run_profile(request: ProfileRequest) -> None:
    """Profile the recordings one by one, and show each as soon as it is done."""
    check_names(request.policies)
    time_and_arrival_unit(request.unit)
    drawn_into = None if request.plot is None else _directory(request.plot)
    # In a file or a pipe there is no edge to wrap at.
    console = Console(width=None if sys.stdout.isatty() else 120)
    found: list[Profile] = []
    drawn: list[tuple[Profile, Curves]] = []
    with progress_shown() as progress:
        progress("reading", 0.0)
        for reading in read(request.files, request.columns, request.unit):
            length = request.round(reading.recording, reading.unitless)
            one = profile(reading, request.drop_ratio, length, request.policies, progress)
            if request.plot is not None or request.html is not None:
                drawn.append((one, trade_off(one, progress=progress)))
            if drawn_into is not None:
                for path in _draw(*drawn[-1], drawn_into, progress):
                    print(f"plot: {path}", file=sys.stderr)
            if request.json:
                found.append(one)
            else:
                show(one, console)
    if request.html is not None:
        write_page(request.html, profile_page(drawn))
    if request.json:
        print(as_json(found))


def _draw(one: Profile, curves: Curves, directory: Path, progress: Report) -> list[Path]:
    # Loading the plotting library takes longer than most dry runs: only who draws waits for it.
    from eventide.profile.plots import draw

    progress("drawing", 0.0)
    return draw(one, curves, directory)


def _directory(name: str) -> Path:
    directory = Path(name)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{name}: plots cannot be written there: {error.strerror}") from error
    return directory
