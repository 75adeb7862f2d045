"""Parquet files reduced by DuckDB where Spark's tasks would run: the answers of Spark SQL, or none at all."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.spark.backend import SparkBackend
from eventide.engine.spark.engine import SparkEngine
from eventide.engine.spark.file_reduce import FileReduce, FileTask, _reduced_by_worker, reduced, shared_out
from eventide.engine.spark.worker import unlike
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.join import Band, Join, JoinKind, Side
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.plan.declared.window import Window
from eventide.plan.expressions.columns import Column
from eventide.sinks.sink import Memory
from tests.engine.test_engines_agree import BY_PARTIALS, FIELDS, alike, named, rounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OTHERS = ("approx", "first", "last", "min_by", "max_by", "std", "var")
PLAIN = tuple(sql for sql in BY_PARTIALS if not sql.startswith(OTHERS))
"""What is reduced in plain words."""


def put(folder: Path, name: str, table: pa.Table, number: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / name)
    os.utime(folder / name, (1_700_000_000 + number,) * 2)
    return folder / name


def stream(name: str, folder: Path, declared: str, **options: str) -> Stream:
    given = Input("parquet", str(folder), tuple(options.items()), max_files=2)
    return Stream(name, columns(declared), time="t", policy=FixedDelay(4), input=given)


def ran(
    spark: SparkSession, program: Program, folder: Path, by_files: bool
) -> tuple[dict[str, Any], dict[str, int], list[str]]:
    """Results by what they are of, the rounds reduced by files for each stream, the reasons of rejects."""
    place = folder / f"by_files_{by_files}"
    shown = Memory()
    sinks = {step.name: shown for step in program.steps}
    engine = SparkEngine(spark, program, str(place), sinks, by_files=by_files)
    with engine:
        engine.start(bounded=True).await_end()
        backend = engine.engine.backend
        assert isinstance(backend, SparkBackend)
        answered = {name: one.answered for name, one in backend.by_files.items()}
    results = {
        str([row[name] for name in ("query", "kind", "window_start")] + [row.get("k"), row.get("ok")]): row
        for query in shown.queries
        for row in shown.rows(query)
    }
    rejects = [
        row["_reason"]
        for path in sorted((place / "rejects").rglob("*.parquet"))
        for row in pq.read_table(path, partitioning=None).to_pylist()
    ]
    return results, answered, rejects


def same_both_ways(spark: SparkSession, program: Program, folder: Path) -> tuple[dict[str, int], list[str]]:
    """Assert that results and rejects are the same by files and by Spark SQL; tell what was reduced by files."""
    by_sql, none, told = ran(spark, program, folder, by_files=False)
    by_files, answered, retold = ran(spark, program, folder, by_files=True)
    assert not any(none.values())
    assert by_sql, "a program without results shows nothing"
    assert by_files.keys() == by_sql.keys()
    differing = [
        (key, name, value, by_files[key][name])
        for key, row in by_sql.items()
        for name, value in row.items()
        if not alike(value, by_files[key][name])
    ]
    assert not differing, differing[:5]
    assert sorted(told) == sorted(retold)
    return answered, told


@pytest.mark.spark
def test_files_are_reduced_to_the_answers_of_spark_sql(spark: SparkSession, tmp_path: Path) -> None:
    kinds = ", ".join(f"{name} {kind}" for name, _, kind in FIELDS if name != "a")
    for number, table in enumerate(rounds(3)):
        put(tmp_path / "one", f"a b%20{number}'.parquet", table.drop_columns(["a"]), number)
        put(tmp_path / "two", f"{number}.parquet", table.drop_columns(["a"]), number)
    select = named(tuple(sql for sql in PLAIN if "(a" not in sql))
    program = Program(
        (stream("s", tmp_path / "one", kinds), stream("other", tmp_path / "two", kinds)),
        (
            Query("by_partials", "s", Window(12, 4), select, groups=named_as("k")),
            Query("filtered", "s", Window(6), select[:12], groups=named_as("ok"), where="i <> 3 AND s > 'a'"),
            Query("of_another", "other", Window(8), select[:6]),
        ),
    )
    answered, _ = same_both_ways(spark, program, tmp_path)
    assert answered == {"s": 3, "other": 3}


@pytest.mark.spark
def test_rows_of_a_join_are_kept_from_files_and_a_stream_may_have_no_file_in_a_round(
    spark: SparkSession, tmp_path: Path
) -> None:
    for number in range(4):
        times = range(10 * number, 10 * number + 10)
        table = pa.table({"t": list(times), "k": [t % 3 for t in times], "v": [t * t for t in times]})
        put(tmp_path / "a", f"{number}.parquet", table, number)
        if number < 2:
            put(tmp_path / "b", f"{number}.parquet", table, number)
    a, b = (stream(name, tmp_path / name, "t BIGINT, k BIGINT, v BIGINT") for name in ("a", "b"))
    near = Join(
        "near",
        Side("a", keys=("k",), where="v > 4"),
        Side("b", keys=("k",)),
        (Band("t", "t", -3, 3),),
        JoinKind.LEFT,
        select=named_as(k="a.t * 100 + coalesce(b.t, 0)", v="a.v - b.v"),
    )
    sums = Query("sums", "b", Window(6), named_as(total="sum(v)"))
    answered, _ = same_both_ways(spark, Program((a, b), (sums,), (near,)), tmp_path)
    # Each round asks twice: for partials and cells, and for the rows of the join. In the second, b has no new file.
    assert answered == {"a": 4, "b": 2}


@pytest.mark.spark
def test_a_statement_that_is_not_plain_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a.parquet", pa.table({"t": [1, 2, 9], "v": [5, 6, 7]}), 0)
    program = Program(
        (stream("s", tmp_path / "in", "t BIGINT, v BIGINT"),),
        (Query("q", "s", Window(4), named_as(different="approx_count_distinct(v)")),),
    )
    assert same_both_ways(spark, program, tmp_path)[0] == {"s": 0}


@pytest.mark.spark
def test_a_session_in_another_time_zone_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    """In New York, noon on the wall is five in the afternoon by UTC."""
    put(tmp_path / "in", "a.parquet", pa.table({"t": [datetime(2024, 1, 1, 12)], "v": [1]}), 0)
    program = Program(
        (stream("s", tmp_path / "in", "t TIMESTAMP_NTZ, v BIGINT"),),
        (Query("q", "s", Window(3_600_000_000), named_as(total="sum(v)")),),
    )
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        assert same_both_ways(spark, program, tmp_path)[0] == {"s": 0}
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    (tmp_path / "utc").mkdir()
    assert same_both_ways(spark, program, tmp_path / "utc")[0] == {"s": 1}


@pytest.mark.spark
def test_files_that_are_not_as_declared_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    """The second file keeps its numbers in another type, which Spark widens."""
    put(tmp_path / "in", "a.parquet", pa.table({"t": [1, 2, 9], "v": pa.array([5, 6, 7], pa.int64())}), 0)
    put(tmp_path / "in", "b.parquet", pa.table({"t": [10, 11], "v": pa.array([8, None], pa.int32())}), 1)
    put(tmp_path / "in", "c.parquet", pa.table({"t": [14, 18], "v": pa.array([9, 1], pa.int64())}), 2)
    program = Program(
        (stream("s", tmp_path / "in", "t BIGINT, v BIGINT"),), (Query("q", "s", Window(4), named_as(total="sum(v)")),)
    )
    assert same_both_ways(spark, program, tmp_path)[0] == {"s": 1}


@pytest.mark.spark
def test_a_row_that_breaks_a_query_is_found_as_ever(spark: SparkSession, tmp_path: Path) -> None:
    for number, value in enumerate((1, 7, 3, 4, 5, 6)):
        table = pa.table({"t": [number], "v": pa.array([2_000_000_000 if value == 7 else value], pa.int32())})
        put(tmp_path / "in", f"{number}.parquet", table, number)
    program = Program(
        (stream("s", tmp_path / "in", "t BIGINT, v INT"),),
        (Query("q", "s", Window(2), named_as(total="sum(v * 2)")),),
    )
    answered, rejects = same_both_ways(spark, program, tmp_path)
    assert rejects == ["query 'q': v * 2 fails: the result does not fit INT"]
    assert answered["s"] > 0


@pytest.mark.spark
def test_a_worker_does_what_this_process_does(spark: SparkSession, tmp_path: Path) -> None:
    file = put(tmp_path, "a.parquet", pa.table({"v": [1, 2, 3]}), 0)
    task = FileTask("rows", 'SELECT sum(v)::BIGINT AS s FROM "rows"', (Column("v", "BIGINT"),), (str(file),))
    bench = DuckDBExecutor(threads=2)
    here = reduced(task, bench)
    bench.close()
    assert pa.ipc.open_stream(here.partials).read_all().to_pylist() == [{"s": 6}]
    assert spark.sparkContext.parallelize([task], 1).map(_reduced_by_worker).collect() == [here]


@pytest.mark.parametrize(
    ("kind", "declared", "as_declared"),
    [
        (pa.int64(), "BIGINT", True),
        (pa.int32(), "BIGINT", False),
        (pa.large_string(), "STRING", True),
        (pa.string(), "STRING", True),
        (pa.timestamp("us", "UTC"), "TIMESTAMP", True),
        (pa.timestamp("ms", "UTC"), "TIMESTAMP", True),
        (pa.timestamp("us"), "TIMESTAMP", False),
        (pa.timestamp("ns", "UTC"), "TIMESTAMP", False),
        (pa.decimal128(10, 2), "DECIMAL(10, 2)", True),
        (pa.decimal128(10, 2), "DECIMAL(12, 2)", False),
    ],
)
def test_only_a_file_with_the_declared_types_is_taken(
    kind: pa.DataType, declared: str, as_declared: bool, tmp_path: Path
) -> None:
    values = [datetime(2024, 1, 1, tzinfo=UTC if kind.tz else None)] if pa.types.is_timestamp(kind) else [None]
    file = put(tmp_path, "a.parquet", pa.table({"v": pa.array(values, kind)}), 0)
    assert (unlike(str(file), (Column("v", declared),)) is None) == as_declared


def test_a_column_that_the_folder_tells_is_not_the_files_own(tmp_path: Path) -> None:
    file = put(tmp_path / "v=1", "a.parquet", pa.table({"v": [7], "w": [7]}), 0)
    assert unlike(str(file), (Column("w", "BIGINT"),)) is None
    assert "no column 'v' of its own" in str(unlike(str(file), (Column("v", "BIGINT"),)))
    assert "no column 'x' of its own" in str(unlike(str(file), (Column("x", "BIGINT"),)))


def test_a_folder_may_write_its_column_in_other_signs(tmp_path: Path) -> None:
    file = put(tmp_path / "a%3Ab=1", "a.parquet", pa.table({"a:b": [7]}), 0)
    assert "no column 'a:b' of its own" in str(unlike(str(file), (Column("a:b", "BIGINT"),)))


@pytest.mark.parametrize("written", [{"org.apache.spark.legacyDateTime": ""}, {"org.apache.spark.version": "2.4.8"}])
def test_files_with_times_of_the_old_calendar_are_not_taken(written: dict[str, str], tmp_path: Path) -> None:
    plain = pa.table({"v": [7]})
    assert unlike(str(put(tmp_path, "a.parquet", plain, 0)), (Column("v", "BIGINT"),)) is None
    old = put(tmp_path, "b.parquet", plain.replace_schema_metadata(written), 0)
    assert "old calendar" in str(unlike(str(old), (Column("v", "BIGINT"),)))


def test_files_are_shared_out_by_size(tmp_path: Path) -> None:
    for name, size in (("a", 50), ("b", 30), ("c", 30), ("d", 5)):
        (tmp_path / name).write_bytes(b"x" * size)
    paths = [str(tmp_path / name) for name in "abcd"]
    shares = [sorted(Path(path).name for path in share) for share in shared_out(paths, 2)]
    assert sorted(shares) == [["a", "d"], ["b", "c"]]
    assert len(shared_out(paths[:1], 8)) == 1


def test_only_parquet_read_in_the_plain_way_can_be_reduced_by_files(tmp_path: Path) -> None:
    assert FileReduce.can(stream("s", tmp_path, "t BIGINT", maxFileAge="1d"))
    assert not FileReduce.can(stream("s", tmp_path, "t BIGINT", mergeSchema="true"))
    assert not FileReduce.can(Stream("s", columns("t BIGINT"), time="t", input=Input("json", str(tmp_path))))
    assert not FileReduce.can(Stream("s", columns("t BIGINT"), time="t"))
