"""The fixed buffer against one that really holds and sorts its rows."""

from __future__ import annotations

import bisect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import NEVER
from eventide.eventtime.policies.kim import Kim
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.eventtime.policies.slack import Slack
from eventide.eventtime.policies.wrappers.cap import Cap

times = st.lists(st.integers(-20, 20), min_size=1, max_size=60)


@given(times, st.integers(0, 6))
def test_a_row_is_late_exactly_when_more_than_n_larger_times_came_before_it(rows: list[int], slack: int) -> None:
    generator = Slack(slack).start()
    for position, time in enumerate(rows):
        larger = sum(before > time for before in rows[:position])
        assert (time <= generator.heartbeats(0).combined) == (larger > slack)
        generator.observe(Arrivals.of_row(0, 0, time))


@given(times, st.integers(0, 6))
def test_slack_follows_a_buffer_that_sorts_its_rows(rows: list[int], slack: int) -> None:
    generator = Slack(slack).start()
    buffer: list[int] = []
    released = NEVER
    for time in rows:
        generator.observe(Arrivals.of_row(0, 0, time))
        # A buffer that lets nothing through out of order throws away what comes before its last release.
        if time >= released:
            bisect.insort(buffer, time)
            if len(buffer) > slack:
                released = buffer.pop(0)
        assert generator.heartbeats(0).combined == (NEVER if released == NEVER else released - 1)


@given(st.lists(times, max_size=8), st.integers(0, 6), st.integers(1, 30))
def test_a_digested_round_never_promises_more_than_its_rows_one_by_one(
    rounds: list[list[int]], slack: int, cell_width: int
) -> None:
    digested, one_by_one = Slack(slack).start(), Slack(slack).start()
    for rows in rounds:
        digested.observe(Arrivals.of_rows(0, [0] * len(rows), rows, cell_width))
        for time in rows:
            one_by_one.observe(Arrivals.of_row(0, 0, time))
        assert digested.heartbeats(0).combined <= one_by_one.heartbeats(0).combined


@given(st.lists(times, max_size=8), st.integers(0, 6))
def test_a_cap_on_rows_never_leaves_more_rows_above_the_heartbeat(rounds: list[list[int]], most: int) -> None:
    generator = Cap(Punctuated(), rows=most).start()
    seen: list[int] = []
    for rows in rounds:
        generator.observe(Arrivals.of_rows(0, [0] * len(rows), rows, cell_width=7))
        seen += rows
        heartbeat = generator.heartbeats(0).combined
        assert sum(time > heartbeat for time in seen) <= most


@given(times, st.integers(1, 20))
def test_before_kim_has_an_estimate_its_slack_is_a_fixed_buffer(rows: list[int], slack: int) -> None:
    kim, fixed = Kim(0.05, slack=slack).start(), Slack(slack).start()
    for time in rows[:29]:
        kim.observe(Arrivals.of_row(0, 0, time))
        fixed.observe(Arrivals.of_row(0, 0, time))
        assert kim.heartbeats(0).combined == fixed.heartbeats(0).combined


@pytest.mark.parametrize("slack", [-1, -100])
def test_a_negative_slack_is_refused(slack: int) -> None:
    with pytest.raises(DeclarationError, match="0 or more"):
        Slack(slack)
    with pytest.raises(DeclarationError, match="0 for heartbeats without a buffer"):
        Kim(0.01, slack=slack)
