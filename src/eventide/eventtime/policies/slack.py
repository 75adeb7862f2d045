"""`SLACK n`: hold n rows back (Aurora's SLACK; Kim et al., section 4, query Q1).

Law: a row is late exactly when more than n rows with larger times came before it. So the heartbeat is the (n+1)-th
largest time seen, less one: rows that tie with it are exactly n places out of order and are still welcome.

Rows of one round arrive together. All rows of a cell are taken to be at its earliest time, so a digested round never
promises more than its rows one by one.

Limits: n says nothing of time: in a slow stream n rows are an age, and in silence the last n rows stay (wrap it in
`Timeout`). A busy source pushes the rows of a slow one out of the buffer.

>>> generator = Slack(rows=2).start()
>>> for time in (10, 30, 20, 40):
...     generator.observe(Arrivals.of_row(clock=0, source=0, time=time))
>>> generator.heartbeats(0).combined
19

*Memory.* A buffer of n rows remembers the n largest times seen, and nothing more.

>>> seen = LargestTimes(keep=3)
>>> seen.add(np.array([10, 40]), rows=np.array([2, 1]))
>>> seen.least
10
>>> seen.add(np.array([30]), rows=np.array([1]))
>>> seen.least
10
>>> seen.add(np.array([50]), rows=np.array([7]))
>>> seen.least
50
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Ratchet, SavedGenerator, SavedPolicy, SavedState
from eventide.eventtime.instant import NEVER, Instants, shift
from eventide.eventtime.reason import LeftOut, Reason


class LargestTimes(SavedState):
    """The `keep` largest times, as descending times with a number of rows each."""

    SAVED = ("_times", "_rows")

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._times: Instants = np.zeros(0, dtype=np.int64)
        self._rows: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    @property
    def least(self) -> int:
        """The `keep`-th largest time seen; `NEVER` while fewer rows were seen."""
        return int(self._times[-1]) if int(self._rows.sum()) >= self._keep else NEVER

    def add(self, times: Instants, rows: NDArray[np.int64]) -> None:
        """See `rows[i]` more rows at `times[i]`."""
        higher = times > self.least
        if not higher.any():
            return
        times = np.concatenate((self._times, times[higher]))
        rows = np.concatenate((self._rows, np.minimum(rows[higher], self._keep)))
        descending = np.argsort(times, kind="stable")[::-1]
        enough = int(np.searchsorted(np.cumsum(rows[descending]), self._keep)) + 1
        self._times = times[descending[:enough]]
        self._rows = rows[descending[:enough]]


@dataclass(frozen=True)
class Slack(SavedPolicy["SlackGenerator"]):
    """Hold back the `rows` rows with the largest times.

    >>> Slack(-1)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: slack of -1 rows: give how many rows to hold back, 0 or more
    """

    rows: int

    def __post_init__(self) -> None:
        if self.rows < 0:
            raise DeclarationError(f"slack of {self.rows} rows: give how many rows to hold back, 0 or more")

    def start(self) -> SlackGenerator:
        """A heartbeat generator with an empty buffer."""
        return SlackGenerator(self)


class SlackGenerator(SavedGenerator):
    """Remembers the times in the buffer and the one just pushed out."""

    KIND = "slack"
    SAVED = ("_largest", "_sources", "_ratchet")

    def __init__(self, policy: Slack) -> None:
        self._rows = policy.rows
        self._largest = LargestTimes(keep=policy.rows + 1)
        self._sources = 0
        self._ratchet = Ratchet()

    def observe(self, arrivals: Arrivals) -> None:
        """Put a round into the buffer."""
        if arrivals.total:
            self._largest.add(arrivals.earliest, arrivals.rows)
            self._sources = max(self._sources, arrivals.places)

    def heartbeats(self, clock: int) -> Heartbeats:
        """Just below the last time pushed out, for every source; the clock plays no part."""
        return self._ratchet.lift_all(shift(self._largest.least, -1), self._sources)

    def why(self, source: int) -> Reason:
        """The number of rows held back."""
        return Reason("slack", "{rows:count} rows are held back", {"rows": self._rows}, common=True)

    def left_out(self) -> tuple[LeftOut, ...]:
        """None: all sources have one heartbeat, and none is waited for."""
        return ()
