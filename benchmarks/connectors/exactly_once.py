"""Kill the program again and again, and the servers in the middle; count what is missing and what is there twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import psycopg
import pyarrow as pa
from deltalake import DeltaTable

from benchmarks.connectors.program import Life
from benchmarks.connectors.topics import Answer, expected, new_topic, out_of_order, send
from benchmarks.harness import say
from eventide.storage.iceberg import catalog_of
from scripts.kafka_reader import committed_rows
from scripts.kafka_server import KafkaServer
from scripts.postgres_server import PostgresServer
from scripts.spark_archive import java_options

PARTITIONS = 3
ROWS_OF_A_ROUND = 60
STEPS = ("reduce", "advance", "advance", "advance", "emit", "commit")
"""After `advance` results are written: most deaths are there, and at the beginning of what follows."""


def measure(engine: str, kills: int, kafka: KafkaServer, postgres: PostgresServer, folder: Path) -> dict[str, int]:
    """Kill so many times; what is in the topic and in the table, compared with the rows themselves."""
    rows = out_of_order((2 * kills + 10) * ROWS_OF_A_ROUND, seed=kills)
    topic, into = new_topic(kafka.servers, PARTITIONS), new_topic(kafka.servers, 2)
    send(kafka.servers, topic, rows, PARTITIONS)
    url, table = postgres.url, f"sums_{engine}"
    delta, lake = str(folder / "delta"), str(folder / "lake")
    user = f"user=eventide&password={postgres.password}"
    jdbc = f"jdbc:postgresql://127.0.0.1:{postgres.port}/postgres?{user}"
    life = Life(
        engine, str(folder / "state"), kafka.servers, topic, into, url, table, delta, lake, jdbc, ROWS_OF_A_ROUND
    )
    dice = random.Random(kills)
    deaths = 0
    while deaths < kills:
        moment = replace(life, step=dice.choice(STEPS), round=2 * deaths + 1, delay=dice.choice((0, 3, 10, 30, 100)))
        code = lived(moment, folder)
        if code != -signal.SIGKILL:
            raise SystemExit(f"the program ended with code {code} instead of being killed: {moment}")
        deaths += 1
        say(f"{engine}: killed after {moment.step} of round {moment.round}, {moment.delay} ms later")
        if deaths == kills // 2:
            for server in (kafka, postgres):
                server.process.kill()
                server.process.start()
            say("both servers were killed and started again")
    if lived(life, folder) != 0:
        raise SystemExit("the program failed in its last life")
    right, ice = expected(rows), catalog_of({"warehouse": lake}).load_table("lake.sums")
    by_jdbc = {} if engine == "local" else differences("jdbc", right, answers_in_table(url, f"{table}_by_jdbc"))
    return by_jdbc | {
        "kills": deaths,
        **differences("kafka", right, answers_in_topic(kafka.servers, into)),
        **differences("postgres", right, answers_in_table(url, table)),
        **differences("delta", right, answers_in(DeltaTable(delta).to_pyarrow_table())),
        **differences("iceberg", right, answers_in(ice.scan().to_arrow())),
    }


def lived(life: Life, folder: Path) -> int:
    """Run the program; how it ended."""
    file = life.written(folder / f"{uuid4().hex}.json")
    # Most of a life that is soon killed is the start of its JVM.
    environment = {"JAVA_TOOL_OPTIONS": java_options(Path(sys.prefix) / "spark.jsa")} | os.environ
    with (folder / "log.txt").open("ab") as log:
        command = [sys.executable, "-m", "benchmarks.connectors.program", str(file)]
        return subprocess.run(command, stdout=log, stderr=log, env=environment, check=False).returncode


def differences(name: str, right: Iterable[Answer], found: Iterable[Answer]) -> dict[str, int]:
    """How many answers are missing, and how many there are too many.

    >>> differences("kafka", [(1, 1, 1, 1), (2, 1, 1, 1)], [(1, 1, 1, 1), (1, 1, 1, 1)])
    {'kafka.lost': 1, 'kafka.duplicated': 1}
    """
    wanted, there = Counter(right), Counter(found)
    return {f"{name}.lost": (wanted - there).total(), f"{name}.duplicated": (there - wanted).total()}


def answers_in_topic(servers: str, topic: str) -> list[Answer]:
    """The final results that whoever reads committed records finds."""
    rows = committed_rows(servers, topic)
    return [(seconds_of(row["window_end"]), row["k"], row["total"], row["n"]) for row in rows]


def answers_in_table(url: str, table: str) -> list[Answer]:
    """The results in a table."""
    asked = f"SELECT extract(epoch FROM window_end)::bigint, k, total, n FROM {table}"
    with psycopg.connect(url) as connection:
        return [(int(end), int(k), int(total), int(n)) for end, k, total, n in connection.execute(asked)]


def answers_in(results: pa.Table) -> list[Answer]:
    """The results in a table of a lake."""
    rows = results.select(["window_end", "k", "total", "n"]).to_pylist()
    return [(int(row["window_end"].timestamp()), row["k"], row["total"], row["n"]) for row in rows]


def seconds_of(text: str) -> int:
    """An instant as seconds since 1970.

    >>> seconds_of("1970-01-01T00:01:00.000000Z")
    60
    """
    return int(datetime.fromisoformat(text).timestamp())
