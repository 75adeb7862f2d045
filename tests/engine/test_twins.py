"""Twins of a stream: each query has what it would have alone, under its own policy, and the rows are read once."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.operators.placement import DRIVER_MEMORY
from eventide.errors import CheckpointError, DeclarationError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.kim import Kim
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.eventtime.policies.slack import Slack
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.language.script import read_script
from eventide.plan.declared.evolution import Consent
from eventide.plan.declared.join import Band, Join, Side
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import SessionWindow, Window
from eventide.report.stopped_run import read_progress
from eventide.report.why import window_words
from eventide.testing.trial import EngineName, Trial
from tests.engine.small_streams import put, stream, tumbling
from tests.engine.test_program_changes import Runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = Stream("s", columns("t BIGINT, sent BIGINT, k STRING, v INT"), time="t", source=("k",))
POLICIES: tuple[Policy, ...] = (
    Slack(0), Slack(3), FixedDelay(2), FixedDelay(9), OwnProgress(), DropRatio(0.2), Kim(0.1), Timeout(Slack(2), 3),
)  # fmt: skip
TIMES = (None, "sent")
STEPS: tuple[Query | Rows, ...] = (
    Query("sums", "s", Window(10), named_as(n="count(*)", total="sum(v)"), named_as("k"), retain=4),
    Query("slides", "s", Window(12, 4), named_as(n="count(*)", most="max(v)")),
    Query("kept", "s", Window(10), named_as(listed="array_sort(collect_list(v))")),
    Query("sessions", "s", SessionWindow(3), named_as(n="count(*)"), named_as("k")),
    Query("by_source", "s", Window(10), named_as(n="count(*)"), named_as("k"), by_source=True),
    Rows("rows", ("s",), named_as("t", "sent", "v"), "v > 1"),
)
FINE = Query("fine", "s", Window(4), named_as(n="count(*)"))
Result = tuple[object, ...]


@dataclass(frozen=True)
class Story:
    """By place, some of the steps, each with a policy and a time; and the rounds: rows, and whether it restarts."""

    controllers: Mapping[int, tuple[Policy, str | None]]
    rounds: tuple[tuple[tuple[tuple[int, int, str, int], ...], bool], ...]

    def together(self) -> Program:
        """One program, in which each step reads a twin, and both times are seen by instants."""
        twins = {place: S.twin(f"s_{place}", policy, time=time) for place, (policy, time) in self.controllers.items()}
        steps = [_reading(STEPS[place], twin.name) for place, twin in twins.items()]
        by_sending = S.twin("fine_s", Slack(0), time="sent")
        return _program((S, by_sending, *twins.values()), [*steps, FINE, replace(FINE, name="finer", stream="fine_s")])

    def alone(self, place: int) -> Program:
        """The program of one step, over a stream that itself goes as the step is to go, seen by instants.

        How finely a policy sees the times of rows depends on the shortest panes of all queries.
        """
        policy, time = self.controllers[place]
        return _program((replace(S, policy=policy, time=time or S.time),), [STEPS[place], FINE])


def _reading(step: Query | Rows, name: str) -> Query | Rows:
    return replace(step, stream=name) if isinstance(step, Query) else replace(step, inputs=(name,))


def _program(streams: tuple[Stream, ...], steps: Iterable[Query | Rows]) -> Program:
    steps = tuple(steps)
    queries = tuple(step for step in steps if isinstance(step, Query))
    return Program(streams, queries, tuple(step for step in steps if isinstance(step, Rows)))


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Controllers for two of the steps; rows that come out of order, now and then a restart."""
    places = draw(st.lists(st.sampled_from(range(len(STEPS))), min_size=2, max_size=2, unique=True))
    controllers = {place: (draw(st.sampled_from(POLICIES)), draw(st.sampled_from(TIMES))) for place in places}
    rounds = []
    for number in range(draw(st.integers(1, 8))):
        row = st.tuples(
            st.integers(4 * number, 4 * number + 20),
            st.integers(6 * number, 6 * number + 9),
            st.sampled_from("ab"),
            st.integers(0, 5),
        )
        rounds.append((tuple(draw(st.lists(row, max_size=5))), draw(st.booleans())))
    return Story(controllers, tuple(rounds))


def played(
    program: Program,
    story: Story,
    executor: DuckDBExecutor,
    spark: SparkSession | None = None,
    memory: int = DRIVER_MEMORY,
) -> dict[str, Counter[Result]]:
    """Of each step what it gave and for whom rows were late, by kind."""
    found: dict[str, Counter[Result]] = {step.name: Counter() for step in STEPS}
    engine: EngineName = "local" if spark is None else "spark"
    with (
        tempfile.TemporaryDirectory() as folder,
        Trial(program, Path(folder), engine, spark, executor, memory) as trial,
    ):
        for clock, (rows, restarts) in enumerate(story.rounds):
            if restarts:
                trial.restart()
            table = [dict(zip(("t", "sent", "k", "v"), row, strict=True)) for row in rows]
            trial.round({"s": pa.Table.from_pylist(table, SCHEMA)}, clock, {})
            _gather(trial, found)
        trial.end(len(story.rounds))
        _gather(trial, found)
    return found


SCHEMA = pa.schema([("t", pa.int64()), ("sent", pa.int64()), ("k", pa.string()), ("v", pa.int32())])


def _gather(trial: Trial, found: Mapping[str, Counter[Result]]) -> None:
    output = trial.output()
    for table in (*output.final, *output.revised, *output.late):
        for row in table.to_pylist():
            name = row.pop("query", None) or row.pop("_query")
            if name in found:
                found[name][tuple((key, str(value)) for key, value in sorted(row.items()))] += 1


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(story=stories())
def test_a_query_over_a_twin_gives_what_it_gives_alone(duckdb_executor: DuckDBExecutor, story: Story) -> None:
    together = played(story.together(), story, duckdb_executor)
    for place in story.controllers:
        name = STEPS[place].name
        assert together[name] == played(story.alone(place), story, duckdb_executor)[name], name


@pytest.mark.slow
@pytest.mark.spark
@settings(max_examples=3, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
@given(story=stories(), on_the_cluster=st.booleans())
def test_twins_are_the_same_on_spark(
    spark: SparkSession, duckdb_executor: DuckDBExecutor, story: Story, on_the_cluster: bool
) -> None:
    here = played(story.together(), story, duckdb_executor)
    memory = 0 if on_the_cluster else DRIVER_MEMORY
    assert played(story.together(), story, duckdb_executor, spark, memory) == here


def test_twins_that_go_by_the_same_time_are_reduced_by_one_statement() -> None:
    twins = (S.twin("slow", Slack(9)), S.twin("late", Slack(1), time="sent"), S.twin("later", Slack(7), time="sent"))
    program = _program((S, *twins), [_reading(STEPS[0], "slow"), _reading(STEPS[1], "late")])
    assert [[one.name for one in group] for group in program.reduced_together] == [["s", "slow"], ["late", "later"]]
    assert [one.name for one in program.inputs] == ["s"]


def test_a_twin_of_a_stream_that_is_not_there_is_refused() -> None:
    with pytest.raises(DeclarationError, match="'slow' is a twin of 's', which is not declared"):
        Program((S.twin("slow", Slack(9)),))


def two(program: str) -> Program:
    return read_script(f"CREATE STREAM s (t BIGINT, k STRING, v INT) {program}").program


def test_promises_and_ends_of_sources_are_those_of_rows_so_they_hold_for_twins(tmp_path: Path) -> None:
    program = two(
        "SOURCE BY k SLACK 9; CREATE QUERY a AS SELECT count(*) AS n FROM s [RANGE 10];"
        "CREATE QUERY b AS SELECT count(*) AS n FROM s [RANGE 10 SLACK 50];"
    )
    with Trial(program, tmp_path) as trial:
        trial.round({"s": pa.table({"t": [3], "k": ["x"], "v": pa.array([1], pa.int32())})}, 0, {"s": 10})
        assert sorted(table.column("query")[0].as_py() for table in trial.output().final) == ["a", "b"]
        trial.round({"s": pa.table({"t": [13], "k": ["x"], "v": pa.array([1], pa.int32())})}, 1, {}, {"s": ["x"]})
        assert {name: one.heartbeat for name, one in trial._engine.streams.items()} == {"s": 13, "s_slack_50": 13}


def test_promises_among_the_rows_are_told_to_twins(tmp_path: Path) -> None:
    program = read_script(
        "CREATE STREAM s (t BIGINT, done BOOLEAN) PUNCTUATED BY done SLACK 9;"
        "CREATE QUERY a AS SELECT count(*) AS n FROM s [RANGE 10];"
        "CREATE QUERY b AS SELECT count(*) AS n FROM s [RANGE 10 SLACK 50];"
    ).program
    assert [one.policy for one in program.streams] == [Punctuated(Slack(9)), Punctuated(Slack(50))]
    with Trial(program, tmp_path) as trial:
        trial.round({"s": pa.table({"t": [3, 9], "done": [False, True]})}, 0, {})
        assert sorted(table.column("query")[0].as_py() for table in trial.output().final) == ["a", "b"]


def test_prods_among_the_rows_ask_queries_over_twins(tmp_path: Path) -> None:
    program = read_script(
        "CREATE STREAM s (t BIGINT, ask BOOLEAN) PRODDED BY ask SLACK 9;"
        "CREATE QUERY a AS SELECT count(*) AS n FROM s [RANGE 10];"
        "CREATE QUERY b AS SELECT count(*) AS n FROM s [RANGE 10 SLACK 50];"
    ).program
    with Trial(program, tmp_path) as trial:
        trial.round({"s": pa.table({"t": [3, 9], "ask": [False, True]})}, 0, {})
        early = [row for table in trial.output().early for row in table.to_pylist()]
        assert sorted((row["query"], row["n"]) for row in early) == [("a", 1), ("b", 1)]


def test_a_join_of_a_stream_with_its_twin_goes_by_both_heartbeats(tmp_path: Path) -> None:
    slow = S.twin("slow", FixedDelay(5))
    join = Join("near", Side("s"), Side("slow"), (Band("t", "t"),), select=named_as(t="s.t", v="s.v", w="slow.v"))
    query = Query("q", "near", Window(10), named_as(n="count(*)"))
    with Trial(Program((replace(S, policy=FixedDelay(0)), slow), (query,), (join,)), tmp_path) as trial:
        rows = [{"t": t, "sent": 0, "k": "x", "v": 1} for t in (3, 4, 4, 12)]
        trial.round({"s": pa.Table.from_pylist(rows, SCHEMA)}, 0, {})
        assert not trial.output().final
        trial.round({"s": pa.Table.from_pylist([{"t": 16, "sent": 0, "k": "x", "v": 1}], SCHEMA)}, 1, {})
        assert [table.column("n").to_pylist() for table in trial.output().final] == [[5]]


def test_status_counts_late_rows_for_each_controller_and_rows_once(tmp_path: Path) -> None:
    program = two(
        "SLACK 0; CREATE QUERY a AS SELECT count(*) AS n FROM s [RANGE 10];"
        "CREATE QUERY b AS SELECT count(*) AS n FROM s [RANGE 10 SLACK 50];"
    )
    with Trial(program, tmp_path) as trial:
        for times in ([3, 12], [4]):
            table = pa.table({"t": times, "k": ["x"] * len(times), "v": pa.array(times, pa.int32())})
            report = trial._engine.round({"s": table}, 0)
        assert report.rows == 1
        status = trial._engine.status()
        assert [(one.name, one.rows, one.late) for one in status.streams] == [("s", 3, 1), ("s_slack_50", 3, 0)]
        assert report.late == {"s": 1}
    assert "s_slack_50" in window_words(read_progress(program, str(tmp_path), "b").windows("b")[0])


# A program that changes


def twin_of_s(folder: Path) -> Stream:
    return stream(folder).twin("s_patient", FixedDelay(4))


def test_a_query_with_a_new_policy_is_an_added_twin_and_begins_after_the_rows_that_came(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for number, times in enumerate(([1, 5], [12, 15], [23, 22], [31, 35], [44])):
        put(folder, number, times)
    runs = Runs(None, tmp_path)
    before = Program((stream(folder),), (tumbling("a"),))
    runs.run(before, 4)
    after = Program((stream(folder), twin_of_s(folder)), (tumbling("a"), replace(tumbling("b"), stream="s_patient")))
    with runs.engine(after) as engine:
        assert engine.engine.evolution.words() == [
            "stream s: unchanged, continues",
            "stream s_patient: added, begins after the rows that have come",
            "query a: unchanged, continues",
            "query b: added, begins after the rows that have come",
        ]
    runs.run(after, None)
    assert [window for window, _ in runs.windows("b")] == [20, 30, 40]


def test_a_query_over_a_twin_reads_the_past_of_the_stream_itself(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for number, times in enumerate(([1, 5], [12, 15], [23, 22])):
        put(folder, number, times)
    runs = Runs(None, tmp_path)
    runs.run(Program((stream(folder),), (tumbling("a"),)), 4)
    patient = replace(tumbling("b"), stream="s_patient")
    after = Program((stream(folder), twin_of_s(folder)), (patient,))
    runs.run(after, None, Consent(accept=True, backfill=("b",)))
    assert runs.windows("b")[-3:] == [(0, 2), (10, 2), (20, 2)]


def test_a_time_that_nobody_asked_for_before_needs_the_past(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for number, times in enumerate(([1, 5], [12, 15], [23, 22])):
        put(folder, number, times)
    runs = Runs(None, tmp_path)
    runs.run(Program((stream(folder),), (tumbling("a"),)), 4)
    by_value = stream(folder).twin("s_v", FixedDelay(0), time="v")
    after = Program((stream(folder), by_value), (tumbling("a"), replace(tumbling("b"), stream="s_v")))
    with pytest.raises(CheckpointError, match="nobody has kept which times 'v' the 4 rows had that came"):
        runs.run(after, None)
    runs.run(after, None, Consent(backfill=("b",)))
    assert runs.windows("b")[-1] == (0, 6)
