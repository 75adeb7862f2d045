"""The times that Kafka notes are the clock, whenever they are read; where no record waits, the clock goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.language.script import read_script
from eventide.sinks import Memory

SECOND = 1_000_000
KAFKA = "CREATE STREAM s (ts TIMESTAMP) FROM kafka 't' OPTIONS (servers 'b:1') CLOCK SKEW 1 second"
FILES = "CREATE STREAM f (ts TIMESTAMP, at TIMESTAMP) FROM json 'in' ARRIVAL BY at CLOCK SKEW 1 second"
QUERY = "CREATE QUERY q AS SELECT count(*) AS n FROM s [RANGE 10 seconds]"


def rows(*seconds: int) -> pa.Table:
    times = pa.array([second * SECOND for second in seconds], pa.timestamp("us", "UTC"))
    return pa.table({"ts": times, "kafka_timestamp": times})


@contextmanager
def opened(folder: Path, text: str, memory: Memory) -> Iterator[Engine]:
    with closing(Engine(read_script(text).program, LocalBackend(), str(folder), {"q": memory})) as engine:
        yield engine


def test_while_records_come_they_are_the_clock_and_in_silence_the_clock_goes_on(tmp_path: Path) -> None:
    memory = Memory()
    with opened(tmp_path, f"{KAFKA}; {QUERY}", memory) as engine:
        engine.round({"s": rows(1, 2)}, clock=1_000 * SECOND)
        assert memory.rows("q") == []
        assert engine.tick(clock=11 * SECOND - 1) is None
        assert engine.tick(clock=11 * SECOND) is not None
    assert [row["n"] for row in memory.rows("q")] == [2]


@pytest.mark.parametrize("now", [5, 10**9])
def test_a_round_of_an_old_topic_has_the_same_results_whenever_it_is_read(tmp_path: Path, now: int) -> None:
    memory = Memory()
    with opened(tmp_path, f"{KAFKA}; {QUERY}", memory) as engine:
        for clock, seconds in enumerate([(1, 2), (9, 11), (3,), (12,)]):
            engine.round({"s": rows(*seconds)}, clock=now * SECOND + clock)
        assert engine.status().streams[0].late == 1
    # The row of second 3 comes when the clock is at 11, a second behind the end of its window.
    assert [(row["kind"], row["n"]) for row in memory.rows("q")] == [("final", 3)]


def test_with_a_recording_beside_it_the_clock_stands_still_without_rows(tmp_path: Path) -> None:
    with opened(tmp_path, f"{KAFKA}; {FILES}; {QUERY}", Memory()) as engine:
        engine.round({"s": rows(1, 2)}, clock=1_000 * SECOND)
        assert engine.tick(clock=10_000 * SECOND) is None


def test_a_stream_with_a_time_of_its_own_arrives_by_its_records_unless_told_otherwise() -> None:
    [own] = read_script("CREATE STREAM s (ts TIMESTAMP) FROM kafka 't' OPTIONS (servers 'b:1')").program.streams
    assert (own.time, own.arrival, own.columns[-1].name) == ("ts", "kafka_timestamp", "kafka_timestamp")
    broker = "FROM kafka 't' OPTIONS (servers 'b:1')"
    for clauses in (
        f"(n BIGINT) {broker} TIMESTAMP BY n",
        f"(n BIGINT) {broker} TIMESTAMP BY kafka_timestamp",
        f"(value BINARY, timestamp TIMESTAMP) {broker}",
    ):
        [stream] = read_script(f"CREATE STREAM s {clauses}").program.streams
        assert stream.arrival is None
