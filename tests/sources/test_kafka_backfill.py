"""New queries over topics that a checkpoint has read before: they read them again, as far as the broker still can."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eventide.engine.running import Running
from eventide.language.script import read_script
from eventide.plan.declared.evolution import Consent
from eventide.sinks.sink import Memory
from scripts.kafka_server import KafkaServer
from tests.engine.small_streams import made
from tests.sources.kafka_topics import forget, grow, new_topic, send, send_in_transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.fixture
def servers(kafka_server: KafkaServer) -> str:
    return kafka_server.servers


@pytest.fixture(params=["local", "spark"])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """Each test on both engines: None is the local one."""
    if request.param == "local":
        return None
    found: SparkSession = request.getfixturevalue("spark")
    if "spark-sql-kafka" not in (found.conf.get("spark.jars", None) or ""):
        pytest.skip("the connector of Spark for Kafka could not be fetched")
    return found


def rows(*times: int) -> list[bytes]:
    return [json.dumps({"t": t, "k": "x"}).encode() for t in times]


class Runs:
    """Runs of one checkpoint over a topic, one after the other."""

    def __init__(self, session: SparkSession | None, servers: str, topic: str, folder: Path, clauses: str = "") -> None:
        self.session, self.folder, self.sink = session, folder, Memory()
        self.stream = f"""CREATE STREAM s (t BIGINT, k STRING) FROM kafka '{topic}'
            OPTIONS (servers '{servers}'{clauses}) TIMESTAMP BY t SOURCE BY PARTITION DELAY 5;"""

    def engine(self, names: Sequence[str], backfill: Sequence[str]) -> Running:
        queries = (f"CREATE QUERY {name} AS SELECT count(*) AS n FROM s [RANGE 10];" for name in names)
        program = read_script(self.stream + "".join(queries)).program
        sinks = dict.fromkeys(names, self.sink)
        return made(self.session, program, self.folder / "state", sinks, consent=Consent(backfill=tuple(backfill)))

    def run(self, *names: str, rows: int | None, backfill: Sequence[str] = ()) -> None:
        """Run until so many rows have come in all; None: to the end of what is there."""
        with self.engine(names, backfill) as engine:

            def look(_: object) -> None:
                if rows is not None and engine.engine.streams["s"].losses.rows >= rows:
                    engine.stop()

            engine.on_round(look)
            engine.start(bounded=rows is None).await_end()

    def windows(self, query: str) -> list[tuple[int, int]]:
        return sorted((row["window_start"], row["n"]) for row in self.sink.rows(query))


def test_a_new_query_over_a_topic_reads_what_the_stream_has_read_and_no_more(
    session: SparkSession | None, servers: str, tmp_path: Path
) -> None:
    topic = new_topic(servers, 2)
    for place, times in enumerate(((1, 12, 25), (3, 14, 26))):
        for t in times:
            # By the times of the records, partitions are read side by side.
            send(servers, topic, rows(t), partition=place, timestamp=1_700_000_000_000 + t)
    send_in_transaction(servers, topic, rows(2), commit=False)
    runs = Runs(session, servers, topic, tmp_path)
    runs.run("old", rows=6)
    send(servers, topic, rows(31, 42))
    grow(servers, topic, 3)
    send(servers, topic, rows(44), partition=2)
    runs.run("old", "new", rows=None, backfill=["new"])
    assert runs.windows("new") == runs.windows("old") == [(0, 2), (10, 2), (20, 2), (30, 1), (40, 2)]


def test_a_backfill_begins_where_its_stream_began(session: SparkSession | None, servers: str, tmp_path: Path) -> None:
    topic = new_topic(servers)
    send(servers, topic, rows(1, 12, 25, 31))
    runs = Runs(session, servers, topic, tmp_path, f""", starting '{{"{topic}": {{"0": 2}}}}'""")
    runs.run("old", rows=2)
    runs.run("old", "new", rows=None, backfill=["new"])
    assert runs.windows("new") == runs.windows("old") == [(20, 1), (30, 1)]


def test_a_backfill_of_a_topic_whose_beginning_is_gone_has_what_is_left_and_says_what_is_not(
    session: SparkSession | None, servers: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic(servers)
    send(servers, topic, rows(1, 2, 12, 25, 31))
    runs = Runs(session, servers, topic, tmp_path)
    runs.run("old", rows=5)
    forget(servers, topic, 2)
    with caplog.at_level(logging.WARNING):
        runs.run("old", "new", rows=None, backfill=["new"])
    assert runs.windows("old") == [(0, 2), (10, 1), (20, 1), (30, 1)]
    assert runs.windows("new") == [(10, 1), (20, 1), (30, 1)]
    assert "stream 's' had given 2 rows more than it has now: its oldest are gone" in caplog.text
