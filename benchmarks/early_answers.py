"""How soon an early answer comes from an engine under load: `python -m benchmarks.early_answers [--quick] [--json FILE]`.

A stream of Parquet files in real time on Spark, `local[2]`, windows of 10 s by 1,000 groups, a file a round. First the
engine's round is measured, file after file; then files are shown so slowly that rounds fill 80 % of the time. Meanwhile
a thread prods at random moments for all open windows. Three ways take turns over the same files:

- *alone*: nobody prods;
- *beside*: prods are answered beside the round under way, which is what the engine does;
- *waiting*: prods wait for the round under way, which is what it did before.

Final results must be the right ones every time, or the benchmark ends. Final delay is the time from the file that lets
a window close to its results in the sink; the first quarter of the files warms up.

The last line is one JSON object:

- `prod_ms`: from asking to the answer, `p50` and `p99`, beside the rounds; `waiting.prod_ms` is the same the old way.
- `round_ms`: the median round, from trigger to commit, while prods were answered beside it; `load`: the share of the
  time that rounds took.
- `final_delay_ratio`: the mean final delay beside prods over that without any: the median over the turns;
  `spread`: the largest of these ratios over the smallest, less 1.
- `prods`: how many were answered beside; `final_delay_ms`: means of the three ways; `rows_per_second` that were fed.
"""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median
from time import monotonic, perf_counter, sleep
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.disorder import Disorder, Disordered
from benchmarks.harness import as_duration, as_percent, finish, options, say, scratch, show_table
from benchmarks.question import QUERY, TUMBLING, Truth
from benchmarks.spark_native.latency import closers, feed, times
from benchmarks.spark_native.sides import EVENTIDE, Task, rounds_of
from eventide.engine.running import Running
from eventide.engine.spark_engine import SparkEngine
from eventide.engine.spark_session import local_session
from eventide.results.results import Results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUPS = 1000
LOAD = 0.8
PATIENCE = 120.0
"""Seconds after the last file in which all windows must have closed."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured; `gap` is the mean number of seconds from one prod to the next."""

    file_rows: int
    files: int
    repeats: int
    gap: float = 0.2


QUICK = Sizes(file_rows=500_000, files=40, repeats=1)
FULL = Sizes(file_rows=500_000, files=120, repeats=3)

Ask = Callable[[Running], object]


def beside(running: Running) -> object:
    """As the engine answers."""
    return running.prod(QUERY)


def waiting(running: Running) -> object:
    """As it answered before: between two rounds."""
    with running.exclusively():
        return running.prod(QUERY)


WAYS: Mapping[str, Ask | None] = {"alone": None, "beside": beside, "waiting": waiting}


class Told:
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


class Asker:
    """A thread that prods at random moments, and how long each answer took, in milliseconds."""

    def __init__(self, running: Running, ask: Ask, gap: float) -> None:
        self.ms: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(running, ask, gap), name="asker", daemon=True)
        self._failure: BaseException | None = None

    def start(self) -> Asker:
        """Prod until told to end."""
        self._thread.start()
        return self

    def end(self) -> list[float]:
        """Prod no more."""
        self._over.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self.ms

    def _work(self, running: Running, ask: Ask, gap: float) -> None:
        moments = random.Random(1)
        try:
            while not self._over.wait(moments.expovariate(1 / gap)):
                started = perf_counter()
                ask(running)
                self.ms.append(1000 * (perf_counter() - started))
        except BaseException as failure:
            self._failure = failure


@dataclass
class Ran:
    """Runs of one way, taken together but for the mean delay of each turn."""

    prod_ms: list[float] = field(default_factory=list)
    round_ms: list[float] = field(default_factory=list)
    delays_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0


def measured_round(spark: SparkSession, data: Disordered, folder: Path) -> float:
    """Milliseconds of a round over one file, when files wait for it: the median of the second half, after a warm-up."""
    found: tuple[float, ...] = ()
    for turn in range(2):
        task = Task(TUMBLING, data, 1, folder / f"rounds-{turn}")
        task.results.mkdir(parents=True)
        found = EVENTIDE.run(spark, task).round_ms
        shutil.rmtree(task.folder)
    return median(found[len(found) // 2 :])


def run(
    spark: SparkSession, data: Disordered, ask: Ask | None, pace: float, sizes: Sizes, place: Path, ran: Ran
) -> None:
    """Feed the files once, and add what was measured to `ran`."""
    task = Task(TUMBLING, replace(data, folder=place / "in"), 1, place)
    task.data.folder.mkdir(parents=True)
    task.results.mkdir()
    sink = Told(task.results)
    closed_by = closers(*times(data), data.delay)
    engine = SparkEngine(spark, task.question.program(task.data, 1), task.checkpoint, {QUERY: sink})
    # The same session runs one engine after the other.
    known = {query.id for query in spark.streams.active}
    with engine.start():
        [query] = (query for query in spark.streams.active if query.id not in known)
        asker = None if ask is None else Asker(engine, ask, sizes.gap).start()
        began = monotonic()
        shown = feed(data.files, task.data.folder, pace)
        _await(engine, sink, closed_by)
        ran.seconds += monotonic() - began
        ran.prod_ms += [] if asker is None else asker.end()
        ran.round_ms += rounds_of(query)
    warm = len(data.files) // 4
    delays = [1000 * (sink.moments[end] - shown[number]) for end, number in closed_by.items() if number >= warm]
    ran.delays_ms.append(fmean(delays))
    Truth(TUMBLING, data).check("eventide", f"{task.results}/{QUERY}-*.parquet", complete=False)
    shutil.rmtree(place)


def _await(engine: Running, sink: Told, closed_by: Mapping[int, int]) -> None:
    deadline = monotonic() + PATIENCE
    while not closed_by.keys() <= sink.moments.keys():
        if monotonic() > deadline or engine.ended.is_set():
            engine.await_end(0.0)
            missing = len(closed_by.keys() - sink.moments.keys())
            raise SystemExit(f"{missing} of {len(closed_by)} windows that could be closed have no answer")
        sleep(0.05)


def measure(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Measure a round, then let the three ways take turns."""
    rows = sizes.file_rows * sizes.files
    say(f"making {rows:,} rows in {sizes.files} files")
    data = Disorder(rows, GROUPS, sizes.files, 10 * sizes.files).into(folder / "all")
    spark = local_session("local[2]", log_file=folder / "spark.log")
    # Of all rounds of a run Spark is to know how long they took.
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", 2 * sizes.files)
    ran = {way: Ran() for way in WAYS}
    try:
        few = data.first(max(8, sizes.files // 4), folder / "few")
        alone_ms = measured_round(spark, few, folder)
        pace = alone_ms / 1000 / LOAD
        say(f"a round of {sizes.file_rows:,} rows takes {alone_ms:.0f} ms; a file every {1000 * pace:.0f} ms")
        for turn in range(sizes.repeats):
            for way, ask in WAYS.items():
                run(spark, data, ask, pace, sizes, folder / f"{way}-{turn}", ran[way])
    finally:
        spark.stop()
    found = headline(ran) | {"rows_per_second": round(sizes.file_rows / pace)}
    show(ran, found)
    return found


def ratios(ran: Mapping[str, Ran], way: str) -> list[float]:
    """Turn by turn, the mean final delay of a way over that of nobody asking.

    >>> ratios({"alone": Ran(delays_ms=[10.0, 20.0]), "beside": Ran(delays_ms=[11.0, 20.0])}, "beside")
    [1.1, 1.0]
    """
    both = zip(ran[way].delays_ms, ran["alone"].delays_ms, strict=True)
    return [with_prods / without for with_prods, without in both]


def headline(ran: Mapping[str, Ran]) -> dict[str, Any]:
    """The JSON object of the last line, but for the rows.

    >>> one = Ran(prod_ms=[10.0, 20.0, 30.0], round_ms=[400.0, 500.0], delays_ms=[600.0], seconds=1.0)
    >>> found = headline({"alone": one, "beside": one, "waiting": one})
    >>> found["prod_ms"], found["round_ms"], found["load"], found["final_delay_ratio"]
    ({'p50': 20.0, 'p99': 29.8}, 450.0, 0.9, 1.0)
    """
    asked = ran["beside"]
    turns = ratios(ran, "beside")
    return {
        "prod_ms": _percentiles(asked.prod_ms),
        "round_ms": round(median(asked.round_ms), 1),
        "final_delay_ratio": round(median(turns), 3),
        "spread": round(max(turns) / min(turns) - 1, 3),
        "prods": len(asked.prod_ms),
        "load": round(sum(asked.round_ms) / 1000 / asked.seconds, 3),
        "final_delay_ms": {way: round(fmean(one.delays_ms), 1) for way, one in ran.items()},
        "waiting": {
            "prod_ms": _percentiles(ran["waiting"].prod_ms),
            "final_delay_ratio": round(median(ratios(ran, "waiting")), 3),
        },
    }


def _percentiles(ms: list[float]) -> dict[str, float]:
    return {f"p{q}": round(float(np.percentile(ms, q)), 1) for q in (50, 99)}


def show(ran: Mapping[str, Ran], found: Mapping[str, Any]) -> None:
    """Print the ways beside each other."""
    say(f"rounds of {found['round_ms']:.0f} ms took {as_percent(found['load'])} of the time")
    show_table(
        "early answers under load",
        ["prods", "answers", "median", "99 %", "final delay"],
        [
            (
                way,
                len(one.prod_ms),
                *([as_duration(ms) for ms in _percentiles(one.prod_ms).values()] if one.prod_ms else ("", "")),
                as_duration(fmean(one.delays_ms)),
            )
            for way, one in ran.items()
        ],
    )


def main() -> None:
    """Measure, show, and end with the line of JSON."""
    asked = options("how soon early answers come while the engine is at 80 % of its throughput")
    with scratch() as folder:
        results = measure(QUICK if asked.quick else FULL, folder)
    finish(asked, results)


if __name__ == "__main__":
    main()
