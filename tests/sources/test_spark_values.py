"""Records with a value of text, as Kafka has them: the value parsed once, the rest of the record beside it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eventide.errors import DeclarationError, InputError
from eventide.plan.declared.stream import Input, Stream, Timestamps, columns
from eventide.sources.spark_input import read_stream
from eventide.sources.spark_values import kept_aside, parsed_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

VALUES = [b'{"n": 1, "s": "a"}', b'{"n": "x"}', None, b" ", b'{"n": 2, "n": 3}', b'[{"n": 4}]']
CSV_VALUES = [b'1,"a, b"', b"x,y", b"1", b"3,"]


def register(spark: SparkSession) -> None:
    """A source `records` with the columns that Kafka has."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    class Reader(DataSourceStreamReader):
        def __init__(self, rows: list[bytes | None]) -> None:
            self.rows = rows

        def initialOffset(self) -> dict[str, int]:  # noqa: N802
            return {"rows": 0}

        def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802
            return {"rows": len(self.rows)}

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
            return [InputPartition(None)] if start != end else []

        def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
            moment = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
            return iter([(b"k", value, "topic", offset, moment) for offset, value in enumerate(self.rows)])

    class Records(DataSource):
        @classmethod
        def name(cls) -> str:
            return "records"

        def schema(self) -> str:
            return "key BINARY, value BINARY, topic STRING, offset BIGINT, timestamp TIMESTAMP"

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
            rows: list[bytes | None] = [*(VALUES if self.options["rows"] == "json" else CSV_VALUES)]
            return Reader(rows)

    spark.dataSource.register(Records)


def records(declared: str, rows: str = "json", **options: str) -> Stream:
    texts = tuple((name.replace("_", "."), text) for name, text in options.items())
    given = Input("records", options=(("rows", rows), *texts))
    return Stream("s", columns(declared), timestamps=Timestamps.INTERNAL, input=given)


def rows_of(spark: SparkSession, stream: Stream, tmp_path: Path) -> list[tuple[Any, ...]]:
    register(spark)
    out, frame = tmp_path / "out", read_stream(spark, stream)
    writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start(str(out), format="parquet").awaitTermination()
    return sorted((tuple(row) for row in spark.read.parquet(str(out)).collect()), key=repr)


def test_json_values_are_parsed_and_broken_ones_kept(spark: SparkSession, tmp_path: Path) -> None:
    stream = records("n INT, records_offset BIGINT, s STRING", value_format="json")
    expected = [
        (1, 0, "a", None),
        (None, 1, None, '{"n": "x"}'),
        (None, 2, None, ""),
        (None, 3, None, ""),
        (3, 4, None, None),
        # A record is one row, as on the local engine; in a file this would be one for each object.
        (None, 5, None, '[{"n": 4}]'),
    ]
    assert rows_of(spark, stream, tmp_path) == sorted(expected, key=repr)


def test_csv_values_are_parsed_by_position(spark: SparkSession, tmp_path: Path) -> None:
    found = rows_of(spark, records("n INT, s STRING", "csv", value_format="csv"), tmp_path)
    assert found == [(1, "a, b", None), (3, None, None), (None, None, "1"), (None, None, "x,y")]


def test_the_columns_of_the_record_itself_can_be_declared(spark: SparkSession, tmp_path: Path) -> None:
    found = rows_of(spark, records("topic STRING, value BINARY, offset BIGINT", "csv"), tmp_path)
    assert [(row[0], bytes(row[1]), *row[2:]) for row in found] == sorted(
        (("topic", value, offset, None) for offset, value in enumerate(CSV_VALUES)), key=repr
    )


def test_a_filter_does_not_make_spark_parse_twice(spark: SparkSession) -> None:
    declared = columns("n INT, s STRING")
    values = spark.range(10).selectExpr("CAST(id AS STRING) AS value")
    frame = kept_aside(parsed_value(values, declared, "json", {}), declared, ["n", "s"])
    filtered = frame.where("_malformed IS NULL AND n > 1").select("s")
    plan: str = filtered._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("from_json") == 1


def test_what_cannot_be_parsed_is_told(spark: SparkSession) -> None:
    register(spark)
    with pytest.raises(DeclarationError, match=r"value\.format 'xml' is not known"):
        read_stream(spark, records("n INT", value_format="xml"))
    with pytest.raises(InputError, match="declares records_off BIGINT, but a record of records has only"):
        read_stream(spark, records("n INT, records_off BIGINT", value_format="json"))


def test_what_stands_beside_a_malformed_value_says_where_it_is_from(spark: SparkSession) -> None:
    """Partition, offset and timestamp of a rejected record of Kafka were NULL: nobody could find it."""
    declared = columns("n INT, kafka_partition INT, kafka_offset BIGINT")
    values = spark.sql(
        "SELECT * FROM VALUES ('{\"n\": 1}', 0, 7L), ('{\"n\": ', 1, 8L) AS t(value, kafka_partition, kafka_offset)"
    )
    frame = kept_aside(parsed_value(values, declared[:1], "json", {}), declared, ["n"])
    assert sorted(map(tuple, frame.collect()), key=lambda row: row[1]) == [(1, 0, 7, None), (None, 1, 8, '{"n": ')]
