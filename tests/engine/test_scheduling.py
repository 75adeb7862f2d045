"""How rounds are scheduled: asking on demand tells what asking always would; the trace says why; settings reach it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.local.backend import LocalBackend
from eventide.engine.local.engine import LocalEngine
from eventide.engine.round.engine import Engine
from eventide.engine.scheduling.trace import TraceLine
from eventide.errors import CheckpointError, DeclarationError
from eventide.eventtime.policies.on_demand import OnDemand
from eventide.eventtime.scheduling.labels import HeartbeatScope
from eventide.eventtime.scheduling.options import IdlePolling, Scheduling
from eventide.language.script import scheduling_of
from eventide.plan.declared.join import Band, Join, Side
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream, Timestamps, columns
from eventide.plan.declared.window import Window
from eventide.report.status import StatusLine
from eventide.sources.local_input import Batches
from eventide.testing.trial import Trial

SKEW = 3
ALWAYS = Scheduling(IdlePolling.every(1))

A = Stream("a", columns("t BIGINT, v INT"), time="t", policy=OnDemand(SKEW))
B = Stream("b", columns("t BIGINT, v INT"), time="t", policy=OnDemand(SKEW))
C = Stream("c", columns("t BIGINT, v INT"), time="t", policy=OnDemand(SKEW))
CHOSEN = Rows("chosen", ("b",), where="v < 8", ordered=False)
MERGED = Rows("merged", ("a", "chosen"))
ALL = Rows("all_rows", ("merged", "c"))
COUNTS = Query("counts", "merged", Window(5), named_as(n="count(*)", total="sum(v)"))
PLAN = Program((A, B, C), (COUNTS,), (CHOSEN, MERGED, ALL))

AggregateValue = list[tuple[str, int, tuple[object, ...]]]
Rounds = list[tuple[int, dict[str, list[tuple[int, int]]]]]


@st.composite
def stories(draw: st.DrawFn) -> Rounds:
    """Rows that are never further behind than the skew says, so that none of them is ever late."""
    clock, rounds = 100, []
    for _ in range(draw(st.integers(1, 4))):
        clock += draw(st.integers(1, 6))
        row = st.tuples(st.integers(0, 1).map(lambda back: clock - back), st.integers(0, 9))  # noqa: B023
        rows = {name: draw(st.lists(row, max_size=2)) for name in "abc"}
        rounds.append((clock, {name: found for name, found in rows.items() if found}))
    return rounds


def told(
    rounds: Rounds, scheduling: Scheduling, bench: DuckDBExecutor, restart: bool = False
) -> tuple[AggregateValue, int]:
    """What comes out, with the number of the round, and how many rows were late."""
    found: AggregateValue = []
    late = 0
    with (
        TemporaryDirectory() as folder,
        Trial(PLAN, Path(folder), duckdb_executor=bench, scheduling=scheduling) as trial,
    ):
        for number, (clock, rows) in enumerate(rounds):
            if restart:
                trial.restart()
            tables = {
                name: pa.table({"t": [t for t, _ in of], "v": pa.array([v for _, v in of], pa.int32())})
                for name, of in rows.items()
            }
            trial.round(tables, clock, {})
            taken = trial.output()
            late += sum(table.num_rows for table in taken.late)
            for table in taken.final:
                query = table.column("query")[0].as_py()
                chosen = ("t", "v") if query == "all_rows" else ("window_end", "n", "total")
                values = zip(*(table.column(name).to_pylist() for name in chosen), strict=True)
                found += [(query, number, row) for row in values]
    return sorted(found, key=str), late


@pytest.fixture(scope="module")
def bench() -> DuckDBExecutor:
    return DuckDBExecutor()


@limits(max_examples=6, deadline=None)
@given(rounds=stories())
def test_asking_on_demand_tells_everything_in_the_round_in_which_asking_always_would(
    rounds: Rounds, bench: DuckDBExecutor
) -> None:
    always, late = told(rounds, ALWAYS, bench)
    assert late == 0
    assert told(rounds, Scheduling(), bench) == (always, 0)
    assert told(rounds, Scheduling(), bench, restart=True) == (always, 0)


@limits(max_examples=4, deadline=None)
@given(rounds=stories())
def test_other_levels_tell_the_same_rows_no_earlier(rounds: Rounds, bench: DuckDBExecutor) -> None:
    # A stream that never spoke holds the whole query for ever.
    rounds = [(100, {name: [(100, 0)] for name in "abc"}), *rounds, (rounds[-1][0] + 100, {})]
    first, _ = told(rounds, Scheduling(), bench)
    for level in (HeartbeatScope.QUERY, HeartbeatScope.MEMORY):
        other, late = told(rounds, Scheduling(heartbeats=level), bench)
        assert late == 0
        assert sorted((query, row) for query, _, row in other) == sorted((query, row) for query, _, row in first)
        earliest = {(query, row): number for query, number, row in reversed(first)}
        assert all(number >= earliest[query, row] for query, number, row in other)


def rows_of(*values: int) -> pa.Table:
    return pa.table({"v": pa.array(values, pa.int32())})


def row_at(time: int) -> dict[str, pa.Table]:
    return {"a": pa.table({"t": [time], "v": pa.array([0], pa.int32())})}


def test_the_trace_says_who_waited_for_whom_and_nobody_is_asked_where_nobody_waits(tmp_path: Path) -> None:
    fast, slow = (Stream(name, columns("v INT"), timestamps=Timestamps.INTERNAL) for name in ("fast", "slow"))
    chosen = (Rows("fast_chosen", ("fast",), where="v < 95"), Rows("slow_chosen", ("slow",), where="v < 95"))
    program = Program((fast, slow), operators=(*chosen, Rows("both", ("fast_chosen", "slow_chosen"))))
    lines: list[TraceLine] = []
    engine = Engine(program, LocalBackend(), str(tmp_path), {"both": Nobody()}, trace=lines.append)
    try:
        engine.round({"fast": rows_of(1)}, 10)
        asked = [(line.at, line.move, line.to) for line in lines if line.move in ("backtrack", "ask")]
        assert asked[-3:] == [
            ("both", "backtrack", "slow_chosen"),
            ("slow_chosen", "backtrack", "slow"),
            ("slow", "ask", "slow"),
        ]
        assert "both waits" in lines[[line.move for line in lines].index("ask")].why
        lines.clear()
        engine.round({"fast": rows_of(99)}, 11)
        assert "ask" not in [line.move for line in lines]
        assert engine.status().scheduling == {"timestamps": "on demand", "heartbeats": "operator"}
    finally:
        engine.close()
        engine.backend.close()


def test_without_timestamps_the_clock_alone_makes_no_round_and_periodic_ones_make_one_when_due(tmp_path: Path) -> None:
    streams = tuple(Stream(name, columns("v INT"), timestamps=Timestamps.INTERNAL) for name in "ab")
    program = Program(streams, operators=(Rows("both", ("a", "b")),))
    for name, asking, made in (("never", IdlePolling.never(), []), ("every", IdlePolling.every(10), [20])):
        engine = Engine(
            program, LocalBackend(), str(tmp_path / name), {"both": Nobody()}, scheduling=Scheduling(asking)
        )
        try:
            engine.round({"b": rows_of(0)}, 11)
            engine.round({"a": rows_of(1)}, 12)
            rounds = [engine.tick(clock) for clock in (13, 19, 20, 21)]
            assert [one.clock for one in rounds if one is not None] == made
        finally:
            engine.close()
            engine.backend.close()


@pytest.mark.parametrize("restart", [False, True])
def test_a_time_that_was_asked_for_in_vain_is_forgotten_with_or_without_a_restart(
    restart: bool, tmp_path: Path
) -> None:
    """The policy remembered what no round had committed: a row was late, and was not after a restart."""
    program = Program((A,), (Query("counts", "a", Window(1), named_as(n="count(*)")),))
    with Trial(program, tmp_path) as trial:
        trial.round(row_at(20), 20, {})
        assert trial.tick(24)
        assert not trial.tick(30), "time would have come to 26, and no window waits for it"
        if restart:
            trial.restart()
        trial.round(row_at(22), 30, {})
        trial.round(row_at(22), 30, {})
        assert trial.tick(34)
        output = trial.output()
        assert output.late == ()
        assert [table.column("n").to_pylist() for table in output.final] == [[1], [2]]


def test_a_status_line_that_names_who_holds_time_back_moves_no_time(tmp_path: Path) -> None:
    """It asked the policies of the run itself: a stream that nobody waited for had moved, until a restart."""
    recorded = tuple(
        Stream(name, columns("t BIGINT, who STRING, at BIGINT"), "t", ("who",), "at", policy=OnDemand(SKEW))
        for name in "ab"
    )
    queries = tuple(Query(name * 2, name, Window(100), named_as(n="count(*)"), where="t < 0") for name in "ab")
    inputs = {one.name: Batches(one, ()) for one in recorded}
    with LocalEngine(Program(recorded, queries), str(tmp_path), inputs=inputs) as running:
        engine = running.engine
        running.noted(engine.round({"a": pa.table({"t": [5, 9], "who": ["n", "s"], "at": [10, 10]})}))
        StatusLine().watch(running)
        running.noted(engine.round({"b": pa.table({"t": [5], "who": ["n"], "at": [20]})}))
        record = engine.state.record
        assert record is not None
        assert engine.streams["a"].saved()["pacemaker"] == record.streams["a"]["pacemaker"]


def test_a_checkpoint_of_joins_says_which_heartbeats_it_goes_on_with(tmp_path: Path) -> None:
    pairs = Join("pairs", Side("a"), Side("b"), (Band("t", "t"),))
    program, sinks = Program((A, B), operators=(pairs,)), {"pairs": Nobody()}
    engine = Engine(program, LocalBackend(), str(tmp_path), sinks)
    engine.round({}, 5)
    engine.close()
    engine.backend.close()
    with pytest.raises(CheckpointError) as refused:
        Engine(program, LocalBackend(), str(tmp_path), sinks, scheduling=Scheduling(heartbeats=HeartbeatScope.QUERY))
    assert "begun with 'operator'" in refused.value.__notes__[0]


class Nobody:
    """A sink that does not listen."""

    def emit(self, results: object) -> None: ...

    def rewind(self, query: str, last: int) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, ("on demand", "operator")),
        ({"timestamps": "On-Demand", "heartbeats": "memory-aware"}, ("on demand", "memory")),
        ({"timestamps": "every second"}, ("every 1000000", "operator")),
        ({"timestamps": "every 20 ms", "heartbeats": "QUERY-level"}, ("every 20000", "query")),
        ({"timestamps": "none"}, ("none", "operator")),
    ],
)
def test_settings_are_read_as_people_write_them(said: dict[str, str], words: tuple[str, str]) -> None:
    assert tuple(scheduling_of(said).words.values()) == words


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"timestamps": "every 0 s"}, "'every 1 second'"),
        ({"timestamps": "every 3 apples"}, "'every 1 second'"),
        ({"heartbeats": "global"}, "'operator', 'query' or 'memory'"),
    ],
)
def test_settings_that_mean_nothing_are_refused_with_the_way_out(said: dict[str, str], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        scheduling_of(said)
