"""What heartbeats cost on busy streams: `python -m benchmarks.overhead [--quick] [--json FILE]`.

Gigascope's experiment: two streams that never rest, for which heartbeats are not needed, and the processor time of a
query with and without them (theirs: 37.5 % and 37.3 %). Here:

- *with*: the default policy learns from the arrivals of every round and answers with heartbeats;
- *without*: nothing is learned or computed; the heartbeats of an earlier run are read from a list, so that the same
  windows close in the same rounds and all else is equal. Results must be the same, or the benchmark fails.
- *never*, to compare: no heartbeat at all, and everything closes at the end of the run.

Processor time is that of Python and of Spark's driver together. Kinds of runs take turns; the median counts.

The last line is one JSON object:

- `heartbeat_cpu_overhead`: processor time with heartbeats over that without, less 1.
- `heartbeat_cpu_over_never`: the same against never.
- `cpu_seconds`, `spread`: medians by kind, and the largest over the smallest of the runs without, less 1: differences
  below that mean nothing.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import duckdb

from benchmarks.disorder import Disorder, Disordered
from benchmarks.harness import as_percent, finish, options, say, show_table
from benchmarks.processes import cpu_seconds, jvm_of
from benchmarks.question import ASKED, TUMBLING
from eventide.engine.spark_engine import SparkEngine
from eventide.engine.spark_session import local_session
from eventide.engine.work import Round
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.drop_ratio import DropRatio
from eventide.eventtime.fixed_delay import FixedDelay, FixedDelayPacemaker
from eventide.eventtime.heartbeat import Heartbeats, Policy, Snapshot
from eventide.plan.program import Program
from eventide.plan.query import Query, named_as
from eventide.plan.stream import Input, Stream, columns
from eventide.sinks.directory import Directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("left", "right")
GROUPS = 1000
WITH, WITHOUT, NEVER_ASKED = "with", "without", "never"


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int
    files: int
    repeats: int


QUICK = Sizes(rows=1_500_000, files=30, repeats=4)
FULL = Sizes(rows=6_000_000, files=120, repeats=8)


@dataclass(frozen=True)
class Recorded(FixedDelay):
    """Heartbeats from a list in a file, one a round. As a fixed delay it asks for no summary finer than slices."""

    file: str = ""

    def start(self) -> RecordedPacemaker:
        """Begin at the first."""
        return RecordedPacemaker(self)

    def resume(self, snapshot: Snapshot) -> RecordedPacemaker:
        """Go on where `snapshot` was taken."""
        pacemaker = RecordedPacemaker(self)
        pacemaker.rounds = snapshot["rounds"]
        return pacemaker


class RecordedPacemaker(FixedDelayPacemaker):
    """Counts rounds and looks up.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile("w") as file:
    ...     print("[5, 9]", file=file, flush=True)
    ...     pacemaker = Recorded(0, file.name).start()
    >>> before = pacemaker.heartbeats(0).combined
    >>> pacemaker.observe(Arrivals.silence(0))
    >>> before < 0, pacemaker.heartbeats(0).combined
    (True, 5)
    """

    def __init__(self, policy: Recorded) -> None:
        super().__init__(policy)
        self.rounds = 0
        self._list: list[int] = json.loads(Path(policy.file).read_text(encoding="utf-8")) if policy.file else []

    def observe(self, arrivals: Arrivals) -> None:
        """One round more; what it brought does not matter."""
        self.rounds += 1

    def heartbeats(self, clock: int) -> Heartbeats:
        """The heartbeat that was recorded for this round; none without a list."""
        known = self._list[: self.rounds]
        return self._ratchet.lift_all(known[-1], 1) if known else self._ratchet.shown

    def snapshot(self) -> Snapshot:
        """How many rounds there were."""
        return {"kind": "recorded", "version": 1, "rounds": self.rounds}


def program(data: Mapping[str, Disordered], policies: Mapping[str, Policy]) -> Program:
    """Two streams that know when rows arrived, so that every run sees the same delays; one query over each."""
    streams = tuple(
        Stream(
            name,
            columns("ts TIMESTAMP, arrived TIMESTAMP, k INT, v INT"),
            time="ts",
            arrival="arrived",
            policy=policies[name],
            input=Input("parquet", str(one.folder), max_files=1),
        )
        for name, one in data.items()
    )
    window = TUMBLING.query.window
    queries = tuple(Query(f"of_{name}", name, window, named_as(**ASKED), groups=named_as("k")) for name in data)
    return Program(streams, queries)


def policies_of(kind: str, folder: Path) -> dict[str, Policy]:
    """By stream: the default policy, the recorded heartbeats, or none at all."""
    if kind == WITH:
        return {name: DropRatio(0.01) for name in NAMES}
    return {name: Recorded(0, str(folder / f"{name}.json") if kind == WITHOUT else "") for name in NAMES}


@dataclass(frozen=True)
class Ran:
    """Processor seconds of a run, and the heartbeats of each stream, round by round."""

    seconds: float
    heartbeats: dict[str, list[int]]


def run(spark: SparkSession, what: Program, folder: Path) -> Ran:
    """A bounded run, results in `folder`."""
    sink = Directory(folder / "results")
    engine = SparkEngine(spark, what, str(folder / "checkpoint"), {query.name: sink for query in what.queries})
    heartbeats: dict[str, list[int]] = {stream.name: [] for stream in what.streams}

    def note(work: Round) -> None:
        if work.rows:
            for name, heartbeat in work.heartbeats.items():
                heartbeats[name].append(heartbeat)

    engine.on_round(note)
    # Whose garbage is collected when would otherwise be left to chance.
    gc.collect()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.java.lang.System.gc()
    pids = (os.getpid(), jvm_of(spark))
    before = sum(map(cpu_seconds, pids))
    engine.start(bounded=True)
    engine.ended.wait()
    seconds = sum(map(cpu_seconds, pids)) - before
    engine.await_end()
    return Ran(seconds, heartbeats)


def same_results(one: Path, other: Path) -> int:
    """How many results two runs gave; the benchmark ends if they differ."""
    connection = duckdb.connect()
    wanted = "query, window_end, round, heartbeat, k, total, n, most"
    both = [f"SELECT {wanted} FROM read_parquet('{folder}/results/*.parquet')" for folder in (one, other)]
    (rows,) = connection.execute(f"SELECT count(*) FROM ({both[0]})").fetchone() or (0,)
    for a, b in (both, both[::-1]):
        (count,) = connection.execute(f"SELECT count(*) FROM (({a}) EXCEPT ALL ({b}))").fetchone() or (0,)
        if count or not rows:
            raise SystemExit(f"with and without heartbeats, {count} of {rows} results differ: nothing can be compared")
    return int(rows)


def measure(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Record heartbeats while warming up; then the kinds take turns."""
    say(f"making two streams of {sizes.rows:,} rows")
    data = {
        name: Disorder(sizes.rows, GROUPS, sizes.files, 10 * sizes.files, seed=seed).into(folder / "in" / name)
        for seed, name in enumerate(NAMES)
    }
    spark = local_session("local[2]", log_file=folder / "spark.log")
    kinds = (WITH, WITHOUT, NEVER_ASKED)
    cpu: dict[str, list[float]] = {kind: [] for kind in kinds}
    try:
        recorded = run(spark, program(data, policies_of(WITH, folder)), folder / "recorded")
        for name, heartbeats in recorded.heartbeats.items():
            (folder / f"{name}.json").write_text(json.dumps(heartbeats), encoding="utf-8")
        rows = 0
        # The first turn warms up the two other kinds.
        for turn in range(sizes.repeats + 1):
            for kind in kinds if turn % 2 else kinds[::-1]:
                place = folder / f"{kind}-{turn}"
                ran = run(spark, program(data, policies_of(kind, folder)), place)
                if kind != NEVER_ASKED:
                    rows = same_results(folder / "recorded", place)
                if turn:
                    cpu[kind].append(ran.seconds)
                shutil.rmtree(place)
    finally:
        spark.stop()
    show(cpu, sizes, rows)
    return headline(cpu)


def headline(cpu: Mapping[str, list[float]]) -> dict[str, Any]:
    """The JSON object of the last line.

    >>> headline({"with": [2.0, 1.2], "without": [1.5, 1.0], "never": [2.0]})["heartbeat_cpu_overhead"]
    0.28
    """
    middle = {kind: median(seconds) for kind, seconds in cpu.items()}
    return {
        "heartbeat_cpu_overhead": round(middle[WITH] / middle[WITHOUT] - 1, 4),
        "heartbeat_cpu_over_never": round(middle[WITH] / middle[NEVER_ASKED] - 1, 4),
        "cpu_seconds": middle,
        "spread": round(max(cpu[WITHOUT]) / min(cpu[WITHOUT]) - 1, 4),
    }


def show(cpu: Mapping[str, list[float]], sizes: Sizes, rows: int) -> None:
    """Print processor time by kind of run."""
    least = median(cpu[WITHOUT])
    say(f"two streams of {sizes.rows:,} rows, {sizes.files} rounds, {rows:,} results, the same with and without")
    show_table(
        "processor seconds, Python and Spark together",
        ["heartbeats", "median", "least", "most", "over without"],
        [
            (kind, *(f"{of(seconds):.2f}" for of in (median, min, max)), as_percent(median(seconds) / least - 1))
            for kind, seconds in cpu.items()
        ],
    )


def main() -> None:
    """Measure, show, and end with the line of JSON."""
    asked = options("what heartbeats cost on two busy streams")
    with TemporaryDirectory(prefix="eventide-bench-") as folder:
        results = measure(QUICK if asked.quick else FULL, Path(folder))
    finish(asked, results)


if __name__ == "__main__":
    main()
