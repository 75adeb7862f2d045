"""`python -m benchmarks.connectors.program FILE`: the program that is killed; FILE says how and when, as JSON.

It reads a topic, and writes the same windows into a topic, and into tables of PostgreSQL, Delta and Iceberg; on Spark
by JDBC, too. At a step of the round that is named, or so many milliseconds later, it kills itself with SIGKILL: within
a transaction, between it and the record, after that.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.connectors.topics import DISORDER, WINDOW
from eventide.engine.running import Running
from eventide.language.script import read_script
from eventide.launch.engines import claim_outputs
from eventide.sinks.sink import sink_of

SCRIPT = """
CREATE STREAM s (t TIMESTAMP, k INT, v INT) FROM kafka '{topic}' OPTIONS (servers '{servers}')
    TIMESTAMP BY t SOURCE BY PARTITION DELAY {delay} seconds LIMIT {limit} OFFSETS PER ROUND;
CREATE QUERY sums AS SELECT k, sum(v) AS total, count(*) AS n FROM s [RANGE {window} seconds] GROUP BY k
    INTO kafka '{into}' OPTIONS (servers '{servers}');
CREATE QUERY sums_too AS SELECT k, sum(v) AS total, count(*) AS n FROM s [RANGE {window} seconds] GROUP BY k
    INTO postgres '{table}' OPTIONS (url '{url}');
CREATE QUERY sums_in_the_lake AS SELECT k, sum(v) AS total, count(*) AS n FROM s [RANGE {window} seconds] GROUP BY k
    INTO delta '{delta}';
CREATE QUERY sums_in_ice AS SELECT k, sum(v) AS total, count(*) AS n FROM s [RANGE {window} seconds] GROUP BY k
    INTO iceberg 'lake.sums' OPTIONS (warehouse '{warehouse}');
"""

BY_JDBC = """
CREATE QUERY sums_by_jdbc AS SELECT k, sum(v) AS total, count(*) AS n FROM s [RANGE {window} seconds] GROUP BY k
    INTO jdbc '{table}_by_jdbc' OPTIONS (url '{jdbc}');
"""
"""Which only Spark has."""


@dataclass(frozen=True)
class Life:
    """What a life of the program is told: where everything is, and the step, the round and the delay of its death."""

    engine: str
    checkpoint: str
    servers: str
    topic: str
    into: str
    url: str
    table: str
    delta: str
    warehouse: str
    jdbc: str
    limit: int
    step: str = ""
    round: int = -1
    delay: int = 0

    def written(self, file: Path) -> Path:
        """The file that tells the program."""
        file.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return file


def live(life: Life) -> None:
    """Run to the end, or to the death."""
    text = SCRIPT + (BY_JDBC if life.engine == "spark" else "")
    script = read_script(text.format(**asdict(life) | {"delay": DISORDER + 1, "window": WINDOW}))
    sinks = {one.query: sink_of(one.kind, one.path, dict(one.options)) for one in script.outputs}
    claim_outputs(sinks, life.checkpoint, None, replace=False)

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def observer(number: int, step: str) -> None:
        # Or in a later one: the life before may have died some rounds after it was told to.
        if 0 <= life.round <= number and step == life.step:
            threading.Timer(life.delay / 1000, die).start() if life.delay else die()

    def local() -> Running:
        from eventide.engine.local.engine import LocalEngine

        return LocalEngine(script.program, life.checkpoint, sinks, observer=observer)

    def spark() -> Running:
        from pyspark import __version__

        from eventide.engine.spark.engine import SparkEngine
        from eventide.launch.connectors import missing_settings
        from eventide.launch.spark_session import local_session

        session = local_session("local[2]", missing_settings({"kafka", "postgresql"}, {}, (), __version__))
        return SparkEngine(session, script.program, life.checkpoint, sinks, observer=observer)

    engines: dict[str, Callable[[], Running]] = {"local": local, "spark": spark}
    engines[life.engine]().start(bounded=True).await_end()


if __name__ == "__main__":
    live(Life(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
