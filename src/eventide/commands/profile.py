"""`eventide profile`: read recordings, profile them one by one, and show the findings as tables, plots or JSON.

Tables go to standard output; with JSON asked for, one line does, and nothing else. Progress goes to standard error.

*JSON.* One object has all findings: `{"runs": [{"file", "run", "rows", "sources", "disorder", "policies", ...}]}`.
Lengths of time are milliseconds. For plain sequence numbers (`"unit": "none"`) they are plain numbers under the same
keys. A ratio that is not known (no source with 1,000 rows, no row after the first 1,000) is null.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from eventide.errors import InputError
from eventide.launch.logs import Report, progress_shown
from eventide.profile.disorder import Disorder
from eventide.profile.dry_run import Outcome
from eventide.profile.files import ColumnNames
from eventide.profile.profiling import FIXED_BEST, Profile, check_names, profile, trade_off
from eventide.profile.reading import RoundChoice, read, time_and_arrival_unit
from eventide.profile.report import show

LISTED_SOURCES = 1_000
"""So many sources are listed, those with most rows first; `sources` counts them all."""


def as_json(profiles: Iterable[Profile]) -> str:
    """One line of JSON for all recordings."""
    return json.dumps({"runs": [_run(profile) for profile in profiles]}, allow_nan=False, ensure_ascii=False)


def _run(profile: Profile) -> dict[str, Any]:
    reading = profile.reading
    scale = 1.0 if reading.unitless else 1e-3
    policies = {name: _policy(outcome, scale) for name, outcome in profile.outcomes.items()}
    policies[FIXED_BEST]["delay_ms"] = profile.fixed_delay * scale
    return {
        "file": reading.file,
        "run": reading.run,
        "rows": reading.recording.rows,
        "sources": len(reading.recording.source_names),
        "unit": "none" if reading.unitless else "ms",
        "permitted_drop_ratio": profile.drop_ratio,
        "round_ms": None if profile.round is None else profile.round * scale,
        "notes": list(reading.notes),
        "rejects": reading.rejects,
        "disorder": _disorder(profile.disorder, reading.recording.source_names, scale),
        "policies": policies,
    }


def _policy(outcome: Outcome, scale: float) -> dict[str, float | None]:
    return {
        "drop_ratio": outcome.drop_ratio,
        "drop_ratio_after_1000": outcome.drop_ratio_after_1000,
        "worst_source_drop_ratio": outcome.worst_source_drop_ratio,
        "worst_stretch_drop_ratio": outcome.worst_stretch_drop_ratio,
        "lag_mean_ms": None if outcome.lag_mean is None else outcome.lag_mean * scale,
        "lag_p95_ms": None if outcome.lag_p95 is None else outcome.lag_p95 * scale,
        "buffered_mean_rows": outcome.buffered_mean_rows,
    }


def _disorder(found: Disorder, names: tuple[str, ...], scale: float) -> dict[str, Any]:
    rate = found.by_source.rate(per=1 if scale == 1.0 else 1_000_000)
    busiest = np.argsort(-found.by_source.rows, kind="stable")[:LISTED_SOURCES]
    return {
        "out_of_order": found.out_of_order,
        "out_of_order_within_sources": found.out_of_order_within_sources,
        "lateness_ms": _scaled(found.lateness, scale),
        "lateness_within_sources_ms": _scaled(found.lateness_within_sources, scale),
        "delay_ms": _scaled(found.delay, scale),
        "future_rows": found.future_rows,
        "per_source": [
            {
                "source": names[at],
                "rows": int(found.by_source.rows[at]),
                "rows_per_second": float(rate[at]) if np.isfinite(rate[at]) else None,
                "clock_offset_ms": float(found.by_source.smallest_delay[at] * scale),
                "median_delay_ms": float(found.by_source.median_delay[at] * scale),
                "out_of_order": float(found.by_source.out_of_order[at]),
                "longest_silence_ms": float(found.by_source.longest_silence[at] * scale),
                "first_seen_ms": float(found.by_source.first_seen[at] * scale),
                "last_seen_ms": float(found.by_source.last_seen[at] * scale),
            }
            for at in busiest
        ],
    }


def _scaled(lengths: Mapping[str, float], scale: float) -> dict[str, float]:
    return {name: length * scale for name, length in lengths.items()}


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


def run_profile(request: ProfileRequest) -> None:
    """Profile the recordings one by one, and show each as soon as it is done."""
    check_names(request.policies)
    time_and_arrival_unit(request.unit)
    drawn_into = None if request.plot is None else _directory(request.plot)
    # In a file or a pipe there is no edge to wrap at.
    console = Console(width=None if sys.stdout.isatty() else 120)
    found: list[Profile] = []
    with progress_shown() as progress:
        progress("reading", 0.0)
        for reading in read(request.files, request.columns, request.unit):
            length = request.round(reading.recording, reading.unitless)
            one = profile(reading, request.drop_ratio, length, request.policies, progress)
            if drawn_into is not None:
                for path in _draw(one, drawn_into, progress):
                    print(f"plot: {path}", file=sys.stderr)
            if request.json:
                found.append(one)
            else:
                show(one, console)
    if request.json:
        print(as_json(found))


def _draw(one: Profile, directory: Path, progress: Report) -> list[Path]:
    # Loading the plotting library takes longer than most dry runs: only who draws waits for it.
    from eventide.profile.plots import draw

    curves = trade_off(one, progress=progress)
    progress("drawing", 0.0)
    return draw(one, curves, directory)


def _directory(name: str) -> Path:
    directory = Path(name)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{name}: plots cannot be written there: {error.strerror}") from error
    return directory
