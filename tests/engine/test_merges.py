"""Merges: as brute force says, in the order of time, through restarts; and the clock that lets rows go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.local.backend import LocalBackend
from eventide.engine.operators.placement import DRIVER_MEMORY
from eventide.engine.relations.segments import MOST_SEGMENTS
from eventide.engine.round.engine import Engine
from eventide.errors import DeclarationError
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.plan.declared.join import Band, Join, JoinKind, Side
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window
from eventide.sinks.sink import Memory
from tests.engine.merge_scenarios import Scenario, brute_force, played, scenarios
from tests.engine.scenarios import agree, trial_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(scenario=scenarios())
def test_local_engine_merges_as_brute_force_does(duckdb_executor: DuckDBExecutor, scenario: Scenario) -> None:
    with trial_of(scenario.program, duckdb_executor=duckdb_executor) as trial:
        agree(played(scenario, trial), brute_force(scenario))


@pytest.mark.spark
@settings(max_examples=3, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
@given(scenario=scenarios(rounds=3), on_the_cluster=st.booleans())
def test_spark_engine_merges_as_brute_force_does(spark: SparkSession, scenario: Scenario, on_the_cluster: bool) -> None:
    driver_memory = 0 if on_the_cluster else DRIVER_MEMORY
    with trial_of(scenario.program, "spark", spark, driver_memory=driver_memory) as trial:
        agree(played(scenario, trial), brute_force(scenario))


class DiedError(Exception):
    """The process, as far as the engine knows."""


@pytest.mark.parametrize("step", ["reduce", "heartbeats", "advance", "prod", "emit", "commit"])
def test_an_engine_that_dies_within_a_round_tells_it_once(tmp_path: Path, step: str) -> None:
    pairs = Join("pairs", Side("north"), Side("south"), (Band("t", "t", -5, 5),), JoinKind.FULL)
    program = Program((NORTH, SOUTH), (), (BOTH, pairs))
    sink = Memory()

    def dies(number: int, name: str) -> None:
        if (number, name) == (1, step):
            raise DiedError

    rounds = [{"north": rows(3, 12), "south": rows(4)}, {"north": rows(14), "south": rows(6, 11)}]
    engine = Engine(program, LocalBackend(), str(tmp_path), {"both": sink, "pairs": sink}, observer=dies)
    engine.round(rounds[0], clock=9, batch=0)
    with pytest.raises(DiedError):
        engine.round(rounds[1], clock=17, batch=1)
    engine.close()
    again = Engine(program, LocalBackend(), str(tmp_path), {"both": sink, "pairs": sink})
    for number in range(again.last_batch + 1, 2):
        again.round(rounds[number], clock=99, batch=number)
    assert [row["t"] for row in sink.rows("both")] == [3, 4, 6, 11]
    again.end(clock=99)
    again.close()
    assert [row["t"] for row in sink.rows("both")] == [3, 4, 6, 11, 12, 14]
    found = sorted((row["north_t"], row["south_t"]) for row in sink.rows("pairs"))
    assert found == [(3, 4), (3, 6), (12, 11), (14, 11)]


NORTH = Stream("north", columns("t BIGINT, v INT"), time="t", policy=ClockSkew(0))
SOUTH = Stream("south", columns("t BIGINT, v INT"), time="t", policy=ClockSkew(5))
BOTH = Rows("both", ("north", "south"))


def rows(*times: int) -> pa.Table:
    return pa.table({"t": times, "v": pa.array([1] * len(times), pa.int32())})


def test_the_clock_alone_lets_rows_of_a_merge_go(tmp_path: Path) -> None:
    sink = Memory()
    engine = Engine(Program((NORTH, SOUTH), (), (BOTH,)), LocalBackend(), str(tmp_path), {"both": sink})
    engine.round({"north": rows(3, 12), "south": rows(7)}, clock=5)
    assert [row["t"] for row in sink.rows("both")] == []
    # South is up to 5 behind the clock, and north waits for it.
    assert engine.tick(clock=7) is None
    assert engine.tick(clock=10) is not None
    assert [row["t"] for row in sink.rows("both")] == [3]
    assert engine.tick(clock=30) is not None
    assert [row["t"] for row in sink.rows("both")] == [3, 7, 12]
    assert engine.tick(clock=60) is None
    engine.close()


def test_the_clock_closes_windows_through_a_merge_and_over_an_operator(tmp_path: Path) -> None:
    sink = Memory()
    doubled = Rows("doubled", ("both",), named_as(v="v * 2"))
    sums = [Query(f"of_{name}", name, Window(10), named_as(total="sum(v)")) for name in ("both", "doubled")]
    program = Program((NORTH, SOUTH), tuple(sums), (BOTH, doubled))
    engine = Engine(program, LocalBackend(), str(tmp_path), {query.name: sink for query in sums})
    engine.round({"north": rows(3), "south": rows(7)}, clock=7)
    assert engine.tick(clock=9) is not None  # a row of `doubled` goes on
    assert engine.tick(clock=13) is not None
    assert sink.rows("of_both") == []
    assert engine.tick(clock=15) is not None
    assert [row["total"] for row in (*sink.rows("of_both"), *sink.rows("of_doubled"))] == [2, 4]
    engine.close()


def test_what_waits_is_written_anew_when_it_is_in_many_files(tmp_path: Path) -> None:
    sink = Memory()
    program = Program((NORTH, SOUTH), (), (BOTH,))
    engine = Engine(program, LocalBackend(), str(tmp_path), {"both": sink})
    for number in range(MOST_SEGMENTS + 5):
        engine.round({"north": rows(1000 + number)}, clock=0)
    assert len(engine.state.operators["both"].state["waiting"].parts) < MOST_SEGMENTS
    # With those of the round before, from which an engine could continue too.
    assert len(list((tmp_path / "slices").iterdir())) < MOST_SEGMENTS
    engine.close()
    again = Engine(program, LocalBackend(), str(tmp_path), {"both": sink})
    again.end(clock=0)
    assert [row["t"] for row in sink.rows("both")] == [1000 + number for number in range(MOST_SEGMENTS + 5)]
    again.close()


def test_a_query_through_a_merge_can_be_added_and_one_over_its_rows_cannot(tmp_path: Path) -> None:
    sink = Memory()
    engine = Engine(Program((NORTH, SOUTH), (), (BOTH,)), LocalBackend(), str(tmp_path), {"both": sink})
    engine.round({"north": rows(3, 12)}, clock=5)
    engine.add(Query("sums", "both", Window(10), named_as(total="sum(v)")), sink)
    engine.round({"south": rows(13, 24), "north": rows(25)}, clock=40)
    assert [(row["window_end"], row["total"]) for row in sink.rows("sums")] == [(30, 2)]
    spans = Query("spans", "both", Window(10), named_as(last="max(window_end)"))
    with pytest.raises(DeclarationError, match="query 'spans' cannot be added over 'both' while it runs"):
        engine.add(spans, sink)
    with pytest.raises(DeclarationError, match="'both' merges or joins, and stays as long as"):
        engine.remove("both")
    engine.remove("sums")
    engine.close()


def test_a_merge_that_is_told_only_later_begins_there(tmp_path: Path) -> None:
    sink = Memory()
    program = Program((NORTH, SOUTH), (Query("sums", "both", Window(10), named_as(total="sum(v)")),), (BOTH,))
    engine = Engine(program, LocalBackend(), str(tmp_path), {"sums": sink})
    engine.round({"north": rows(3), "south": rows(4)}, clock=15)
    engine.close()
    again = Engine(program, LocalBackend(), str(tmp_path), {"sums": sink, "both": sink})
    again.round({"north": rows(18), "south": rows(11)}, clock=20)
    again.end(clock=20)
    again.close()
    assert [row["t"] for row in sink.rows("both")] == [11, 18]
    assert [row["total"] for row in sink.rows("sums")] == [2, 2]
