"""How often failure detection speaks on recordings of real streams: `python -m benchmarks.false_alarms [--json FILE]`.

Every recording is played in rounds of a second. Nobody knows of a failure in them, so an alarm counts as false when it
clears by itself: the silent source spoke again, the clock came back, or what was unusual became usual. A silence that
lasts until the recording ends is one that somebody wanted to hear of.

The freeways of the demo are played too. There the failures are known: one detector falls silent, the clock of one jumps
by 40 s, and a cabinet of 60 detectors loses its line for 50 s.

The last line is one JSON object, by recording and kind of alarm: `raised`, `false`, and `false_per_source_hour`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.harness import finish, options, show_table
from benchmarks.heartbeats.recordings import RUNS, Run
from eventide.eventtime.detection.clock_offset import ClockOffsets
from eventide.eventtime.detection.silence import SourceSilence
from eventide.profile.dry_run import Timetable
from eventide.profile.reading import Recording
from examples.freeway import readings

ROUND = 1_000_000
KINDS = ("silence", "jump", "drift")
TRIPS = ("trip1", "trip2")
MORE = (
    *(Run(f"vehicle, trip {n}", "vehicle_telematics.csv.gz", f"trip = '{n}'") for n in TRIPS),
    Run("freeway, by its own time", "freeway_loops.csv.gz", "true", "event_time_ms", "event_time_ms"),
)


def recordings() -> Iterator[Recording]:
    """All that are there, and the demo."""
    yield from (found for run in (*RUNS, *MORE) if (found := run.load()) is not None)
    rows = readings()
    time, arrival = (pc.cast(rows.column(name), pa.int64()).to_numpy() for name in ("ts", "arrived"))
    yield Recording.of("demo", time, arrival, rows.column("detector").to_numpy())


def alarms(recording: Recording) -> dict[str, Any]:
    """What each detector raised, and what of it cleared."""
    silences, offsets = SourceSilence(), ClockOffsets()
    open_now: dict[str, set[int]] = {kind: set() for kind in KINDS}
    raised: Counter[str] = Counter()
    cleared: Counter[str] = Counter()
    for arrivals in Timetable.in_rounds(recording, ROUND).arrivals():
        silences.note(arrivals)
        offsets.note(arrivals)
        for kind, found in zip(KINDS, (silences.silent(), offsets.jumped(), offsets.drifted()), strict=True):
            now = set(found.tolist())
            raised[kind] += len(now - open_now[kind])
            cleared[kind] += len(open_now[kind] - now)
            open_now[kind] = now
    hours = float(recording.arrival[-1] - recording.arrival[0]) / 3.6e9 * len(recording.source_names)
    return {
        kind: {
            "raised": raised[kind],
            "false": cleared[kind],
            "false_per_source_hour": cleared[kind] / hours if hours else None,
        }
        for kind in KINDS
    }


def main() -> None:
    """Play every recording, show, and end with the line of JSON."""
    asked = options("false alarms on recordings")
    found = {recording.name: alarms(recording) for recording in recordings()}
    rows = [
        (name, *(f"{each[kind]['raised']} raised, {each[kind]['false']} cleared" for kind in KINDS))
        for name, each in found.items()
    ]
    show_table("alarms", ["recording", *KINDS], rows)
    finish(asked, found)


if __name__ == "__main__":
    main()
