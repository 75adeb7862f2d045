"""The grammar of results, against a check of every pair of rows; and with a frontier that has holes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import GrammarError
from eventide.eventtime.frontier import Frontier
from eventide.eventtime.heartbeat import Heartbeats
from eventide.eventtime.punctuation import Span
from eventide.results.results import Grammar

Row = tuple[str, int, str]


def table(rows: list[Row], heartbeat: int = 100) -> pa.Table:
    return pa.table(
        {
            "kind": [kind for kind, _, _ in rows],
            "window_start": pa.array([start for _, start, _ in rows], pa.int64()),
            "window_end": pa.array([start + 10 for _, start, _ in rows], pa.int64()),
            "heartbeat": pa.array([heartbeat] * len(rows), pa.int64()),
            "k": [k for _, _, k in rows],
        }
    )


def grammatical(rows: list[Row], over: bool) -> bool:
    """Every pair in turn; `over`: whether the windows are."""
    for place, (kind, *key) in enumerate(rows):
        before = [other for other, *same in rows[:place] if same == key]
        if kind == "revised" and not {"final", "revised"} & set(before) and not over:
            return False
        if kind != "revised" and {"final", "revised"} & set(before):
            return False
        if kind == "final" and not over:
            return False
    return True


@given(
    st.lists(
        st.tuples(st.sampled_from(["early", "final", "revised"]), st.sampled_from([0, 10]), st.sampled_from("ab")),
        max_size=7,
    ),
    st.booleans(),
)
@settings(max_examples=300)
def test_what_may_follow_what(rows: list[Row], over: bool) -> None:
    grammar, heartbeat = Grammar(("k",)), 100 if over else 5
    if grammatical(rows, over):
        grammar.read(table(rows, heartbeat))
    else:
        with pytest.raises(GrammarError):
            grammar.read(table(rows, heartbeat))


@given(st.data())
@settings(max_examples=100)
def test_a_frontier_with_holes_gives_grammatical_results(data: st.DataObject) -> None:
    """Windows of 10 become final when they are closed; some are set aside meanwhile, and settled later."""
    frontier, grammar, told, heartbeat = Frontier.start(), Grammar(("k",)), set(), -1
    for _ in range(data.draw(st.integers(1, 8))):
        step = data.draw(st.sampled_from(["advance", "sideline", "settle"]))
        if step == "advance":
            heartbeat += data.draw(st.integers(0, 25))
            frontier = frontier.advanced(Heartbeats(heartbeat, np.array([heartbeat])))
        elif step == "sideline":
            start = (heartbeat // 10 + 1) * 10
            hole = Span(start, start + 10)
            if hole not in frontier.sidelined:
                frontier = frontier.sidelining(hole)
        elif frontier.sidelined:
            frontier = frontier.settled(frontier.sidelined[0])
        # What is set aside now may be told early; everything that is closed is told, once.
        grammar.promise(-1, frontier.sidelined)
        early = [("early", hole.start, "a") for hole in frontier.sidelined]
        closed = [start for start in range(0, 200, 10) if start not in told and frontier.closed(start, start + 10)]
        grammar.read(table([*early, *(("final", start, "a") for start in closed)], heartbeat))
        told.update(closed)


def test_a_final_row_before_the_end_of_its_window_is_refused() -> None:
    with pytest.raises(GrammarError, match="at heartbeat 8, before its end"):
        Grammar(("k",)).read(table([("final", 0, "a")], heartbeat=8))


def test_a_final_row_of_a_window_that_is_set_aside_is_refused() -> None:
    grammar = Grammar(("k",))
    grammar.promise(50, [Span(5, 8)])
    with pytest.raises(GrammarError, match="set aside"):
        grammar.read(table([("final", 0, "a")]))


def test_nothing_comes_after_the_promise_but_revisions_and_what_is_in_a_hole() -> None:
    grammar = Grammar(("k",))
    grammar.read(table([("final", 0, "a")]))
    grammar.promise(29, [Span(10, 20)])
    grammar.read(table([("revised", 0, "a"), ("early", 10, "a")]))
    with pytest.raises(GrammarError, match="the promise that it is over"):
        grammar.read(table([("early", 20, "a")]))
