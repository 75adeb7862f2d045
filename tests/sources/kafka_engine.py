"""`python -m tests.sources.kafka_engine FOLDER SERVERS TOPIC STEP ROUND`: a run that kills itself after that step."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from eventide.engine.local.engine import LocalEngine
from eventide.language.script import read_script
from eventide.sinks.sink import sink_of

SCRIPT = """
CREATE STREAM s (t BIGINT, k STRING, v INT) FROM kafka '{topic}' OPTIONS (servers '{servers}')
    LIMIT 7 OFFSETS PER ROUND TIMESTAMP BY t SOURCE BY PARTITION DELAY 15;
CREATE QUERY sums AS SELECT k, sum(v) AS total, count(*) AS n FROM s [RANGE 20] GROUP BY k INTO json '{folder}/out';
"""
STEPS = ("reduce", "advance", "emit", "commit")


def run(folder: Path, servers: str, topic: str, step: str = "", round: int = -1) -> None:
    """Run the script to its end, or to its death."""
    script = read_script(SCRIPT.format(folder=folder, servers=servers, topic=topic))

    def observer(number: int, name: str) -> None:
        if (number, name) == (round, step):
            os.kill(os.getpid(), signal.SIGKILL)

    written = {one.query: sink_of(one.kind, one.path, dict(one.options)) for one in script.outputs}
    engine = LocalEngine(script.program, str(folder / "state"), written, observer=observer)
    engine.start(bounded=True).await_end()


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
