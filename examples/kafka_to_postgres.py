"""Kafka -> windows with early answers -> PostgreSQL, on real servers that start and end with it, in half a minute.

    python -m examples.kafka_to_postgres [--engine local|spark]

Detectors on three roads write their readings into a topic, each road into a partition of its own, out of order; one of
them is slower than the others. The script below counts cars in windows of five seconds, gives an early answer in the
middle of each, and keeps the newest answer for each window and road in a table. While that goes on, the table is
looked at: early answers turn final. In the end the table is compared with all that was sent.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import time
from collections import Counter
from datetime import UTC, datetime

import psycopg
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import eventide
from scripts.kafka_server import KafkaServer, kafka
from scripts.postgres_server import PostgresServer, postgres
from scripts.servers import UnavailableError

ROADS = ("north", "south", "west")
SCRIPT = """
CREATE STREAM cars (ts TIMESTAMP, road STRING, speed INT)
    FROM kafka 'cars' OPTIONS (servers '{servers}')
    TIMESTAMP BY ts SOURCE BY PARTITION DELAY 2 seconds;

CREATE QUERY traffic AS
    SELECT road, count(*) AS cars, avg(speed) AS speed
    FROM cars [RANGE 5 seconds]
    GROUP BY road
    PROD AT 50%
    INTO postgres 'traffic' OPTIONS (url '{url}');
"""
LOOK = """
SELECT to_char(window_start, 'HH24:MI:SS'), kind, sum(cars), round(avg(speed)) FROM traffic
GROUP BY window_start, kind ORDER BY window_start DESC, kind LIMIT 3
"""
SECONDS = 30
"""Of traffic; it is sent as it would come."""
CARS_A_SECOND = 100
WINDOW = 5


class Traffic:
    """Readings that are sent in the background, and how many of each window and road there are."""

    def __init__(self, servers: str) -> None:
        client = AdminClient({"bootstrap.servers": servers})
        client.create_topics([NewTopic("cars", len(ROADS))])["cars"].result()
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 10})
        self.sent = Counter[tuple[datetime, str]]()
        self.thread = threading.Thread(target=self._send, daemon=True)

    def _send(self) -> None:
        dice, start = random.Random(7), time.time()
        for second in range(SECONDS):
            for _ in range(CARS_A_SECOND):
                road = dice.choice(ROADS)
                # Readings of the west come up to two seconds behind.
                ts = start + second - dice.uniform(0, 1.9 if road == "west" else 0.5)
                self.sent[datetime.fromtimestamp(ts // WINDOW * WINDOW, UTC), road] += 1
                row = {
                    "ts": datetime.fromtimestamp(ts, UTC).isoformat(),
                    "road": road,
                    "speed": dice.randrange(40, 100),
                }
                self._producer.produce("cars", json.dumps(row).encode(), partition=ROADS.index(road))
            self._producer.flush()
            time.sleep(max(0.0, start + second + 1 - time.time()))


def run(engine: str, broker: KafkaServer, database: PostgresServer) -> None:
    """Send, compute, look on, and compare."""
    traffic = Traffic(broker.servers)
    script = eventide.sql(SCRIPT.format(servers=broker.servers, url=database.url))
    with tempfile.TemporaryDirectory() as checkpoint, psycopg.connect(database.url, autocommit=True) as connection:
        with script.start(engine=engine, checkpoint=checkpoint) as running:
            traffic.thread.start()
            while traffic.thread.is_alive():
                time.sleep(1)
                shown = connection.execute(LOOK).fetchall() if _is_there(connection) else []
                print("  ".join(f"{start} {kind} {cars} cars at {speed} km/h" for start, kind, cars, speed in shown))
            while running.status().streams[0].rows < traffic.sent.total():
                time.sleep(0.1)
        # What is open at the end of the traffic closes in a run to the end, from the same checkpoint.
        script.start(engine=engine, checkpoint=checkpoint, bounded=True).awaitTermination()
        found = connection.execute("SELECT window_start, road, cars FROM traffic WHERE kind = 'final'").fetchall()
    if Counter({(start, road): cars for start, road, cars in found}) != traffic.sent:
        raise SystemExit("the table differs from what was sent")
    print(f"{len(found)} final results in the table count all {traffic.sent.total()} cars that were sent")


def _is_there(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    return connection.execute("SELECT to_regclass('traffic') IS NOT NULL").fetchone() == (True,)


def main(arguments: list[str] | None = None) -> None:
    """Start the servers, and run."""
    parser = argparse.ArgumentParser(description="Kafka -> windows with early answers -> PostgreSQL")
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    asked = parser.parse_args(arguments)
    try:
        with kafka() as broker, postgres() as database:
            run(asked.engine, broker, database)
    except UnavailableError as missing:
        raise SystemExit(f"a server is missing: {missing}") from None


if __name__ == "__main__":
    main()
