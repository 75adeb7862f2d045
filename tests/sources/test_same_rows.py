"""Spark and the local engine read the same rows and call the same rows malformed, however nasty the lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eventide.plan.declared.stream import Input, Stream, Timestamps, columns
from eventide.sources.local_input import open_input
from eventide.sources.spark_input import read_stream
from tests.sources.nasty_lines import COLUMNS, NAMES, NESTED_COLUMNS, NESTED_LINES, csv_lines, json_lines, plain_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def both(spark: SparkSession, tmp_path: Path, declared: str, given: Input) -> tuple[list[str], list[str]]:
    stream = Stream("s", columns(declared), timestamps=Timestamps.INTERNAL, input=given)
    out = tmp_path / "out"
    writer = read_stream(spark, stream).writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start(str(out), format="parquet").awaitTermination()
    local = open_input(stream).take(1_000_000, 0.0)
    assert local is not None
    of_spark = spark.read.schema(read_stream(spark, stream).schema).parquet(str(out)).toArrow()
    return sorted(plain_rows(of_spark)), sorted(plain_rows(local))


def test_csv_lines(spark: SparkSession, tmp_path: Path) -> None:
    lines = csv_lines()
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + b"\n".join([",".join(NAMES).encode(), *lines]))
    of_spark, local = both(spark, tmp_path, COLUMNS, Input("csv", str(tmp_path / "*.csv")))
    assert local == of_spark
    malformed = [row for row in local if not row.endswith("None)")]
    assert 100 < len(malformed) < len(local) - 100, "the lines must be nasty enough, and not all of them broken"


def test_json_lines(spark: SparkSession, tmp_path: Path) -> None:
    lines = json_lines()
    (tmp_path / "a.json").write_bytes(b"\r\n".join(lines))
    of_spark, local = both(spark, tmp_path, COLUMNS, Input("json", str(tmp_path / "a.json")))
    assert local == of_spark
    malformed = [row for row in local if not row.endswith("None)")]
    assert 100 < len(malformed) < len(local) - 100


def test_nested_json(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\n".join(NESTED_LINES))
    of_spark, local = both(spark, tmp_path, NESTED_COLUMNS, Input("json", str(tmp_path / "a.json")))
    assert local == of_spark


def test_csv_with_its_own_separator_quote_and_null(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("NULL;1;\nx;NULL;''\n'NULL';2;'x;y'\n;3;'it''s'\n'a;1;2\nx\ty;5;6\n")
    options = (("header", "false"), ("sep", ";"), ("quote", "'"), ("nullValue", "NULL"))
    of_spark, local = both(spark, tmp_path, "a STRING, i INT, c STRING", Input("csv", str(tmp_path / "*.csv"), options))
    assert local == of_spark
