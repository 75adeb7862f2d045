"""Queries that close source by source: random stories of rows and promises, answered as brute force does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.eventtime.instant import NEVER
from eventide.eventtime.policies.on_demand import OnDemand
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window
from eventide.testing.oracle import ALL, Promises, Round, answers_by_source, promised
from eventide.testing.questions import Question
from eventide.testing.trial import Trial
from tests.engine.scenarios import AGGREGATES, CONDITIONS, REDUCIBLE, agree, trial_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("t", pa.int64()), ("source", pa.string()), ("k", pa.string()), ("v", pa.int32())])
WITH_PROMISES = SCHEMA.append(pa.field("done", pa.bool_()))
STREAM = Stream(
    "s",
    columns("t BIGINT, source STRING, k STRING, v INT, done BOOLEAN"),
    time="t",
    source=("source",),
    policy=Punctuated(),
    punctuation="done",
)
SOURCES = ("a", "b", "c")


@dataclass(frozen=True)
class Story:
    """Queries that close by source, what each round brings, whether it ends, and before which rounds to restart."""

    questions: tuple[Question, ...]
    rounds: tuple[Promises, ...]
    ends: bool
    restarts: frozenset[int]

    @property
    def program(self) -> Program:
        return Program((STREAM,), tuple(replace(question.query(), by_source=True) for question in self.questions))

    def expected(self) -> list[tuple[Counter[Any], Counter[Any]]]:
        """Results and late rows of every round."""
        beats = promised(SOURCES, "t", "source", self.rounds)
        own = [{name: beat for name, beat in round_.items() if name is not ALL} for round_ in beats]
        rounds = [Round(one.rows) for one in self.rounds]
        if self.ends:
            rounds, own = [*rounds, Round(end=True)], [*own, own[-1]]
        story: list[tuple[Counter[Any], Counter[Any]]] = [(Counter(), Counter()) for _ in rounds]
        for question in self.questions:
            told = answers_by_source(question, "t", "source", rounds, own)
            for (final, late), answer in zip(story, told, strict=True):
                final.update((question.name, r.start, r.end, r.rows, *r.group, *r.values) for r in answer.final)
                late.update((question.name, *row.values()) for row in answer.late)
        return story

    def played(self, trial: Trial) -> Iterator[tuple[Counter[Any], Counter[Any]]]:
        """The same from an engine."""
        names = {q.name: [*q.groups, *(aggregate.name for aggregate in q.aggregates)] for q in self.questions}
        for number, one in enumerate([*self.rounds, *([None] if self.ends else [])]):
            if number in self.restarts:
                trial.restart()
            if one is None:
                trial.end(clock=0)
            else:
                beats = {} if one.explicit == NEVER else {"s": one.explicit}
                trial.round({"s": table_of(one)}, clock=0, heartbeats=beats)
            taken = trial.output()
            yield (
                Counter(
                    tuple(row[name] for name in ("query", "window_start", "window_end", "rows", *names[row["query"]]))
                    for table in taken.final
                    for row in table.to_pylist()
                ),
                Counter(
                    tuple(row[name] for name in ("_query", *SCHEMA.names))
                    for table in taken.late
                    for row in table.to_pylist()
                ),
            )


def table_of(one: Promises) -> pa.Table:
    """Rows and promises, one among the other; a row that is no promise says so, or says nothing."""
    rows = [{**row, "done": None if number % 2 else False} for number, row in enumerate(one.rows)]
    told = [{"t": up_to, "source": source, "k": None, "v": 99, "done": True} for source, up_to in one.given]
    return pa.Table.from_pylist([*told, *rows], schema=WITH_PROMISES)


@st.composite
def questions(draw: st.DrawFn, name: str) -> Question:
    window = Window(draw(st.integers(1, 12)), draw(st.integers(1, 12)), draw(st.integers(-5, 15)))
    groups = draw(st.sampled_from([("source",), ("k", "source"), ("source", "v")]))
    among = draw(st.sampled_from([REDUCIBLE, AGGREGATES]))
    aggregates = tuple(draw(st.lists(st.sampled_from(among), min_size=1, max_size=2, unique=True)))
    where, least = draw(st.none() | CONDITIONS), draw(st.sampled_from([0, 0, 2]))
    return Question(name, "s", window, aggregates, groups, where, least)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    asked = tuple(draw(questions(f"q{number}")) for number in range(draw(st.integers(1, 2))))
    at = dict.fromkeys(SOURCES, -15)
    rounds = []
    for _ in range(draw(st.integers(2, 7))):
        rows, given = [], []
        for name in draw(st.lists(st.sampled_from(SOURCES), max_size=6)):
            # Each source is at a time of its own; its rows are out of order, and promises may be broken.
            at[name] += draw(st.integers(0, 9))
            time = at[name] - draw(st.integers(0, 12))
            values = {"k": draw(st.sampled_from(["x", None])), "v": draw(st.none() | st.integers(-3, 5))}
            rows.append({"t": time, "source": name, **values})
        for whose in draw(st.lists(st.sampled_from([*SOURCES, *SOURCES, ALL]), max_size=2)):
            base = min(at.values()) if whose is ALL else at[whose]
            given.append((whose, base - draw(st.integers(0, 10))))
        explicit = draw(st.sampled_from([NEVER, NEVER, NEVER, min(at.values())]))
        rounds.append(Promises(rows, given, explicit))
    restarts = draw(st.frozensets(st.integers(0, len(rounds)), max_size=2))
    return Story(asked, tuple(rounds), draw(st.booleans()), restarts)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(story=stories())
def test_groups_close_with_their_own_source_as_brute_force_says(duckdb_executor: DuckDBExecutor, story: Story) -> None:
    with trial_of(story.program, duckdb_executor=duckdb_executor) as trial:
        agree(story.played(trial), story.expected())


@pytest.mark.spark
@settings(max_examples=3, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
@given(story=stories())
def test_groups_close_with_their_own_source_on_spark(spark: SparkSession, story: Story) -> None:
    with trial_of(story.program, "spark", spark) as trial:
        agree(story.played(trial), story.expected())


def many(rows: int, sources: Sequence[int], time: int) -> pa.Table:
    number = np.resize(np.asarray(sources), rows)
    return pa.table({"t": np.full(rows, time), "source": pa.array(number), "v": pa.array(np.ones(rows, np.int32))})


def test_ten_thousand_sources_close_on_their_own(tmp_path: Path) -> None:
    stream = Stream("s", columns("t BIGINT, source BIGINT, v INT"), time="t", source=("source",), policy=OwnProgress())
    query = Query("q", "s", Window(20, 10), named_as(n="count(*)"), named_as("source"), by_source=True)
    engine = Engine(Program((stream,), (query,)), LocalBackend(), str(tmp_path))
    everyone = range(10_000)
    engine.round({"s": many(30_000, everyone, 5)})
    told = engine.round({"s": many(5_000, everyone[:5_000], 31)})
    assert told.results["q"].rows == 2 * 5_000  # windows that end at 10 and 20, for the first half
    late = engine.round({"s": many(10_000, everyone, 9)})
    assert late.late_rows() == 5_000
    assert engine.end().results["q"].rows == 2 * 5_000 + 2 * 5_000
    engine.close()


def test_the_clock_alone_closes_the_groups_of_a_source(tmp_path: Path) -> None:
    declared = columns("t TIMESTAMP, source STRING")
    stream = Stream("s", declared, time="t", source=("source",), policy=OnDemand(0))
    query = Query("q", "s", Window(10), named_as(n="count(*)"), named_as("source"), by_source=True)
    engine = Engine(Program((stream,), (query,)), LocalBackend(), str(tmp_path))
    times = pa.array([1, 95], pa.timestamp("us", "UTC"))
    engine.round({"s": pa.table({"t": times, "source": ["slow", "fast"]})}, clock=100)
    told = engine.tick(clock=105)
    assert told is not None
    assert told.results["q"].table().column("source").to_pylist() == ["fast"]
    assert engine.tick(clock=106) is None
    engine.close()
