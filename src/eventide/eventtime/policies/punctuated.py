"""Heartbeats from promises given by the data, never trusted silently.

Law: a promise up to p (see `Punctuation`) makes p the heartbeat of its sources; a range is closed ahead. Every later
row is checked: one inside what its source has promised is a violation, reported with its round and counted.

**A source that broke its promise** keeps its heartbeats, which never go back, but loses credit: its later promises up
to p count only as p - d, where d is by how much it has broken one at worst. So the same failure costs rows once, a
source that always promises a little too much still makes progress, and one that lies by a year is not followed any
more. A range promised for every source at once loses what the worst source lost.

With an `inner` policy, each source has the higher of its promise and what `inner` says: sources that do not punctuate,
or have lost their credit, go on. The combined heartbeat is the least over the sources that spoke or promised so far,
and over sources 0 to `known` - 1 from the start.

Limits: a range that is promised for each source one by one is closed for each, not for all together. In a digested cell
that lies on both sides of a promise, one row is counted: at least that many broke it.

>>> generator = Punctuated().start()
>>> generator.take(Punctuation(time=50))
>>> generator.observe(Arrivals.of_row(clock=0, source=0, time=48))
>>> generator.violations
(Violation(source=0, promised=50, time=48, rows=1),)
>>> generator.take(Punctuation(time=60))
>>> generator.heartbeats(0).combined    # 60 - 3: a promise of 47 would have held
57
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.frontier import Frontier
from eventide.eventtime.heartbeat import Heartbeats, Policy, SavedGenerator, SavedPolicy, Snapshot, Wrapped, layers
from eventide.eventtime.instant import FOREVER, NEVER, Instants, shift, shift_all
from eventide.eventtime.punctuation import Punctuation, Span
from eventide.eventtime.reason import LeftOut, Reason, left_out_of, not_expected, reason_of
from eventide.eventtime.sources import check_known, slowest


class Violation(NamedTuple):
    """In one round, at least `rows` rows of `source`, the earliest at `time`, came though `promised` was promised."""

    source: int
    promised: int
    time: int
    rows: int


@dataclass(frozen=True)
class Punctuated(SavedPolicy["PunctuatedGenerator"]):
    """Follow the promises in the data, and `inner` where it says more; wait for sources 0 to `known` - 1."""

    inner: Policy | None = None
    known: int = 0

    def __post_init__(self) -> None:
        check_known(self.known)

    def start(self) -> PunctuatedGenerator:
        """A heartbeat generator that has been promised nothing."""
        return PunctuatedGenerator(self)


def punctuated_in(whole: object) -> object | None:
    """The `Punctuated`, or its heartbeat generator, among what is wrapped around each other; None where there is none.

    >>> from eventide.eventtime.policies.wrappers.timeout import Timeout
    >>> punctuated_in(Timeout(Punctuated(), after=5))
    Punctuated(inner=None, known=0)
    """
    return next((layer for layer in layers(whole) if isinstance(layer, Punctuated | PunctuatedGenerator)), None)


def tell_heard(generator: object, sources: NDArray[np.intp], clock: int) -> None:
    """Tell a generator, and those it wraps, that these sources spoke: a promise is no row, but no silence either.

    >>> from eventide.eventtime.policies.wrappers.idleness import Idle
    >>> generator = Idle(Punctuated(), after=5).start()
    >>> generator.observe(Arrivals.of_rows(clock=0, source=[0, 1], time=[10, 10]))
    >>> tell_heard(generator, np.array([1]), clock=4)
    >>> generator.heartbeats(6).combined == NEVER, [out.sources.tolist() for out in generator.left_out()]
    (True, [[0]])
    """
    for layer in layers(generator):
        hear = getattr(layer, "hear", None)
        if hear is not None and len(sources):
            hear(sources, clock)


class PunctuatedGenerator(SavedGenerator):
    """Remembers what was promised to the letter, and what of it is believed: its `frontier`."""

    KIND = "punctuated"
    SAVED = ("inner", "_promised", "_frontier", "_waited_for", "_discount", "_broken_rows", "_violations")

    def __init__(self, policy: Punctuated) -> None:
        self.inner = None if policy.inner is None else Wrapped(policy.inner)
        self._promised = Frontier.start()
        self._frontier = Frontier(NEVER, np.full(policy.known, NEVER, dtype=np.int64))
        self._waited_for: NDArray[np.bool_] = np.ones(policy.known, dtype=np.bool_)
        self._discount: Instants = np.zeros(policy.known, dtype=np.int64)
        self._broken_rows: NDArray[np.int64] = np.zeros(policy.known, dtype=np.int64)
        self._violations: tuple[Violation, ...] = ()

    @property
    def frontier(self) -> Frontier:
        """The closed time, ranges included, as of the last heartbeats."""
        return self._frontier

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The promises that the last round broke, one for each source at fault."""
        return self._violations

    @property
    def broken_rows(self) -> NDArray[np.int64]:
        """For each source, at least how many rows have broken its promises so far."""
        return self._broken_rows.copy()

    def _meet(self, sources: NDArray[np.intp]) -> None:
        size = int(sources.max()) + 1
        self._waited_for = grown(self._waited_for, size, False)
        self._discount = grown(self._discount, size, 0)
        self._broken_rows = grown(self._broken_rows, size, 0)
        self._waited_for[sources] = True
        # Before it has promised anything, a new source stands where all stand together.
        missing = size - len(self._frontier.by_source)
        if missing > 0:
            joined = grown(self._frontier.by_source, size, self._frontier.combined)
            self._frontier = replace(self._frontier, by_source=joined)

    def take(self, punctuation: Punctuation) -> None:
        """Accept a promise, for what its sources' word is worth."""
        if punctuation.group:
            self._meet(np.array(punctuation.group, dtype=np.intp))
        for span in punctuation.promises():
            self._promised = self._promised.closing(span)
            self._believe(span)

    def take_all(self, sources: NDArray[np.intp], times: Instants) -> None:
        """Accept many promises at once: no more rows up to `times[i]` from source `sources[i]`.

        >>> generator = Punctuated().start()
        >>> generator.take_all(np.array([1, 0, 1]), np.array([30, 20, 40]))
        >>> generator.heartbeats(0)
        Heartbeats(combined=20, by_source=array([20, 40]))
        """
        if len(sources) == 0:
            return
        self._meet(sources)
        promised = np.full(len(self._discount), NEVER, dtype=np.int64)
        np.maximum.at(promised, sources, times)
        self._promised = self._promised.advanced(Heartbeats(NEVER, promised))
        self._frontier = self._frontier.advanced(Heartbeats(NEVER, shift_all(promised, -self._discount)))

    def _believe(self, span: Span) -> None:
        bound = span.start == NEVER
        if span.source is None and bound:
            up_to = np.full(len(self._discount), span.end - 1, dtype=np.int64)
            worst = int(self._discount.max(initial=0))
            promised = Heartbeats(shift(span.end - 1, -worst), shift_all(up_to, -self._discount))
            self._frontier = self._frontier.advanced(promised)
            return
        discount = self._discount.max(initial=0) if span.source is None else self._discount[span.source]
        end = shift(span.end, -int(discount))
        if span.start < end:
            self._frontier = self._frontier.closing(replace(span, end=end))

    def observe(self, arrivals: Arrivals) -> None:
        """Check a round against what was promised, and pass it on."""
        self._violations = ()
        if arrivals.total:
            self._meet(arrivals.sources)
            self._violations = tuple(self._broken_by(arrivals))
            for broken in self._violations:
                breach = shift(broken.promised, 1 - broken.time)
                self._discount[broken.source] = max(int(self._discount[broken.source]), breach)
                self._broken_rows[broken.source] += broken.rows
        if self.inner is not None:
            self.inner.observe(arrivals)

    def _broken_by(self, arrivals: Arrivals) -> Iterator[Violation]:
        bounds = grown(self._promised.by_source, len(self._discount), self._promised.combined)[arrivals.source]
        bound_broken = arrivals.earliest <= bounds
        # The earliest and the latest time of a cell are times of rows; what lies between is not known.
        rows = np.where(arrivals.latest <= bounds, arrivals.rows, bound_broken)
        promised, time = bounds, np.where(bound_broken, arrivals.earliest, FOREVER)
        for span in self._promised.ahead:
            concerned = True if span.source is None else arrivals.source == span.source
            first, last = span.contains(arrivals.earliest) & concerned, span.contains(arrivals.latest) & concerned
            worse = (first | last) & (rows == 0)
            rows = np.where(worse, np.where(first & last, arrivals.rows, 1), rows)
            promised = np.where(worse, span.end - 1, promised)
            time = np.where(worse, np.where(first, arrivals.earliest, arrivals.latest), time)
        for source in np.unique(arrivals.source[rows > 0]):
            cells = np.flatnonzero((arrivals.source == source) & (rows > 0))
            first_cell = cells[time[cells].argmin()]
            earliest, broken = int(time[first_cell]), int(promised[first_cell])
            yield Violation(int(source), broken, earliest, int(rows[cells].sum()))

    def heartbeats(self, clock: int) -> Heartbeats:
        """What is believed of the promises, or what the inner policy says where that is more."""
        if self.inner is not None:
            self._frontier = self._frontier.advanced(self.inner.heartbeats(clock))
        by_source = self._frontier.by_source[: len(self._waited_for)]
        self._frontier = self._frontier.advanced(Heartbeats(slowest(by_source, self._waited_for), by_source))
        return Heartbeats(self._frontier.combined, self._frontier.by_source)

    def why(self, source: int) -> Reason:
        """What it has promised, or what the inner policy says."""
        if self.inner is not None:
            return reason_of(self.inner, source)
        if source >= len(self._frontier.by_source) or self._frontier.by_source[source] == NEVER:
            return Reason("punctuation", "nothing has been promised of it")
        return Reason("punctuation", "promised up to {up_to:time}", {"up_to": int(self._frontier.by_source[source])})

    def left_out(self) -> tuple[LeftOut, ...]:
        """Sources that the inner policy does not wait for, and those that neither spoke nor promised anything."""
        of_inner = () if self.inner is None else left_out_of(self.inner)
        return (*of_inner, *not_expected(self._waited_for))

    def restore(self, saved: Snapshot) -> None:
        """Go on from what `snapshot` described."""
        super().restore(saved)
        self._promised, self._frontier = Frontier.restored(saved["promised"]), Frontier.restored(saved["frontier"])
        self._violations = tuple(Violation(*violation) for violation in saved["violations"])
