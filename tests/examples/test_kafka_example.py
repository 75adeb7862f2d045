"""The example from Kafka to PostgreSQL ends by itself, and its table has every car."""

from __future__ import annotations

import pytest

from examples.kafka_to_postgres import run
from scripts.kafka_server import KafkaServer
from scripts.postgres_server import PostgresServer


@pytest.mark.slow
def test_early_answers_turn_final_in_the_table_and_count_every_car(
    kafka_server: KafkaServer, postgres_server: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    run("local", kafka_server, postgres_server)
    *looks, end = capsys.readouterr().out.splitlines()
    assert any(" early " in look for look in looks)
    assert any(" final " in look for look in looks)
    assert end.endswith(" final results in the table count all 3000 cars that were sent")
