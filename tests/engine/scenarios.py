"""Random stories for both engines: streams with disorder, queries, rounds, heartbeats that never go back, restarts.

A scenario is small, so that Hypothesis can shrink it to a few rows, and every answer of it is known to the oracle.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from eventide.engine.workbench import Workbench
from eventide.eventtime.instant import NEVER
from eventide.eventtime.punctuated import Punctuated
from eventide.plan.program import Program
from eventide.plan.stream import Stream, columns
from eventide.plan.window import RowWindow, Window
from eventide.testing.oracle import Result, Round, answers
from eventide.testing.questions import Aggregate, Condition, Question, Row
from eventide.testing.trial import EngineName, Taken, Trial

SCHEMA = pa.schema([("t", pa.int64()), ("source", pa.string()), ("k", pa.string()), ("v", pa.int32())])
STREAM = Stream(
    "s", columns("t BIGINT, source STRING, k STRING, v INT"), time="t", source=("source",), policy=Punctuated()
)
AGGREGATES = (
    Aggregate("count", "*"),
    Aggregate("count", "v"),
    Aggregate("sum", "v"),
    Aggregate("avg", "v"),
    Aggregate("min", "v"),
    Aggregate("max", "v"),
    Aggregate("min", "k"),
    Aggregate("max", "source"),
    Aggregate("count_distinct", "v"),
)
REDUCIBLE = tuple(aggregate for aggregate in AGGREGATES if aggregate.function != "count_distinct")


@dataclass(frozen=True)
class Scenario:
    """Queries over one stream, its rounds, and the numbers of the rounds before which the engine is restarted."""

    questions: tuple[Question, ...]
    rounds: tuple[Round, ...]
    restarts: frozenset[int] = frozenset()

    @property
    def program(self) -> Program:
        return Program((STREAM,), tuple(question.query() for question in self.questions))


@dataclass
class Outcome:
    """What a round gave, fit for comparison: results of each query by kind, late rows with their query."""

    final: Counter[tuple[Any, ...]]
    revised: Counter[tuple[Any, ...]]
    late: Counter[tuple[Any, ...]]


def windows() -> st.SearchStrategy[Window]:
    """Tumbling, sliding, of lengths that do not divide each other, shifted, with gaps."""
    return st.builds(
        Window,
        range=st.integers(1, 12),
        slide=st.integers(1, 12),
        offset=st.integers(-5, 15),
    )


@st.composite
def questions(draw: st.DrawFn, name: str) -> Question:
    window = draw(
        st.one_of(windows(), windows(), windows(), st.builds(RowWindow, st.integers(1, 5), st.integers(1, 5)))
    )
    groups = draw(st.sampled_from([(), ("k",), ("source",), ("k", "source"), ("v",)]))
    retain = 0
    if isinstance(window, Window):
        retain = draw(st.one_of(st.just(0), st.integers(window.range, 30)))
        if not groups and draw(st.booleans()):
            window = Window(window.range, window.slide, window.offset, empty=True)
    # A row-keeping aggregate makes the slices of the whole query keep rows: both kinds have to come often.
    among = draw(st.sampled_from([AGGREGATES, REDUCIBLE]))
    aggregates = draw(st.lists(st.sampled_from(among), min_size=1, max_size=3, unique=True))
    conditions = st.builds(Condition, st.just("v"), st.sampled_from([">", ">=", "<", "="]), st.integers(-2, 4))
    where = draw(st.one_of(st.none(), conditions))
    at_least = draw(st.sampled_from([0, 0, 2]))
    return Question(name, "s", window, tuple(aggregates), groups, where, at_least, retain)


def rows() -> st.SearchStrategy[Row]:
    return st.tuples(
        st.integers(-20, 40),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["x", "y", None]),
        st.one_of(st.none(), st.integers(-3, 5)),
    ).map(lambda values: dict(zip(SCHEMA.names, values, strict=True)))


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    asked = tuple(draw(questions(f"q{number}")) for number in range(draw(st.integers(1, 3))))
    story = []
    reached = NEVER
    for _ in range(draw(st.integers(1, 6))):
        beat = draw(st.one_of(st.none(), st.integers(-15, 45)))
        # A promise that would go back is no promise: the story only has ones that hold.
        beat = None if beat is None or beat < reached else beat
        reached = reached if beat is None else beat
        story.append(Round(tuple(draw(st.lists(rows(), max_size=6))), beat))
    if draw(st.booleans()):
        story.append(Round(end=True))
    restarts = draw(st.frozensets(st.integers(0, len(story) - 1), max_size=2))
    return Scenario(asked, tuple(story), restarts)


def expected(scenario: Scenario) -> list[Outcome]:
    """What the oracle says, round by round."""
    story = [Outcome(Counter(), Counter(), Counter()) for _ in scenario.rounds]
    for question in scenario.questions:
        for outcome, answer in zip(story, answers(question, "t", scenario.rounds), strict=True):
            outcome.final.update(_plain(question, result) for result in answer.final)
            outcome.revised.update(_plain(question, result) for result in answer.revised)
            outcome.late.update((question.name, *row.values()) for row in answer.late)
    return story


def played(scenario: Scenario, trial: Trial) -> list[Outcome]:
    """What an engine says, round by round."""
    story = []
    for number, one in enumerate(scenario.rounds):
        if number in scenario.restarts:
            trial.restart()
        if one.end:
            trial.end(clock=0)
        else:
            batch = {"s": pa.Table.from_pylist([dict(row) for row in one.rows], schema=SCHEMA)}
            trial.round(batch, clock=0, heartbeats={} if one.heartbeat is None else {"s": one.heartbeat})
        story.append(_outcome(scenario, trial.taken()))
    return story


class SharedWorkbench(Workbench):
    """One for all scenarios: to make one takes longer than a round."""

    def close(self) -> None:
        """The next scenario needs it."""


@cache
def workbench() -> Workbench:
    return SharedWorkbench()


def run(scenario: Scenario, folder: Path, spark: Any = None) -> list[Outcome]:
    engine: EngineName = "local" if spark is None else "spark"
    with Trial(scenario.program, folder, engine, spark, workbench()) as trial:
        return played(scenario, trial)


def _plain(question: Question, result: Result) -> tuple[Any, ...]:
    return (question.name, result.start, result.end, result.rows, *result.group, *result.values)


def _outcome(scenario: Scenario, taken: Taken) -> Outcome:
    shown = {
        question.name: ["query", "window_start", "window_end", "rows", *question.groups]
        + [aggregate.name for aggregate in question.aggregates]
        for question in scenario.questions
    }

    def results(tables: tuple[pa.Table, ...]) -> Counter[tuple[Any, ...]]:
        return Counter(
            tuple(row[name] for name in shown[row["query"]]) for table in tables for row in table.to_pylist()
        )

    late = Counter(
        tuple(row[name] for name in ("_query", *SCHEMA.names)) for table in taken.late for row in table.to_pylist()
    )
    return Outcome(results(taken.final), results(taken.revised), late)
