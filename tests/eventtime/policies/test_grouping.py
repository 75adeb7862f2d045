from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import DeclarationError
from eventide.eventtime.arrays import as_plain
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import NEVER
from eventide.eventtime.policies.skew.bounds import RowBound, SkewBound, TimeBound
from eventide.eventtime.policies.skew.confidence import loss_at_most
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.skew.grouping import group
from eventide.eventtime.policies.skew.matrix import Skew, SkewMatrix
from eventide.eventtime.policies.wrappers.source_groups import MergedSources
from tests.eventtime.policies.skew_environment import drive, emissions, matrices, per_source_skews, round_clocks

skews = st.one_of(matrices(most=4), per_source_skews())


@st.composite
def assignments(draw: st.DrawFn, sources: int) -> tuple[int, ...]:
    labels = draw(st.lists(st.integers(0, sources - 1), min_size=sources, max_size=sources))
    order = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return tuple(order[label] for label in labels)


@settings(max_examples=120)
@given(st.data(), skews, st.integers(1, 4))
def test_groups_are_never_promised_more_than_their_sources_and_lose_no_row(
    data: st.DataObject, skew: Skew, step: int
) -> None:
    assignment = data.draw(assignments(len(skew.latency)))
    rows = data.draw(emissions(skew))
    alone = drive(DeclaredSkew(skew, 1).start(), rows, round_clocks(rows, [step], 12))
    policy = MergedSources(DeclaredSkew(group(skew, assignment), 1), assignment)
    before = np.full(len(skew.latency), NEVER)
    for (_, here, single), (_, _, together) in zip(
        alone, drive(policy.start(), rows, round_clocks(rows, [step], 12)), strict=True
    ):
        assert all(row.time > before[row.source] for row in here)
        assert (together.by_source <= single.by_source).all()
        assert together.combined == together.by_source.min()
        before = together.by_source


@settings(max_examples=50)
@given(st.data(), skews)
def test_groups_of_one_source_promise_the_same(data: st.DataObject, skew: Skew) -> None:
    assignment = tuple(range(len(skew.latency)))
    rows = data.draw(emissions(skew))
    alone = drive(DeclaredSkew(skew, 1).start(), rows, round_clocks(rows, [2], 12))
    policy = MergedSources(DeclaredSkew(group(skew, assignment), 1), assignment)
    for (_, _, single), (_, _, together) in zip(
        alone, drive(policy.start(), rows, round_clocks(rows, [2], 12)), strict=True
    ):
        assert together.by_source.tolist() == single.by_source.tolist()


@settings(max_examples=50)
@given(st.data(), skews)
def test_a_grouped_generator_goes_on_from_its_snapshot(data: st.DataObject, skew: Skew) -> None:
    assignment = data.draw(assignments(len(skew.latency)))
    policy = MergedSources(DeclaredSkew(group(skew, assignment)), assignment)
    rows = data.draw(emissions(skew))
    generator = policy.start()
    for clock, _, _ in drive(generator, rows, round_clocks(rows, [3], 0)):
        other = policy.resume(json.loads(json.dumps(generator.snapshot(), default=as_plain)))
        assert other.heartbeats(clock + 2).by_source.tolist() == generator.heartbeats(clock + 2).by_source.tolist()


def test_the_join_of_a_group_holds_for_every_member() -> None:
    entries: list[list[list[SkewBound]]] = [
        [[TimeBound(0, 0)], [TimeBound(1, 2), TimeBound(3, 1)], [TimeBound(9, 0)]],
        [[TimeBound(2, 3)], [TimeBound(0, 1)], [TimeBound(4, 4)]],
        [[], [TimeBound(5, 5)], [TimeBound(0, 0), RowBound(2, 0)]],
    ]
    small = group(SkewMatrix.of(entries, latency=[1, 7, 3]), [0, 0, 1])
    assert small.bounds(0, 0) == (TimeBound(2, 3),)
    assert small.bounds(0, 1) == (TimeBound(9, 4),)
    assert small.bounds(1, 0) == ()
    assert small.bounds(1, 1) == (TimeBound(0, 0),)
    assert small.latency == (7, 3)


def test_rows_of_a_group_do_not_count_for_a_silent_member() -> None:
    """Both targets keep the same row bound: the group may not, for one of them could speak alone."""
    by_rows = [RowBound(1, 0)]
    skew = SkewMatrix.of([[by_rows] * 3] * 3, latency=[0, 0, 0])
    small = group(skew, [0, 1, 1])
    assert small.bounds(0, 1) == ()
    assert small.bounds(1, 0) == (RowBound(1, 0),)


def test_a_group_may_lose_what_its_worst_member_may() -> None:
    likely, sure = [TimeBound(0, 1, 0.125)], [TimeBound(0, 1)]
    skew = SkewMatrix.of([[sure, likely, sure], [likely, sure, sure], [likely, likely, sure]], [0, 0, 0])
    assert loss_at_most(skew) == (0.25, 0.25, 0.0)
    assert loss_at_most(group(skew, [0, 0, 1])) == (0.25, 0.0)


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ((), "no source was assigned"),
        ((0, -1), "group -1"),
        ((0, 10**9), "group 1 has no source"),
        ((0,), "assign each once"),
    ],
)
def test_impossible_assignments_are_refused(assignment: tuple[int, ...], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        group(SkewMatrix.of([[[], []], [[], []]], [0, 0]), assignment)


def test_a_row_of_a_source_without_a_group_is_refused() -> None:
    generator = MergedSources(DeclaredSkew(SkewMatrix.of([[[]]], [0])), (0, 0)).start()
    with pytest.raises(DeclarationError, match="assign every source"):
        generator.observe(Arrivals.of_row(0, 2, 0))
