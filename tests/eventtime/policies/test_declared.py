from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import DeclarationError, SnapshotError
from eventide.eventtime.arrays import as_plain
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.policies.skew.bounds import RowBound, TimeBound
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.skew.matrix import Skew, SkewMatrix
from eventide.eventtime.policies.skew.per_source import PerSourceSkew, TimeTerm
from tests.eventtime.policies.skew_environment import (
    Row,
    drive,
    emissions,
    matrices,
    ordered,
    per_source_skews,
    round_clocks,
    time_bounds,
)

skews = st.one_of(matrices(), per_source_skews())
any_skews = st.one_of(skews, ordered(skews))
gaps = st.lists(st.integers(1, 7), min_size=1, max_size=4)
units = st.sampled_from([None, 1, 2, 5])
REST = 16


@settings(max_examples=200)
@given(st.data(), any_skews, gaps, units)
def test_rows_that_keep_their_bounds_are_never_at_or_below_the_heartbeat_given_before(
    data: st.DataObject, skew: Skew, steps: list[int], unit: int | None
) -> None:
    rows = data.draw(emissions(skew))
    before = np.full(len(skew.latency), NEVER)
    for _, here, heartbeats in drive(DeclaredSkew(skew, unit).start(), rows, round_clocks(rows, steps, REST)):
        assert all(row.time > before[row.source] for row in here)
        assert (heartbeats.by_source >= before).all(), "a heartbeat went back"
        assert heartbeats.combined == heartbeats.by_source.min()
        before = heartbeats.by_source


def infinite_array(skew: SkewMatrix, rows: list[Row], clock: int) -> list[int]:
    """Figure 2 as printed, with its infinite arrays: the heartbeats at `clock`."""
    tau: dict[tuple[int, int], int] = {}
    for row in rows:
        if row.arrived <= clock:
            for j, latency in enumerate(skew.latency):
                for bound in skew.bounds(row.source, j):
                    assert isinstance(bound, TimeBound)
                    due = row.arrived + bound.after + latency
                    tau[j, due] = max(tau.get((j, due), NEVER), row.time - bound.lag)
    return [
        max((v for (j, due), v in tau.items() if j == k and due <= clock), default=NEVER)
        for k in range(len(skew.latency))
    ]


@settings(max_examples=100)
@given(st.data(), matrices(time_bounds), gaps)
def test_heartbeats_equal_those_of_figure_2_with_infinite_arrays(
    data: st.DataObject, skew: SkewMatrix, steps: list[int]
) -> None:
    rows = data.draw(emissions(skew))
    every_clock = sorted({*round_clocks(rows, steps, REST), *(row.arrived for row in rows)})
    for clock, _, heartbeats in drive(DeclaredSkew(skew, 1).start(), rows, iter(every_clock)):
        assert heartbeats.by_source.tolist() == infinite_array(skew, rows, clock)


def inferable(skew: Skew, rounds: list[tuple[int, int, list[Row]]], clock: int, j: int) -> int:
    """The largest promise to j at `clock` that follows from one arrival and one bound, by trying every history.

    A round (known, at, rows) says: its rows arrived after `known`, at `at` at the latest. A history gives the
    sender's row an instant of emission c and a row of j that has not arrived an instant e. The bound binds that row
    unless some history lets it escape.
    """
    latency = skew.latency[j]
    intervals = [(known + 1 - latency, at) for known, at, rows in rounds for row in rows if row.source == j]
    best, in_order = NEVER, j in skew.in_order
    for place, (known, at, rows) in enumerate(rounds):
        for row in rows:
            own = in_order and row.source == j
            # Rows of j that came in later rounds were emitted after it, and before all that have not arrived.
            later = sum(one.source == j for _, _, others in rounds[place + 1 :] for one in others)
            earliest = max(known + 1, at - 8) - skew.latency[row.source]
            histories = [(c, e) for c in range(earliest, at + 1) for e in range(clock + 1 - latency, clock + 2)]
            for bound in skew.bounds(row.source, j):
                if isinstance(bound, TimeBound):
                    escapes = any(e <= c + bound.after for c, e in histories) and not (own and bound.after == 0)
                elif own:
                    escapes = later < bound.rows
                elif in_order:
                    escapes = any(sum(c < first for first, _ in intervals) < bound.rows for c, _ in histories)
                else:
                    # Every other row of j is emitted outside (c, e) wherever its interval allows.
                    escapes = any(
                        e <= c or sum(c < first and last < e for first, last in intervals) < bound.rows
                        for c, e in histories
                    )
                if not escapes:
                    best = max(best, row.time - bound.lag)
    return best


@settings(max_examples=100)
@given(st.data(), any_skews, gaps)
def test_heartbeats_are_the_largest_that_any_arrival_and_bound_allow(
    data: st.DataObject, skew: Skew, steps: list[int]
) -> None:
    rows = data.draw(emissions(skew, most=10))
    rounds: list[tuple[int, int, list[Row]]] = []
    known = NEVER
    for clock, here, heartbeats in drive(DeclaredSkew(skew, 1).start(), rows, round_clocks(rows, steps, 20)):
        rounds.append((known, clock, here))
        known = clock
        assert heartbeats.by_source.tolist() == [inferable(skew, rounds, clock, j) for j in range(len(skew.latency))]


@settings(max_examples=100)
@given(st.data(), st.one_of(matrices(), per_source_skews()), gaps)
def test_rounds_never_promise_more_than_ticks(data: st.DataObject, skew: Skew, steps: list[int]) -> None:
    rows = data.draw(emissions(skew))
    ticks = {c: h for c, _, h in drive(DeclaredSkew(skew, 1).start(), rows, round_clocks(rows, [1], REST + 7))}
    for clock, _, heartbeats in drive(DeclaredSkew(skew, 1).start(), rows, round_clocks(rows, steps, REST)):
        assert (heartbeats.by_source <= ticks[clock].by_source).all()


@settings(max_examples=100)
@given(st.data(), matrices(time_bounds), gaps, st.integers(2, 6))
def test_a_coarser_unit_delays_by_at_most_one_unit_and_never_hastens(
    data: st.DataObject, skew: SkewMatrix, steps: list[int], unit: int
) -> None:
    rows = data.draw(emissions(skew))
    fine, coarse = DeclaredSkew(skew, 1).start(), DeclaredSkew(skew, unit).start()
    clocks = list(round_clocks(rows, steps, REST))
    fine_heartbeats = [h.by_source for _, _, h in drive(fine, rows, iter(clocks))]
    coarse_heartbeats = [h.by_source for _, _, h in drive(coarse, rows, iter(clocks))]
    for k, clock in enumerate(clocks):
        assert (coarse_heartbeats[k] <= fine_heartbeats[k]).all()
        for later in range(k, len(clocks)):
            if clocks[later] >= clock + unit - 1:
                assert (coarse_heartbeats[later] >= fine_heartbeats[k]).all()
                break


@settings(max_examples=100)
@given(st.data(), per_source_skews(), gaps, units)
def test_bounds_from_per_source_values_promise_what_the_full_matrix_promises(
    data: st.DataObject, skew: PerSourceSkew, steps: list[int], unit: int | None
) -> None:
    n = range(len(skew.latency))
    full = SkewMatrix.of([[skew.bounds(i, j) for j in n] for i in n], skew.latency)
    rows = data.draw(emissions(skew))
    compact = drive(DeclaredSkew(skew, unit or 1).start(), rows, round_clocks(rows, steps, REST))
    for (_, _, here), (_, _, there) in zip(
        compact, drive(DeclaredSkew(full, unit or 1).start(), rows, round_clocks(rows, steps, REST)), strict=True
    ):
        assert here.by_source.tolist() == there.by_source.tolist()


@settings(max_examples=100)
@given(st.data(), st.one_of(matrices(), per_source_skews()), gaps, units)
def test_saved_and_resumed_at_any_point_it_goes_on_to_the_same_heartbeats(
    data: st.DataObject, skew: Skew, steps: list[int], unit: int | None
) -> None:
    rows = data.draw(emissions(skew))
    policy = DeclaredSkew(skew, unit)
    clocks = list(round_clocks(rows, steps, REST))
    stop = data.draw(st.integers(0, len(clocks)))
    through = policy.start()
    expected = [h.by_source.tolist() for _, _, h in drive(through, rows, iter(clocks))]
    first = policy.start()
    found = [h.by_source.tolist() for _, _, h in drive(first, rows, iter(clocks[:stop]))]
    if data.draw(st.booleans()):
        first.observe(Arrivals.silence(clocks[stop - 1] if stop else clocks[0]))
    second = policy.resume(json.loads(json.dumps(first.snapshot(), default=as_plain)))
    left = [row for row in rows if stop == 0 or row.arrived > clocks[stop - 1]]
    found += [h.by_source.tolist() for _, _, h in drive(second, left, iter(clocks[stop:]))]
    assert found == expected


def test_a_pause_leaves_the_last_five_units_of_the_leading_source_waiting() -> None:
    """The example of section 3.3: both in order, each may trail the other by 5; source 1 stops 5 behind source 0."""
    in_order, trails = [TimeBound(0, 0)], [TimeBound(0, 5)]
    generator = DeclaredSkew(SkewMatrix.of([[in_order, trails], [trails, in_order]], [0, 0])).start()
    generator.observe(Arrivals.of_rows(clock=1, source=[0, 1], time=[100, 95]))
    at_rest = generator.heartbeats(10**6)
    assert at_rest.by_source.tolist() == [100, 95]
    assert at_rest.combined == 95


def test_with_at_most_k_repeats_of_a_time_the_kth_repeat_closes_it() -> None:
    """The example of section 3.1: sorted, each time repeated at most 2 times after its first row."""
    generator = DeclaredSkew(SkewMatrix.of([[[RowBound(0, 1), RowBound(2, 0)]]], latency=[0])).start()
    heard = []
    for clock, time in enumerate([7, 7, 7, 8]):
        generator.observe(Arrivals.of_row(clock, 0, time))
        heard.append(generator.heartbeats(clock).combined)
    assert heard == [6, 6, 7, 7]


def test_a_row_that_may_have_been_overtaken_is_not_counted() -> None:
    """Latency 3: a row that arrives up to 3 after the sender's may be older than it; only later ones count."""
    nothing: list[RowBound] = []
    skew = SkewMatrix.of([[nothing, [RowBound(1, 0)]], [nothing, nothing]], latency=[0, 3])
    generator = DeclaredSkew(skew).start()
    generator.observe(Arrivals.of_row(10, 0, 50))
    generator.heartbeats(12)
    generator.observe(Arrivals.of_row(13, 1, 40))
    assert generator.heartbeats(99).of(1) == NEVER
    generator.observe(Arrivals.of_row(100, 1, 45))
    assert generator.heartbeats(102).of(1) == NEVER
    assert generator.heartbeats(103).of(1) == 50


def test_rows_that_betray_their_delay_would_allow_more_than_figure_2_infers() -> None:
    """A limit of property 2: taken together, arrivals may say more than each alone.

    Source 0 cannot emit below a row of source 1 once that is out, so its row with the smaller time was emitted by
    clock 1 and binds source 2 from then. Figure 2 counts from its arrival at 10.
    """
    nothing: list[TimeBound] = []
    at_once = [TimeBound(0, 0)]
    skew = SkewMatrix.of([[nothing, nothing, at_once], [at_once, nothing, nothing], [nothing] * 3], latency=[10, 0, 2])
    generator = DeclaredSkew(skew, 1).start()
    generator.observe(Arrivals.of_row(1, 1, 5))
    generator.observe(Arrivals.of_row(10, 0, 1))
    assert generator.heartbeats(10).of(2) == NEVER
    assert generator.heartbeats(12).of(2) == 1


def test_memory_does_not_grow_with_the_stream() -> None:
    skew = SkewMatrix.of([[[TimeBound(3, 0), RowBound(2, 0)]]], latency=[4])
    generator = DeclaredSkew(skew).start()
    sizes = []
    for clock in range(400):
        generator.observe(Arrivals.of_row(clock, 0, clock))
        generator.heartbeats(clock)
        sizes.append(len(json.dumps(generator.snapshot(), default=as_plain)))
    assert max(sizes[200:]) <= max(sizes[50:200]) + 20


def test_a_thousand_sources_from_per_source_values_keep_no_matrix() -> None:
    n = 1000
    skew = PerSourceSkew.of([5] * n, [TimeTerm.of(out=[3] * n, into=[3] * n)], [[TimeBound(0, 3)]] * n)
    generator = DeclaredSkew(skew).start()
    generator.observe(Arrivals.of_rows(0, np.arange(n), np.arange(n)))
    heartbeats = generator.heartbeats(5)
    assert heartbeats.by_source.tolist() == [max(n - 1 - 6, j - 3) for j in range(n)]
    assert len(json.dumps(skew.latency)) + len(json.dumps(generator.snapshot(), default=as_plain)) < 100 * n


@pytest.mark.parametrize("clock", [NEVER + 1, -1, 0, FOREVER - 1])
@pytest.mark.parametrize("time", [NEVER + 1, 0, FOREVER - 1])
def test_instants_at_the_edges_saturate(clock: int, time: int) -> None:
    skew = SkewMatrix.of([[[TimeBound(10, 20), RowBound(1, 5)]]], latency=[30])
    generator = DeclaredSkew(skew, 1).start()
    generator.observe(Arrivals.of_row(clock, 0, time))
    expected = max(time - 20, NEVER) if clock + 40 <= FOREVER else NEVER
    assert generator.heartbeats(min(clock + 40, FOREVER)).combined == expected


def test_a_clock_that_steps_back_stands_still() -> None:
    generator = DeclaredSkew(SkewMatrix.of([[[TimeBound(2, 0)]]], latency=[0])).start()
    generator.observe(Arrivals.of_row(10, 0, 50))
    generator.observe(Arrivals.of_row(3, 0, 60))
    assert [generator.heartbeats(clock).combined for clock in (4, 11, 12)] == [NEVER, NEVER, 60]


def test_a_row_of_an_undeclared_source_is_refused() -> None:
    generator = DeclaredSkew(SkewMatrix.of([[[]]], latency=[0])).start()
    with pytest.raises(DeclarationError, match="source 1, but bounds were declared for sources 0 to 0"):
        generator.observe(Arrivals.of_row(0, 1, 0))


def test_a_unit_too_fine_for_the_memory_is_refused_with_the_way_out() -> None:
    skew = SkewMatrix.of([[[TimeBound(10**12, 0)]]], latency=[0])
    with pytest.raises(DeclarationError, match="raise clock_unit"):
        DeclaredSkew(skew, clock_unit=1).start()
    assert DeclaredSkew(skew).start().heartbeats(0).combined == NEVER


def test_a_snapshot_of_other_sources_is_refused() -> None:
    one = SkewMatrix.of([[[]]], latency=[0])
    two = SkewMatrix.of([[[], []], [[], []]], latency=[0, 0])
    with pytest.raises(SnapshotError, match="resume with the policy that saved it"):
        DeclaredSkew(two).resume(DeclaredSkew(one).start().snapshot())


def test_heartbeats_that_were_handed_out_do_not_change() -> None:
    generator = DeclaredSkew(SkewMatrix.of([[[TimeBound(0, 0)]]], latency=[0])).start()
    shown = []
    for clock in range(3):
        generator.observe(Arrivals.of_row(clock, 0, clock))
        shown.append(generator.heartbeats(clock))
    assert [h.of(0) for h in shown] == [0, 1, 2]
    assert all(a.combined < b.combined for a, b in pairwise(shown))
