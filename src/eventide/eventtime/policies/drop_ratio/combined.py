"""The second candidate of `DRATIO p`: all sources are judged together, by how far rows lie behind the largest time.

Where many sources are alike, or hardly ever in order, the least of what each promises is far safer than its parts, and
far slower than need be. Here one slack serves all of them. The *reference* is the largest time that a second source
vouches for (with one or two sources, the largest time), so no single clock that is set forward takes time with it. The
heartbeat trails the reference by the slack that a share `level` of the last rows exceeded (2,000 rows, or 20 / p if
that is more).

Law: a constant slack loses exactly the rows whose residual (reference less time of the row) exceeds it. So the
residuals say for every slack at once what it would have lost, with all sources in it and without any distribution. What
the candidate would lose is booked, and sets the level: p while nothing is owed, down to 0 as the debt comes near the
margin. At level 0 the slack is the largest residual remembered. A source that has lost between 1.7 p and 2 p of its
rows lowers the level for all, to 0 at 2 p.

>>> candidate = Combined(0.01)
>>> for second in range(100):
...     candidate.observe(Arrivals.of_row(second, source=0, time=10 * second), np.array([10 * second]))
>>> candidate.lift(ceiling=10**9)  # every row so far was 10 ahead of those before it
999
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrays import grown, packed, unpacked
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import NEVER, Instants
from eventide.eventtime.policies.drop_ratio.budget import Budget

_LEAST_RESIDUALS = 32
_WITNESSED_SOURCES = 3
_WINDOW_ROWS = 2_000
_WINDOW_LOST_ROWS = 20
"""A window in which so many rows may be lost says something of the slack that loses a share p."""
_MARGIN_ROWS = 200
_MARGIN_SHARE = 0.1
_JUDGED_ROWS = 1_000
"""A source with fewer rows is judged as if it had so many."""
_FAIR_FROM, _FAIR_TO = 1.7, 2.0


class Combined:
    """The reference, the residuals of the last rows behind it, and what would have been lost."""

    def __init__(self, ratio: float) -> None:
        self.budget = Budget(ratio)
        self.shown = NEVER
        self._reference = NEVER
        self._window = max(_WINDOW_ROWS, round(_WINDOW_LOST_ROWS / ratio))
        self._recent: deque[int] = deque()
        self._ascending: list[int] = []
        self._rows_by_source = np.zeros(0, dtype=np.int64)
        self._lost_by_source = np.zeros(0)

    def observe(self, arrivals: Arrivals, largest: Instants) -> None:
        """Book what the round would have lost, and learn its residuals; `largest` is every source's largest time."""
        late = arrivals.sum_by_source(np.where(arrivals.earliest <= self.shown, arrivals.rows, 0))
        warming_up = self.budget.warming_up
        self.budget.book(arrivals.total, float(late.sum()))
        source = arrivals.sources
        self._rows_by_source = grown(self._rows_by_source, len(largest), 0)
        self._lost_by_source = grown(self._lost_by_source, len(largest), 0.0)
        self._rows_by_source[source] += arrivals.rows_by_source
        self._lost_by_source[source] += late
        if warming_up and not self.budget.warming_up:
            self._lost_by_source[:] = 0.0
        if self._reference > NEVER:
            self._learn(self._reference - arrivals.earliest, arrivals.rows)
        self._reference = max(self._reference, self._witnessed(largest))

    def _witnessed(self, largest: Instants) -> int:
        """The largest time of the source that is second; of the first while there are only two."""
        if np.count_nonzero(self._rows_by_source) < _WITNESSED_SOURCES:
            return int(largest.max())
        return int(np.partition(largest, -2)[-2])

    def _learn(self, residuals: Instants, rows: NDArray[np.int64]) -> None:
        total = int(rows.sum())
        if total > self._window:
            # As many quantiles as there is room for, the largest residual among them.
            order = np.argsort(residuals)
            upto = np.cumsum(rows[order])
            wanted = np.arange(1, self._window + 1) * (total / self._window)
            residuals = residuals[order][np.minimum(np.searchsorted(upto, wanted - 1e-6), len(order) - 1)]
        elif total > len(rows):
            residuals = np.repeat(residuals, rows)
        new = residuals.tolist()
        self._recent.extend(new)
        outdated = [self._recent.popleft() for _ in range(len(self._recent) - self._window)]
        if len(new) > _LEAST_RESIDUALS:
            self._ascending = sorted(self._recent)
            return
        for residual in new:
            insort(self._ascending, residual)
        for residual in outdated:
            del self._ascending[bisect_left(self._ascending, residual)]

    def lift(self, ceiling: int) -> int:
        """The heartbeat, as high as the slack and the ceiling allow, and never lower than before."""
        if len(self._ascending) >= _LEAST_RESIDUALS:
            self.shown = max(self.shown, min(self._reference - self.slack() - 1, ceiling))
        return self.shown

    def slack(self) -> int:
        """How far the heartbeat trails the largest time; negative where rows lie ahead of those before them."""
        beyond = int(self.level() * len(self._ascending))
        return self._ascending[-1 - min(beyond, len(self._ascending) - 1)]

    def level(self) -> float:
        """The share of the rows that the slack may leave behind."""
        budget = self.budget
        margin = budget.ratio * (_MARGIN_ROWS + _MARGIN_SHARE * budget.judged_rows)
        owed = min(1.0, max(0.0, 1.0 + budget.balance / margin))
        worst = float((self._lost_by_source / np.maximum(self._rows_by_source, _JUDGED_ROWS)).max(initial=0.0))
        fair = min(1.0, max(0.0, (_FAIR_TO - worst / budget.ratio) / (_FAIR_TO - _FAIR_FROM)))
        return budget.ratio * owed * fair

    def exceeded(self, slack: int) -> tuple[int, int]:
        """How many of the rows remembered were later than this slack, and how many are remembered."""
        return len(self._ascending) - bisect_left(self._ascending, slack + 1), len(self._ascending)

    def snapshot(self) -> Snapshot:
        """All of it as plain data."""
        return {
            "budget": self.budget.snapshot(),
            "shown": self.shown,
            "reference": self._reference,
            "recent": packed(np.array(self._recent, dtype=np.int64)),
            "rows_by_source": packed(self._rows_by_source),
            "lost_by_source": packed(self._lost_by_source),
        }

    @classmethod
    def restored(cls, ratio: float, saved: Snapshot) -> Combined:
        """The candidate that `snapshot` described."""
        candidate = cls(ratio)
        candidate.budget = Budget.restored(ratio, saved["budget"])
        candidate.shown, candidate._reference = saved["shown"], saved["reference"]
        candidate._recent = deque(unpacked(saved["recent"]).tolist())
        candidate._ascending = sorted(candidate._recent)
        candidate._rows_by_source = unpacked(saved["rows_by_source"])
        candidate._lost_by_source = unpacked(saved["lost_by_source"])
        return candidate
