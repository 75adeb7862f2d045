"""How soon early answers come under load: `python -m benchmarks.early_answers [--quick] [--place cluster]`.

A stream of Parquet files in real time on Spark, `local[2]`, windows of 10 s by 1,000 groups, a file a round, in one
engine. Files are shown so slowly that rounds fill 80 % of the time, by how long the rounds before have taken. Meanwhile
a thread prods at random moments for all open windows. Three ways take turns, a few files each, so that whatever else
the machine does strikes all of them:

- *alone*: nobody prods;
- *beside*: prods are answered beside the round under way, which is what the engine does;
- *waiting*: prods wait for the round under way, which is what it did before.

With `--place cluster` all state is on the cluster, and an early answer is made by Spark jobs over its files; by default
it is within the driver's memory. Final results must be the right ones, or the benchmark ends. Final delay is the time
from the file that lets a window close to its results in the sink. The first turn of each way warms up.

The last line is one JSON object:

- `place`: where the state was, `default` or `cluster`.
- `prod_ms`: from asking to the answer, `p50` and `p99`, beside the rounds; `waiting.prod_ms` is the same the old way.
- `round_ms`: the median round, from trigger to commit, while prods were answered beside it; `load`: the share of the
  time that these rounds took.
- `final_delay_ratio`: the mean final delay beside prods over that without any; `spread`: the standard error of that
  ratio, from the turns.
- `prod_cpu_ms`: the processor time of the thread that asks, for one prod beside the rounds, the median. On a machine
  that others use, the difference to `prod_ms` is mostly theirs.
- `prods`: how many were answered beside; `final_delay_ms`: means of the three ways; `rows_per_second` that were fed.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import hypot, sqrt
from pathlib import Path
from statistics import fmean, median, stdev
from time import monotonic, perf_counter, sleep, thread_time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.disorder import Disorder, Disordered
from benchmarks.driver_memory import DRIVER_MEMORY_AT, add_place
from benchmarks.harness import as_duration, as_percent, asked, finish, parser, say, scratch, show_table
from benchmarks.question import QUERY, TUMBLING, Truth
from benchmarks.spark_native.latency import closers, feed, times
from benchmarks.spark_native.sides import KEPT_PROGRESS, Task, rounds_of
from eventide.engine.running import Running
from eventide.engine.spark.engine import SparkEngine
from eventide.launch.spark_session import local_session
from eventide.results.results import Results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUPS = 1000
LOAD = 0.8
FIRST_ROUND_MS = 500.0
"""As long as a round is taken to be before the first was measured."""

PATIENCE = 120.0
"""Seconds after the last file in which all windows must have closed."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured: `turns` of so many `files` for each way; `gap`: mean seconds from one prod to the next."""

    file_rows: int
    files: int
    turns: int
    gap: float = 0.25

    @property
    def all_files(self) -> int:
        """Those of all ways, and of the turns that warm up."""
        return len(WAYS) * (self.turns + 1) * self.files


QUICK = Sizes(file_rows=200_000, files=8, turns=5)
FULL = Sizes(file_rows=200_000, files=8, turns=16)

Ask = Callable[[Running], object]


def beside(running: Running) -> object:
    """As the engine answers."""
    return running.prod(QUERY)


def waiting(running: Running) -> object:
    """As it answered before: between two rounds."""
    with running.exclusively():
        return running.prod(QUERY)


WAYS: Mapping[str, Ask | None] = {"alone": None, "beside": beside, "waiting": waiting}


class AggregateValue:
    """A sink that looks at its watch, and keeps results for comparison."""

    def __init__(self, folder: Path) -> None:
        self.moments: dict[int, float] = {}
        self._folder = folder

    def emit(self, results: Results) -> None:
        """Note when the windows were told."""
        if results.rows:
            now, table = monotonic(), results.table()
            for end in set(table.column("window_end").cast(pa.int64()).to_pylist()):
                self.moments[end] = now
            pq.write_table(table, self._folder / f"{results.query}-{results.round}.parquet")

    def rewind(self, query: str, last: int) -> None:
        """A run here is never continued."""

    def close(self) -> None:
        """Nothing is held."""


class IdlePoller:
    """A thread that prods at random moments; how long each answer took, and how much of its own processor time."""

    def __init__(self, running: Running, ask: Ask, gap: float) -> None:
        self.ms: list[float] = []
        self.cpu_ms: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(running, ask, gap), name="asker", daemon=True)
        self._failure: BaseException | None = None

    def start(self) -> IdlePoller:
        """Prod until told to end."""
        self._thread.start()
        return self

    def end(self) -> None:
        """Prod no more."""
        self._over.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _work(self, running: Running, ask: Ask, gap: float) -> None:
        moments = random.Random(1)
        try:
            while not self._over.wait(moments.expovariate(1 / gap)):
                started, before = perf_counter(), thread_time()
                ask(running)
                self.ms.append(1000 * (perf_counter() - started))
                self.cpu_ms.append(1000 * (thread_time() - before))
        except BaseException as failure:
            self._failure = failure


@dataclass
class Ran:
    """What was measured of one way; of the final delays the mean of each turn."""

    prod_ms: list[float] = field(default_factory=list)
    round_ms: list[float] = field(default_factory=list)
    delay_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0
    rows: int = 0


class Feeding:
    """An engine at work, and the turns of those who ask it."""

    def __init__(self, spark: SparkSession, data: Disordered, sizes: Sizes, place: str, folder: Path) -> None:
        self.task = Task(TUMBLING, replace(data, folder=folder / "in"), 1, folder)
        self.task.data.folder.mkdir(parents=True)
        self.task.results.mkdir()
        self._sizes = sizes
        self._data = data
        self._closed_by = closers(*times(data), data.delay)
        self._sink = AggregateValue(self.task.results)
        self.engine = SparkEngine(
            spark,
            self.task.question.program(self.task.data, 1),
            self.task.checkpoint,
            {QUERY: self._sink},
            driver_memory=DRIVER_MEMORY_AT[place],
        ).start()
        [self._query] = spark.streams.active
        self._round_ms: list[float] = []

    def turn(self, number: int, ask: Ask | None, ran: Ran) -> None:
        """Show the files of one turn while someone asks, wait for the rounds, and note what was measured."""
        size = self._sizes.files
        mine = range(number * size, (number + 1) * size)
        pace = median(self._round_ms[-3 * size :] or [FIRST_ROUND_MS]) / 1000 / LOAD
        asker = None if ask is None else IdlePoller(self.engine, ask, self._sizes.gap).start()
        began = monotonic()
        shown = dict(zip(mine, feed([self._data.files[i] for i in mine], self.task.data.folder, pace), strict=True))
        last = shown[mine[-1]]
        ends = {end: shown[file] for end, file in self._closed_by.items() if file in shown}
        self._await(lambda: ends.keys() <= self._sink.moments.keys() and self._rounds() >= mine.stop)
        if asker is not None:
            asker.end()
            ran.prod_ms += asker.ms
            ran.cpu_ms += asker.cpu_ms
        rounds = list(rounds_of(self._query))[len(self._round_ms) :]
        self._round_ms += rounds
        ran.round_ms += rounds
        # A pace after the last file the next one would have come.
        ran.seconds += max(monotonic(), last + pace) - began
        ran.rows += size * self._sizes.file_rows
        delays = [1000 * (self._sink.moments[end] - moment) for end, moment in ends.items()]
        # The first files close nothing.
        ran.delay_ms += [fmean(delays)] if delays else []

    def _rounds(self) -> int:
        """The rounds that Spark has told of: it does so a moment after their end."""
        progress = self._query.lastProgress
        return 0 if progress is None or "addBatch" not in progress.durationMs else progress.batchId + 1

    def _await(self, there: Callable[[], bool]) -> None:
        deadline = monotonic() + PATIENCE
        while not there():
            if monotonic() > deadline or self.engine.ended.is_set():
                self.engine.await_end(0.0)
                raise SystemExit("windows that could be closed have no answer")
            sleep(0.02)


def measure(sizes: Sizes, place: str, folder: Path) -> dict[str, Any]:
    """In a session of its own."""
    spark = local_session("local[2]", log_file=folder / "spark.log")
    try:
        ran = take_turns(spark, sizes, place, folder)
    finally:
        spark.stop()
    found = {"place": place, **headline(ran)}
    show(ran, found)
    return found


def take_turns(spark: SparkSession, sizes: Sizes, place: str, folder: Path) -> dict[str, Ran]:
    """Let the three ways take turns; the benchmark ends if the final results are not the right ones."""
    rows = sizes.file_rows * sizes.all_files
    say(f"making {rows:,} rows in {sizes.all_files} files")
    data = Disorder(rows, GROUPS, sizes.all_files, 10 * sizes.all_files).into(folder / "all")
    # Of all rounds Spark is to know how long they took.
    spark.conf.set(KEPT_PROGRESS, 4 * sizes.all_files)
    ran = {way: Ran() for way in WAYS}
    feeding = Feeding(spark, data, sizes, place, folder / "run")
    with feeding.engine:
        for number in range(sizes.all_files // sizes.files):
            # Whoever comes after whom changes from time to time.
            order = list(WAYS)[:: 1 if number // len(WAYS) % 2 else -1]
            way = order[number % len(WAYS)]
            feeding.turn(number, WAYS[way], ran[way] if number >= len(WAYS) else Ran())
    Truth(TUMBLING, data).check("eventide", f"{feeding.task.results}/{QUERY}-*.parquet", complete=False)
    return ran


def ratio(ran: Mapping[str, Ran], way: str) -> tuple[float, float]:
    """The mean final delay of a way over that of nobody asking, and the standard error of it.

    >>> ratio({"alone": Ran(delay_ms=[10.0, 10.0]), "beside": Ran(delay_ms=[10.0, 12.0])}, "beside")
    (1.1, 0.1)
    """
    (over, one), (under, other) = (_mean(ran[name].delay_ms) for name in (way, "alone"))
    return round(over / under, 3), round(over / under * hypot(one / over, other / under), 3)


def _mean(values: list[float]) -> tuple[float, float]:
    """The mean, and its standard error."""
    return fmean(values), stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0


def headline(ran: Mapping[str, Ran]) -> dict[str, Any]:
    """The JSON object of the last line.

    >>> one = Ran([10.0, 20.0, 30.0], [400.0, 500.0], delay_ms=[600.0], cpu_ms=[9.0], seconds=1.0, rows=1_000)
    >>> found = headline({"alone": one, "beside": one, "waiting": one})
    >>> found["prod_ms"], found["round_ms"], found["load"], found["final_delay_ratio"]
    ({'p50': 20.0, 'p99': 29.8}, 450.0, 0.9, 1.0)
    """
    asked = ran["beside"]
    beside_alone, error = ratio(ran, "beside")
    return {
        "prod_ms": _percentiles(asked.prod_ms),
        "prod_cpu_ms": round(median(asked.cpu_ms), 1),
        "round_ms": round(median(asked.round_ms), 1),
        "final_delay_ratio": beside_alone,
        "spread": error,
        "prods": len(asked.prod_ms),
        "load": round(sum(asked.round_ms) / 1000 / asked.seconds, 3),
        "final_delay_ms": {way: round(fmean(one.delay_ms), 1) for way, one in ran.items()},
        "rows_per_second": round(asked.rows / asked.seconds),
        "waiting": {
            "prod_ms": _percentiles(ran["waiting"].prod_ms),
            "final_delay_ratio": ratio(ran, "waiting")[0],
        },
    }


def _percentiles(ms: list[float]) -> dict[str, float]:
    return {f"p{q}": round(float(np.percentile(ms, q)), 1) for q in (50, 99)}


def show(ran: Mapping[str, Ran], found: Mapping[str, Any]) -> None:
    """Print the ways beside each other."""
    say(f"rounds of {found['round_ms']:.0f} ms took {as_percent(found['load'])} of the time")
    show_table(
        f"early answers under load, place: {found['place']}",
        ["prods", "answers", "median", "99 %", "final delay"],
        [
            (
                way,
                len(one.prod_ms),
                *([as_duration(ms) for ms in _percentiles(one.prod_ms).values()] if one.prod_ms else ("", "")),
                as_duration(fmean(one.delay_ms)),
            )
            for way, one in ran.items()
        ],
    )


def main() -> None:
    """Measure, show, and end with the line of JSON."""
    arguments = parser("how soon early answers come while the engine is at 80 % of its throughput")
    add_place(arguments)
    found = arguments.parse_args()
    with scratch() as folder:
        results = measure(QUICK if found.quick else FULL, found.place, folder)
    finish(asked(found), results)


if __name__ == "__main__":
    main()
