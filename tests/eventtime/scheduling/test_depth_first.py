"""Depth-first scheduling with enabling timestamps against all tuples at once."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from eventide.eventtime.scheduling.depth_first import Decision, Move, depth_first
from eventide.eventtime.scheduling.labels import Node, Shape
from tests.eventtime.scheduling.plan_shapes import shapes
from tests.eventtime.stream_mill import Machine, Tuple, all_at_once

FIGURE_4 = Shape(("A", "B"), (Node("fast", ("A",)), Node("slow", ("B",)), Node("union", ("fast", "slow"))))


def moves(decisions: list[Decision]) -> list[tuple[str, str, str]]:
    return [(one.at, one.move.value, one.to) for one in decisions]


def test_a_union_goes_back_to_the_silent_source_through_its_selection_and_comes_forward_again() -> None:
    machine = Machine(FIGURE_4, {"A": 5, "B": 5})
    machine.bring("A", [(5, "a")], 5)
    assert moves(list(depth_first(FIGURE_4, machine, idle=("B",)))) == [
        ("A", "forward", "fast"),
        ("fast", "encore", "fast"),
        ("fast", "forward", "union"),
        ("union", "encore", "union"),
        ("union", "backtrack", "slow"),
        ("slow", "backtrack", "B"),
        ("B", "ask", "B"),
        ("B", "forward", "slow"),
        ("slow", "encore", "slow"),
        ("slow", "forward", "union"),
        ("union", "encore", "union"),
    ]
    assert machine.told["union"] == [(5, "a")]


def test_a_row_that_no_selection_lets_through_makes_nobody_wait_and_nobody_is_asked() -> None:
    machine = Machine(FIGURE_4, {"A": 5, "B": 5}, dropped=frozenset("a"))
    machine.bring("A", [(5, "a")], 5)
    assert Move.ASK not in [one.move for one in depth_first(FIGURE_4, machine, idle=("B",))]


def test_rows_that_come_by_two_ways_are_taken_in_one_run() -> None:
    machine = Machine(FIGURE_4, {})
    machine.bring("A", [(5, "a")], 5)
    machine.bring("B", [(5, "b")], 5)
    list(depth_first(FIGURE_4, machine, idle=()))
    assert (machine.told["union"], machine.runs) == ([(5, "a"), (5, "b")], 3)


def test_a_source_that_knows_nothing_later_is_asked_once_and_the_union_goes_on_waiting() -> None:
    machine = Machine(FIGURE_4, {"B": 4})
    machine.bring("A", [(5, "a")], 5)
    machine.bring("B", [], 4)
    list(depth_first(FIGURE_4, machine, idle=("B",)))
    assert (machine.asked, machine.told["union"]) == (["B"], [])


@dataclass(frozen=True)
class Story:
    """A round: what comes, what is promised with it, and what silent sources would answer."""

    shape: Shape
    rows: dict[str, list[Tuple]]
    heartbeats: dict[str, int]
    answers: dict[str, int]

    @property
    def idle(self) -> tuple[str, ...]:
        return tuple(source for source in self.shape.sources if not self.rows[source])


@st.composite
def stories(draw: st.DrawFn) -> Story:
    shape = draw(shapes())
    tuples = st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abx")), max_size=4)
    rows = {source: draw(tuples) for source in shape.sources}
    heartbeats = {source: draw(st.integers(0, 9)) for source in shape.sources}
    answers = {source: draw(st.integers(0, 12)) for source in shape.sources}
    return Story(shape, rows, heartbeats, answers)


def run(story: Story) -> tuple[Machine, list[Decision]]:
    machine = Machine(story.shape, story.answers, frozenset("x"))
    for source in story.shape.sources:
        machine.bring(source, list(story.rows[source]), story.heartbeats[source])
    return machine, list(depth_first(story.shape, machine, story.idle))


@limits(max_examples=100)
@given(stories())
def test_every_tuple_is_told_that_asking_every_silent_source_would_have_told(story: Story) -> None:
    machine, _ = run(story)
    asked_all = {
        source: max(story.heartbeats[source], story.answers[source] if source in story.idle else 0)
        for source in story.shape.sources
    }
    expected = all_at_once(story.shape, story.rows, asked_all, frozenset("x"))
    assert {name: sorted(told) for name, told in machine.told.items()} == expected


@limits(max_examples=100)
@given(stories())
def test_a_source_is_asked_only_while_an_operator_above_holds_rows_and_once_at_the_most(story: Story) -> None:
    machine = Machine(story.shape, story.answers, frozenset("x"))
    for source in story.shape.sources:
        machine.bring(source, list(story.rows[source]), story.heartbeats[source])
    asked = []
    held_before: set[str] = set()
    for decision in depth_first(story.shape, machine, story.idle):
        if decision.move is Move.ASK:
            asked.append(decision.at)
            assert held_before.intersection(story.shape.above(decision.at))
        held_before = {name for name, held in machine.held.items() if held}
    assert sorted(asked) == sorted(set(asked))
    assert set(asked) <= set(story.idle)
    assert asked == machine.asked


@limits(max_examples=100)
@given(stories())
def test_every_operator_runs_at_most_once_for_the_rows_and_once_for_every_answer(story: Story) -> None:
    machine, decisions = run(story)
    runs = [one.at for one in decisions if one.move is Move.ENCORE]
    assert len(runs) == machine.runs
    assert all(runs.count(node.name) <= 1 + len(machine.asked) for node in story.shape.operators)
    assert not any(arc.has_news for arc in machine.arcs.values())
