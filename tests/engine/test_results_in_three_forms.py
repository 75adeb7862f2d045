"""Results on the cluster as batches, as a DataFrame and in parts: the same rows with the same types."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from eventide.engine.round.engine import Engine
from eventide.engine.spark.backend import SparkBackend
from eventide.language.script import read_script
from eventide.results.results import Results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCRIPT = """
CREATE STREAM s (k STRING, ts TIMESTAMP, v DECIMAL(10, 2)) FROM csv 's' TIMESTAMP BY ts SOURCE BY k DELAY 0 seconds;
CREATE STREAM n (number BIGINT, day DATE, at TIMESTAMP_NTZ) FROM csv 'n' TIMESTAMP BY number DELAY 0;
CREATE STREAM d (day DATE, v INT) FROM csv 'd' TIMESTAMP BY day DELAY 0 days;

CREATE QUERY sums AS SELECT k, sum(v) AS total, collect_list(v) AS each FROM s [RANGE 1 minute] GROUP BY k;
CREATE QUERY own AS SELECT k, count(*) AS n FROM s [RANGE 1 minute] GROUP BY k CLOSE BY SOURCE;
CREATE QUERY few AS SELECT max(v) AS largest FROM s [RANGE 4 ROWS SLIDE 1 ROWS];
CREATE QUERY plain AS SELECT ts, k, v * 2 AS twice FROM s;
CREATE QUERY numbers AS SELECT max(day) AS day, max(at) AS at FROM n [RANGE 10];
CREATE QUERY days AS SELECT sum(v) AS total FROM d [RANGE 7 days];
CREATE QUERY later AS SELECT ts, k, v FROM s WHERE v > 3;
CREATE QUERY prodded AS SELECT k, sum(v) AS total, max(ts) AS last, max(CAST(ts AS TIMESTAMP_NTZ)) AS reading,
    collect_list(v) AS each FROM s [RANGE 1 minute] GROUP BY k PROD EVERY 1 second ESTIMATE;
"""

MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE


class Looking:
    """Takes results in all three forms."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}
        self.kinds: dict[str, set[tuple[str, ...]]] = {}
        """Which kinds of rows came in one round."""

    def emit(self, results: Results) -> None:
        if not results.rows:
            return
        assert results.frame is not None, results.query
        assert results.parts is not None
        table = results.table()
        frame = results.frame().toArrow()
        assert frame.schema.names == table.schema.names
        assert frame.cast(table.schema).schema == table.schema
        assert [str(kind) for kind in frame.schema.types] == [str(kind) for kind in table.schema.types]
        assert sorted(map(repr, frame.cast(table.schema).to_pylist())) == sorted(map(repr, table.to_pylist()))

        # Not of this module, which workers do not know.
        def in_task(number: int, batches: Iterator[pa.RecordBatch]) -> tuple[int, pa.Table]:
            return number, pa.Table.from_batches(list(batches))

        answers = results.parts.map(in_task)
        assert [number for number, _ in answers] == list(range(len(answers)))
        assert pa.concat_tables([part for _, part in answers]).equals(table)
        kinds = tuple(sorted(set(table.column("kind").to_pylist())))
        self.kinds.setdefault(results.query, set()).add(kinds)
        self.seen[results.query] = self.seen.get(results.query, 0) + results.rows

    def rewind(self, query: str, last: int) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.slow
def test_batches_frames_and_parts_are_the_same_results(spark: SparkSession, tmp_path: Path) -> None:
    script, looking = read_script(SCRIPT), Looking()
    sinks = dict.fromkeys((step.name for step in script.program.steps), looking)
    engine = Engine(script.program, SparkBackend(spark), str(tmp_path), sinks, None, lambda: 0, 0)
    count = 60
    times = pa.array([number * MINUTE // 6 for number in range(count)], pa.timestamp("us", "UTC"))
    days = pa.array(range(count), pa.date32())
    values = pa.array([Decimal(number % 7) for number in range(count)], pa.decimal128(10, 2))
    rows = {
        "s": pa.table({"k": [f"k{number % 3}" for number in range(count)], "ts": times, "v": values}),
        "n": pa.table({"number": range(count), "day": days, "at": times.cast(pa.timestamp("us"))}),
        "d": pa.table({"day": days, "v": pa.array(range(count), pa.int32())}),
    }
    engine.round(rows, clock=10 * MINUTE)
    engine.end(clock=11 * MINUTE)
    engine.close()
    plain = {"sums", "own", "few", "plain", "numbers", "days", "later"}
    assert set(looking.seen) == {*plain, "prodded"}
    assert all(looking.kinds[query] == {("final",)} for query in plain)
    assert looking.kinds["prodded"] == {("early", "final"), ("final",)}, "early rows of the driver, finals of Spark"
    assert (looking.seen["sums"], looking.seen["plain"], looking.seen["few"]) == (30, 60, 60)
