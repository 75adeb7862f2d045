"""`python -m tests.sources.kafka_engine FOLDER SERVERS TOPIC STEP ROUND [INTO DELAY]`: a run that kills itself.

After that step of that round, or so many milliseconds later. INTO names a topic for the results, instead of files.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from pathlib import Path

from eventide.engine.local.engine import LocalEngine
from eventide.language.script import read_script
from eventide.launch.engines import claim_outputs
from eventide.sinks.sink import sink_of

SCRIPT = """
CREATE STREAM s (t BIGINT, k STRING, v INT) FROM kafka '{topic}' OPTIONS (servers '{servers}')
    LIMIT 7 OFFSETS PER ROUND TIMESTAMP BY t SOURCE BY PARTITION DELAY 15;
CREATE QUERY sums AS SELECT k, sum(v) AS total, count(*) AS n FROM s [RANGE 20] GROUP BY k INTO {into};
"""
STEPS = ("reduce", "advance", "emit", "commit")


def values(made: random.Random, count: int) -> list[bytes]:
    """Rows, a little out of order."""
    times = (number + made.randrange(-14, 1) for number in range(count))
    return [json.dumps({"t": t, "k": made.choice("ab"), "v": made.randrange(9)}).encode() for t in times]


def run(
    folder: Path, servers: str, topic: str, step: str = "", round: int = -1, into: str | None = None, delay: int = 0
) -> None:
    """Run the script to its end, or to its death."""
    target = f"json '{folder}/out'" if into is None else f"kafka '{into}' OPTIONS (servers '{servers}')"
    script = read_script(SCRIPT.format(into=target, servers=servers, topic=topic))

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def observer(number: int, name: str) -> None:
        # Or in a later one: the life before may have died some rounds after it was told to.
        if number >= round and name == step:
            threading.Timer(delay / 1000, die).start() if delay else die()

    written = {one.query: sink_of(one.kind, one.path, dict(one.options)) for one in script.outputs}
    claim_outputs(written, str(folder / "state"), None, replace=False)
    engine = LocalEngine(script.program, str(folder / "state"), written, observer=observer)
    engine.start(bounded=True).await_end()


if __name__ == "__main__":
    into, delay = (sys.argv[6], int(sys.argv[7])) if len(sys.argv) > 6 else (None, 0)
    run(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), into, delay)
