from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eventide.engine.checkpoint.checkpoint import Checkpoint
from tests.engine.checkpoints import record_of, run_round

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_slices_that_spark_wrote_are_found_whole_and_removed_when_dead(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "a folder with spaces, 100 %"
    with Checkpoint.open(place) as checkpoint:
        run_round(checkpoint, 0)
        folder = checkpoint.storage.uri("slices/big/0000000001")
        frame = spark.range(10_000).selectExpr("id", "id % 3 AS pane")
        frame.repartition(2).write.partitionBy("pane").parquet(folder)
        files = checkpoint.adopt("slices/big/0000000001")
        assert len(files) == 6
        record = record_of(1, files)
        checkpoint.commit(record)
    with Checkpoint.open(place) as checkpoint:
        assert checkpoint.last() == record
        assert spark.read.parquet(folder).count() == 10_000
        for number in (2, 3):
            last = run_round(checkpoint, number)
        assert not (place / "slices/big").exists()
        assert checkpoint.last() == last
        assert checkpoint.warnings == []
