"""The dry run against an oracle that goes through the rows one by one and keeps books by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import HeartbeatGenerator, Heartbeats, Policy, Snapshot
from eventide.eventtime.instant import NEVER
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.profile.dry_run import Outcome, dry_run, dry_runs, timetable
from eventide.profile.reading import Recording
from tests.profile.recordings import recordings


@dataclass(frozen=True)
class ClockMinus:
    """A policy that moves with the clock alone, to see that time goes on in silence."""

    delay: int

    def start(self) -> HeartbeatGenerator:
        return ClockMinusGenerator(self.delay)

    def resume(self, snapshot: Snapshot) -> HeartbeatGenerator:
        return self.start()


class ClockMinusGenerator:
    def __init__(self, delay: int) -> None:
        self.delay = delay

    def observe(self, arrivals: Arrivals) -> None:
        pass

    def heartbeats(self, clock: int) -> Heartbeats:
        return Heartbeats(clock - self.delay, np.zeros(0, dtype=np.int64))

    def snapshot(self) -> Snapshot:
        return {"kind": "clock_minus", "version": 1}


policies = st.one_of(
    st.integers(0, 30).map(FixedDelay), st.integers(0, 10).map(OwnProgress), st.integers(-5, 40).map(ClockMinus)
)


def by_hand_row_at_a_time(recording: Recording, policy: Policy) -> tuple[list[bool], list[int]]:
    generator = policy.start()
    kept: list[bool] = []
    released: list[int | None] = [None] * recording.rows
    waiting: list[int] = []

    def release(clock: int) -> None:
        heartbeat = generator.heartbeats(clock).combined
        for row in [row for row in waiting if recording.time[row] <= heartbeat]:
            released[row] = clock
            waiting.remove(row)

    for row in range(recording.rows):
        clock = int(recording.arrival[row])
        release(clock)
        kept.append(bool(recording.time[row] > generator.heartbeats(clock).combined))
        if kept[-1]:
            waiting.append(row)
        generator.observe(Arrivals.of_row(clock, int(recording.source[row]), int(recording.time[row])))
        release(clock)
    end = int(recording.arrival[-1])
    return kept, [end if at is None else at for at in released]


def by_hand_in_rounds(recording: Recording, policy: Policy, length: int) -> tuple[list[bool], list[int]]:
    """Every round is gone through, the silent ones too; so it is an oracle for policies that silence does not move."""
    generator = policy.start()
    kept = [False] * recording.rows
    released: list[int | None] = [None] * recording.rows
    waiting: list[int] = []
    first, last = int(recording.arrival[0]) // length, int(recording.arrival[-1]) // length
    heartbeat = generator.heartbeats(first * length).combined
    for number in range(first, last + 1):
        rows = [row for row in range(recording.rows) if recording.arrival[row] // length == number]
        for row in rows:
            kept[row] = bool(recording.time[row] > heartbeat)
            if kept[row]:
                waiting.append(row)
        end = (number + 1) * length
        if rows:
            generator.observe(Arrivals.of_rows(end, recording.source[rows], recording.time[rows]))
        heartbeat = generator.heartbeats(end).combined
        for row in [row for row in waiting if recording.time[row] <= heartbeat]:
            released[row] = end
            waiting.remove(row)
    return kept, [(last + 1) * length if at is None else at for at in released]


def outcome_by_hand(recording: Recording, kept: list[bool], released: list[int]) -> Outcome:
    lags = [max(0, released[row] - int(recording.arrival[row])) for row in range(recording.rows) if kept[row]]
    duration = int(recording.arrival[-1] - recording.arrival[0])
    lost = kept.count(False) / len(kept)
    return Outcome(
        drop_ratio=lost,
        drop_ratio_after_1000=None,
        worst_source_drop_ratio=None,
        worst_stretch_drop_ratio=lost,
        lag_mean=sum(lags) / len(lags) if lags else None,
        lag_p95=float(np.quantile(lags, 0.95)) if lags else None,
        buffered_mean_rows=sum(lags) / duration if duration else 0.0,
    )


def approximately(outcome: Outcome) -> dict[str, object]:
    return {name: pytest.approx(value) for name, value in vars(outcome).items()}


@given(recordings(), policies)
def test_row_at_a_time_the_books_agree_with_those_kept_by_hand(recording: Recording, policy: Policy) -> None:
    run = dry_run(recording, policy)
    kept, released = by_hand_row_at_a_time(recording, policy)
    assert run.kept.tolist() == kept
    assert vars(run.outcome) == approximately(outcome_by_hand(recording, kept, released))


@given(
    recordings(), st.one_of(st.integers(0, 30).map(FixedDelay), st.integers(0, 10).map(OwnProgress)), st.integers(1, 20)
)
def test_in_rounds_the_books_agree_with_those_kept_by_hand(recording: Recording, policy: Policy, length: int) -> None:
    run = dry_run(recording, policy, round=length)
    kept, released = by_hand_in_rounds(recording, policy, length)
    assert run.kept.tolist() == kept
    assert vars(run.outcome) == approximately(outcome_by_hand(recording, kept, released))


@given(recordings(), st.integers(-5, 40), st.integers(1, 20))
def test_skipping_silent_rounds_drops_no_other_rows(recording: Recording, delay: int, length: int) -> None:
    kept, _ = by_hand_in_rounds(recording, ClockMinus(delay), length)
    assert dry_run(recording, ClockMinus(delay), round=length).kept.tolist() == kept


@given(recordings(), st.integers(1, 20))
def test_policies_side_by_side_do_as_they_do_alone(recording: Recording, length: int) -> None:
    together: dict[str, Policy] = {"slow": FixedDelay(20), "fast": FixedDelay(0), "own": OwnProgress()}
    plan = timetable(recording, length)
    for name, run in dry_runs(plan, together).items():
        assert run.outcome == dry_run(recording, together[name], length).outcome


def test_a_row_that_no_heartbeat_reaches_waits_to_the_end_of_the_recording() -> None:
    recording = Recording.of("last is largest", time=[10, 40], arrival=[11, 41], source=["a", "a"])
    run = dry_run(recording, FixedDelay(1000))
    assert run.outcome.lag_mean == (41 - 11 + 0) / 2
    assert run.outcome.buffered_mean_rows == 1.0


def test_the_first_row_is_never_dropped_by_a_policy_that_knows_nothing() -> None:
    recording = Recording.of("one row", time=[7], arrival=[9], source=["a"])
    run = dry_run(recording, OwnProgress())
    assert run.heartbeat.tolist() == [NEVER, 6]
    assert run.outcome.drop_ratio == 0.0


def test_the_worst_source_and_the_worst_stretch_show_what_the_total_hides() -> None:
    rows = 30_000
    time = np.arange(rows) * 10
    source = np.where(np.arange(rows) % 10 == 0, 1, 0)
    source[:20] = 2
    late = (source == 1) & (np.arange(rows) >= 25_000)
    recording = Recording.of("one source turns late", time - late * 10_000, time, source)
    outcome = dry_run(recording, FixedDelay(5_000)).outcome
    assert outcome.drop_ratio == pytest.approx(500 / rows)
    assert outcome.drop_ratio_after_1000 == pytest.approx(500 / (rows - 1_000))
    # Two of the twenty rows of the small source would have been of source 1.
    assert outcome.worst_source_drop_ratio == pytest.approx(500 / 2_998)
    assert outcome.worst_stretch_drop_ratio == pytest.approx(500 / 10_000)


def test_progress_is_told_as_a_growing_share() -> None:
    recording = Recording.of("steady", np.arange(1_000), np.arange(1_000), np.zeros(1_000))
    told: list[float] = []
    note: Callable[[float], None] = told.append
    dry_runs(timetable(recording, None), {"own": OwnProgress()}, note)
    assert told == sorted(told)
    assert 0 < told[0] < 1
