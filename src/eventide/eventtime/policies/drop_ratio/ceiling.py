"""The ceiling: how far heartbeats may go beyond what sources have said, for the rows that this puts at stake.

What a candidate would have lost is known, what it is about to lose for the first time is not: a host that is silent for
45 s and then sends the 1,300 rows it kept has never done so before. So whichever candidate is followed, the *ceiling*
holds it.

Law: let a source send `rate` rows for each unit of its time. If it is only held up, a heartbeat at a distance d beyond
its largest time loses `rate * d` rows. As long as d is within its *run*, the silence beyond what is normal for it (or
what its period lets one expect), that happens with the chance of `silence.py`; beyond it the source has had no time to
send these rows, so they are surely still to come. The ceiling is the largest time at which

- the rows at stake of each source are within the budget (`loss_account.py`), and within what the source may still lose;
- those of all sources together are within the budget,

with one and a half rows of each source taken off, because a random stream is silent for so long as a rule. Rows that
share one time are lost together, so they count as soon as the heartbeat goes beyond the largest time.

>>> source = Stakes(largest=np.array([100]), rate=np.array([1.0]), run=np.array([50]), least=np.array([0]),
...     chance=np.array([0.1]), crowd=np.array([1.0]))
>>> source.reach(budget=3.0, left=np.array([9.0])).tolist(), source.reach(budget=6.5, left=np.array([9.0])).tolist()
([45], [53])
>>> source.common(ceiling=170, budget=6.5)
152
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.instant import EDGE, Instants

_FREE_ROWS = 1.5
_STEPS = 8
_FAR = 2.0 * EDGE


class Stakes(NamedTuple):
    """Per source: its largest time, rows for each unit of time, run, what its period promises, chance and crowd."""

    largest: Instants
    rate: NDArray[np.float64]
    run: Instants
    least: Instants
    chance: NDArray[np.float64]
    crowd: NDArray[np.float64]

    def only(self, chosen: NDArray[np.intp] | slice) -> Stakes:
        """The chosen sources."""
        times = self.largest[chosen], self.rate[chosen], self.run[chosen], self.least[chosen]
        return Stakes(*times, self.chance[chosen], self.crowd[chosen])

    def reach(self, budget: float, left: NDArray[np.float64]) -> Instants:
        """How far beyond its largest time a heartbeat may go for each source alone, given what it may still lose."""
        free = np.where(left > 0, min(_FREE_ROWS, budget), 0.0)
        rows = np.minimum(budget, np.maximum(left, 0.0)) - self.chance * (self.crowd - 1) + free
        within = self.chance * self.rate
        for_run = within * self.run
        reach = np.where(rows <= for_run, rows / within, self.run + (rows - for_run) / self.rate)
        return np.minimum(np.maximum(np.where(rows > 0, reach, 0.0), self.least), _FAR).astype(np.int64)

    def common(self, ceiling: int, budget: float) -> int:
        """A ceiling, lowered until the rows at stake of all sources are within the budget."""
        free = min(_FREE_ROWS, budget)
        within = self.chance * self.rate
        crowd = self.chance * (self.crowd - 1)
        # Newton's steps on a convex function from above: each ends above the solution or on it.
        for _ in range(_STEPS):
            beyond = (ceiling - self.largest).astype(np.float64)
            past = np.maximum(beyond - self.run, 0.0)
            stake = within * (beyond - past) + self.rate * past + crowd - free
            risky = (beyond > 0) & (stake > 0)
            excess = float(stake.sum(where=risky)) - budget
            slope = float(np.where(past > 0, self.rate, within).sum(where=risky))
            if excess <= 0 or slope <= 0:
                break
            ceiling -= int(min(excess / slope, _FAR)) + 1
        return ceiling
