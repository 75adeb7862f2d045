"""Topics of a real Kafka broker on the local engine: offsets are positions, and the same offsets are the same rows."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import eventide
from eventide.engine.local.engine import LocalEngine
from eventide.errors import DeclarationError, InputError
from eventide.language.script import read_script
from eventide.sinks import Memory
from eventide.sources.kafka import KafkaInput
from scripts.kafka_server import KafkaServer
from tests.sinks.readers import directory_rows
from tests.sources.kafka_engine import STEPS, run
from tests.sources.kafka_topics import grow, new_topic, send, send_in_transaction

pytestmark = pytest.mark.slow
DECLARED = """CREATE STREAM s (t BIGINT, k STRING{more}) FROM kafka '{topic}'
OPTIONS (servers '{servers}'{options}) TIMESTAMP BY t DELAY 1"""
Opened: TypeAlias = Callable[..., KafkaInput]


@pytest.fixture
def servers(kafka_server: KafkaServer) -> str:
    return kafka_server.servers


@pytest.fixture
def opened(servers: str) -> Iterator[Opened]:
    """Opens a topic as an input, and closes it in the end."""
    with ExitStack() as stack:

        def made(topic: str, more: str = "", options: str = "", look_again: float = 5.0) -> KafkaInput:
            text = DECLARED.format(topic=topic, servers=servers, more=more, options=options)
            stream = read_script(text).program.streams[0]
            return stack.enter_context(closing(KafkaInput(stream, look_again)))

        yield made


def rows(count: int, first: int = 0) -> list[bytes]:
    return [json.dumps({"t": number, "k": "ab"[number % 2]}).encode() for number in range(first, first + count)]


def all_of(given: KafkaInput, count: int, max_rows: int = 1000) -> list[dict[str, Any]]:
    """So many rows, however long they take to come."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        table = given.take(max_rows, 1.0)
        found += [] if table is None else table.to_pylist()
    return found


def to_the_end(given: KafkaInput) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while not given.caught_up:
        table = given.take(1000, 0.1)
        found += [] if table is None else table.to_pylist()
    return found


def test_every_record_is_a_row_and_its_own_columns_stand_beside_the_value(servers: str, opened: Opened) -> None:
    topic = new_topic(servers, 2)
    send(servers, topic, rows(3), timestamp=1_700_000_000_123, key=b"x", headers=[("h", b"1")])
    send(servers, topic, rows(1, first=9), partition=1)
    more = ", kafka_key BINARY, kafka_topic STRING, kafka_partition INT, kafka_offset BIGINT, kafka_timestamp TIMESTAMP"
    found = to_the_end(opened(topic, f"{more}, kafka_headers ARRAY<STRUCT<key: STRING, value: BINARY>>"))
    placed = {(row["t"], row["kafka_partition"], row["kafka_offset"]) for row in found}
    assert placed == {(0, 0, 0), (1, 0, 1), (2, 0, 2), (9, 1, 0)}
    first = next(row for row in found if row["t"] == 0)
    assert (first["kafka_key"], first["kafka_topic"], first["_malformed"]) == (b"x", topic, None)
    assert first["kafka_timestamp"] == datetime(2023, 11, 14, 22, 13, 20, 123000, UTC)
    assert first["kafka_headers"] == [{"key": "h", "value": b"1"}]


def test_a_value_that_is_no_row_is_malformed_and_keeps_its_place(servers: str, opened: Opened) -> None:
    topic = new_topic(servers)
    values = [b'{"t": 1,\n "k": "a"}', None, b"[1]", b"{", b"  ", b"\xff", b'{"t": 2}']
    send(servers, topic, values)
    found = to_the_end(opened(topic, ", kafka_offset BIGINT"))
    assert [row["kafka_offset"] for row in found] == list(range(7))
    assert [(row["t"], row["_malformed"]) for row in found] == [
        (1, None), (None, ""), (None, "[1]"), (None, "{"), (None, ""), (None, "\ufffd"), (2, None)
    ]  # fmt: skip


def test_values_may_be_lines_of_csv(servers: str, opened: Opened) -> None:
    topic = new_topic(servers)
    send(servers, topic, [b'1;"a;b"', b"2;c\n", b"x;y"])
    found = to_the_end(opened(topic, options=", value.format 'csv', value.sep ';'"))
    assert [(row["t"], row["k"], row["_malformed"]) for row in found] == [
        (1, "a;b", None),
        (2, "c", None),
        (None, None, "x;y"),
    ]


def test_a_restart_continues_from_every_position(servers: str, opened: Opened) -> None:
    topic = new_topic(servers)
    send(servers, topic, rows(12))
    given = opened(topic)
    before: list[dict[str, Any]] = []
    whole = to_the_end(opened(topic))
    for _ in range(4):
        position = json.loads(json.dumps(given.position()))
        again = opened(topic)
        again.seek(position)
        assert before + to_the_end(again) == whole
        table = given.take(3, 5.0)
        assert table is not None
        before += table.to_pylist()
    assert before == whole


def test_the_same_portion_is_the_same_rows_whatever_has_come_since(servers: str, opened: Opened) -> None:
    topic = new_topic(servers, 2)
    send(servers, topic, rows(5))
    send_in_transaction(servers, topic, rows(3, first=100), commit=False)
    send(servers, topic, rows(4, first=50), partition=1)
    given = opened(topic)
    position = given.position()
    found = to_the_end(given)
    portion = json.loads(json.dumps(given.portion()))
    send(servers, topic, rows(6, first=200))
    again = opened(topic)
    again.seek(position)
    table, exact = again.repeat(portion)
    assert exact
    assert table is not None
    assert Counter(map(repr, table.to_pylist())) == Counter(map(repr, found))
    assert [row["t"] for row in all_of(again, 6)] == list(range(200, 206))


def test_rows_of_a_transaction_count_when_it_is_committed(servers: str, opened: Opened) -> None:
    topic = new_topic(servers)
    send_in_transaction(servers, topic, rows(2), commit=False)
    send_in_transaction(servers, topic, rows(2, first=7), commit=True)
    assert [row["t"] for row in to_the_end(opened(topic))] == [7, 8]


def test_new_partitions_are_read_from_their_beginning(servers: str, opened: Opened) -> None:
    topic = new_topic(servers)
    given = opened(topic, ", kafka_partition INT", ", starting 'latest'", look_again=0.2)
    assert to_the_end(given) == []
    grow(servers, topic, 2)
    send(servers, topic, rows(2), partition=1)
    assert [row["kafka_partition"] for row in all_of(given, 2)] == [1, 1]


def test_several_topics_and_a_pattern_of_topics(servers: str, opened: Opened) -> None:
    one, two = new_topic(servers, name="several-one"), new_topic(servers, name="several-two")
    send(servers, one, rows(1))
    send(servers, two, rows(1, first=5))
    for named in (f"{one}, {two}", "^several-.*"):
        assert sorted(row["t"] for row in to_the_end(opened(named))) == [0, 5]


def test_a_round_takes_so_many_offsets_and_the_lag_is_what_waits(servers: str, opened: Opened) -> None:
    topic = new_topic(servers)
    send(servers, topic, rows(10))
    given = opened(topic)
    assert len(all_of(given, 4, max_rows=4)) == 4
    assert given.lag == {f"{topic}-0": 6}


def test_the_status_tells_what_waits_in_each_partition(servers: str, tmp_path: Path) -> None:
    topic = new_topic(servers)
    send(servers, topic, rows(5))
    text = DECLARED.format(topic=topic, servers=servers, more="", options="") + " LIMIT 2 OFFSETS PER ROUND"
    program = read_script(f"{text}; CREATE QUERY q AS SELECT count(*) AS n FROM s [RANGE 10]").program
    seen = list[dict[str, int]]()

    def observer(number: int, step: str) -> None:
        if step == "commit":
            seen.append(engine.status().streams[0].backlog)

    engine = LocalEngine(program, str(tmp_path), {"q": Memory()}, observer=observer)
    engine.start(bounded=True).await_end()
    assert seen[:3] == [{f"{topic}-0": left} for left in (3, 1, 0)]


def test_reading_begins_where_it_is_told(servers: str, opened: Opened) -> None:
    topic = new_topic(servers)
    send(servers, topic, rows(5))
    assert [row["t"] for row in to_the_end(opened(topic, options=f""", starting '{{"{topic}": {{"0": 3}}}}'"""))] == [
        3,
        4,
    ]
    assert to_the_end(opened(topic, options=", starting 'latest'")) == []
    with pytest.raises(DeclarationError, match="startingOffsets 'soon' says nothing of partition 0"):
        to_the_end(opened(topic, options=", starting 'soon'"))


def test_a_topic_that_is_missing_is_told_with_those_there_are(servers: str, opened: Opened) -> None:
    there = new_topic(servers)
    with pytest.raises(InputError, match=rf"Kafka at {servers} has no topic 'not-there'; there are: .*{there}"):
        opened("not-there").take(1, 0.0)


def test_the_partitions_of_a_topic_are_sources_and_its_times_arrivals(servers: str) -> None:
    topic = new_topic(servers, 2)
    send(servers, topic, rows(3), timestamp=1_700_000_000_000)
    send(servers, topic, rows(2, first=20), partition=1, timestamp=1_700_000_001_000)
    text = f"""CREATE STREAM s (t BIGINT, k STRING) FROM kafka '{topic}' OPTIONS (servers '{servers}')
        TIMESTAMP BY t SOURCE BY PARTITION ARRIVAL BY kafka_timestamp DELAY 0;
        SELECT kafka_partition, count(*) AS n FROM s [RANGE 10] GROUP BY kafka_partition"""
    [found] = eventide.sql(text).run(engine="local").values()
    assert sorted((row["kafka_partition"], row["n"]) for row in found.to_pylist()) == [(0, 3), (1, 2)]


def recording(servers: str) -> str:
    made = random.Random(7)
    topic = new_topic(servers, 3)
    for number in range(90):
        row = {"t": number + made.randrange(-14, 1), "k": made.choice("ab"), "v": made.randrange(9)}
        send(servers, topic, [json.dumps(row).encode()], partition=made.randrange(3))
    return topic


def told(folder: Path) -> list[tuple[Any, ...]]:
    names = ("kind", "window_start", "k", "rows", "total", "n")
    return sorted(tuple(str(row[name]) for name in names) for row in directory_rows(folder / "out", "json", "sums"))


def test_killed_twenty_times_with_the_broker_once_nothing_is_lost_and_nothing_doubled(
    kafka_server: KafkaServer, tmp_path: Path
) -> None:
    servers = kafka_server.servers
    topic = recording(servers)
    (tmp_path / "calm").mkdir()
    (tmp_path / "killed").mkdir()
    run(tmp_path / "calm", servers, topic)
    kills = 0
    for round in range(11):
        for step in STEPS if round < 4 else ("emit",):
            command = [sys.executable, "-m", "tests.sources.kafka_engine", str(tmp_path / "killed"), servers, topic]
            kills += subprocess.run([*command, step, str(round)], check=False).returncode == -signal.SIGKILL
        if round == 5:
            kafka_server.process.kill()
            kafka_server.process.start()
    assert kills >= 20
    run(tmp_path / "killed", servers, topic)
    assert sum(int(row[-1]) for row in told(tmp_path / "calm")) == 90
    assert told(tmp_path / "killed") == told(tmp_path / "calm")


def test_a_broker_that_goes_away_and_comes_back_is_read_on(kafka_server: KafkaServer, opened: Opened) -> None:
    topic = new_topic(kafka_server.servers)
    send(kafka_server.servers, topic, rows(3))
    given = opened(topic, look_again=0.5)
    assert len(to_the_end(given)) == 3
    kafka_server.process.kill()
    started = threading.Timer(0.5, kafka_server.process.start)
    started.start()
    given.take(10, 1.0)
    started.join()
    send(kafka_server.servers, topic, rows(2, first=3))
    assert [row["t"] for row in all_of(given, 2)] == [3, 4]


def test_records_of_the_same_instant_come_from_all_partitions_in_turns(servers: str, opened: Opened) -> None:
    topic = new_topic(servers, 3)
    for partition in range(3):
        send(servers, topic, rows(10), partition=partition, timestamp=1_700_000_000_000)
    given = opened(topic, ", kafka_partition INT")
    table = given.take(6, 5.0)
    assert table is not None
    assert table.column("kafka_partition").to_pylist() == [0, 0, 1, 1, 2, 2]
