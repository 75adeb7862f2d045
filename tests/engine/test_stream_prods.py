"""Prods among the rows of a stream, or as the rows of another one: the answers are those of asking by hand."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.errors import DeclarationError
from eventide.eventtime.early.prod import Prod
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.plan.declared.join import Band, Join, Side
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Prods, Query, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Input, Stream, Timestamps, columns
from eventide.plan.declared.window import RowWindow, SameWindow, Window
from eventide.plan.sql.stream_rows import MOST, asked_by
from eventide.sinks.sink import Memory
from eventide.testing.trial import Trial
from tests.engine.scenarios import trial_of
from tests.engine.test_file_reduce import put

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = Stream("s", columns("t BIGINT, k STRING, d INT, v INT, ask BOOLEAN"), time="t", policy=Punctuated(), prods="ask")
ASKS = Stream("asks", columns("at BIGINT, k STRING, d INT"), time="at", policy=Punctuated())
SUMS = Query("sums", "s", Window(12, 6), named_as(total="sum(v)", n="count(*)"), named_as("k", "d"))
MOST_OF = Query("most", "sums", SameWindow(), named_as(most="max(total)"), named_as(key="k"))
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("d", pa.int32()), ("v", pa.int32()), ("ask", pa.bool_())])

Row = tuple[int, str | None, int | None, int]
Ask = tuple[int, str | None, int | None]


@dataclass(frozen=True)
class Story:
    """Rows, prods, and perhaps a heartbeat, round by round."""

    rounds: tuple[tuple[tuple[Row, ...], tuple[Ask, ...], int | None], ...]


KEYS, NUMBERS = st.sampled_from([None, "a", "b"]), st.sampled_from([None, 1, 2])
ROWS = st.lists(st.tuples(st.integers(-5, 40), KEYS, NUMBERS, st.integers(-9, 9)), max_size=6).map(tuple)
PRODS = st.lists(st.tuples(st.integers(-8, 60), KEYS, NUMBERS), max_size=4).map(tuple)
STORIES = st.lists(st.tuples(ROWS, PRODS, st.none() | st.integers(-5, 30)), min_size=1, max_size=5).map(
    lambda rounds: Story(tuple(rounds))
)


def data(rows: tuple[Row, ...], asks: tuple[Ask, ...] = ()) -> pa.Table:
    """Rows of the stream, with prods among them; what a prod has for a value is nobody's concern."""
    told = [(*row, None) for row in rows] + [(t, k, d, 77, True) for t, k, d in asks]
    return pa.table(
        dict(zip(SCHEMA.names, zip(*told, strict=True), strict=True)) if told else SCHEMA.empty_table(), SCHEMA
    )


def prods(asks: tuple[Ask, ...]) -> pa.Table:
    kinds = pa.schema([("at", pa.int64()), ("k", pa.string()), ("d", pa.int32())])
    return pa.Table.from_pylist([dict(zip(kinds.names, ask, strict=True)) for ask in asks], kinds)


def told(tables: tuple[pa.Table, ...]) -> list[tuple[Any, ...]]:
    names = ("query", "window_end", "k", "key", "d", "total", "n", "most", "rows")
    return sorted((tuple(row.get(name) for name in names) for t in tables for row in t.to_pylist()), key=repr)


def by_hand(trial: Trial, asks: tuple[Ask, ...]) -> list[tuple[Any, ...]]:
    """What the same prods bring, asked one by one after the round; what two of them bring counts once."""
    found = set()
    for t, k, d in asks:
        named = {name: value for name, value in (("k", k), ("d", d)) if value is not None}
        trial.prod("sums", Prod(t, groups=named))
        trial.prod("most", Prod(t, groups={} if k is None else {"key": k}))
        found.update(told(trial.output().early))
    return sorted(found, key=repr)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(STORIES, st.booleans(), st.booleans())
def test_prods_in_rows_are_answered_as_if_asked_by_hand(
    duckdb_executor: DuckDBExecutor, story: Story, beside: bool, restarted: bool
) -> None:
    plain = Program((replace(S, prods=None),), (SUMS, MOST_OF))
    queries = (replace(SUMS, prods=Prods(by="asks")), replace(MOST_OF, prods=Prods(by="asks")))
    asked = Program((replace(S, prods=None), ASKS), queries) if beside else Program((S,), (SUMS, MOST_OF))
    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as two,
        Trial(asked, Path(one), duckdb_executor=duckdb_executor) as prodded,
        Trial(plain, Path(two), duckdb_executor=duckdb_executor) as calm,
    ):
        for rows, asks, heartbeat in story.rounds:
            if restarted:
                prodded.restart()
            beats = {} if heartbeat is None else {"s": heartbeat}
            given = {"s": data(rows), "asks": prods(asks)} if beside else {"s": data(rows, asks)}
            prodded.round(given, 0, beats)
            calm.round({"s": data(rows)}, 0, beats)
            here, there = prodded.output(), calm.output()
            assert told(here.final) == told(there.final)
            assert told(here.late) == told(there.late)
            assert not here.rejected
            wanted = by_hand(calm, asks)
            if beside and asks:
                # Beside the data, a prod names groups by their names: `key` is none of its columns, and any.
                calm.prod("most", Prod(max(t for t, *_ in asks)))
                every = told(calm.output().early)
                wanted = sorted([row for row in wanted if row[0] == "sums"] + every, key=repr)
            assert told(here.early) == wanted


def test_of_too_many_prods_the_widest_is_asked(
    duckdb_executor: DuckDBExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    with trial_of(Program((S,), (SUMS,)), duckdb_executor=duckdb_executor) as trial:
        trial.round({"s": data(((1, "a", 1, 5), (2, "nobody", 2, 6)))}, 0, {})
        trial.round({"s": data((), tuple((11, "a", d) for d in range(MOST)))}, 0, {})
        assert [row[2] for row in told(trial.output().early)] == ["a", "a"]
        trial.round({"s": data((), tuple((11, "a", d) for d in range(MOST + 1)))}, 0, {})
        assert [row[2] for row in told(trial.output().early)] == ["a", "nobody", "a", "nobody"]
    assert "more than 1000 different prods" in caplog.text


def test_windows_over_counts_of_rows_are_prodded_by_rows_too(duckdb_executor: DuckDBExecutor) -> None:
    last = Query("last", "s", RowWindow(4), named_as(total="sum(v)"))
    with trial_of(Program((S,), (last,)), duckdb_executor=duckdb_executor) as trial:
        trial.round({"s": data(((1, "a", 1, 5), (2, "a", 2, 6)), ((40, None, None),))}, 0, {})
        assert [row[5] for row in told(trial.output().early)] == [11]


def test_a_stream_that_is_stamped_by_the_clock_asks_up_to_the_clock(duckdb_executor: DuckDBExecutor) -> None:
    s = Stream("s", columns("ts TIMESTAMP, v INT"), time="ts", policy=Punctuated())
    button = Stream("button", columns("who STRING"), timestamps=Timestamps.INTERNAL)
    sums = Query("sums", "s", Window(10), named_as(total="sum(v)"), prods=Prods(by="button"))
    rows = pa.table({"ts": pa.array([3, 25]).cast(pa.timestamp("us", "UTC")), "v": pa.array([1, 2], pa.int32())})
    with trial_of(Program((s, button), (sums,)), duckdb_executor=duckdb_executor) as trial:
        trial.round({"s": rows}, 5, {})
        trial.round({"button": pa.table({"who": ["ann"]})}, 9, {})
        assert [row["total"] for t in trial.output().early for row in t.to_pylist()] == [1]


def test_a_prod_may_name_a_number_that_no_group_can_have(duckdb_executor: DuckDBExecutor) -> None:
    asks = Stream("asks", columns("at BIGINT, d BIGINT"), time="at", policy=Punctuated())
    sums = replace(SUMS, groups=named_as("d"), prods=Prods(by="asks"))
    with trial_of(Program((replace(S, prods=None), asks), (sums,)), duckdb_executor=duckdb_executor) as trial:
        asked = pa.table({"at": [5, 5], "d": [2**40, 1]})
        trial.round({"s": data(((1, "a", 1, 5), (2, "b", 2, 6))), "asks": asked}, 0, {})
        assert [(row[1], row[4]) for row in told(trial.output().early)] == [(6, 1)]


def test_prods_that_name_a_group_in_another_type_are_refused(tmp_path: Path) -> None:
    asks = Stream("asks", columns("at BIGINT, d STRING"), time="at")
    program = Program((replace(S, prods=None), asks), (replace(SUMS, prods=Prods(by="asks")),))
    with pytest.raises(DeclarationError, match="whose 'd' is STRING, and its group 'd' is INT: make them the same"):
        Engine(program, LocalBackend(), str(tmp_path))


@pytest.mark.parametrize("dies_after", ["advance", "prod", "emit"])
def test_a_round_that_dies_asks_the_same_again(tmp_path: Path, dies_after: str) -> None:
    story = [
        data(((1, "a", 1, 5), (2, "b", 1, 6)), ((11, "a", None),)),
        data(((7, "b", 1, 7),), ((11, None, None), (17, "b", 1))),
        data(((30, "a", 1, 1),), ((40, None, None),)),
    ]
    program = Program((replace(S, policy=FixedDelay(3)),), (SUMS,))

    def ran(folder: Path, dies_at: int) -> list[dict[str, Any]]:
        death, sink = {"at": dies_at}, Memory()

        def die(number: int, step: str) -> None:
            if step == dies_after and number == death["at"]:
                death["at"] = -1
                raise RuntimeError("dead")

        engine = Engine(program, LocalBackend(), str(folder), {"sums": sink}, observer=die)
        for clock, rows in enumerate(story):
            try:
                engine.round({"s": rows}, clock)
            except RuntimeError:
                engine.close()
                engine = Engine(program, LocalBackend(), str(folder), {"sums": sink}, observer=die)
                engine.round({"s": rows}, clock)
        engine.close()
        return sorted(sink.rows("sums"), key=repr)

    calm = ran(tmp_path / "calm", -1)
    assert any(row["kind"] == "early" for row in calm)
    for number in range(3):
        assert ran(tmp_path / f"died_in_{number}", number) == calm


def test_the_status_counts_prods_apart_from_rows(tmp_path: Path) -> None:
    program = Program((S,), (SUMS,))
    for clock in range(2):
        engine = Engine(program, LocalBackend(), str(tmp_path))
        engine.round({"s": data(((1, "a", 1, 5),), ((40, None, None), (40, None, None), (3, "b", 1)))}, clock)
        [status] = engine.status().streams
        engine.close()
    assert (status.rows, status.prods, status.rejected, status.late) == (2, 6, 0, 0)


def test_a_query_that_only_others_read_is_not_asked(tmp_path: Path) -> None:
    """Its early answers would be computed for nobody."""
    sink = Memory()
    engine = Engine(Program((S,), (SUMS, MOST_OF)), LocalBackend(), str(tmp_path), {"most": sink})
    work = engine.round({"s": data(((1, "a", 1, 5),), ((40, None, None),))}, 0)
    assert work.results["sums"].rows == 0
    assert [(row["kind"], row["most"]) for row in sink.rows("most")] == [("early", 5), ("early", 5)]
    engine.close()


def test_a_prod_alone_does_not_make_the_clock_ask_again(tmp_path: Path) -> None:
    sink = Memory()
    kinds = [("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("ask", pa.bool_())]
    s = Stream("s", columns("ts TIMESTAMP, k STRING, ask BOOLEAN"), time="ts", policy=Punctuated(), prods="ask")
    counts = Query("counts", "s", Window(100), named_as(n="count(*)"), named_as("k"), prods=Prods(every=10))
    engine = Engine(Program((s,), (counts,)), LocalBackend(), str(tmp_path), {"counts": sink})
    for clock, k, ask in ((15, "a", False), (25, "b", True), (35, "c", False)):
        engine.round({"s": pa.table([[clock], [k], [ask]], schema=pa.schema(kinds))}, clock)
    engine.close()
    # Groups of a window come in any order.
    assert sorted((row["round"], row["k"]) for row in sink.rows("counts")) == [(0, "a"), (2, "a"), (2, "c")]


def test_groups_are_traced_through_merges_and_joins() -> None:
    other = replace(S, name="other", prods=None)
    merged = Rows("both", ("s", "other"), named_as("t", who="k", twice="d * 2"))
    joined = Join("pairs", Side("s"), Side("other", "o"), (Band("t", "t"),), select=named_as(mine="s.k", theirs="o.k"))
    count = named_as(n="count(*)")
    program = Program(
        (S, other),
        (
            Query("of_both", "both", Window(10), count, named_as("who", "twice")),
            Query("of_pairs", "pairs", Window(10), count, named_as("mine", "theirs")),
            Query("of_other", "other", Window(10), count, named_as("k")),
        ),
        (merged, joined),
    )
    found = {asked.query: asked.columns for asked in asked_by(program, S, marked=True)}
    assert found == {"of_both": {"who": "k"}, "of_pairs": {"mine": "k"}}
    assert [query.prods for query in program.queries] == [Prods(in_stream=True), Prods(in_stream=True), None]


def on_spark(spark: SparkSession, program: Program, folder: Path, by_files: bool) -> tuple[list[dict[str, Any]], int]:
    """The results of the sums, and how often files were reduced where they are."""
    from eventide.engine.spark.backend import SparkBackend
    from eventide.engine.spark.engine import SparkEngine

    shown = Memory()
    with SparkEngine(
        spark, program, str(folder / f"by_files_{by_files}"), {"sums": shown}, by_files=by_files
    ) as engine:
        engine.start(bounded=True).await_end()
        backend = engine.engine.backend
        assert isinstance(backend, SparkBackend)
        answered = sum(one.answered for one in backend.by_files.values())
    return sorted(shown.rows("sums"), key=repr), answered


def early_of(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    early = (row for row in rows if row["kind"] == "early")
    return sorted((row["round"], row["window_end"], row["k"], row["total"]) for row in early)


@pytest.mark.spark
def test_prods_in_parquet_files_are_told_apart_as_by_spark_sql(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "0.parquet", data(((1, "a", 1, 5), (2, "b", 2, 6)), ((11, "a", None),)), 0)
    put(tmp_path / "in", "1.parquet", data(((3, "a", 1, 7),), ((11, None, 1), (90, "b", None))), 1)
    put(tmp_path / "in", "2.parquet", data((), ((90, None, None),)), 2)
    given = Input("parquet", str(tmp_path / "in"), max_files=1)
    program = Program((replace(S, policy=FixedDelay(100), input=given),), (SUMS,))
    by_files, answered = on_spark(spark, program, tmp_path, True)
    by_sql, none = on_spark(spark, program, tmp_path, False)
    assert by_files == by_sql
    # The rows, and the prods, of each of three rounds.
    assert (answered, none) == (6, 0)
    assert early_of(by_sql) == [
        (0, 6, "a", 5), (0, 12, "a", 5),
        (1, 6, "a", 12), (1, 6, "b", 6), (1, 12, "a", 12), (1, 12, "b", 6),
        (2, 6, "a", 12), (2, 6, "b", 6), (2, 12, "a", 12), (2, 12, "b", 6),
    ]  # fmt: skip


@pytest.mark.spark
def test_a_stream_of_prods_in_files_of_its_own_asks_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "0.parquet", data(((1, "a", 1, 5), (2, "b", 2, 6))), 0)
    put(tmp_path / "asks", "0.parquet", prods(((11, "a", None),)), 0)
    put(tmp_path / "asks", "1.parquet", prods(((5, None, None), (4, None, None))), 1)
    rows, asks = (Input("parquet", str(tmp_path / name), max_files=1) for name in ("in", "asks"))
    streams = replace(S, policy=FixedDelay(100), prods=None, input=rows), replace(ASKS, input=asks)
    program = Program(streams, (replace(SUMS, prods=Prods(by="asks")),))
    by_files, answered = on_spark(spark, program, tmp_path, True)
    by_sql, none = on_spark(spark, program, tmp_path, False)
    assert by_files == by_sql
    assert (answered > 0, none) == (True, 0)
    assert early_of(by_sql) == [(0, 6, "a", 5), (0, 12, "a", 5), (1, 6, "a", 5), (1, 6, "b", 6)]
