"""Sinks given results that are on the cluster: the same contract, for what a sink takes from Spark.

`from_cluster(make, spark, folder)` opens the sink of `make`; what it is given to emit it finds in Parquet files below
`folder`, as a DataFrame and in parts for Spark's tasks. So `check_sink(from_cluster(make, spark, folder), read)` tries
every sentence of the law with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from eventide.engine.round.results import FileRows, ResultPiece, SparkParts
from eventide.results.results import Results
from eventide.sinks.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILE_BATCHES = 4
"""So many batches make a file, so that results have several."""


def from_cluster(make: Callable[[], Sink], spark: SparkSession, folder: Path) -> Callable[[], Sink]:
    """Opens the same sink, to be given results that are on the cluster."""
    return lambda: _FromCluster(make(), spark, folder)


def on_cluster(results: Results, spark: SparkSession, folder: Path) -> Results:
    """The same results in files; where they break off, a file is missing."""
    below = folder / uuid4().hex
    below.mkdir(parents=True)
    paths = list(_files(results, below))
    pieces = [ResultPiece(FileRows(LocalFileSystem(), str(path), 1, results.schema)) for path in paths]

    def frame() -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = from_arrow_schema(results.schema, prefer_timestamp_ntz=True)
        return spark.read.schema(schema).parquet(*map(str, paths)) if paths else spark.createDataFrame([], schema)

    parts = SparkParts(pieces, part_bytes=1)
    return replace(results, frame=frame, parts=parts)


class _FromCluster:
    def __init__(self, sink: Sink, spark: SparkSession, folder: Path) -> None:
        self._sink, self._spark, self._folder = sink, spark, folder
        self.rewind, self.close = sink.rewind, sink.close

    def emit(self, results: Results) -> None:
        """Emit them from the cluster."""
        self._sink.emit(on_cluster(results, self._spark, self._folder))


def _files(results: Results, folder: Path) -> Iterator[Path]:
    batches, held = results.batches(), list[pa.RecordBatch]()
    number, ended, whole = 0, False, True
    while not ended:
        try:
            held.append(next(batches))
        except StopIteration:
            ended = True
        except Exception:
            ended, whole = True, False
        if held and (ended or len(held) == FILE_BATCHES):
            path = folder / f"{number}.parquet"
            pq.write_table(pa.Table.from_batches(held, results.schema), path)
            yield path
            number, held = number + 1, []
    if not whole:
        yield folder / "missing.parquet"
