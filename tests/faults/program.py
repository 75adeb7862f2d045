"""The small program whose files go wrong: an operator of every kind, prods, late rows, rejects.

Law: every result follows from the recording alone, down to the round that tells it. So what an undisturbed run shows
is what every other must show.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.engine.local.engine import LocalEngine
from eventide.language.script import read_script
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import queued
from eventide.plan.declared.window import Window
from eventide.sinks.directory import Directory
from eventide.sinks.sink import Sink
from eventide.storage.storage import Storage
from tests.engine.cluster_here import ClusterHere

OUT, CHECKPOINT, CHOSEN = "out", "checkpoint", "queries.json"
FILES = 4
STREAMS = """
CREATE STREAM a (t BIGINT, k STRING, v INT) FROM parquet '{folder}/a' LIMIT 1 FILES PER ROUND
TIMESTAMP BY t SOURCE BY k DELAY 12;
CREATE STREAM b (t BIGINT, k STRING, w INT) FROM parquet '{folder}/b' LIMIT 1 FILES PER ROUND
TIMESTAMP BY t DELAY 12;
"""
QUERIES = {
    "sums": "SELECT k, sum(v) AS total FROM a [RANGE 20 SLIDE 10] GROUP BY k",
    "early": "SELECT sum(v) AS total, count(*) AS n FROM a [RANGE 30] PROD AT 50 %",
    "own": "SELECT k, max(v) AS most FROM a [RANGE 20] GROUP BY k CLOSE BY SOURCE",
    "counted": "SELECT sum(v) AS total FROM a [RANGE 6 ROWS SLIDE 2 ROWS]",
    "changed": "SELECT k, count(*) AS n, sum(v) AS total FROM a GROUP BY k EMIT CHANGES STATE TTL 9",
    "parts": "SELECT k, sum(v) AS total FROM a [RANGE 20] GROUP BY k PROD EVERY 5 ROWS DISCARDING",
    "ordered": "SELECT t, k FROM a UNION ALL SELECT t, k FROM b ORDER BY t",
    "every": "SELECT a.t AS at, b.t AS bt FROM a FULL JOIN b ON a.k = b.k AND abs(a.t - b.t) <= 3",
    "asof": "SELECT a.t, v, w FROM a JOIN b FOR SYSTEM_TIME AS OF a.t AS p ON a.k = p.k",
}
THROUGH, QUEUE = "through", "waiting"
EVERY = (*QUERIES, THROUGH)
ON_CLUSTER = "on the cluster"
"""Stands among the queries: nothing stays with the driver, statements over state run as a worker of Spark runs them."""
FEW = ("sums", "every")
"""Enough for every step of a round, where lives are many: what a life takes is statements."""


@cache
def program(folder: Path) -> Program:
    """What is run over the recording in a folder."""
    chosen = json.loads((folder / CHOSEN).read_text())
    queries = "".join(f"CREATE QUERY {name} AS {text};\n" for name, text in QUERIES.items() if name in chosen)
    script = read_script(STREAMS.format(folder=folder) + queries).program
    if THROUGH not in chosen:
        return script
    through = Query(THROUGH, "a", Window(25), named_as(total="sum(v)"))
    queue, through = queued(through, ("a",), QUEUE, room=9)
    return Program(script.streams, (*script.queries, through), (*script.operators, queue))


def record(folder: Path, chosen: Sequence[str]) -> None:
    """Write which queries run, and a file of each stream a round; some rows come far too late, some have no time."""
    folder.mkdir(parents=True)
    (folder / CHOSEN).write_text(json.dumps(chosen))
    for number in range(FILES):
        steps = range(18)
        times = [25 * number + (7 * step) % 37 - (60 if step % 9 == 4 else 0) for step in steps]
        stamped = pa.array([None if step % 11 == 10 else times[step] for step in steps], pa.int64())
        values, keys = pa.array([step % 5 for step in steps], pa.int32()), ["xyz"[step % 3] for step in steps]
        for name, value in (("a", "v"), ("b", "w")):
            (folder / name).mkdir(exist_ok=True)
            file = folder / name / f"{number:04d}.parquet"
            pq.write_table(pa.table({"t": stamped, "k": keys, value: values}), file)
            os.utime(file, (1_700_000_000 + number,) * 2)


def engine(folder: Path) -> LocalEngine:
    """An engine from the checkpoint in a folder, with results beside it."""
    declared = program(folder)
    sink: Sink = Directory(folder / OUT)
    names = [step.name for step in (*declared.queries, *declared.operators) if step.name != QUEUE]
    far = ON_CLUSTER in json.loads((folder / CHOSEN).read_text())
    checkpoint, sinks = Storage.at(str(folder / CHECKPOINT)), dict.fromkeys(names, sink)
    whole = LocalEngine(declared, checkpoint, sinks, backend=ClusterHere() if far else None)
    if far:
        whole.engine.executor.driver_memory = 0
    return whole
