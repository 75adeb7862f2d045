"""The benchmark of connectors kills the program and both servers, and finds every result once."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.connectors.exactly_once import measure
from scripts.kafka_server import KafkaServer
from scripts.postgres_server import PostgresServer


@pytest.mark.slow
def test_after_three_deaths_nothing_is_lost_and_nothing_doubled(
    kafka_server: KafkaServer, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    found = measure("local", 3, kafka_server, postgres_server, tmp_path)
    sinks = ("kafka", "postgres", "delta", "iceberg")
    assert found == {"kills": 3, **{f"{sink}.{fault}": 0 for sink in sinks for fault in ("lost", "duplicated")}}
