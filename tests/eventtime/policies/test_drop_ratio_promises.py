"""What is promised of every source, read for the sources of a round only, against all of it read anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import resumed
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.drop_ratio.promises import Promises


def streams(seed: int, sources: int, width: int | None, rounds: int) -> list[Arrivals]:
    """Rounds of some sources, single rows without a width; a storm in the middle, so that sources are overdrawn."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(rounds):
        clock = 10 * number
        source = rng.integers(0, sources, 1 if width is None else rng.integers(1, 3 * sources + 1))
        behind = rng.exponential(5 if number < rounds // 2 else 400, len(source)) * (1 + source)
        made.append(Arrivals.of_rows(clock, source, clock - behind.astype(np.int64), cell_width=width))
    return made


@pytest.mark.parametrize(("width", "rounds"), [(None, 240), (30, 60)], ids=["row by row", "in rounds"])
@limits(max_examples=12, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 3, 40]), st.sampled_from([0.5, 0.05, 0.002]))
def test_a_policy_that_reads_everything_anew_after_each_round_shows_the_same(
    width: int | None, rounds: int, seed: int, sources: int, ratio: float
) -> None:
    """Resumed from its snapshot, a policy knows nothing that it read before."""
    policy = DropRatio(ratio)
    generator, anew = policy.start(), policy.start()
    for arrivals in streams(seed, sources, width, rounds):
        generator.observe(arrivals)
        anew = resumed(policy.start(), anew.snapshot())
        anew.observe(arrivals)
        anew = resumed(policy.start(), anew.snapshot())
        shown, expected = generator.heartbeats(arrivals.clock), anew.heartbeats(arrivals.clock)
        assert shown.combined == expected.combined
        assert shown.by_source.tolist() == expected.by_source.tolist()
        assert generator.candidates.heartbeats.tolist() == anew.candidates.heartbeats.tolist()
    assert generator.snapshot() == anew.snapshot()


def test_many_sources_are_read_in_parts_as_each_of_them_alone() -> None:
    generator = DropRatio(0.01).start()
    rng = np.random.default_rng(5)
    for clock in range(0, 400, 100):
        source = np.repeat(np.flatnonzero(rng.random(9_000) < 0.9), 3)
        generator.observe(Arrivals.of_rows(clock, source, clock - rng.integers(0, 150, len(source)), cell_width=50))
        generator.heartbeats(clock)
    state = generator._ladder, generator.account, generator._progress, generator._silence
    together = Promises(generator.candidates.rungs, generator.account.nominal_rung)
    together.refresh(np.arange(9_000), *state)
    for source in rng.integers(0, 9_000, 200).tolist():
        before = together.own[:, source].tolist(), together.clock[:, source].tolist()
        together.refresh(np.array([source]), *state)
        assert (together.own[:, source].tolist(), together.clock[:, source].tolist()) == before
    assert together.gone_after.tolist() == generator._current_promises().gone_after.tolist()
