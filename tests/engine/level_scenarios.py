"""Random plans of several levels, and what brute force says of them.

A plan is a chain of questions: the first reads the stream, each other one the results of the one before. Brute force
knows nothing of slices: it takes all results of a level as rows whose time is the last instant of their window, and
asks the oracle about them. So it also tells whether a result was ever late.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from eventide.eventtime.instant import NEVER
from eventide.plan.declared.program import Program
from eventide.plan.declared.window import RowWindow, SameWindow, Window
from eventide.testing.oracle import OracleAnswer, Result, Round, answers
from eventide.testing.questions import Aggregate, Condition, Question, Row
from eventide.testing.trial import Trial
from tests.engine.scenarios import Scenario, orders, play_round, questions, scenarios

AggregateValue = list[list[tuple[Any, ...]]]
"""For each round, what the levels told, lowest first, each in the order of its results."""


@dataclass(frozen=True)
class Plan:
    """Questions one above the other, and the rounds of the stream that the lowest reads."""

    story: Scenario
    levels: tuple[Question, ...]

    @property
    def program(self) -> Program:
        """Declared from the highest level down: the order of declarations means nothing."""
        return Program(self.story.program.streams, tuple(question.query() for question in reversed(self.levels)))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Two or three levels, with every kind of window on each."""
    story = draw(scenarios())
    levels = [replace(draw(questions("q0")), retain=0)]
    for number in range(1, draw(st.integers(2, 3))):
        levels.append(draw(above(levels[-1], f"q{number}")))
    return Plan(replace(story, questions=()), tuple(levels))


@st.composite
def above(draw: st.DrawFn, below: Question, name: str) -> Question:
    """A question over the results of another."""
    kind = draw(st.sampled_from(["same", "same", "time", "time", "shown empty", "rows"]))
    lengths = st.integers(1, 30)
    window: Window | RowWindow | SameWindow = SameWindow()
    if kind == "time":
        window = Window(draw(lengths), draw(lengths), draw(st.integers(-5, 15)))
    elif kind == "shown empty":
        window = Window(draw(st.integers(3, 9)), draw(st.integers(3, 9)), empty=True)
    elif kind == "rows":
        window = RowWindow(draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    # Sums of fractions depend on the order in which they are made.
    whole = [aggregate.name for aggregate in below.aggregates if aggregate.function in ("count", "count_distinct")]
    others = [column for column in (*below.groups, *(a.name for a in below.aggregates)) if column not in whole]
    possible = [Aggregate("count", "*"), Aggregate("max", "window_start")]
    possible += [Aggregate(function, column) for column in whole for function in ("sum", "avg", "min", "max")]
    possible += [Aggregate(function, column) for column in others for function in ("count_distinct", "min", "max")]
    aggregates = draw(st.lists(st.sampled_from(possible), min_size=1, max_size=3, unique=True))
    groups = () if kind == "shown empty" else tuple(column for column in below.groups if draw(st.booleans()))
    where = draw(st.none() | st.sampled_from(whole).map(lambda column: Condition(column, ">", 1))) if whole else None
    order, limit = draw(orders((*groups, *(aggregate.name for aggregate in aggregates))))
    return Question(name, below.name, window, tuple(aggregates), groups, where, 0, 0, order, limit)


def brute_force(plan: Plan) -> tuple[AggregateValue, int]:
    """What each round tells, and how many results were late for the level above."""
    told: AggregateValue = [[] for _ in plan.story.rounds]
    rounds, late, shape = plan.story.promised(), 0, Window(1)
    for number, question in enumerate(plan.levels):
        given = answers(question, "t", rounds, over_results=number > 0)
        late += sum(len(answer.late) for answer in given) if number else 0
        for one, answer in zip(told, given, strict=True):
            one += [_plain(question, result) for result in answer.final]
        shape = _shape(question, shape)
        rounds = _results_as_rounds(question, shape, rounds, given)
    return told, late


def _results_as_rounds(
    question: Question, shape: Window, rounds: list[Round], given: list[OracleAnswer]
) -> list[Round]:
    """The results of a level as the rounds of the stream that they are."""
    found, before, reached, arrived = [], NEVER, NEVER, list[Row]()
    for one, answer in zip(rounds, given, strict=True):
        before, reached = reached, max(reached, NEVER if one.heartbeat is None else one.heartbeat)
        wanted = (row for row in one.rows if question.where is None or question.where.keeps(row))
        arrived += [row for row in wanted if row["t"] > before]
        rows = [_row(question, result) for result in answer.final]
        found.append(Round(rows, _promised(question, shape, reached, arrived), one.end))
    return found


def _promised(question: Question, shape: Window, heartbeat: int, arrived: list[Row]) -> int | None:
    """The instant before the first one at which a later result can end."""
    if isinstance(question.window, RowWindow):
        return len([row for row in arrived if row["t"] <= heartbeat]) - 1
    if heartbeat == NEVER:
        return None
    if isinstance(question.window, SameWindow):
        return heartbeat - (heartbeat + 1 - shape.offset - shape.range) % shape.slide
    return shape.pane_of(heartbeat + 1) - 1


def _shape(question: Question, below: Window) -> Window:
    window = question.window
    if isinstance(window, SameWindow):
        return below
    assert isinstance(window, Window | RowWindow)
    return Window(window.range, window.slide) if isinstance(window, RowWindow) else window


def _row(question: Question, result: Result) -> Row:
    names = [*question.groups, *(aggregate.name for aggregate in question.aggregates)]
    values = dict(zip(names, (*result.group, *result.values), strict=True))
    return {**values, "window_start": result.start, "window_end": result.end, "t": result.end - 1}


def _plain(question: Question, result: Result) -> tuple[Any, ...]:
    return (question.name, result.start, result.end, result.rows, *result.group, *result.values)


def played(plan: Plan, trial: Trial) -> AggregateValue:
    """What an engine tells, round by round."""
    told = []
    for number in range(len(plan.story.rounds)):
        play_round(plan.story, number, trial)
        final = {table.column("query")[0].as_py(): table for table in trial.output().final}
        told.append([row for question in plan.levels for row in shown(question, final.get(question.name))])
    return told


def shown(question: Question, table: pa.Table | None) -> list[tuple[Any, ...]]:
    """The results of a level as brute force writes them."""
    names = ["query", "window_start", "window_end", "rows", *question.groups]
    names += [aggregate.name for aggregate in question.aggregates]
    return [] if table is None else [tuple(row[name] for name in names) for row in table.to_pylist()]


def in_order(plan: Plan, told: AggregateValue) -> AggregateValue:
    """The same, with the results of levels that have no order sorted: theirs means nothing."""
    free = {question.name for question in plan.levels if not question.order}
    return [
        [row for row in one if row[0] not in free] + sorted((row for row in one if row[0] in free), key=repr)
        for one in told
    ]
