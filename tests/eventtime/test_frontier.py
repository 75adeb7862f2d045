"""The frontier against sets of closed instants, kept one by one."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import DeclarationError
from eventide.eventtime.frontier import Frontier
from eventide.eventtime.heartbeat import Heartbeats
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.punctuation import Span, merged

INSTANTS = range(-3, 25)
SOURCES = 3
WHOM = (*range(SOURCES), None)


@dataclass
class ClosedInstants:
    """For each source, and for all together (None): what heartbeats and ranges have closed, holes not counted."""

    passed: dict[int | None, set[int]] = field(default_factory=lambda: {whom: set() for whom in WHOM})
    holes: list[Span] = field(default_factory=list)

    def advance(self, combined: int, by_source: list[int]) -> None:
        for source, heartbeat in enumerate(by_source):
            self.passed[source] |= {t for t in INSTANTS if t <= heartbeat}
        for whom in WHOM:
            self.passed[whom] |= {t for t in INSTANTS if t <= combined}

    def close(self, span: Span) -> None:
        for whom in WHOM if span.source is None else (span.source,):
            self.passed[whom] |= {t for t in INSTANTS if span.start <= t < span.end}

    def open_in(self, span: Span) -> bool:
        inside = {t for t in INSTANTS if span.start <= t < span.end}
        concerned = WHOM if span.source is None else (span.source,)
        return all(not inside & self.passed[whom] for whom in concerned)

    def closed(self, whom: int | None) -> set[int]:
        holes = (hole for hole in self.holes if whom is None or hole.source in (None, whom))
        return self.passed[whom] - {t for hole in holes for t in range(hole.start, hole.end)}


@st.composite
def spans(draw: st.DrawFn) -> Span:
    start = draw(st.integers(0, 18))
    return Span(start, draw(st.integers(start + 1, 20)), draw(st.sampled_from(WHOM)))


heartbeat = st.one_of(st.just(NEVER), st.integers(0, 20))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("advance"), heartbeat, st.lists(heartbeat, max_size=SOURCES)),
        st.tuples(st.just("close"), spans()),
        st.tuples(st.just("sideline"), spans()),
        st.tuples(st.just("settle"), st.integers(0, 3)),
    ),
    max_size=12,
)


def played(story: list[tuple[object, ...]]) -> list[tuple[Frontier, ClosedInstants]]:
    """The frontier and the sets after every step that was allowed."""
    frontier, sets, pairs = Frontier.start(), ClosedInstants(), []
    for step in story:
        match step:
            case ("advance", int(combined), list(by_source)):
                frontier = frontier.advanced(Heartbeats(combined, np.array(by_source, dtype=np.int64)))
                sets.advance(combined, by_source)
            case ("close", Span() as span):
                frontier = frontier.closing(span)
                sets.close(span)
            case ("sideline", Span() as span):
                if not sets.open_in(span) or span in sets.holes:
                    with pytest.raises(DeclarationError):
                        frontier.sidelining(span)
                    continue
                frontier = frontier.sidelining(span)
                sets.holes.append(span)
            case ("settle", int(which)) if sets.holes:
                span = sets.holes.pop(which % len(sets.holes))
                frontier = frontier.settled(span)
        copy = ClosedInstants({whom: set(passed) for whom, passed in sets.passed.items()}, list(sets.holes))
        pairs.append((frontier, copy))
    return pairs


@given(steps)
def test_frontier_closes_exactly_the_instants_that_the_sets_hold(story: list[tuple[object, ...]]) -> None:
    for frontier, sets in played(story):
        for whom in WHOM:
            assert {t for t in INSTANTS if frontier.is_closed(t, whom)} == sets.closed(whom)


@given(steps, st.integers(-3, 22), st.integers(1, 12))
def test_a_slice_is_closed_when_all_its_instants_are(story: list[tuple[object, ...]], start: int, width: int) -> None:
    for frontier, sets in played(story):
        for whom in WHOM:
            inside = {t for t in INSTANTS if start <= t < start + width}
            whole = inside <= sets.closed(whom) and start + width <= INSTANTS[-1] + 1
            assert frontier.closed(start, start + width, whom) == whole


@given(steps)
def test_a_frontier_never_goes_back(story: list[tuple[object, ...]]) -> None:
    frontiers = [Frontier.start(), *(frontier for frontier, _ in played(story))]
    for before, after in pairwise(frontiers):
        assert before <= after


@given(steps, steps)
def test_frontiers_compare_as_the_sets_of_what_they_close(
    one: list[tuple[object, ...]], other: list[tuple[object, ...]]
) -> None:
    for mine, my_sets in played(one)[-2:]:
        for yours, your_sets in played(other)[-2:]:
            within = all(my_sets.closed(whom) <= your_sets.closed(whom) for whom in WHOM)
            beyond = all(your_sets.closed(whom) <= my_sets.closed(whom) for whom in WHOM)
            assert (mine <= yours) == within
            assert (mine == yours) == (within and beyond)


@given(steps, steps)
def test_a_frontier_restored_through_json_goes_on_as_before(
    past: list[tuple[object, ...]], future: list[tuple[object, ...]]
) -> None:
    for frontier, _ in played(past)[-1:]:
        saved = json.dumps(frontier.snapshot())
        restored = Frontier.restored(json.loads(saved))
        assert restored == frontier
        for span in (step[1] for step in future if step[0] == "close"):
            assert isinstance(span, Span)
            assert json.dumps(restored.closing(span).snapshot()) == json.dumps(frontier.closing(span).snapshot())


@given(st.lists(spans(), max_size=8))
def test_merged_spans_hold_the_same_time_and_touch_no_more(given_spans: list[Span]) -> None:
    def instants(some: list[Span] | tuple[Span, ...]) -> set[tuple[int | None, int]]:
        return {(span.source, t) for span in some for t in range(span.start, span.end)}

    few = merged(given_spans)
    assert instants(few) == instants(given_spans)
    for span in few:
        assert not any(other.end == span.start and other.source == span.source for other in few)


def test_a_frontier_reaches_to_the_ends_of_int64() -> None:
    frontier = Frontier.start().closing(Span(NEVER + 1, 0)).closing(Span(5, FOREVER))
    assert frontier.closed(NEVER + 1, 0)
    assert frontier.closed(5, FOREVER)
    assert not frontier.is_closed(0)
    assert frontier <= frontier.advanced(Heartbeats(FOREVER, np.array([FOREVER])))


def test_a_frontier_is_not_equal_to_something_else() -> None:
    assert Frontier.start() != "nothing is closed"
