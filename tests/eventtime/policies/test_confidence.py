"""Bounds that may fail: what a budget affords, and whether they fail as seldom as declared."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.policies.skew.bounds import SkewBound, TimeBound, simplified
from eventide.eventtime.policies.skew.confidence import affordable, is_broken, loss_at_most
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.skew.matrix import SkewMatrix
from eventide.eventtime.reason import BareAmounts

SHARES = st.sampled_from([0.0, 0.01, 0.02, 0.05, 0.3])
BOUNDS = st.lists(st.builds(TimeBound, st.integers(0, 3), st.integers(0, 9), SHARES), max_size=3)


@given(st.data(), st.integers(1, 3), st.sampled_from([0.0, 0.01, 0.03, 0.1, 1.0]))
def test_a_budget_is_never_overdrawn_and_the_surest_bounds_come_first(
    data: st.DataObject, sources: int, budget: float
) -> None:
    n = range(sources)
    entries: list[list[list[SkewBound]]] = [[list(data.draw(BOUNDS)) for _ in n] for _ in n]
    latencies = [{0.0: 9, **data.draw(st.dictionaries(SHARES, st.integers(0, 8)))} for _ in n]
    skew, unused = affordable(entries, latencies, budget)
    assert all(loss <= budget + 1e-9 for loss in loss_at_most(skew))
    for j in n:
        share = skew.latency_exceeded[j] if skew.latency_exceeded else 0.0
        assert skew.latency[j] == min(wait for fails, wait in latencies[j].items() if fails <= budget)
        left = [bound for sender, target, bound in unused if target == j]
        declared = [bound.exceeded for i in n for bound in entries[i][j] if bound.exceeded]
        used = sorted(declared)[: len(declared) - len(left)]
        assert sum(used) + share <= budget + 1e-9
        assert all(sum(used) + share + bound.exceeded > budget for bound in left)
        for i in n:
            gone = [bound for sender, target, bound in unused if (sender, target) == (i, j)]
            rest = list(entries[i][j])
            for bound in gone:
                rest.remove(bound)
            assert skew.bounds(i, j) == simplified(rest)


def test_a_source_that_breaks_its_bounds_more_often_than_declared_is_named() -> None:
    skew = SkewMatrix.of([[[TimeBound(0, 5, 0.1)], []], [[], [TimeBound(0, 5, 0.1)]]], [0, 0], [0.02, 0.0])
    generator = DeclaredSkew(skew).start()
    for clock in range(200):
        late = [(0, clock - 9)] if clock % 4 == 0 else [(1, clock - 9)] if clock % 20 == 0 else []
        rows = [(0, clock), (1, clock), *late]
        generator.observe(Arrivals.of_rows(clock, [s for s, _ in rows], [t for _, t in rows], cell_width=1))
        generator.heartbeats(clock)
        if clock == 100:
            generator = DeclaredSkew(skew).resume(generator.snapshot())
    words = [generator.why(source).words(BareAmounts()) for source in (0, 1)]
    assert words[0].startswith("bound 5, for all but 12 % of its rows; its bounds do not hold: ")
    assert words[1] == "bound 5, for all but 10 % of its rows"


@given(st.integers(0, 9), st.sampled_from([0.01, 0.1, 0.3]))
def test_bounds_that_hold_are_seldom_called_broken(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    late = rng.binomial(1000, share, size=2000)
    assert np.mean([is_broken(int(one), 1000, share) for one in late]) < 0.01
    assert is_broken(int(1000 * (share + 0.15)), 1000, share)


def test_one_row_breaks_a_bound_that_never_fails() -> None:
    assert is_broken(1, 10**9, 0.0)
    assert not is_broken(0, 10**9, 0.0)
