"""What Spark reads is what was declared; what it cannot read is kept; what cannot work is told before it starts."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eventide.errors import DeclarationError, InputError
from eventide.plan.declared.stream import Input, Stream, Timestamps, columns
from eventide.sources.spark_input import read_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CARS = columns("at TIMESTAMP, car STRING, speed INT")


def cars(given: Input | None, declared: str | None = None) -> Stream:
    schema = CARS if declared is None else columns(declared)
    return Stream("cars", schema, timestamps=Timestamps.INTERNAL, input=given)


def rows_of(spark: SparkSession, stream: Stream, tmp_path: Path) -> list[tuple[Any, ...]]:
    """Everything the stream gives now, in order of all its columns."""
    frame = read_stream(spark, stream)
    assert frame.isStreaming
    assert frame.columns == [*(column.name for column in stream.columns), "_malformed"]
    out = tmp_path / "out"
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(out))
    query.awaitTermination()
    return sorted((tuple(row) for row in spark.read.parquet(str(out)).collect()), key=repr)


def at(second: int) -> datetime.datetime:
    return datetime.datetime(2020, 1, 1, 0, 0, second)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


def test_malformed_json_is_kept_as_its_text_and_nothing_else(spark: SparkSession, tmp_path: Path, folder: Path) -> None:
    good = '{"at": "2020-01-01T00:00:01Z", "car": "a", "speed": 7, "more": [1]}'
    broken = ['{"at": "soon", "car": "b", "speed": 7}', '{"car": "c", "speed": "fast"}', '{"car": "d"']
    (folder / "a.json").write_text("\n".join([good, "", *broken]))
    found = rows_of(spark, cars(Input("json", str(folder))), tmp_path)
    assert found == sorted([(at(1), "a", 7, None), *((None, None, None, text) for text in broken)], key=repr)


def test_a_row_is_malformed_whichever_columns_a_query_uses(spark: SparkSession, tmp_path: Path, folder: Path) -> None:
    """Spark converts only what is asked for: a query that did not use `speed` would have seen no broken row."""
    (folder / "a.csv").write_text("at,car,speed\n2020-01-01,a,fast\n")
    frame = read_stream(spark, cars(Input("csv", str(folder)))).select("car", "_malformed")
    query = frame.writeStream.format("memory").queryName("one_column").trigger(availableNow=True).start()
    query.awaitTermination()
    assert [tuple(row) for row in spark.table("one_column").collect()] == [(None, "2020-01-01,a,fast")]


def test_csv_is_read_by_the_names_of_its_first_line(spark: SparkSession, tmp_path: Path, folder: Path) -> None:
    (folder / "a.csv").write_text('Speed,lane,AT,car\n7,x,2020-01-01 00:00:01,"a ""big"" one"\n8,x,y\n')
    found = rows_of(spark, cars(Input("csv", str(folder))), tmp_path)
    assert found == [(None, None, None, "8,x,y"), (at(1), 'a "big" one', 7, None)]


def test_a_file_with_its_columns_in_another_order_is_not_read_into_the_wrong_ones(
    spark: SparkSession, tmp_path: Path, folder: Path
) -> None:
    (folder / "a.csv").write_text("at,car,speed\n2020-01-01,a,1\n")
    stream = cars(Input("csv", str(folder)), "at TIMESTAMP, car STRING, speed INT")
    assert len(rows_of(spark, stream, tmp_path)) == 1
    (folder / "b.csv").write_text("car,at,speed\nb,2020-01-01,1\n")
    with pytest.raises(Exception, match=r"error while reading file .*b\.csv"):
        rows_of(spark, stream, tmp_path)


def test_the_header_of_the_oldest_file_tells_the_order_wherever_it_is(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in ü%20&+"
    folder.mkdir()
    for name, header, written in (
        ("a.csv", "nothing,known", 2_000_000_000),
        ("b c%.csv", "car,at,speed", 1_700_000_000),
    ):
        (folder / name).write_text(header + "\n")
        os.utime(folder / name, (written, written))
    assert read_stream(spark, cars(Input("csv", str(folder)))).isStreaming
    os.utime(folder / "b c%.csv", (2_100_000_000,) * 2)
    with pytest.raises(InputError, match=r"the first line of .*/a\.csv names nothing, known"):
        read_stream(spark, cars(Input("csv", str(folder))))


def test_a_header_without_a_declared_column_is_told(spark: SparkSession, folder: Path) -> None:
    (folder / "a.csv").write_text("at,vehicle,speed\n")
    with pytest.raises(InputError, match=r"declares car, but the first line of .*a\.csv names at, vehicle, speed"):
        read_stream(spark, cars(Input("csv", str(folder))))


@pytest.mark.parametrize("header", [",AT,car,speed", "_c0,at,car,speed,speed"])
def test_a_header_may_have_columns_without_a_name_or_with_that_of_another(
    header: str, spark: SparkSession, tmp_path: Path, folder: Path
) -> None:
    """Pandas writes its index so; Spark gave it a name, missed that in the file, and said that the file was bad."""
    (folder / "a.csv").write_text(f"{header}\n0,2020-01-01 00:00:01,a,7{',8' * (header.count(',') - 3)}\n")
    assert rows_of(spark, cars(Input("csv", str(folder))), tmp_path) == [(at(1), "a", 7, None)]


def test_csv_without_a_header_is_read_by_position(spark: SparkSession, tmp_path: Path, folder: Path) -> None:
    (folder / "a.csv").write_text("2020-01-01 00:00:01;a;7\n2020-01-01 00:00:02;b;8;9\n")
    options = (("header", "false"), ("delimiter", ";"))
    found = rows_of(spark, cars(Input("csv", str(folder), options)), tmp_path)
    assert found == [(None, None, None, "2020-01-01 00:00:02;b;8;9"), (at(1), "a", 7, None)]


def test_a_csv_folder_may_be_empty_when_the_stream_starts(spark: SparkSession, tmp_path: Path, folder: Path) -> None:
    assert read_stream(spark, cars(Input("csv", str(folder)))).isStreaming
    assert read_stream(spark, cars(Input("csv", str(folder / "*.csv")))).isStreaming


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_columns_of_files_are_found_by_name_and_widened(
    spark: SparkSession, tmp_path: Path, folder: Path, kind: str
) -> None:
    frame = spark.sql("SELECT 7S AS speed, 'x' AS lane, 'a' AS car, TIMESTAMP '2020-01-01 00:00:01' AS at")
    frame.write.mode("append").format(kind).save(str(folder))
    assert rows_of(spark, cars(Input(kind, str(folder), max_files=1)), tmp_path) == [(at(1), "a", 7, None)]


def test_files_with_another_type_or_without_a_column_are_told(spark: SparkSession, folder: Path) -> None:
    spark.sql("SELECT 7L AS speed, current_timestamp() AS at").write.mode("append").parquet(str(folder))
    with pytest.raises(InputError, match=r"declares speed INT, but .* has speed BIGINT"):
        read_stream(spark, cars(Input("parquet", str(folder)), "at TIMESTAMP, speed INT"))
    with pytest.raises(InputError, match=r"declares car STRING, but .* has only speed BIGINT, at TIMESTAMP"):
        read_stream(spark, cars(Input("parquet", str(folder))))


def test_lines_of_text_are_one_column_of_any_name(spark: SparkSession, tmp_path: Path, folder: Path) -> None:
    (folder / "a.log").write_text("one\ntwo\n")
    found = rows_of(spark, cars(Input("text", str(folder)), "line STRING"), tmp_path)
    assert found == [("one", None), ("two", None)]
    with pytest.raises(DeclarationError, match="declare one column, of type STRING"):
        read_stream(spark, cars(Input("text", str(folder))))


def test_the_rate_source_has_its_own_columns(spark: SparkSession) -> None:
    rate = Input("rate", max_rows=5)
    assert read_stream(spark, cars(rate, "value BIGINT, timestamp TIMESTAMP")).columns[:2] == ["value", "timestamp"]
    with pytest.raises(InputError, match="declares car STRING, but the source rate has only timestamp TIMESTAMP"):
        read_stream(spark, cars(rate, "car STRING"))


def test_a_table_is_read_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("DROP TABLE IF EXISTS cars_table")
    spark.sql(f"CREATE TABLE cars_table (at TIMESTAMP, car STRING, speed INT) USING parquet LOCATION '{tmp_path}/t'")
    spark.sql("INSERT INTO cars_table VALUES (TIMESTAMP '2020-01-01 00:00:01', 'a', 7)")
    assert rows_of(spark, cars(Input("table", "cars_table")), tmp_path) == [(at(1), "a", 7, None)]
    with pytest.raises(InputError, match="there is no table nowhere"):
        read_stream(spark, cars(Input("table", "nowhere")))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Input("json", "no/such/folder"), "nothing at no/such/folder: check the path"),
        (Input("jsn", "in"), "no format 'jsn': did you mean json"),
        (Input("kafka", options=(("subscribe", "a"),)), "--package org.apache.spark:spark-sql-kafka"),
        (Input("delta", "in"), "--package io.delta:delta-spark"),
        (Input("rate", options=(("rowsPerSecond", "-5"),)), "stream 'cars' cannot be read as rate"),
        (Input("jdbc"), "cannot read jdbc as a stream"),
    ],
)
def test_what_cannot_be_opened_is_told_with_the_way_out(spark: SparkSession, given: Input, told: str) -> None:
    with pytest.raises(InputError) as failure:
        read_stream(spark, cars(given))
    assert told in str(failure.value)
    assert "\n" not in str(failure.value)


def test_files_that_are_of_another_format_are_told(spark: SparkSession, folder: Path) -> None:
    (folder / "a.parquet").write_text("not parquet")
    with pytest.raises(InputError, match="cannot be read as parquet"):
        read_stream(spark, cars(Input("parquet", str(folder))))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "has no input"),
        (Input("json"), "has no path"),
        (Input("json", "in", max_rows=5), "cannot be limited to 5 rows a round: give max_files"),
        (Input("rate", max_files=5), "cannot be limited to 5 files a round: give max_rows"),
        (Input("rate", max_rows=0), "0 rows a round is too few"),
        (Input("rate", options=(("rowspersecond", "9"),), max_rows=5), "the limit 5 is given twice"),
        (Input("json", "in", (("MODE", "DROPMALFORMED"),)), "the option mode is not yours to set"),
    ],
)
def test_what_cannot_be_declared_is_told(spark: SparkSession, given: Input | None, told: str) -> None:
    with pytest.raises(DeclarationError) as failure:
        read_stream(spark, cars(given))
    assert told in str(failure.value)


def test_the_name_of_the_malformed_column_is_taken(spark: SparkSession) -> None:
    with pytest.raises(DeclarationError, match="cannot have a column '_malformed'"):
        read_stream(spark, cars(Input("rate"), "_malformed STRING"))
