"""Rows a second from a topic through windows into a topic, or a table: Eventide on Spark, and a plain query of Spark.

Both run in one session, over the same records, with as many offsets a round and the same windows; each three times, in
turns, and the quickest run of each counts. Plain Spark writes into the table by JDBC, without a transaction for each
round.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark import __version__

from benchmarks.connectors.exactly_once import answers_in_table, answers_in_topic
from benchmarks.connectors.topics import DISORDER, WINDOW, new_topic, out_of_order, send
from benchmarks.harness import say
from eventide.engine.spark.engine import SparkEngine
from eventide.language.script import read_script
from eventide.launch.connectors import missing_settings
from eventide.launch.spark_session import local_session
from eventide.sinks.sink import sink_of
from scripts.kafka_server import KafkaServer
from scripts.postgres_server import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 4
ROWS_PER_SECOND = 2_000
TURNS = 3
STREAM = """
CREATE STREAM s (t TIMESTAMP, k INT, v INT) FROM kafka '{topic}' OPTIONS (servers '{servers}')
    TIMESTAMP BY t SOURCE BY PARTITION DELAY {delay} seconds LIMIT {limit} OFFSETS PER ROUND;
CREATE QUERY sums AS SELECT k, sum(v) AS total, count(*) AS n FROM s [RANGE {window} seconds] GROUP BY k INTO {into};
"""


def measure(rows: int, limit: int, kafka: KafkaServer, postgres: PostgresServer, folder: Path) -> dict[str, float]:
    """The throughput of Eventide over that of plain Spark, into each sink."""
    topic = new_topic(kafka.servers, PARTITIONS)
    send(kafka.servers, topic, out_of_order(rows, seed=1, rows_per_second=ROWS_PER_SECOND), PARTITIONS)
    settings = missing_settings({"kafka", "postgresql"}, {}, (), __version__)
    spark = local_session("local[2]", settings, log_file=folder / "spark.log")
    seconds: dict[str, tuple[list[float], list[float]]] = {sink: ([], []) for sink in ("kafka", "postgres")}
    try:
        # In turns, so that each has as much of a JVM that has warmed up as the others.
        for _ in range(TURNS):
            for sink, (ours, theirs) in seconds.items():
                ours.append(_ours(spark, sink, topic, limit, kafka, postgres, folder))
                theirs.append(_plain(spark, sink, topic, limit, kafka, postgres, folder))
                say(f"{sink}: Eventide {ours[-1]:.1f} s, plain Spark {theirs[-1]:.1f} s")
    finally:
        spark.stop()
    found: dict[str, float] = {}
    for sink, (ours, theirs) in seconds.items():
        found[f"{sink}.rows_per_second"] = round(rows / min(ours))
        found[f"{sink}.spark_rows_per_second"] = round(rows / min(theirs))
        found[f"{sink}.throughput_ratio"] = round(min(theirs) / min(ours), 2)
    return found


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _ours(
    spark: SparkSession, sink: str, topic: str, limit: int, kafka: KafkaServer, postgres: PostgresServer, folder: Path
) -> float:
    into = new_topic(kafka.servers, PARTITIONS)
    places = {
        "kafka": f"kafka '{into}' OPTIONS (servers '{kafka.servers}')",
        "postgres": f"postgres '{into}' OPTIONS (url '{postgres.url}')",
    }
    given = {"topic": topic, "servers": kafka.servers, "delay": DISORDER + 1, "limit": limit, "window": WINDOW}
    script = read_script(STREAM.format(**given, into=places[sink]))
    [output] = script.outputs
    sinks = {output.query: sink_of(output.kind, output.path, dict(output.options))}

    def work() -> None:
        engine = SparkEngine(spark, script.program, str(folder / uuid4().hex), sinks)
        engine.start(bounded=True).await_end()

    seconds = _timed(work)
    there = answers_in_topic(kafka.servers, into) if sink == "kafka" else answers_in_table(postgres.url, into)
    if not there:
        raise SystemExit(f"Eventide has written nothing into {sink}")
    return seconds


def _plain(
    spark: SparkSession, sink: str, topic: str, limit: int, kafka: KafkaServer, postgres: PostgresServer, folder: Path
) -> float:
    from pyspark.sql import functions

    options = {
        "kafka.bootstrap.servers": kafka.servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(limit),
    }
    value = functions.from_json(functions.col("value").cast("string"), "t TIMESTAMP, k INT, v INT").alias("row")
    rows = spark.readStream.format("kafka").options(**options).load().select(value).select("row.*")
    windows = rows.withWatermark("t", f"{DISORDER + 1} seconds").groupBy(
        functions.window("t", f"{WINDOW} seconds"), "k"
    )
    sums = windows.agg(functions.sum("v").alias("total"), functions.count(functions.lit(1)).alias("n"))
    flat = sums.selectExpr("window.start AS window_start", "window.end AS window_end", "k", "total", "n")
    into = new_topic(kafka.servers, PARTITIONS)
    if sink == "kafka":
        records = flat.select(functions.to_json(functions.struct("*")).alias("value"))
        target = {"kafka.bootstrap.servers": kafka.servers, "topic": into}
        writer = records.writeStream.format("kafka").options(**target)
    else:
        jdbc = {
            "url": f"jdbc:postgresql://127.0.0.1:{postgres.port}/postgres",
            "user": "eventide",
            "password": postgres.password,
            "driver": "org.postgresql.Driver",
            "dbtable": into,
        }

        def write(batch: DataFrame, number: int) -> None:
            batch.write.format("jdbc").options(**jdbc).mode("append").save()

        writer = flat.writeStream.foreachBatch(write)
    started = writer.outputMode("append").option("checkpointLocation", str(folder / uuid4().hex))
    return _timed(lambda: started.trigger(availableNow=True).start().awaitTermination())
