"""`python -m tests.sinks.postgres_engine FOLDER URL STEP ROUND`: a run that kills itself after a step of a round.

It reads the files of `FOLDER/in`, a few rows in each round, and writes early, final and revised results into tables.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from eventide.engine.local.engine import LocalEngine
from eventide.language.script import read_script
from eventide.sinks.sink import Sink, sink_of

SCRIPT = """
CREATE STREAM s (t BIGINT, k STRING, v INT) FROM json '{folder}/in' LIMIT 7 ROWS PER ROUND TIMESTAMP BY t DELAY 15;
CREATE QUERY newest AS SELECT k, sum(v) AS total, count(*) AS n FROM s [RANGE 20 RETAIN 40] GROUP BY k
    PROD AT 50% INTO postgres 'newest' OPTIONS (url '{url}', mode 'upsert');
CREATE QUERY every_one AS SELECT k, sum(v) AS total, count(*) AS n FROM s [RANGE 20 RETAIN 40] GROUP BY k
    PROD AT 50% INTO postgres 'every_one' OPTIONS (url '{url}', mode 'append');
"""
STEPS = ("reduce", "advance", "emit", "commit")


def run(folder: Path, url: str, sinks: dict[str, Sink] | None = None, step: str = "", round: int = -1) -> None:
    """Run the script to its end, or to its death."""
    script = read_script(SCRIPT.format(folder=folder, url=url))

    def observer(number: int, name: str) -> None:
        if (number, name) == (round, step):
            os.kill(os.getpid(), signal.SIGKILL)

    written: dict[str, Sink] = {one.query: sink_of(one.kind, one.path, dict(one.options)) for one in script.outputs}
    engine = LocalEngine(script.program, str(folder / "state"), sinks or written, observer=observer)
    engine.start(bounded=True).await_end()


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2], None, sys.argv[3], int(sys.argv[4]))
