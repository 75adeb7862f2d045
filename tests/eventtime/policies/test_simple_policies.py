"""Baselines, clock progress and wrappers: each against its law, written out over all rows seen."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.instant import NEVER
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.eventtime.policies.delay_quantile import DelayQuantile
from eventide.eventtime.policies.disorder_histogram import DisorderHistogram
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.on_demand import OnDemand
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.eventtime.policies.wrappers.cap import Cap
from eventide.eventtime.policies.wrappers.future_guard import FutureGuard
from eventide.eventtime.policies.wrappers.idleness import Idle
from eventide.eventtime.policies.wrappers.minimum import Minimum
from eventide.eventtime.policies.wrappers.source_groups import PerGroup
from eventide.eventtime.policies.wrappers.timeout import Timeout

Row = tuple[int, int, int]
"""Clock, source, time; sorted by clock."""

rows = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2), st.integers(0, 60)), max_size=40).map(sorted)


def after_each_row(policy: Policy, stream: list[Row]) -> list[int]:
    """The combined heartbeat after every row."""
    generator, shown = policy.start(), []
    for clock, source, time in stream:
        generator.observe(Arrivals.of_row(clock, source, time))
        shown.append(generator.heartbeats(clock).combined)
    return shown


def highest_so_far(values: list[int]) -> list[int]:
    return [max(values[: i + 1]) for i in range(len(values))]


@given(rows, st.integers(0, 20))
def test_fixed_delay_trails_the_largest_time(stream: list[Row], delay: int) -> None:
    expected = [max(time for _, _, time in stream[: i + 1]) - delay for i in range(len(stream))]
    assert after_each_row(FixedDelay(delay), stream) == expected


@given(rows, st.integers(0, 20))
def test_own_progress_is_the_least_of_the_largest_times(stream: list[Row], slack: int) -> None:
    expected = []
    for i in range(len(stream)):
        largest: dict[int, int] = {}
        for _, source, time in stream[: i + 1]:
            largest[source] = max(time, largest.get(source, time))
        expected.append(min(largest.values()) - 1 - slack)
    assert after_each_row(OwnProgress(slack), stream) == highest_so_far(expected)


@given(rows, st.sampled_from([0.05, 0.5, 0.9, 0.99]), st.integers(1, 12))
def test_delay_quantile_trails_the_clock_by_a_quantile_of_the_last_delays(
    stream: list[Row], quantile: float, window: int
) -> None:
    expected = []
    for i in range(len(stream)):
        delays = sorted(clock - time for clock, _, time in stream[: i + 1][-window:])
        expected.append(stream[i][0] - delays[max(1, math.ceil(quantile * len(delays))) - 1] - 1)
    assert after_each_row(DelayQuantile(quantile, window), stream) == highest_so_far(expected)


@given(st.lists(rows, max_size=6), st.integers(2, 20))
def test_a_digested_round_makes_no_delay_shorter(rounds: list[list[Row]], cell_width: int) -> None:
    digested, exact = DelayQuantile(0.9).start(), DelayQuantile(0.9).start()
    for clock, stream in enumerate(rounds):
        sources, times = [source for _, source, _ in stream], [time for _, _, time in stream]
        digested.observe(Arrivals.of_rows(clock, sources, times, cell_width))
        exact.observe(Arrivals.of_rows(clock, sources, times, cell_width=1))
        assert digested.heartbeats(clock).combined <= exact.heartbeats(clock).combined


@given(rows)
def test_disorder_histogram_waits_at_least_for_its_quantile_of_a_single_source(stream: list[Row]) -> None:
    behind: list[int] = []
    largest = shown = NEVER
    generator = DisorderHistogram(quantile=0.9, warm_up=5).start()
    for clock, _, time in stream:
        behind.append(max(0, largest - time) if behind else 0)
        largest = max(largest, time)
        generator.observe(Arrivals.of_row(clock, 0, time))
        if len(behind) >= 5:
            quantile = sorted(behind)[math.ceil(0.9 * len(behind)) - 1]
            # The upper edge of the doubling bucket that holds the quantile.
            shown = max(shown, largest - (2 ** quantile.bit_length() - 1) - 1)
        assert generator.heartbeats(clock).combined == shown


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2), st.integers(0, 9)), max_size=40).map(sorted))
def test_rows_within_the_declared_clock_skew_are_never_late(stream: list[Row]) -> None:
    skews = (3, 9, 5)
    generator = ClockSkew(5, by_source=skews).start()
    for clock, source, delay in stream:
        time = clock - min(delay, skews[source])
        answer = generator.heartbeats(clock)
        assert time > answer.of(source)
        assert time > answer.combined
        generator.observe(Arrivals.of_row(clock, source, time))


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), max_size=40),
    st.sampled_from([1.0, 0.9, 0.5]),
    st.integers(-1000, 1000),
)
def test_on_demand_never_overtakes_a_source_that_keeps_its_skew_and_its_rate(
    steps: list[tuple[int, int]], rate: float, offset: int
) -> None:
    """The source's own clock runs at `rate`; each row is stamped up to 5 behind it."""
    generator = OnDemand(max_skew=6, rate=rate).start()
    clock = 0
    for wait, behind in steps:
        for silent in range(wait):
            generator.heartbeats(clock + silent)
        clock += wait
        time = offset + math.floor(clock * rate) - behind
        assert time > generator.heartbeats(clock).of(0)
        generator.observe(Arrivals.of_row(clock, 0, time))


@given(rows, st.integers(0, 39), st.integers(200, 10**15))
def test_one_row_years_ahead_changes_no_heartbeat_behind_the_guard(stream: list[Row], at: int, future: int) -> None:
    policy = FutureGuard(FixedDelay(5), ahead=100)
    clock = stream[min(at, len(stream) - 1)][0] if stream else 0
    disturbed = [*stream[:at], (clock, 0, clock + future), *stream[at:]]
    shown = after_each_row(policy, disturbed)
    del shown[min(at, len(stream))]
    assert shown == after_each_row(FixedDelay(5), stream)


def test_a_guarded_cell_astride_the_limit_counts_its_earliest_time_only() -> None:
    guarded, honest = FutureGuard(FixedDelay(0), ahead=10).start(), FixedDelay(0).start()
    guarded.observe(Arrivals.of_rows(100, [0, 0, 0], [90, 95, 10**9]))
    honest.observe(Arrivals.of_rows(100, [0, 0], [90, 90]))
    assert guarded.heartbeats(100).combined == honest.heartbeats(100).combined == 90
    assert guarded.withheld == 1


@given(rows, st.integers(1, 30), st.integers(0, 80))
def test_timeout_gives_the_largest_time_exactly_after_a_common_silence(
    stream: list[Row], after: int, wait: int
) -> None:
    generator = Timeout(Punctuated(), after=after).start()
    for clock, source, time in stream:
        generator.observe(Arrivals.of_row(clock, source, time))
    largest = max((time for _, _, time in stream), default=NEVER)
    last = stream[-1][0] if stream else 0
    assert generator.heartbeats(last + wait).combined == (largest if wait >= after else NEVER)


@given(rows, st.integers(1, 30))
def test_idle_waits_for_those_who_spoke_lately(stream: list[Row], after: int) -> None:
    expected, now = [], dict[int, int]()
    largest: dict[int, int] = {}
    inner = NEVER
    for clock, source, time in stream:
        # A new source joins where the inner policy stands.
        largest[source] = max(time - 1, largest.get(source, inner))
        now[source] = clock
        inner = max(inner, min(largest.values()))
        awake = [largest[s] for s in largest if clock - now[s] < after]
        expected.append(max(inner, min(awake)))
    assert after_each_row(Idle(OwnProgress(), after=after), stream) == highest_so_far(expected)


@given(rows)
def test_group_wise_gives_each_group_what_the_policy_gives_its_rows_alone(stream: list[Row]) -> None:
    generator = PerGroup(OwnProgress(slack=1), group_of=(0, 1, 0)).start()
    alone = [OwnProgress(slack=1).start(), OwnProgress(slack=1).start()]
    for clock, source, time in stream:
        generator.observe(Arrivals.of_row(clock, source, time))
        group = source % 2
        alone[group].observe(Arrivals.of_row(clock, source // 2, time))
        found = generator.heartbeats(clock)
        each = [one.heartbeats(clock).combined for one in alone]
        assert found.combined == min(each)
        assert found.by_source.tolist() == [each[0], each[1], each[0]]


@given(rows)
def test_group_wise_takes_all_undeclared_sources_as_one_group(stream: list[Row]) -> None:
    generator = PerGroup(OwnProgress(slack=1), group_of=(0,)).start()
    declared, others = OwnProgress(slack=1).start(), OwnProgress(slack=1).start()
    waited_for = [declared]
    expected = []
    for clock, source, time in stream:
        generator.observe(Arrivals.of_row(clock, source, time))
        if source == 0:
            declared.observe(Arrivals.of_row(clock, source, time))
        else:
            others.observe(Arrivals.of_row(clock, source - 1, time))
            waited_for = [declared, others]
        found = generator.heartbeats(clock)
        expected.append(min(one.heartbeats(clock).combined for one in waited_for))
        assert found.combined == max(expected)
        group = declared if source == 0 else others
        assert found.of(source) == max(group.heartbeats(clock).combined, found.combined)


@given(rows)
def test_minimum_is_the_least_of_its_policies(stream: list[Row]) -> None:
    policies = (FixedDelay(5), OwnProgress(), ClockSkew(20))
    alone = [after_each_row(policy, stream) for policy in policies]
    assert after_each_row(Minimum(policies), stream) == highest_so_far([min(at) for at in zip(*alone, strict=True)])


@given(rows, st.integers(0, 30), st.integers(0, 30))
def test_a_cap_raises_the_heartbeat_just_as_far_as_it_must(stream: list[Row], clock_lag: int, largest_lag: int) -> None:
    inner = after_each_row(OwnProgress(), stream)
    largest = after_each_row(FixedDelay(0), stream)
    expected = [max(inner[i], clock - clock_lag, largest[i] - largest_lag) for i, (clock, _, _) in enumerate(stream)]
    policy = Cap(OwnProgress(), behind_clock=clock_lag, behind_largest=largest_lag)
    assert after_each_row(policy, stream) == highest_so_far(expected)


@pytest.mark.parametrize(
    "declare",
    [
        lambda: FixedDelay(-1),
        lambda: OwnProgress(slack=-1),
        lambda: OwnProgress(known=-1),
        lambda: DelayQuantile(0),
        lambda: DelayQuantile(1.0),
        lambda: DelayQuantile(0.5, window_rows=0),
        lambda: DisorderHistogram(quantile=95),
        lambda: DisorderHistogram(warm_up=0),
        lambda: ClockSkew(2**63),
        lambda: ClockSkew(1, by_source=(-(2**63),)),
        lambda: OnDemand(-1),
        lambda: OnDemand(1, rate=1.5),
        lambda: OnDemand(1, rate=math.nan),
        lambda: OnDemand(1, internal=(-1,)),
        lambda: OnDemand(1, known=-1),
        lambda: Punctuated(known=-1),
        lambda: Timeout(FixedDelay(1), after=0),
        lambda: Idle(FixedDelay(1), after=-5),
        lambda: Cap(FixedDelay(1)),
        lambda: Cap(FixedDelay(1), rows=-1),
        lambda: FutureGuard(FixedDelay(1), ahead=-1),
        lambda: FutureGuard(FixedDelay(1), ahead=1, against="moon"),  # type: ignore[arg-type]
        lambda: Minimum(()),
        lambda: PerGroup(FixedDelay(1), group_of=(1,)),
        lambda: PerGroup(FixedDelay(1), group_of=(0, -1)),
    ],
)
def test_a_declaration_that_cannot_hold_is_refused(declare: object) -> None:
    assert callable(declare)
    with pytest.raises(DeclarationError):
        declare()
