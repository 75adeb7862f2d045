"""What heartbeats cost on busy streams: `python -m benchmarks.overhead [--quick] [--json FILE]`.

Gigascope's experiment: two streams that never rest, and the processor time of queries over them with and without
heartbeats (theirs: 37.5 % and 37.3 %). Here:

- *with*: a policy observes the arrivals of every round and answers with heartbeats;
- *without*: nothing is observed or computed; the heartbeats of an earlier run are read from a list, so that the same
  windows close in the same rounds and all else is equal. Results must be the same, or the benchmark fails.

Twice: for the default policy, which *learns* how late rows are and wants them counted finely for that, and for a
*declared* delay, which only asks how far time has come. Processor time is that of Python and of Spark's driver. Runs
take turns; what counts is the median over the turns of one run over the other.

The last line is one JSON object:

- `heartbeat_cpu_overhead`: processor time with heartbeats over that without, less 1, for the default policy.
- `declared_cpu_overhead`: the same for the declared delay.
- `cpu_seconds`: medians; `spread`: the largest over the smallest of equal runs, less 1: differences far below that mean
  nothing.
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
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks.bounded_run import to_the_end
from benchmarks.disorder import Disorder, Disordered
from benchmarks.harness import as_percent, database, finish, options, say, scratch, show_table
from benchmarks.processes import cpu_seconds, jvm_of
from benchmarks.question import ASKED, TUMBLING
from eventide.engine.round.report import RoundReport
from eventide.engine.spark.engine import SparkEngine
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Policy, Snapshot
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.fixed_delay import FixedDelay, FixedDelayGenerator
from eventide.launch.spark_session import local_session
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.sinks.directory import Directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("left", "right")
GROUPS = 1000
LEARNED, DECLARED = "learned", "declared"
WITH, WITHOUT = "with", "without"
Kind: TypeAlias = tuple[str, str]
"""Which policy, and whether it is at work."""

KINDS: tuple[Kind, ...] = tuple((policy, work) for policy in (LEARNED, DECLARED) for work in (WITH, WITHOUT))


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

    def start(self) -> RecordedGenerator:
        """Begin at the first."""
        return RecordedGenerator(self)

    def resume(self, snapshot: Snapshot) -> RecordedGenerator:
        """Go on where `snapshot` was taken."""
        generator = RecordedGenerator(self)
        generator.rounds = snapshot["rounds"]
        return generator


class RecordedGenerator(FixedDelayGenerator):
    """Counts rounds and looks up.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile("w") as file:
    ...     print("[5, 9]", file=file, flush=True)
    ...     generator = Recorded(0, file.name).start()
    >>> before = generator.heartbeats(0).combined
    >>> generator.observe(Arrivals.silence(0))
    >>> before < 0, generator.heartbeats(0).combined
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


def policies_of(kind: Kind, data: Mapping[str, Disordered], folder: Path) -> dict[str, Policy]:
    """By stream: the policy itself, or what was recorded of it."""
    policy, work = kind
    if work == WITHOUT:
        return {name: Recorded(0, str(recording(folder, policy, name))) for name in data}
    return {name: DropRatio(0.01) if policy == LEARNED else FixedDelay(one.delay) for name, one in data.items()}


def recording(folder: Path, policy: str, stream: str) -> Path:
    """The file with the heartbeats of a stream."""
    return folder / f"{policy}-{stream}.json"


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

    def note(work: RoundReport) -> None:
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
    to_the_end(engine)
    return Ran(sum(map(cpu_seconds, pids)) - before, heartbeats)


def same_results(one: Path, other: Path) -> int:
    """How many results two runs gave; the benchmark ends if they differ."""
    connection = database()
    wanted = "query, window_end, round, heartbeat, k, total, n, most"
    both = [f"SELECT {wanted} FROM read_parquet('{folder}/results/*.parquet')" for folder in (one, other)]
    (rows,) = connection.execute(f"SELECT count(*) FROM ({both[0]})").fetchone() or (0,)
    for a, b in (both, both[::-1]):
        (count,) = connection.execute(f"SELECT count(*) FROM (({a}) EXCEPT ALL ({b}))").fetchone() or (0,)
        if count or not rows:
            raise SystemExit(f"with and without heartbeats, {count} of {rows} results differ: nothing can be compared")
    return int(rows)


def record(spark: SparkSession, policy: str, data: Mapping[str, Disordered], folder: Path) -> None:
    """Run once, and write down the heartbeats; results stay in the folder `POLICY`."""
    ran = run(spark, program(data, policies_of((policy, WITH), data, folder)), folder / policy)
    for stream, heartbeats in ran.heartbeats.items():
        recording(folder, policy, stream).write_text(json.dumps(heartbeats), encoding="utf-8")


def measure(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Record heartbeats while warming up; then the kinds take turns."""
    say(f"making two streams of {sizes.rows:,} rows")
    data = {
        name: Disorder(sizes.rows, GROUPS, sizes.files, 10 * sizes.files, seed=seed).into(folder / "in" / name)
        for seed, name in enumerate(NAMES)
    }
    spark = local_session("local[2]", log_file=folder / "spark.log")
    cpu: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
    try:
        for policy in (LEARNED, DECLARED):
            record(spark, policy, data, folder)
        # The first turn warms up.
        for turn in range(sizes.repeats + 1):
            for kind in KINDS if turn % 2 else KINDS[::-1]:
                place = folder / "run"
                ran = run(spark, program(data, policies_of(kind, data, folder)), place)
                same_results(folder / kind[0], place)
                cpu[kind] += [ran.seconds] if turn else []
                shutil.rmtree(place)
    finally:
        spark.stop()
    say(f"two streams of {sizes.rows:,} rows, {sizes.files} rounds")
    show(cpu)
    return headline(cpu)


def overhead(cpu: Mapping[Kind, list[float]], policy: str) -> float:
    """Processor time with heartbeats over that without, less 1: the median over the turns.

    >>> overhead({("learned", "with"): [2.0, 1.2, 1.0], ("learned", "without"): [1.0, 1.0, 0.5]}, "learned")
    1.0
    """
    pairs = zip(cpu[policy, WITH], cpu[policy, WITHOUT], strict=True)
    return round(median(with_them / without for with_them, without in pairs) - 1, 4)


def headline(cpu: Mapping[Kind, list[float]]) -> dict[str, Any]:
    """The JSON object of the last line."""
    return {
        "heartbeat_cpu_overhead": overhead(cpu, LEARNED),
        "declared_cpu_overhead": overhead(cpu, DECLARED),
        "cpu_seconds": {f"{policy}_{work}": median(seconds) for (policy, work), seconds in cpu.items()},
        "spread": round(max(max(seconds) / min(seconds) for seconds in cpu.values()) - 1, 4),
    }


def show(cpu: Mapping[Kind, list[float]]) -> None:
    """Print processor time by kind of run."""
    show_table(
        "processor seconds, Python and Spark together",
        ["policy", "heartbeats", "median", "least", "most", "overhead"],
        [
            (
                policy,
                work,
                *(f"{of(seconds):.2f}" for of in (median, min, max)),
                as_percent(overhead(cpu, policy)) if work == WITH else "",
            )
            for (policy, work), seconds in cpu.items()
        ],
    )


def main() -> None:
    """Measure, show, and end with the line of JSON."""
    asked = options("what heartbeats cost on two busy streams")
    with scratch() as folder:
        results = measure(QUICK if asked.quick else FULL, folder)
    finish(asked, results)


if __name__ == "__main__":
    main()
