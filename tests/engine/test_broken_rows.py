"""One broken row never stops a stream: it is rejected with the reason, and everything else goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.errors import EngineError
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window
from eventide.sinks.sink import Memory
from eventide.testing.trial import Trial
from tests.engine.scenarios import SharedWorkbench, trial_of
from tests.engine.small_streams import made, put, stream
from tests.plan.spark_model import COLUMNS, Both, CastText, Column, Comparison, Row, Word, expressions, fails_for, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema(
    [("t", pa.int64()), ("a", pa.int32()), ("b", pa.int32()), ("s", pa.string()), ("xs", pa.list_(pa.int32()))]
)
words = expressions(2)
conditions = st.builds(Comparison, expressions(1), st.just("<"), expressions(1))


@pytest.fixture(scope="module")
def bench() -> Iterator[DuckDBExecutor]:
    duckdb_executor = SharedWorkbench()
    yield duckdb_executor
    DuckDBExecutor.close(duckdb_executor)


def batch(given: list[Row], first: int = 0) -> pa.Table:
    return pa.Table.from_pylist([{"t": first + i, **row} for i, row in enumerate(given)], schema=SCHEMA)


def asking(value: Word, group: Word, where: Word) -> Program:
    """The same question of slices with partials and of slices with rows."""
    question = {"groups": named_as(g=group.sql()), "where": where.sql(), "window": Window(1000)}
    partials = Query("partials", "S", select=named_as(n="count(*)", x=f"sum({value.sql()})"), **question)  # type: ignore[arg-type]
    kept = Query("kept", "S", select=named_as(n="count(*)", x=f"count(DISTINCT {value.sql()})"), **question)  # type: ignore[arg-type]
    return Program((Stream("S", columns(f"t BIGINT, {COLUMNS}"), time="t"),), (partials, kept))


def expected(value: Word, group: Word, where: Word, given: list[Row]) -> tuple[set[int], dict[str, dict[Any, Any]]]:
    """The times of broken rows, and the answers by query and group."""
    broken, found = set(), dict[Any, list[Any]]()
    for t, row in enumerate(given):
        if fails_for(where, row):
            broken.add(t)
        elif where.of(row) is True:
            if fails_for(group, row) or fails_for(value, row):
                broken.add(t)
            else:
                found.setdefault(group.of(row), []).append(value.of(row))
    there = {g: [v for v in values if v is not None] for g, values in found.items()}
    sums = {g: (len(found[g]), sum(values) if values else None) for g, values in there.items()}
    kinds = {g: (len(found[g]), len(set(values))) for g, values in there.items()}
    return broken, {"partials": sums, "kept": kinds}


def check(trial: Trial, rounds: list[list[Row]], value: Word, group: Word, where: Word) -> None:
    """Run the rounds and compare all that comes out."""
    first = 0
    for several in rounds:
        trial.round({"S": batch(several, first)}, clock=0, heartbeats={})
        first += len(several)
    trial.round({}, clock=0, heartbeats={"S": 999})
    taken = trial.output()
    broken, answers = expected(value, group, where, [row for several in rounds for row in several])
    assert {t for table in taken.rejected for t in table.column("t").to_pylist()} == broken
    found: dict[str, dict[Any, Any]] = {"partials": {}, "kept": {}}
    for table in taken.final:
        for row in table.to_pylist():
            found[row["query"]][row["g"]] = (row["n"], row["x"])
    assert found == answers
    assert not taken.late


LAZY = Both(Comparison(Column("a"), "<>", Column("b")), Comparison(CastText("s"), "<", Column("a")))
MIXED: list[Row] = [
    {"a": 1, "b": 1, "s": "abc", "xs": None},
    {"a": 7, "b": 1, "s": "2", "xs": None},
    {"a": 7, "b": 1, "s": "abc", "xs": None},
]


# Always the same expressions: the corners of the dialect are hunted elsewhere.
@settings(max_examples=8, derandomize=True)
@example(Column("a"), Column("b"), LAZY, [MIXED])
@given(words, words, conditions, st.lists(st.lists(rows, min_size=1, max_size=5), min_size=1, max_size=3))
def test_every_row_is_rejected_or_counts_whatever_a_query_computes(
    bench: DuckDBExecutor, value: Word, group: Word, where: Word, rounds: list[list[Row]]
) -> None:
    program = asking(value, group, where)
    with trial_of(program, duckdb_executor=bench) as trial:
        check(trial, rounds, value, group, where)


@pytest.mark.spark
@settings(max_examples=3, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(Column("a"), Column("b"), LAZY, [MIXED], 0)
@given(
    words, words, conditions, st.lists(st.lists(rows, min_size=1, max_size=5), min_size=1, max_size=2), st.just(10**9)
)
def test_the_same_holds_on_spark(
    spark: SparkSession, value: Word, group: Word, where: Word, rounds: list[list[Row]], driver_memory: int
) -> None:
    program = asking(value, group, where)
    with trial_of(program, "spark", spark, driver_memory=driver_memory) as trial:
        check(trial, rounds, value, group, where)


class Listening(LocalBackend):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def ask(self, sql: str, tables: Mapping[str, pa.Table] | None = None) -> pa.Table:
        self.asked.append(sql)
        return super().ask(sql, tables)


def test_rounds_without_broken_rows_ask_one_statement_that_never_changes(tmp_path: Path) -> None:
    query = Query("q", "S", Window(1000), named_as(total="sum(CAST(s AS INT))"))
    program = Program((Stream("S", columns(f"t BIGINT, {COLUMNS}"), time="t"),), (query,))
    backend = Listening()
    engine = Engine(program, backend, str(tmp_path))
    asked = []
    for text in ("1", "2", "abc", "3", "4"):
        backend.asked.clear()
        engine.round({"S": batch([{"a": 1, "b": 1, "s": text, "xs": None}])}, clock=0)
        asked.append(list(backend.asked))
    engine.close()
    backend.close()
    usual = asked[0]
    assert len(usual) == 1
    assert asked[1] == usual
    assert asked[2][:1] == usual, "the broken row is met by the usual statement"
    assert len(asked[2]) == 3
    assert usual[0] not in asked[3], "after a broken row, the next round is read with care at once"
    assert asked[4] == usual


@pytest.mark.spark
def test_a_user_s_function_that_fails_stops_the_engine_and_is_named_and_nothing_is_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.udf.register("my_share", lambda part: 100 // part, "int")
    query = Query("q", "S", Window(10), named_as(total="sum(my_share(b))"), where="a > 0")
    program = Program((Stream("S", columns(f"t BIGINT, {COLUMNS}"), time="t"),), (query,))
    given: list[Row] = [{"a": 1, "b": b, "s": None, "xs": None} for b in (4, 0, 5)]
    with Trial(program, tmp_path, "spark", spark) as trial:
        wanted = r"query 'q': my_share\(b\) fails for a row of stream 'S'.*CASE WHEN.*ZeroDivisionError"
        with pytest.raises(EngineError, match=wanted):
            trial.round({"S": batch(given)}, clock=0, heartbeats={})
        spark.udf.register("my_share", lambda part: 100 // part if part else None, "int")
        trial.restart()
        trial.round({"S": batch(given)}, clock=0, heartbeats={})
        trial.round({}, clock=0, heartbeats={"S": 9})
        [final] = trial.output().final
        assert final.column("total").to_pylist() == [45]
        assert final.column("rows").to_pylist() == [3]


@pytest.mark.parametrize("session", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_running_engine_goes_on_beyond_a_broken_row(
    session: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    spark = request.getfixturevalue("spark") if session == "spark" else None
    for number, times in enumerate(([1, 2, 3], [4, 5, 11], [12, 21])):
        put(tmp_path / "in", number, times)
    query = Query("shares", "s", Window(10), named_as(n="count(*)", least="min(10 div (t - 5))"))
    sink = Memory()
    engine = made(spark, Program((stream(tmp_path / "in"),), (query,)), tmp_path / "checkpoint", {"shares": sink})
    engine.start(bounded=True).await_end()
    found = {row["window_start"]: (row["n"], row["least"]) for row in sink.table("shares").to_pylist()}
    assert found == {0: (4, -10), 10: (2, 1), 20: (1, 0)}
    [rejected] = [
        row for path in (tmp_path / "checkpoint" / "rejects" / "s").iterdir() for row in pq.read_table(path).to_pylist()
    ]
    assert rejected["t"] == 5
    assert rejected["_reason"].startswith("query 'shares': 10 DIV (t - 5) fails")
