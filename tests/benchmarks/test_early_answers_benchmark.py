"""What the benchmark of early answers measures is what it says, on a few rows. Times are not tested."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.driver_memory import DRIVER_MEMORY_AT
from benchmarks.early_answers import WAYS, Ran, Sizes, headline, ratio, take_turns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("place", DRIVER_MEMORY_AT)
def test_the_ways_take_turns_over_the_same_stream_and_final_answers_are_right(
    spark: SparkSession, place: str, tmp_path: Path
) -> None:
    # On the cluster each answer is made by Spark jobs: fewer of them will do.
    sizes = Sizes(file_rows=500, files=3, turns=1, gap=0.01 if place == "default" else 0.5)
    ran = take_turns(spark, sizes, place, tmp_path)
    assert ran.keys() == WAYS.keys()
    for way, one in ran.items():
        assert one.rows == sizes.turns * sizes.files * sizes.file_rows
        assert len(one.round_ms) == sizes.turns * sizes.files
        assert len(one.delay_ms) == sizes.turns
        assert bool(one.prod_ms) == (way != "alone")
    found = headline(ran)
    assert found["prods"] == len(ran["beside"].prod_ms)
    assert found["final_delay_ratio"] == ratio(ran, "beside")[0] > 0
    assert found["prod_ms"].keys() == found["waiting"]["prod_ms"].keys() == {"p50", "p99"}


def test_a_ratio_is_of_means_over_all_turns() -> None:
    ran = {"alone": Ran(delay_ms=[100.0, 300.0]), "beside": Ran(delay_ms=[200.0, 200.0])}
    assert ratio(ran, "beside") == (1.0, 0.5)
