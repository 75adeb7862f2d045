"""Kafka, PostgreSQL, Delta and Iceberg from end to end: `python -m benchmarks.connectors [--quick] [--json FILE]`.

A program that reads a topic and writes windows into a topic, and into tables of PostgreSQL, Delta and Iceberg is killed
with SIGKILL at least twenty times on each engine, at random moments in and after its transactions; both servers are
killed once and started again. Then a plain query of Spark does the same work as Eventide. The last line is one JSON
object:

- `kafka.lost`, `kafka.duplicated`, and the same for `postgres`, `delta`, `iceberg` and (on Spark) `jdbc`: results
  that are missing, or there too often, compared with the rows themselves; all must be 0. `kills` is how many deaths
  there were, on all engines;
- `kafka.throughput_ratio`, `postgres.throughput_ratio`: the throughput of Eventide on Spark over that of plain Spark.

`--engine` kills one engine alone, `--only kills` or `--only throughput` does one part.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.connectors import exactly_once
from benchmarks.harness import add_only, asked, finish, parser, show_table
from scripts.kafka_server import kafka
from scripts.postgres_server import postgres

KILLS = {"local": (40, 20), "spark": (20, 20)}
"""By default, and in the quick form."""
ROWS = (4_000_000, 400_000)
LIMIT = 500_000
"""Rows in a round: as much as Spark would take of a backlog, so that its fixed costs weigh little on both sides."""
SINKS = ("kafka", "postgres", "delta", "iceberg", "jdbc")


def main() -> None:
    """Kill, count, time, and end with the line of JSON."""
    made = parser("Kafka, PostgreSQL, Delta and Iceberg: nothing lost, nothing doubled, and how fast")
    add_only(made, ["kills", "throughput"])
    made.add_argument("--engine", choices=("local", "spark"), help="kill this engine alone")
    made.add_argument("--kills", type=int, help="deaths on each engine")
    given = made.parse_args()
    options = asked(given)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="connectors-") as name, kafka() as broker, postgres() as database:
        folder = Path(name)
        if "kills" in given.only:
            counts = Counter[str]()
            for engine in [given.engine] if given.engine else ["local", "spark"]:
                place = folder / engine
                place.mkdir()
                deaths = given.kills or KILLS[engine][options.quick]
                of_engine = exactly_once.measure(engine, deaths, broker, database, place)
                show_table(f"after kill -9, {engine}", list(of_engine), [tuple(of_engine.values())])
                counts.update(of_engine)
            found |= counts
        if "throughput" in given.only:
            # It needs Spark in this process, which killing the local engine does not.
            from benchmarks.connectors import throughput

            rows = ROWS[options.quick]
            found |= throughput.measure(rows, min(LIMIT, rows // 4), broker, database, folder)
    finish(options, found)
    if any(found.get(f"{sink}.{fault}") for sink in SINKS for fault in ("lost", "duplicated")):
        sys.exit("results were lost, or are there twice")


if __name__ == "__main__":
    main()
