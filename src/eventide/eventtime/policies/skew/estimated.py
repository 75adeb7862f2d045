"""Heartbeats from skew bounds that are estimated while the stream runs (Srivastava and Widom, section 6).

Nothing is declared. What counts is the skew at arrival (the matrix B'), in which clocks and network are one. For a
target j, a reference and each t in 0, 1, ..., `units_ahead`, the estimate lag[t] says: a row of j comes with a time
greater than what the reference had reached t units of the clock ago, less lag[t]. So

    heartbeat of j = the largest, over references and t, of (reference t units ago) - lag[t]

and a row of j that arrives shows that lag[t] should have been at least (reference t units ago) - its time + 1. How the
estimates follow the rows is said below. They change after a promise was made, so what stands at the moment is promised,
never less than before.

**References.** With `pairwise=True` every source is a reference for every other: the full B', n x n x t cells, for a
few dozen sources. Otherwise a target has two: its own largest time, and the largest of all sources (all senders as
one group, section 5.2): 2 x n x t cells, for any number. While anyone speaks, even silent sources advance, trailing
by what they last showed.

**Limits.** Nothing is guaranteed: a row is late whenever it trails by more than was seen lately. A discovered source
has no estimate before its first row; declare it `known` and all wait for that row. In silence heartbeats come to rest
after `units_ahead` units, by default at once: wrap in a timeout.

>>> generator = EstimatedSkew().start()
>>> for clock, source, time in [(0, 0, 100), (1, 1, 70), (2, 0, 110), (3, 1, 85)]:
...     generator.observe(Arrivals.of_row(clock, source, time))
>>> generator.heartbeats(3).by_source.tolist()
[110, 85]

*The estimates* (figure 4, for all cells at once). A cell (target, reference, t) estimates the lag of a target behind a
reference as it stood t units of the clock ago. Each row shows the least lag that would have let it pass. Law, for each
cell:

- a row that shows more than the estimate raises it at once, and the count starts anew;
- after more than W rows, or more than W of the clock, without that, the estimate falls to alpha x itself + (1 - alpha)
  x the most those rows showed; with alpha = 1 it never falls;
- adaptive adaptivity (section 6.2): an estimate exceeded more often than tolerated doubles W, four falls in a row halve
  it, within a factor of 16 of the W declared.

Rows of a round come together: the one that shows most speaks for all, and the estimate falls at most once in a round,
so a round never falls lower than its rows one by one. Falls are rounded up, but by one at least.

>>> policy = Adaptivity(window=2, weight=0.5, tolerated=None)
>>> cell = SkewEstimates(policy, references=1, units=1)
>>> cell.grow(targets=1, references=1)
>>> for shown in [10, 0, 4, 0]:
...     cell.learn(np.array([0]), np.array([[[shown]]]), np.array([[[True]]]), rows=np.array([1]))
...     print(cell.lag[0, 0, 0])
10
10
10
7
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError, SnapshotError
from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Ratchet, SavedGenerator, SavedPolicy, SavedState, Snapshot
from eventide.eventtime.instant import FOREVER, NEVER, Instants, shift_all
from eventide.eventtime.reason import NOT_HEARD, LeftOut, Reason, not_expected
from eventide.eventtime.sources import check_known, slowest

FALLS_UNTIL_FASTER = 4
WIDEST = 16


@dataclass(frozen=True)
class ClockSpan:
    """A window of so much of the clock, in the place of so many rows.

    >>> Adaptivity(window=ClockSpan(60_000_000)).length
    60000000
    """

    length: int


@dataclass(frozen=True)
class Adaptivity:
    """How estimates follow: `window` (W) rows, `weight` (alpha) of the old estimate, `tolerated` share of rows above.

    Without `window`, or with a weight of 1, estimates never fall: the maximum seen. Without `tolerated` the window
    keeps its length: figure 4 as it is printed. A window may be a `ClockSpan`.

    >>> Adaptivity(window=0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a window of 0 rows: give 1 or more, or None for estimates that never fall
    """

    window: int | ClockSpan | None = 100
    weight: float = 0.5
    tolerated: float | None = 0.01

    def __post_init__(self) -> None:
        if self.length is not None and self.length < 1:
            what = "of the clock" if isinstance(self.window, ClockSpan) else "rows"
            raise DeclarationError(
                f"a window of {self.length} {what}: give 1 or more, or None for estimates that never fall"
            )
        if not 0 <= self.weight <= 1:
            raise DeclarationError(f"weight {self.weight} must be from 0 to 1, where estimates never fall")
        if self.tolerated is not None and not 0 < self.tolerated < 1:
            raise DeclarationError(f"tolerated {self.tolerated} must be a share between 0 and 1: write 0.01 for 1 %")

    @property
    def length(self) -> int | None:
        """W in rows, or in ticks of the clock."""
        return self.window.length if isinstance(self.window, ClockSpan) else self.window

    @property
    def never_falls(self) -> bool:
        """Whether estimates are the maximum seen."""
        return self.window is None or self.weight == 1


class SkewEstimates(SavedState):
    """Arrays over (target, reference, t); `_rows` of a window of the clock is when it began."""

    SAVED = ("lag", "_most", "_rows", "_calm", "_falls", "_window")

    def __init__(self, adaptivity: Adaptivity, references: int, units: int) -> None:
        self._adaptivity = adaptivity
        shape = (0, references, units)
        self.lag: Instants = np.zeros(shape, dtype=np.int64)
        self._most: Instants = np.zeros(shape, dtype=np.int64)
        self._rows: Instants = np.zeros(shape, dtype=np.int64)
        self._calm: Instants = np.zeros(shape, dtype=np.int64)
        self._falls: Instants = np.zeros(shape, dtype=np.int64)
        self._window: Instants = np.zeros(shape, dtype=np.int64)

    def grow(self, targets: int, references: int) -> None:
        """Make room for new targets and references; their estimates start at 0."""
        more = (targets - self.lag.shape[0], references - self.lag.shape[1])
        if max(more) > 0:
            pad = ((0, more[0]), (0, more[1]), (0, 0))
            for name in ("lag", "_most", "_rows", "_calm", "_falls"):
                setattr(self, name, np.pad(getattr(self, name), pad))
            self._window = np.pad(self._window, pad, constant_values=self._adaptivity.length or 0)

    def learn(
        self,
        targets: NDArray[np.intp],
        shown: Instants,
        meant: NDArray[np.bool_],
        rows: NDArray[np.int64],
        clock: int = 0,
    ) -> None:
        """Take in the most that the rows of a round showed for each of `targets`, where there was a reference."""
        # When all speak, a slice spares a copy of every array.
        at = slice(None) if len(targets) == len(self.lag) else targets
        lag = self.lag[at]
        exceeded = meant & (shown > lag)
        length = self._adaptivity.length
        if length is None or self._adaptivity.never_falls:
            self.lag[at] = np.where(exceeded, shown, lag)
            return
        came = rows[:, None, None] * meant
        by_clock = isinstance(self._adaptivity.window, ClockSpan)
        count = clock - self._rows[at] if by_clock else self._rows[at] + came
        most = np.maximum(self._most[at], np.where(meant, shown, 0))
        full = ~exceeded & (count > self._window[at])
        falling = full & (most < lag)
        if self._adaptivity.tolerated is not None:
            calm = self._calm[at] + came
            hasty = exceeded & (calm < 1 / self._adaptivity.tolerated)
            self._calm[at] = np.where(exceeded, 0, calm)
            falls = np.where(exceeded | (full & ~falling), 0, self._falls[at] + falling)
            slow = falls >= FALLS_UNTIL_FASTER
            self._falls[at] = np.where(slow, 0, falls)
            shortest, longest = max(length // WIDEST, 1), length * WIDEST
            window = np.where(hasty, self._window[at] * 2, np.where(slow, self._window[at] // 2, self._window[at]))
            self._window[at] = np.minimum(np.maximum(window, shortest), longest)
        # Floats near 2**63 may round beyond int64.
        fall = np.minimum((lag - most) * (1 - self._adaptivity.weight), 2.0**62).astype(np.int64)
        self.lag[at] = np.where(exceeded, shown, np.where(falling, lag - np.maximum(fall, 1), lag))
        self._most[at] = np.where(exceeded | full, 0, most)
        begins, goes_on = (clock, self._rows[at]) if by_clock else (0, count)
        self._rows[at] = np.where(exceeded | full, begins, goes_on)


@dataclass(frozen=True)
class EstimatedSkew(SavedPolicy["EstimatedSkewGenerator"]):
    """Estimate the skew between sources and promise by it; works without any argument.

    The defaults: estimates fall by half after 100 calm rows, and 1 % of rows may exceed them before that gets slower
    (`Adaptivity`); only t = 0, so promises change with rows alone and whatever the clock counts will do, row numbers
    too; two references per source; sources are discovered. With `units_ahead`, also say what a unit of the clock is.

    >>> EstimatedSkew(Adaptivity(window=None), clock_unit=500_000, units_ahead=4, pairwise=True, known=3).known
    3
    """

    adaptivity: Adaptivity = field(default_factory=Adaptivity)
    clock_unit: int = 1
    units_ahead: int = 0
    pairwise: bool = False
    known: int = 0

    def __post_init__(self) -> None:
        if self.clock_unit < 1:
            raise DeclarationError(f"clock_unit {self.clock_unit} must be a whole number of clock ticks, 1 or more")
        if self.units_ahead < 0:
            raise DeclarationError(
                f"units_ahead {self.units_ahead} is negative: give 0 to promise only when rows arrive"
            )
        check_known(self.known)

    def start(self) -> EstimatedSkewGenerator:
        """A heartbeat generator that has seen nothing."""
        return EstimatedSkewGenerator(self)


class EstimatedSkewGenerator(SavedGenerator):
    """The largest time of every source, now and at each unit ago, and the estimates."""

    KIND = "estimated_skew"
    SAVED = ("_pairwise", "_units", "_slot", "_reached", "_estimates", "_ratchet")

    def __init__(self, policy: EstimatedSkew) -> None:
        self._policy = policy
        self._pairwise = policy.pairwise
        self._slot: int | None = None
        units = self._units = policy.units_ahead + 1
        self._reached: Instants = np.full((0, units), NEVER, dtype=np.int64)
        self._estimates = SkewEstimates(policy.adaptivity, 0 if policy.pairwise else 2, units)
        self._ratchet = Ratchet()
        self._up_to_date = False
        self._grow(policy.known)

    def observe(self, arrivals: Arrivals) -> None:
        """Compare the rows of a round with what was reached before it, then let them count themselves."""
        self._move(arrivals.clock)
        if not arrivals.total:
            return
        spoke = arrivals.sources
        self._grow(arrivals.places)
        reference = self._references()
        reference = reference if len(reference) == 1 else reference[spoke]
        distance = 1 - np.maximum(arrivals.earliest_by_source, 1 - FOREVER)
        shown = np.maximum(shift_all(reference, distance[:, None, None]), 0)
        self._estimates.learn(spoke, shown, reference > NEVER, arrivals.rows_by_source, arrivals.clock)
        self._reached[spoke, 0] = np.maximum(self._reached[spoke, 0], arrivals.latest_by_source)
        self._up_to_date = False

    def heartbeats(self, clock: int) -> Heartbeats:
        """What the estimates promise at this clock; a source that has not spoken is promised nothing of its own."""
        self._move(clock)
        if self._up_to_date:
            return self._ratchet.shown
        self._up_to_date = True
        heard = self._reached[:, 0] > NEVER
        promised = shift_all(self._references(), -self._estimates.lag).max(axis=(1, 2), initial=NEVER)
        own = np.where(heard, promised, NEVER)
        return self._ratchet.lift(slowest(own, heard, self._policy.known), own)

    def _references(self) -> Instants:
        # (target, reference, t); a first axis of one where all targets share the references.
        if self._pairwise:
            return self._reached[None]
        sources, units = self._reached.shape
        references = np.empty((sources, 2, units), dtype=np.int64)
        references[:, 0] = self._reached
        references[:, 1] = self._reached.max(axis=0, initial=NEVER)
        return references

    def _move(self, clock: int) -> None:
        slot = clock // self._policy.clock_unit
        passed = 0 if self._slot is None else slot - self._slot
        if passed > 0 and self._policy.units_ahead:
            units = np.arange(self._policy.units_ahead + 1)
            self._reached = self._reached[:, np.maximum(units - passed, 0)]
            self._up_to_date = False
        if self._slot is None or passed > 0:
            self._slot = slot

    def _grow(self, sources: int) -> None:
        if sources > len(self._reached):
            self._reached = grown(self._reached, sources, NEVER)
            self._estimates.grow(sources, sources if self._pairwise else 2)

    def why(self, source: int) -> Reason:
        """The estimated bound that promises most."""
        if source >= len(self._reached) or self._reached[source, 0] == NEVER:
            return NOT_HEARD
        reference = self._references()
        promised = shift_all(reference[source if len(reference) > 1 else 0], -self._estimates.lag[source])
        lag = int(self._estimates.lag[source].flat[int(promised.argmax())])
        return Reason("estimated bound", "its rows trailed by {lag:length} lately", {"lag": lag})

    def left_out(self) -> tuple[LeftOut, ...]:
        """Only who has not spoken and is not expected."""
        return not_expected(self._reached[:, 0] > NEVER, self._policy.known)

    def check(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot of other references, too."""
        super().check(snapshot)
        here, there = (self._pairwise, self._units), (snapshot["pairwise"], snapshot["units"])
        if here != there:
            raise SnapshotError(
                f"the snapshot has (pairwise, units) = {there}, this policy {here}: "
                "resume with the policy that saved it"
            )
