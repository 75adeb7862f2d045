"""A learned start: the slacks of a recording, and the budget of a new stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from numpy.typing import NDArray

from eventide.eventtime.arrays import as_plain
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import NEVER
from eventide.eventtime.policies.drop_ratio.learned import Learned, experience
from eventide.eventtime.policies.drop_ratio.policy import DropRatio, DropRatioGenerator
from eventide.profile.dry_run import dry_run
from eventide.profile.reading import Recording

PERMITTED = 0.01
MEAN_GAP = 10_000

DELAYS: dict[str, Callable[[np.random.Generator, int, NDArray[np.int64]], NDArray[Any]]] = {
    "exponential": lambda rng, rows, source: rng.exponential(50_000, rows),
    "heavy tail": lambda rng, rows, source: rng.pareto(1.5, rows) * 10_000,
    "a slower source": lambda rng, rows, source: rng.exponential(20_000, rows) * (1 + source),
    "in batches": lambda rng, rows, source: rng.integers(0, 500_000, rows),
    "in order": lambda rng, rows, source: np.zeros(rows),
}


def stationary(kind: str, seed: int, rows: int, sources: int, start: int = 0) -> Recording:
    """Rows at random times, of sources numbered as they are named, each delayed by the law of its kind."""
    rng = np.random.default_rng(seed)
    time = start + np.sort(rng.integers(0, rows * MEAN_GAP, rows))
    source = rng.integers(0, sources, rows)
    arrival = time + DELAYS[kind](rng, rows, source).astype(np.int64)
    order = np.argsort(arrival, kind="stable")
    names = tuple(str(number) for number in range(sources))
    return Recording(kind, time[order], arrival[order], source[order].astype(np.intp), names)


def after(recording: Recording, policy: DropRatio) -> DropRatioGenerator:
    generator = policy.start()
    for clock, source, time in zip(
        recording.arrival.tolist(), recording.source.tolist(), recording.time.tolist(), strict=True
    ):
        generator.observe(Arrivals.of_row(clock, source, time))
        generator.heartbeats(clock)
    return generator


def learned(recording: Recording, ratio: float = PERMITTED) -> DropRatio:
    return DropRatio(ratio, Learned("recording", experience(after(recording, DropRatio(ratio)).snapshot(), ratio)))


def plain(snapshot: Snapshot) -> str:
    return json.dumps(snapshot, default=as_plain, sort_keys=True)


@given(st.integers(0, 2**31), st.integers(-(10**14), 10**14), st.sampled_from(sorted(DELAYS)))
@limits(max_examples=6)
def test_neither_times_nor_the_clock_are_carried_over(seed: int, start: int, kind: str) -> None:
    here, elsewhere = (learned(stationary(kind, seed, rows=40, sources=3, start=at)).learned for at in (0, start))
    assert here is not None
    assert elsewhere is not None
    assert plain(here.state or {}) == plain(elsewhere.state or {})


def test_a_learned_start_has_the_budget_of_a_new_stream() -> None:
    recording = stationary("heavy tail", seed=1, rows=300, sources=2)
    spent, cold, begun = (
        after(recording, DropRatio(PERMITTED)),
        DropRatio(PERMITTED).start(),
        learned(recording).start(),
    )
    assert spent.account.rows == 300
    assert (begun.account.rows, begun.account.lost, begun.account.balance) == (0, 0.0, cold.account.balance)
    assert begun.account.rows_of.tolist() == begun.account.lost_of.tolist() == [0, 0]
    assert begun.heartbeats(10**9).combined == NEVER


def test_a_candidate_that_lost_too_much_begins_without_credit() -> None:
    spent = after(stationary("heavy tail", seed=1, rows=100, sources=1), DropRatio(PERMITTED))
    spent.candidates.balance[:] = 5.0
    spent.candidates.balance[3] = -1_000.0
    begun = DropRatio(PERMITTED, Learned("spent", experience(spent.snapshot(), PERMITTED))).start().candidates
    assert [number for number, balance in enumerate(begun.balance) if balance != 0] == [3]
    # The credit of the warm-up is 20 rows.
    assert -1_000 < begun.balance[3] < -20


def test_a_source_that_has_not_spoken_yet_holds_nobody_up() -> None:
    policy = learned(stationary("in order", seed=1, rows=200, sources=3))
    generator = policy.start()
    for time in range(-1_000, -900, 10):
        generator.observe(Arrivals.of_row(time, 1, time))
    assert generator.heartbeats(-910).combined >= -1_000
    assert np.concatenate([out.sources for out in generator.left_out()]).tolist() == [0, 2]


def test_it_resumes_where_it_was_and_does_not_learn_anew() -> None:
    recording = stationary("a slower source", seed=3, rows=150, sources=2)
    going = after(recording, learned(stationary("a slower source", seed=2, rows=300, sources=2)))
    resumed = DropRatio(PERMITTED, Learned("gone")).resume(going.snapshot())
    assert plain(resumed.snapshot()) == plain(going.snapshot())


def test_rows_in_order_wait_for_less_from_the_first_on() -> None:
    before, now = (stationary("in order", seed, rows, sources=8) for seed, rows in ((1, 1_000), (2, 200)))
    cold, warm = (dry_run(now, policy).outcome.lag_mean for policy in (DropRatio(PERMITTED), learned(before)))
    assert cold is not None
    assert warm is not None
    assert warm < cold / 2


def lost(kind: str, sources: int) -> tuple[float, float]:
    """The shares that a cold and a learned start lose of the first thousand rows of a stream like the recording."""
    before, now = (stationary(kind, seed, rows, sources) for seed, rows in ((1, 3_000), (2, 1_000)))
    cold, warm = (dry_run(now, policy).outcome for policy in (DropRatio(PERMITTED), learned(before)))
    return cold.drop_ratio, warm.drop_ratio


def test_the_first_thousand_rows_are_no_warm_up() -> None:
    cold, warm = lost("heavy tail", sources=8)
    assert warm <= PERMITTED < cold


@pytest.mark.slow
def test_over_all_kinds_of_streams_the_first_thousand_rows_keep_the_ratio() -> None:
    both = np.array([lost(kind, sources) for kind in DELAYS for sources in (1, 8)])
    cold, warm = both.mean(axis=0)
    assert warm <= PERMITTED < cold
    assert (warm, both[:, 1].max()) <= (cold, both[:, 0].max())
