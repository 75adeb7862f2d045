"""From the row that lets a window close to its result in the sink, while rows keep coming.

A feeder shows one small file after another, each all at once, at a fixed pace. A window can be closed when the first
row is there whose time is `delay` beyond its end; it is answered when a reader of the sink can see its result. Both
moments are taken by the same clock, the second by looking at the folder every few milliseconds: Eventide's files appear
complete under their names, Spark's count once its log of the round names them.

>>> closers(maxima=[5, 12, 11, 31], ends=[10, 20, 30, 40], delay=1)
{10: 1, 20: 3, 30: 3}
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import monotonic, sleep
from typing import TYPE_CHECKING

from benchmarks.disorder import Disordered
from benchmarks.harness import database, say, show_table
from benchmarks.question import QUERY, TUMBLING
from benchmarks.spark_native.sides import Task, eventide_engine, native_writer, read, windowed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_EVERY = 0.004
LEAST_PACE = 0.8
GIVE_UP_AFTER = 60.0
"""Seconds after the last file in which the last windows must have come."""


def closers(maxima: Sequence[int], ends: Iterable[int], delay: int) -> dict[int, int]:
    """For every end of a window, the number of the file that lets it close; ends that no file closes are left out."""
    found: dict[int, int] = {}
    for end in ends:
        for number, largest in enumerate(maxima):
            if largest >= end + delay:
                found[end] = number
                break
    return found


class Watch:
    """When each file of results could first be read. `readable` lists those that can be now."""

    def __init__(self, readable: Callable[[], Iterable[Path]]) -> None:
        self.seen: dict[Path, float] = {}
        self._readable = readable
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look, name="watch", daemon=True)

    def start(self) -> Watch:
        """Look until told to end."""
        self._looking.start()
        return self

    def end(self) -> None:
        """Look no more."""
        self._over.set()
        self._looking.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_EVERY):
            files = list(self._readable())
            now = monotonic()
            for path in files:
                self.seen.setdefault(path, now)


def eventide_files(results: Path) -> list[Path]:
    """Files that Eventide has shown."""
    return list(results.glob(f"{QUERY}-*.parquet"))


class NativeFiles:
    """Files that Spark has shown: those in the logs of its sink, each log read once."""

    def __init__(self, results: Path) -> None:
        self._results = results
        self._logs: set[str] = set()
        self._files: list[Path] = []

    def __call__(self) -> list[Path]:
        """What can be read now."""
        try:
            names = os.listdir(self._results / "_spark_metadata")
        except FileNotFoundError:
            return self._files
        for name in names:
            # A number, or a number and `.compact` for a log that repeats the ones before.
            if name.split(".")[0].isdigit() and name not in self._logs:
                self._logs.add(name)
                lines = (self._results / "_spark_metadata" / name).read_text(encoding="utf-8").splitlines()[1:]
                self._files += [self._results / Path(json.loads(line)["path"]).name for line in lines]
        return self._files


def feed(files: Sequence[Path], folder: Path, pace: float) -> list[float]:
    """Show one file after the other, `pace` seconds apart; when each could be seen."""
    shown = []
    begin = monotonic()
    for number, path in enumerate(files):
        sleep(max(0.0, begin + number * pace - monotonic()))
        waiting = folder / f".{path.name}"
        shutil.copy2(path, waiting)
        os.replace(waiting, folder / path.name)
        shown.append(monotonic())
    return shown


@dataclass(frozen=True)
class Latencies:
    """Milliseconds for each window, in the order of the windows."""

    ms: tuple[float, ...]

    @property
    def middle(self) -> float:
        """The median of the second half: the first one warms up."""
        return median(self.ms[len(self.ms) // 2 :])


def _eventide(spark: SparkSession, task: Task) -> tuple[Callable[[], Iterable[Path]], Callable[[], None]]:
    engine = eventide_engine(spark, task).start()

    def stop() -> None:
        engine.stop()
        engine.await_end()

    return lambda: eventide_files(task.results), stop


def _native(spark: SparkSession, task: Task) -> tuple[Callable[[], Iterable[Path]], Callable[[], None]]:
    query = native_writer(windowed(read(spark, task), task.question, task.data.delay), task).start()
    return NativeFiles(task.results), query.stop


SIDES = {"eventide": _eventide, "window": _native}


def pace_for(round_ms: float) -> float:
    """Seconds from file to file: slow enough that a side of such rounds, which needs two for an answer, never queues.

    >>> pace_for(190.0), pace_for(500.0)
    (0.8, 2.0)
    """
    return max(LEAST_PACE, 4 * round_ms / 1000)


def measure(spark: SparkSession, data: Disordered, pace: float, repeats: int, folder: Path) -> dict[str, Latencies]:
    """Feed each side in turn; one `Latencies` for each, of all turns."""
    closed_by = closers(*times(data), data.delay)
    found: dict[str, list[float]] = {name: [] for name in SIDES}
    for turn in range(repeats):
        for name, start in SIDES.items():
            place = folder / f"latency-{name}-{turn}"
            (place / "in").mkdir(parents=True)
            task = Task(TUMBLING, replace(data, folder=place / "in"), 1, place)
            task.results.mkdir()
            readable, stop = start(spark, task)
            watch = Watch(readable).start()
            try:
                shown = feed(data.files, task.data.folder, pace)
                answered = _await(watch, closed_by, name)
            finally:
                stop()
                watch.end()
            found[name] += [1000 * (answered[end] - shown[number]) for end, number in closed_by.items()]
            shutil.rmtree(place)
    return {name: Latencies(tuple(ms)) for name, ms in found.items()}


def times(data: Disordered) -> tuple[list[int], list[int]]:
    """The largest time of each file, and the ends of all windows."""
    slide = TUMBLING.slide * 1_000_000
    connection = database()
    maxima = [
        int(connection.execute(f"SELECT max(epoch_us(ts)) FROM read_parquet('{path}')").fetchall()[0][0])
        for path in data.files
    ]
    ends = connection.execute(
        f"SELECT DISTINCT epoch_us(ts) // {slide} * {slide} + {slide} FROM read_parquet('{data.folder}/*.parquet') "
        "ORDER BY 1"
    ).fetchall()
    return maxima, [int(end) for (end,) in ends]


def _await(watch: Watch, closed_by: dict[int, int], side: str) -> dict[int, float]:
    """When each window was answered; the benchmark ends if one never is."""
    answered: dict[int, float] = {}
    read_files: set[Path] = set()
    connection = database()
    deadline = monotonic() + GIVE_UP_AFTER
    while not closed_by.keys() <= answered.keys():
        if monotonic() > deadline:
            missing = len(closed_by.keys() - answered.keys())
            raise SystemExit(f"{side} has not answered {missing} of {len(closed_by)} windows that could be closed")
        for path, moment in list(watch.seen.items()):
            if path not in read_files:
                read_files.add(path)
                ends = connection.execute(
                    f"SELECT DISTINCT epoch_us(window_end) FROM read_parquet('{path}')"
                ).fetchall()
                for (end,) in ends:
                    answered.setdefault(int(end), moment)
        sleep(0.1)
    return answered


def show(latencies: dict[str, Latencies], pace: float) -> None:
    """Print milliseconds by side."""
    say(f"from the row that lets a window close to its result in the sink, {TUMBLING.name}, a file every {pace:.2g} s")
    show_table(
        "final latency",
        ["side", "median", "windows"],
        [(name, f"{one.middle:.0f} ms", len(one.ms)) for name, one in latencies.items()],
    )
