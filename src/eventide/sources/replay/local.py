"""A replay as an input of the local engine: what is due by the clock is there to be taken.

Law: rows come in the order of the schedule, none before it is due. The position holds the moment at which the replay
began, so that after a restart it goes on as if it had never stopped: what fell due meanwhile is there at once.

>>> import os, tempfile; import pyarrow.parquet as pq
>>> from eventide.plan.declared.stream import Input, columns
>>> folder = tempfile.mkdtemp(); pq.write_table(pa.table({"t": [105, 100, 160]}), os.path.join(folder, "r.parquet"))
>>> given = Input("replay", os.path.join(folder, "r.parquet"), options=(("schedules", folder),))
>>> now = 1_000
>>> replayed = ReplayInput(Stream("s", columns("t BIGINT"), time="t", input=given), clock=lambda: now)
>>> replayed.take(9, 0)["t"].to_pylist(), replayed.take(9, 0)
([100], None)
>>> now = 1_059
>>> replayed.take(9, 0)["t"].to_pylist(), replayed.position(), replayed.ended
([105], {'rows': 2, 'start': 1000}, False)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from eventide.plan.declared.stream import Stream
from eventide.sources.local_input import CountedInput
from eventide.sources.replay.planning import planned

LOOK_AGAIN = 0.01
"""Seconds between two looks at the clock while waiting."""


def wall_clock() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


class ReplayInput(CountedInput):
    """The rows of a replay, as they fall due by a clock in microseconds."""

    def __init__(self, stream: Stream, clock: Callable[[], int] = wall_clock) -> None:
        super().__init__()
        self._schedule = planned(stream)
        self._clock = clock
        self._start: int | None = None

    @property
    def ended(self) -> bool:
        """Whether all rows were taken."""
        return self._rows == self._schedule.rows

    def take(self, max_rows: int, wait: float) -> pa.Table | None:
        """Take the rows that are due by the clock."""
        if self._start is None:
            self._start = self._clock()
        deadline = time.monotonic() + wait
        while not self.ended:
            due = self._schedule.due_by(self._clock() - self._start)
            if due > self._rows:
                stop = min(due, self._rows + max_rows)
                delivered = pa.Table.from_batches(self._schedule.read(self._rows, stop))
                self._rows = stop
                return delivered
            rest = deadline - time.monotonic()
            if rest <= 0:
                break
            time.sleep(min(rest, LOOK_AGAIN))
        return None

    def position(self) -> dict[str, Any]:
        """How many rows were taken, and when the replay began."""
        return {"rows": self._rows, "start": self._start}

    def seek(self, position: dict[str, Any]) -> None:
        """Go on from a saved position."""
        self._rows = int(position["rows"])
        self._noted = self._rows
        self._start = None if position["start"] is None else int(position["start"])

    def portion(self) -> dict[str, Any]:
        """How many rows were taken since this was last asked, and when the replay began."""
        return {**super().portion(), "start": self._start}

    def repeat(self, portion: dict[str, Any]) -> tuple[pa.Table | None, bool]:
        """Take as many rows again, which were due then, and go on by the clock of then."""
        self._start = None if portion["start"] is None else int(portion["start"])
        wanted = int(portion["rows"])
        start, self._rows = self._rows, min(self._rows + wanted, self._schedule.rows)
        delivered = pa.Table.from_batches(self._schedule.read(start, self._rows)) if self._rows > start else None
        return delivered, self._rows - start == wanted

    def close(self) -> None:
        """The file is closed when nobody reads it any more."""
