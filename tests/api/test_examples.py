"""The numbered examples in Python show what they say they show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from examples import python_1_arrow, python_2_spark, python_3_heartbeats

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_queries_over_arrow_data(capsys: pytest.CaptureFixture[str]) -> None:
    python_1_arrow.main()
    said = capsys.readouterr().out
    assert "every_minute: the last of 65 results" in said
    assert "1 % is permitted" in said


@pytest.mark.spark
def test_a_query_over_a_streaming_dataframe(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python_2_spark.run(spark, tmp_path)
    assert "|2025-03-04 08:10:00|" in capsys.readouterr().out


@pytest.mark.spark
def test_heartbeats_for_a_query_of_spark(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python_3_heartbeats.run(spark, tmp_path)
    spark_alone, with_heartbeats = capsys.readouterr().out.splitlines()
    assert with_heartbeats.startswith("eventide.heartbeats: closed up to 2026-01-01T00:06:59")
    assert with_heartbeats.endswith(" 0 lost")
    assert not spark_alone.endswith(" 0 lost"), "a watermark for all loses the devices that trail"
