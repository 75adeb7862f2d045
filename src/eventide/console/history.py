"""What a console remembers of the rounds since somebody first asked for it: points, losses, cells, and last results.

Laws. All of it is bounded, whatever the rounds bring: `POINTS` rounds, `ROWS` results of each query, `CELLS` cells of
each stream, `NAMES` sources and reasons. The points are of about the last hour; where there are more, the older half is
thinned, so that what was just now is exact. Results that are on the cluster are counted and not brought here.

>>> history = RoundHistory()
>>> for round in range(2 * POINTS):
...     history.note(RoundReport(round, round * 1_000_000, {}, {}, {}, {}, {}))
>>> kept = history.points(-1)
>>> len(kept) <= POINTS, kept[-1].number, kept[-2].number, len(history.points(2 * POINTS - 3))
(True, 1439, 1438, 2)
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eventide.engine.round.report import STEPS, RoundReport
from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import EDGE
from eventide.results.results import Results

POINTS = 720
ROWS = 300
CELLS = 50_000
NAMES = 1_000
HOUR = 3600.0
LARGE = 20_000
"""Results of a round beyond which only the first ones are looked at."""


@dataclass(frozen=True)
class RoundPoint:
    """A round: its number, clock and the machine's time; heartbeats by stream, what was lost, seconds by step."""

    number: int
    clock: int
    wall: float
    rows: int
    results: int
    heartbeats: Mapping[str, int | None]
    moments: Mapping[str, int]
    """The clock of each stream that had rows: where rows say when they came, it is not that of the round."""
    late: int
    rejected: int
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class KeptRows:
    """Some results of a query that one round gave."""

    round: int
    table: pa.Table


class RoundHistory:
    """Listens to rounds; whoever reads gets copies, in any thread."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now, self._lock = now, threading.Lock()
        self._points: list[RoundPoint] = []
        self._rows: dict[str, deque[KeptRows]] = {}
        self._cells: dict[str, deque[Arrivals]] = {}
        self._held: Counter[str] = Counter()
        self._rows_by_source: dict[str, NDArray[np.int64]] = {}
        self._late: dict[str, Counter[str]] = {}
        self._reasons: Counter[str] = Counter()
        self.results: Counter[str] = Counter()
        """Results by query since the console began."""
        self.since = now()

    def note(self, work: RoundReport) -> None:
        """Take a committed round into account."""
        with self._lock:
            beats = {name: beat if abs(beat) < EDGE else None for name, beat in work.heartbeats.items()}
            seconds = tuple(work.seconds.get(step, 0.0) for step in STEPS)
            rejected, count = sum(work.rejected.values()), sum(one.rows for one in work.results.values())
            moments = {name: one.clock for name, one in work.arrivals.items()}
            late, wall = work.late_rows(), self._now()
            self._points.append(
                RoundPoint(work.number, work.clock, wall, work.rows, count, beats, moments, late, rejected, seconds)
            )
            if len(self._points) > POINTS:
                self._thin()
            for name, found in work.results.items():
                self.results[name] += found.rows
                if found.rows and found.frame is None and found.parts is None:
                    self._keep_rows(name, work.number, found)
            self._note_losses(work)
            for name, cells in work.arrivals.items():
                self._keep_cells(name, cells)

    def points(self, since: int) -> list[RoundPoint]:
        """The rounds after the one with this number."""
        with self._lock:
            return [one for one in self._points if one.number > since]

    def rows_of(self, query: str, since: int) -> list[KeptRows]:
        """The last results of a query that came after this round, the oldest first."""
        with self._lock:
            return [one for one in self._rows.get(query, ()) if one.round > since]

    def cells_of(self, stream: str) -> list[Arrivals]:
        """The cells of a stream, round by round."""
        with self._lock:
            return list(self._cells.get(stream, ()))

    def late_of(self, stream: str) -> Counter[str]:
        """Late rows of a stream by source, since the console began."""
        with self._lock:
            return Counter(self._late.get(stream, ()))

    def rows_by_source(self, stream: str) -> NDArray[np.int64]:
        """Rows of each source, by its number, since the console began."""
        with self._lock:
            found = self._rows_by_source.get(stream)
            return np.zeros(0, dtype=np.int64) if found is None else found.copy()

    @property
    def reasons(self) -> Counter[str]:
        """Rejected rows by reason, since the console began."""
        with self._lock:
            return Counter(self._reasons)

    def _thin(self) -> None:
        old = self._now() - HOUR
        kept = [one for one in self._points if one.wall >= old]
        if len(kept) > POINTS * 3 // 4:
            half = len(kept) // 2
            kept = kept[:half:2] + kept[half:]
        self._points = kept

    def _keep_rows(self, query: str, round: int, found: Results) -> None:
        batches = list(islice(found.batches(), None if found.rows <= LARGE else 1))
        table = pa.Table.from_batches(batches, schema=found.schema)
        # A copy: a slice would hold all rows of the round.
        last = table.slice(max(0, table.num_rows - ROWS)).take(pa.array(np.arange(min(ROWS, table.num_rows))))
        kept = self._rows.setdefault(query, deque())
        kept.append(KeptRows(round, last))
        while sum(one.table.num_rows for one in kept) - kept[0].table.num_rows >= ROWS:
            kept.popleft()

    def _note_losses(self, work: RoundReport) -> None:
        for stream, counts in work.late_by_source.items():
            _count(self._late.setdefault(stream, Counter()), counts)
        _count(self._reasons, work.rejected)

    def _keep_cells(self, stream: str, cells: Arrivals) -> None:
        if not len(cells.source):
            return
        rows = grown(self._rows_by_source.get(stream, np.zeros(0, dtype=np.int64)), cells.places, 0)
        rows[cells.sources] += cells.rows_by_source
        self._rows_by_source[stream] = rows
        kept = self._cells.setdefault(stream, deque())
        kept.append(cells)
        self._held[stream] += len(cells.source)
        hour = int(HOUR * 1_000_000)
        while len(kept) > 1 and (self._held[stream] > CELLS or kept[0].clock < cells.clock - hour):
            self._held[stream] -= len(kept.popleft().source)


def _count(counter: Counter[str], more: Mapping[str, int]) -> None:
    """Add counts; names beyond so many are counted together."""
    for name, count in more.items():
        counter[name if name in counter or len(counter) < NAMES else "(others)"] += count


def cell(value: Any) -> Any:
    """A value of a result as JSON has it: times in microseconds as text, large numbers as text.

    >>> from datetime import UTC, datetime
    >>> cell(datetime(2026, 1, 31, tzinfo=UTC)), cell(2**60), cell(1.5), cell(None), cell([1, "a"])
    ('2026-01-31T00:00:00+00:00', '1152921504606846976', 1.5, None, "[1, 'a']")
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
