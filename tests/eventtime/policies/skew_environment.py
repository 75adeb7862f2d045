"""Random sources that keep declared bounds as narrowly as they can, and networks that delay their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import strategies as st

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import HeartbeatGenerator, Heartbeats
from eventide.eventtime.policies.skew.bounds import RowBound, SkewBound, TimeBound
from eventide.eventtime.policies.skew.matrix import InOrder, Skew, SkewMatrix
from eventide.eventtime.policies.skew.per_source import PerSourceSkew, RowTerm, TimeTerm

small = st.integers(0, 4)
time_bounds = st.builds(TimeBound, small, small)
row_bounds = st.builds(RowBound, st.integers(0, 3), small)
any_bounds = st.one_of(time_bounds, row_bounds)


@dataclass(frozen=True)
class Row:
    source: int
    emitted: int
    time: int
    arrived: int


@st.composite
def matrices(draw: st.DrawFn, bounds: st.SearchStrategy[SkewBound] = any_bounds, most: int = 3) -> SkewMatrix:
    n = draw(st.integers(1, most))
    sets = st.lists(bounds, max_size=2)
    entries = draw(st.lists(st.lists(sets, min_size=n, max_size=n), min_size=n, max_size=n))
    return SkewMatrix.of(entries, draw(st.lists(small, min_size=n, max_size=n)))


@st.composite
def ordered(draw: st.DrawFn, skews: st.SearchStrategy[Skew]) -> InOrder:
    """Bounds between sources of which some are not reordered on the way."""
    skew = draw(skews)
    sources = range(len(skew.latency))
    return InOrder(skew, tuple(sorted(draw(st.sets(st.sampled_from(sources), min_size=1)))))


@st.composite
def per_source_skews(draw: st.DrawFn) -> PerSourceSkew:
    n = draw(st.integers(1, 4))

    def values(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=n, max_size=n))

    terms: list[TimeTerm | RowTerm] = []
    for _ in range(draw(st.integers(0, 2))):
        rate = draw(st.sampled_from([[], [0.5] * n, [3.0] * n]))
        terms.append(
            TimeTerm.of(give=values(-4, 4), take=values(-4, 4), out=values(0, 4), into=values(0, 4), rate=rate)
        )
    if draw(st.booleans()):
        terms.append(RowTerm(draw(st.integers(0, 3)), tuple(values(0, 4)), tuple(values(0, 4))))
    own = draw(st.lists(st.lists(any_bounds, max_size=2), min_size=n, max_size=n))
    return PerSourceSkew.of(values(0, 4), terms, own)


def floor_of(skew: Skew, source: int, emitted: int, before: list[Row]) -> int | None:
    """The time that a row emitted now must exceed, by the definitions of the bounds; None where it is free.

    Of a source whose rows stay in order, rows of one instant are one after the other, as they are in `before`.
    """
    floors = []
    in_order = source in skew.in_order
    for place, row in enumerate(before):
        same = in_order and row.source == source
        after = before[place + 1 :] if same else [r for r in before if r.emitted > row.emitted]
        between = sum(1 for r in after if r.source == source and (in_order or r.emitted < emitted))
        for bound in skew.bounds(row.source, source):
            if isinstance(bound, TimeBound):
                binds = emitted > row.emitted + bound.after or (same and bound.after == 0)
            else:
                binds = (emitted > row.emitted or same) and between >= bound.rows
            if binds:
                floors.append(row.time - bound.lag)
    return max(floors, default=None)


@st.composite
def emissions(draw: st.DrawFn, skew: Skew, most: int = 20) -> list[Row]:
    """Rows in order of arrival; each time is free, or only just above what the bounds demand."""
    rows: list[Row] = []
    now = draw(st.integers(-20, 20))
    for _ in range(draw(st.integers(1, most))):
        now += draw(st.integers(0, 3))
        source = draw(st.integers(0, len(skew.latency) - 1))
        floor = floor_of(skew, source, now, rows)
        time = draw(st.integers(-5, 15)) if floor is None else floor + 1 + draw(st.sampled_from([0, 0, 1, 3, 9]))
        arrived = now + draw(st.integers(0, skew.latency[source]))
        if source in skew.in_order:
            arrived = max([arrived, *(row.arrived for row in rows if row.source == source)])
        rows.append(Row(source, now, time, arrived))
    return sorted(rows, key=lambda row: row.arrived)


def round_clocks(rows: list[Row], gaps: list[int], rest: int) -> Iterator[int]:
    """Clocks with the given gaps, over and over, until all rows have arrived and `rest` has passed."""
    clock, k = rows[0].arrived, 0
    while True:
        yield clock
        if clock > rows[-1].arrived + rest:
            return
        clock += gaps[k % len(gaps)]
        k += 1


def drive(
    generator: HeartbeatGenerator, rows: list[Row], clocks: Iterator[int]
) -> Iterator[tuple[int, list[Row], Heartbeats]]:
    """Feed each round all that has arrived by its clock, then ask: (clock, rows of the round, heartbeats after it)."""
    waiting = list(rows)
    for clock in clocks:
        here = [row for row in waiting if row.arrived <= clock]
        waiting = waiting[len(here) :]
        generator.observe(Arrivals.of_rows(clock, [r.source for r in here], [r.time for r in here]))
        yield clock, here, generator.heartbeats(clock)
