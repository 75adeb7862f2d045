"""Why a window is open: holders and closing times against what a search by hand finds; asking changes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from eventide.engine.checkpoint.record import RoundRecord
from eventide.engine.introspection.waits import OperatorWait, QueryWait, StreamWait
from eventide.engine.introspection.why import ProgressReport
from eventide.engine.local.backend import LocalBackend
from eventide.engine.operators.open_windows import OpenTime
from eventide.engine.round.engine import Engine
from eventide.engine.stream_progress import StreamProgress
from eventide.errors import CheckpointError, DeclarationError
from eventide.eventtime.arrays import as_plain
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.on_demand import OnDemand
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.skew.per_source import distributed_sensors
from eventide.eventtime.policies.wrappers.expected_sources import Expected
from eventide.eventtime.policies.wrappers.idleness import Idle
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.eventtime.scheduling.labels import HeartbeatScope
from eventide.eventtime.scheduling.options import IdlePolling, Scheduling
from eventide.plan.declared.join import Band, Join, JoinKind, Lookup, Side
from eventide.plan.declared.program import Operator, Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream, TimeKind, columns
from eventide.plan.declared.window import RowWindow, SameWindow, Window
from eventide.report.stopped_run import read_progress
from eventide.report.why import operator_words, window_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLICIES: Mapping[str, Policy] = {
    "own progress": OwnProgress(slack=2),
    "on demand": OnDemand(max_skew=4),
    "idle": Idle(OwnProgress(), after=7),
    "idle on demand": Idle(OnDemand(max_skew=9), after=12),
    "timeout": Timeout(FixedDelay(10), after=15),
    "clock skew": ClockSkew(6),
    "declared": DeclaredSkew(distributed_sensors(deviation=[1, 2, 3], latency=[2, 5, 0]), sources=("a", "b", "c")),
    "expected": Expected(OwnProgress(), sources=(0, 1, 2), wait=20),
    "expected for ever": Expected(ClockSkew(3), sources=(0, 1)),
}
FAR = 60
"""Past every length of these policies and times: what has not closed so long after waits for a row."""


def stood(policy: Policy, rounds: list[tuple[int, list[tuple[int, int]]]]) -> ProgressReport:
    """A stream after some rounds of (clock, rows as (source, time)), and a query over windows of 10 above it."""
    stream = Stream("s", columns("t BIGINT, who STRING"), time="t", source=("who",), policy=policy)
    program = Program((stream,), (Query("q", "s", Window(10), named_as(n="count(*)")),))
    time = StreamProgress.start(stream)
    time.sources = pa.array(["a", "b", "c"])
    clock, panes = 0, set[int]()
    for later, rows in rounds:
        clock += later
        arrivals = Arrivals.of_rows(clock, [source for source, _ in rows], [at for _, at in rows])
        time.clock = clock
        time.hearing.note(arrivals)
        time.latest = max([time.latest, *(at for _, at in rows)])
        time.generator.observe(arrivals)
        time.reach(time.promise(clock).combined, clock)
        panes |= {at - at % 10 for _, at in rows}
    record = RoundRecord(
        0, 0, clock, False, {}, {"s": json.loads(json.dumps(time.saved(), default=as_plain))}, {}, {}, ()
    )
    bound = (time.heartbeat + 1) // 10 * 10
    held = np.array(sorted(pane for pane in panes if pane >= bound), dtype=np.int64)
    opened = OpenTime("q", TimeKind.SEQUENCE, Window(10), Window(10), bound, held)
    nobody = np.zeros(0, dtype=np.int64)
    return ProgressReport(program, record, lambda _: time.sources, lambda _: opened, lambda _: nobody, Scheduling())


some_rounds = st.lists(
    st.tuples(st.integers(0, 6), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 35)), max_size=4)),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())
@limits(max_examples=25)
@given(some_rounds)
def test_a_window_closes_exactly_when_it_is_said_to(
    policy: Policy, rounds: list[tuple[int, list[tuple[int, int]]]]
) -> None:
    standing = stood(policy, rounds)
    stream = standing.program.stream("s")
    for window in standing.windows("q"):
        copy = standing.stream_time(stream)
        clocks = range(standing.record.clock, standing.record.clock + FAR)
        by_hand = next((clock for clock in clocks if copy.promise(clock).combined >= window.end - 1), None)
        assert window.closes_at == by_hand
        assert window_words(window)


@limits(max_examples=60)
@given(some_rounds)
def test_a_window_is_held_by_exactly_the_sources_that_are_not_far_enough(
    rounds: list[tuple[int, list[tuple[int, int]]]],
) -> None:
    standing = stood(OwnProgress(slack=2), rounds)
    largest: dict[int, int] = {}
    for _, rows in rounds:
        for source, at in rows:
            largest[source] = max(at, largest.get(source, at))
    for window in standing.windows("q"):
        assert isinstance(window.wait, StreamWait)
        behind = sorted(source for source, at in largest.items() if at - 3 < window.end - 1)
        assert sorted(holder.source for holder in window.wait.holders) == behind
        assert window.wait.count == len(behind)
        least = min(largest[source] for source in behind)
        assert window.wait.holders[0].largest == least


def fleet(policy: Policy, *queries: Query) -> Program:
    stream = Stream("fleet", columns("t BIGINT, who STRING, v INT"), time="t", source=("who",), policy=policy)
    return Program((stream,), queries)


def rows(*given: tuple[int, str, int]) -> dict[str, Any]:
    times, names, values = zip(*given, strict=True)
    schema = pa.schema([("t", pa.int64()), ("who", pa.string()), ("v", pa.int32())])
    return {"fleet": pa.table({"t": times, "who": names, "v": values}, schema)}


SUMS = Query("sums", "fleet", Window(10), named_as(total="sum(v)"))
MOST = Query("most", "sums", Window(30), named_as(most="max(total)"))
SAME = Query("same", "sums", SameWindow(), named_as(most="max(total)"))


def words(program: Program, folder: Path, query: str) -> list[str]:
    return [window_words(window) for window in read_progress(program, str(folder), query).windows(query)]


def test_a_checkpoint_is_explained_beside_the_engine_that_works_on_it_and_nothing_is_changed(tmp_path: Path) -> None:
    program = fleet(Idle(OwnProgress(), after=1000), SUMS)
    engine = Engine(program, LocalBackend(), str(tmp_path))
    engine.round(rows((5, "gps-1", 1), (4, "gps-3", 2)), clock=100)
    engine.round(rows((25, "gps-1", 4)), clock=200)

    def files() -> dict[str, tuple[int, int]]:
        found = (path.stat() for path in sorted(tmp_path.rglob("*")))
        return {
            str(path): (s.st_mtime_ns, s.st_size) for path, s in zip(sorted(tmp_path.rglob("*")), found, strict=True)
        }

    before = files()
    said = words(program, tmp_path, "sums")
    assert files() == before
    assert said[0] == (
        "window 0 to 10 waits for gps-3 (at 4, silent since 1970-01-01 00:00:00.001), as far as its own largest time; "
        "not waited for after 1 ms of silence; time stands since 1970-01-01 00:00:00.001; "
        "closes at 1970-01-01 00:00:00.002 if nothing more arrives"
    )
    [live] = [query.waits_for for query in engine.status().queries]
    assert live is not None
    assert (live["window_start"], live["sources"][0]["source"], live["rule"]["rule"]) == (0, "gps-3", "own progress")
    assert engine.tick(clock=1099) is None
    assert engine.tick(clock=1100) is not None, "gps-3 is idle, and closed the window as it was told"
    [left] = engine.status().streams[0].left_out
    assert (left["rule"], left["sources"]) == ("idle after", ["gps-3"])
    engine.close()
    assert "waits for gps-1 (at 25" in words(program, tmp_path, "sums")[0]


def test_a_query_over_a_query_is_explained_down_to_the_source(tmp_path: Path) -> None:
    program = fleet(OwnProgress(), SUMS, MOST, SAME)
    engine = Engine(program, LocalBackend(), str(tmp_path))
    engine.round(rows((5, "a", 1), (14, "b", 2)), clock=0)
    engine.round(rows((33, "a", 1)), clock=7)
    engine.close()
    standing = read_progress(program, str(tmp_path), "most")
    [window] = standing.windows("most")
    assert isinstance(window.wait, QueryWait)
    assert (window.start, window.end, window.wait.query, window.wait.needed) == (0, 30, "sums", 29)
    assert isinstance(window.wait.below, StreamWait)
    assert [holder.name for holder in window.wait.below.holders] == ["b"]
    assert window_words(window).startswith("window 0 to 30 waits for query sums, which waits for b (at 14, silent")
    assert "closes only when b speaks: no bound lets its time go on in silence" in window_words(window)
    with pytest.raises(DeclarationError, match="aligned"):
        standing.window("most", 7)
    found = read_progress(program, str(tmp_path), "same").window("same", 10)
    assert found is not None
    assert "window 10 to 20 waits for query sums, which waits for b" in window_words(found)
    assert read_progress(program, str(tmp_path), "same").window("same", 0) is None, "it is closed"


def two(policy: Policy) -> tuple[Stream, Stream]:
    both = (Stream(name, columns("t BIGINT, who STRING, v INT"), time="t", source=("who",)) for name in ("n", "s"))
    north, south = (replace(stream, policy=policy) for stream in both)
    return north, south


OPERATORS: Mapping[str, tuple[Operator, str]] = {
    "read through": (Rows("both", ("n", "s")), "merge both"),
    "projected": (Rows("both", ("n", "s"), named_as("t", "v")), "merge both"),
    "joined": (Join("both", Side("n"), Side("s"), (Band("t", "t", -5, 5),), select=named_as(v="n.v")), "join both"),
}


@pytest.mark.parametrize(("operator", "named"), OPERATORS.values(), ids=OPERATORS.keys())
def test_an_operator_waits_for_its_slowest_input_and_closes_with_the_last(
    operator: Operator, named: str, tmp_path: Path
) -> None:
    asked = Query("q", "both", Window(10), named_as(n="count(v)"))
    program = Program(two(OnDemand(max_skew=2)), (asked,), (operator,))
    engine = Engine(program, LocalBackend(), str(tmp_path))
    north, south = rows((5, "a", 1), (14, "b", 2))["fleet"], rows((4, "c", 1), (6, "d", 4))["fleet"]
    engine.round({"n": north, "s": south}, clock=0)
    standing = read_progress(program, str(tmp_path), "q")
    # Rows that a merge holds for their place in the order are in no window yet.
    first = standing.window("q", 0)
    assert first is not None
    assert isinstance(first.wait, OperatorWait)
    assert [end.stream.name for end in first.wait.ends] == ["s", "n"]
    said = window_words(first)
    assert said.startswith(
        f"window 0 to 10 waits for {named} (2 inputs are behind), which waits for c of stream s (at 4, heard"
    )
    assert first.closes_at == 8, "the time of c runs on: 4 + 8 - 2"
    found = standing.operator("both")
    assert (found is None) == ("both" not in engine.state.operators), (
        "a merge that is read through does not run by itself"
    )
    if found is not None:
        said = operator_words(found[1], found[0], unitless=True)
        assert said.startswith(f"{named} has come up to 1 and waits for c of stream s (at 4, heard at"), said
    told = [query.waits_for for query in engine.status().queries if query.name == "both"]
    assert [one and one["time"] for one in told] == [1 for name in engine.state.operators if name == "both"]
    rounds = [engine.tick(clock) for clock in (7, 8)]
    assert [0 if work is None else work.results["q"].rows for work in rounds] == [0, 1]
    engine.close()


def test_an_outer_join_waits_until_no_partner_can_come(tmp_path: Path) -> None:
    bands = (Band("t", "t", -5, 5),)
    join = Join("both", Side("n"), Side("s"), bands, JoinKind.LEFT, select=named_as(v="n.v"))
    asked = Query("q", "both", Window(10), named_as(n="count(*)"))
    program = Program(two(OwnProgress()), (asked,), (join,))
    engine = Engine(program, LocalBackend(), str(tmp_path))
    engine.round({"n": rows((5, "a", 1))["fleet"], "s": rows((4, "c", 1))["fleet"]}, clock=0)
    engine.close()
    [window] = read_progress(program, str(tmp_path), "q").windows("q")
    assert window.closes_at is None
    assert window_words(window).endswith("closes when no partner can come any more for a row that join both keeps")


def stood_after(tmp_path: Path, program: Program, given: Mapping[str, int], scheduling: Scheduling) -> ProgressReport:
    """A program after one round at clock 10 that brings each stream a row of source `a` at a time."""
    engine = Engine(program, LocalBackend(), str(tmp_path), scheduling=scheduling)
    tables = {name: rows((time, "a", 1))["fleet"] for name, time in given.items()}
    engine.round(tables, clock=10)
    found = engine.state.progress(engine.program, scheduling)
    engine.close()
    assert found is not None
    return found


def streams(**policies: Policy) -> tuple[Stream, ...]:
    declared = columns("t BIGINT, who STRING, v INT")
    return tuple(Stream(name, declared, time="t", source=("who",), policy=p) for name, p in policies.items())


ASKED = [
    (IdlePolling.on_demand(), 15),
    (IdlePolling.every(4), 16),
    (IdlePolling.every(9), 18),
    (IdlePolling.never(), None),
]


@pytest.mark.parametrize(("asking", "closes"), ASKED)
def test_silence_closes_windows_only_when_silent_streams_are_asked(
    tmp_path: Path, asking: IdlePolling, closes: int | None
) -> None:
    program = Program(streams(s=OnDemand(0)), (Query("q", "s", Window(10), named_as(n="count(*)")),))
    [window] = stood_after(tmp_path, program, {"s": 5}, Scheduling(asking)).windows("q")
    assert window.closes_at == closes
    assert closes is not None or "SET timestamps = 'none'" in window_words(window)


def test_a_query_that_goes_by_other_streams_names_the_one_that_is_behind(tmp_path: Path) -> None:
    both = Rows("both", ("tens", "slow"), named_as("v"))
    tens = Query("tens", "fast", Window(10), named_as(v="cast(count(*) AS INT)"))
    program = Program(streams(fast=OwnProgress(), slow=OwnProgress()), (tens,), (both,))
    standing = stood_after(tmp_path, program, {"fast": 12, "slow": 3}, Scheduling(heartbeats=HeartbeatScope.QUERY))
    first, second = standing.window("tens", 0), standing.window("tens", 10)
    assert first is not None
    assert second is not None
    assert "waits for the schedule (SET heartbeats = 'query'), which waits for a of stream slow" in window_words(first)
    assert [end.stream.name for end in second.wait.ends] == ["slow", "fast"]


def test_a_lookup_waits_for_its_table_only_as_far_as_its_rows_have_come(tmp_path: Path) -> None:
    found = Lookup("found", Side("s", "l", ("who",)), Side("prices", "r", ("who",)), True, select=named_as(v="l.v"))
    program = Program(
        streams(s=ClockSkew(2), prices=OwnProgress()),
        (Query("q", "found", Window(10), named_as(n="count(*)")),),
        (found,),
    )
    told = stood_after(tmp_path / "told", program, {"s": 5, "prices": 6}, Scheduling())
    assert [window.closes_at for window in told.windows("q")] == [12]
    waits = stood_after(tmp_path / "waits", program, {"s": 5, "prices": 2}, Scheduling()).window("q", 0)
    assert waits is not None
    assert waits.closes_at is None
    assert [(end.stream.name, end.needed) for end in waits.wait.ends] == [("prices", 5), ("s", 9)]


def test_a_window_of_rows_waits_for_rows_or_for_their_turn(tmp_path: Path) -> None:
    program = fleet(OwnProgress(), Query("threes", "fleet", RowWindow(3), named_as(n="count(*)")))
    engine = Engine(program, LocalBackend(), str(tmp_path))
    engine.round(rows((5, "a", 1), (14, "b", 2), (15, "b", 2), (16, "b", 3)), clock=0)
    engine.close()
    standing = read_progress(program, str(tmp_path), "threes")
    first, second = standing.windows("threes")
    assert (first.start, first.end, first.rows) == (0, 3, 0)
    assert isinstance(first.wait, StreamWait)
    assert (first.wait.needed, first.wait.holders[0].name) == (15, "a")
    assert window_words(second) == "rows 3 to 6 waits for 2 more rows of stream fleet"


def test_a_policy_with_one_heartbeat_for_all_names_no_source(tmp_path: Path) -> None:
    program = fleet(FixedDelay(10), SUMS)
    engine = Engine(program, LocalBackend(), str(tmp_path))
    engine.round(rows((5, "a", 1), (14, "b", 2)), clock=0)
    engine.close()
    first, second = words(program, tmp_path, "sums")
    assert "waits for stream fleet (time is at 4), 10 behind the largest time of all" in first
    assert first.endswith("closes only when a row comes: no bound lets its time go on in silence; declare TIMEOUT")
    assert second.endswith(
        "closes only when a row after its end comes: CLOCK SKEW or ON DEMAND would let the clock close it"
    )


def test_a_folder_that_is_no_checkpoint_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no committed round"):
        read_progress(fleet(OwnProgress(), SUMS), str(tmp_path / "nothing"), "sums")
    assert not (tmp_path / "nothing").exists()


def test_another_program_than_that_of_the_checkpoint_is_refused(tmp_path: Path) -> None:
    engine = Engine(fleet(OwnProgress(), SUMS), LocalBackend(), str(tmp_path))
    engine.round(rows((5, "a", 1)), clock=0)
    engine.close()
    with pytest.raises(CheckpointError, match="another program"):
        read_progress(fleet(OwnProgress(slack=1), SUMS), str(tmp_path), "sums")
    assert words(fleet(OwnProgress(), SUMS, MOST), tmp_path, "sums"), "a query that is not asked about may be new"


@pytest.mark.spark
def test_slices_on_the_cluster_are_explained_too(spark: SparkSession, tmp_path: Path) -> None:
    from eventide.engine.spark.backend import SparkBackend

    program = fleet(OwnProgress(), SUMS)
    engine = Engine(program, SparkBackend(spark), str(tmp_path), driver_memory=0)
    engine.round(rows((5, "a", 1), (14, "b", 2)), clock=0)
    engine.round(rows((15, "b", 1)), clock=1)
    assert engine.status().queries[0].placement == "cluster"
    [first, second] = words(program, tmp_path, "sums")
    assert first.startswith("window 0 to 10 waits for a (at 5")
    assert second.startswith("window 10 to 20 waits for a (at 5")
    engine.close()
