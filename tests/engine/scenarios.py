"""Random stories for both engines: streams with disorder, queries, rounds, heartbeats that never go back, restarts.

A scenario is small, so that Hypothesis can shrink it to a few rows, and every answer of it is known to the oracle.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.instant import NEVER
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.plan.declared.program import Program
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import GrowingWindow, RowWindow, SessionWindow, Window
from eventide.testing.oracle import Result, Round, answers
from eventide.testing.questions import Aggregate, Condition, Question, Row
from eventide.testing.trial import Trial, TrialOutput

SCHEMA = pa.schema([("t", pa.int64()), ("source", pa.string()), ("k", pa.string()), ("v", pa.int32())])
STREAM = Stream("s", columns("t BIGINT, source STRING, k STRING, v INT"), time="t", source=("source",))
POLICIES: tuple[Policy, ...] = (
    Punctuated(),
    Punctuated(),
    FixedDelay(0),
    FixedDelay(7),
    OwnProgress(),
    OwnProgress(slack=3),
)
"""Policies whose heartbeats can be told in a line (see `promised`); `Punctuated` says nothing of itself."""

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


@contextmanager
def trial_of(program: Program, *engine: Any, **options: Any) -> Iterator[Trial]:
    """A trial in a folder that is gone in the end."""
    with tempfile.TemporaryDirectory() as folder, Trial(program, Path(folder), *engine, **options) as trial:
        yield trial


def agree(played: Iterable[object], expected: Iterable[object]) -> None:
    """Every round of an engine is as the oracle says."""
    for number, (engine, oracle) in enumerate(zip(played, expected, strict=True)):
        assert engine == oracle, f"round {number}"


@dataclass(frozen=True)
class Scenario:
    """Queries over one stream, its rounds, and the numbers of the rounds before which the engine is restarted.

    Rows without a time are rejected; the heartbeats of the rounds are explicit ones, beside what the policy says.
    """

    questions: tuple[Question, ...]
    rounds: tuple[Round, ...]
    restarts: frozenset[int] = frozenset()
    policy: Policy = POLICIES[0]

    @property
    def program(self) -> Program:
        return Program((replace(STREAM, policy=self.policy),), tuple(question.query() for question in self.questions))

    def promised(self) -> list[Round]:
        """The rounds as the oracle takes them: rows that have a time, and the heartbeat after each."""
        largest: dict[str, int] = {}
        told = []
        for one in self.rounds:
            usable = [row for row in one.rows if row["t"] is not None]
            for row in usable:
                largest[row["source"]] = max(row["t"], largest.get(row["source"], NEVER))
            explicit = NEVER if one.heartbeat is None else one.heartbeat
            told.append(Round(usable, max(explicit, self._said(largest)), one.end))
        return told

    def _said(self, largest: dict[str, int]) -> int:
        match self.policy:
            case FixedDelay(delay) if largest:
                return max(largest.values()) - delay
            case OwnProgress(slack=slack) if largest:
                return min(largest.values()) - 1 - slack
        return NEVER


@dataclass
class Outcome:
    """What a round gave, fit for comparison: results by kind and late rows, each with its query; rejected rows."""

    final: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    revised: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    late: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    rejected: Counter[tuple[Any, ...]] = field(default_factory=Counter)


CONDITIONS = st.builds(Condition, st.just("v"), st.sampled_from([">", ">=", "<", "="]), st.integers(-2, 4))


@st.composite
def questions(draw: st.DrawFn, name: str) -> Question:
    """Windows that tumble, slide, do not divide each other, are shifted, leave gaps, count rows, are shown empty."""
    shape = draw(st.sampled_from(["time", "time, retained", "time, shown empty", "time, growing", "rows"]))
    groups = draw(st.sampled_from([("k",), (), ("source",), ("k", "source"), ("v",)]))
    window: Window | RowWindow = RowWindow(draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    retain = 0
    if shape != "rows":
        # Where empty windows are shown there must be some, so they are short.
        lengths = st.integers(1, 4) if shape == "time, shown empty" else st.integers(1, 12)
        window = Window(draw(lengths), draw(lengths), draw(st.integers(-5, 15)), shape == "time, shown empty")
        if shape == "time, growing":
            step = draw(st.integers(1, 4))
            window = GrowingWindow(step * draw(st.integers(1, 5)), step, draw(st.integers(-5, 15)))
        groups = () if window.empty else groups
        retained = shape == "time, retained" or (shape == "time, growing" and draw(st.booleans()))
        retain = draw(st.integers(1, 30)) if retained else 0
    # A row-keeping aggregate makes the slices of the whole query keep rows: both kinds have to come often.
    among = draw(st.sampled_from([REDUCIBLE, AGGREGATES]))
    aggregates = draw(st.lists(st.sampled_from(among), min_size=1, max_size=3, unique=True))
    where = draw(st.none() | CONDITIONS)
    least = draw(st.sampled_from([0, 0, 2]))
    order, limit = draw(orders((*groups, *(aggregate.name for aggregate in aggregates))))
    return Question(name, "s", window, tuple(aggregates), groups, where, least, retain, order, limit)


@st.composite
def sessions(draw: st.DrawFn, name: str) -> Question:
    """Sessions with one gap, or with one for each row, forgotten at once or retained."""
    gap = draw(st.sampled_from([None, None, "v"]))
    window = SessionWindow(draw(st.integers(1, 9))) if gap is None else SessionWindow(by="v")
    groups = draw(st.sampled_from([("k",), (), ("source",), ("k", "source")]))
    among = draw(st.sampled_from([REDUCIBLE, AGGREGATES]))
    aggregates = tuple(draw(st.lists(st.sampled_from(among), min_size=1, max_size=3, unique=True)))
    where, least = draw(st.none() | CONDITIONS), draw(st.sampled_from([0, 0, 2]))
    retain = draw(st.sampled_from([0, 0, 3, 20]))
    return Question(name, "s", window, aggregates, groups, where, least, retain, gap=gap)


@st.composite
def orders(draw: st.DrawFn, names: tuple[str, ...]) -> tuple[tuple[tuple[str, bool], ...], int | None]:
    """No order, or one by some of these columns, perhaps with a limit."""
    if draw(st.booleans()):
        return (), None
    named = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    return tuple((name, draw(st.booleans())) for name in named), draw(st.none() | st.integers(1, 3))


@st.composite
def rows(draw: st.DrawFn, around: int) -> Row:
    """A row of about that time; now and then one without."""
    time = draw(st.integers(-12, 13))
    return {
        "t": None if time == 13 else around + time,
        "source": draw(st.sampled_from(["a", "b", "c"])),
        "k": draw(st.sampled_from(["x", "y", None])),
        "v": draw(st.none() | st.integers(-3, 5)),
    }


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Time goes on by a few in every round; rows come from before and after it, and promises are behind it."""
    kinds = [draw(st.sampled_from([questions, questions, questions, sessions])) for _ in range(draw(st.integers(1, 3)))]
    asked = tuple(draw(kind(f"q{number}")) for number, kind in enumerate(kinds))
    story: list[Round] = []
    now, reached = -15, NEVER
    for _ in range(draw(st.integers(2, 7))):
        now += draw(st.integers(0, 12))
        silent = draw(st.sampled_from([False, False, False, True]))
        promise = draw(st.none() | st.integers(-3, 9).map(now.__sub__))
        # A promise that would go back is no promise.
        promise = None if promise is None or promise < reached else promise
        reached = reached if promise is None else promise
        story.append(Round(() if silent else tuple(draw(st.lists(rows(now), min_size=1, max_size=6))), promise))
    if draw(st.booleans()):
        story.append(Round(end=True))
    restarts = draw(st.frozensets(st.integers(0, len(story) - 1), max_size=2))
    return Scenario(asked, tuple(story), restarts, draw(st.sampled_from(POLICIES)))


def expected(scenario: Scenario) -> list[Outcome]:
    """What the oracle says, round by round."""
    story = [Outcome() for _ in scenario.rounds]
    for outcome, one in zip(story, scenario.rounds, strict=True):
        outcome.rejected.update(tuple(row.values()) for row in one.rows if row["t"] is None)
    for question in scenario.questions:
        for outcome, answer in zip(story, answers(question, "t", scenario.promised()), strict=True):
            outcome.final.update(plain(question, result) for result in answer.final)
            outcome.revised.update(plain(question, result) for result in answer.revised)
            outcome.late.update((question.name, *row.values()) for row in answer.late)
    return story


def play_round(scenario: Scenario, number: int, trial: Trial) -> None:
    """Let an engine take one round of a story, after a restart where there is one."""
    one = scenario.rounds[number]
    if number in scenario.restarts:
        trial.restart()
    if one.end:
        trial.end(clock=0)
    else:
        batch = {"s": pa.Table.from_pylist([dict(row) for row in one.rows], schema=SCHEMA)}
        trial.round(batch, clock=0, heartbeats={} if one.heartbeat is None else {"s": one.heartbeat})


def played(scenario: Scenario, trial: Trial) -> list[Outcome]:
    """What an engine says, round by round."""
    story = []
    for number in range(len(scenario.rounds)):
        play_round(scenario, number, trial)
        story.append(outcome_of(scenario, trial.output()))
    return story


class SharedWorkbench(DuckDBExecutor):
    """One for many scenarios: to make one takes longer than a round."""

    def close(self) -> None:
        """The next scenario needs it."""


def plain(question: Question, result: Result) -> tuple[Any, ...]:
    """A result as outcomes have it."""
    return (question.name, result.start, result.end, result.rows, *result.group, *result.values)


def outcome_of(scenario: Scenario, taken: TrialOutput) -> Outcome:
    """What a round gave."""
    shown = {
        question.name: ["query", "window_start", "window_end", "rows", *question.groups]
        + [aggregate.name for aggregate in question.aggregates]
        for question in scenario.questions
    }

    def results(tables: tuple[pa.Table, ...]) -> Counter[tuple[Any, ...]]:
        return Counter(
            tuple(row[name] for name in shown[row["query"]]) for table in tables for row in table.to_pylist()
        )

    def aside(tables: tuple[pa.Table, ...], *names: str) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(row[name] for name in names) for table in tables for row in table.to_pylist())

    late = aside(taken.late, "_query", *SCHEMA.names)
    return Outcome(results(taken.final), results(taken.revised), late, aside(taken.rejected, *SCHEMA.names))
