"""What a stream has read before its last round, once more: files that Spark's log names, or offsets of topics.

Law: these are all rows that the stream had read by then, and no others; of a topic, those that the broker still has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eventide.engine.spark.log import SparkLog
from eventide.plan.declared.stream import Stream
from eventide.sources.spark_input import read_files, read_offsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def past_of(spark: SparkSession, stream: Stream, log: SparkLog, place: int, batch: int) -> Sequence[DataFrame] | None:
    """The rows of the source at that place, up to a batch; None where they cannot be read again."""
    topics = log.offsets_before(place, batch)
    if topics is not None:
        return [read_offsets(spark, stream, *topics)]
    files = log.files_before(place, batch)
    return None if files is None else [read_files(spark, stream, files)] if files else []
