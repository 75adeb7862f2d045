"""Workers of a standalone cluster that are killed while the program runs on it, and others that take their place.

Law: a worker is killed with kill -9, and with every executor on it, while a round is under way that the program has not
ended yet; two rounds later another one is added. All state is on the cluster, so that the jobs that are struck are
those that make, read and compact it. What the program shows in the end is compared with an uninterrupted run on the
local engine. A program that ends because of it is started again, and that is told.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.crash.differences import Differences, calm, differences
from benchmarks.crash.recording import record
from benchmarks.harness import REPOSITORY, say
from eventide.testing.cluster import PATIENCE, StandaloneCluster, standalone_cluster
from scripts.spark_archive import QUICK_JVM

CHOSEN = ("sliding", "paired", "in_order", "known", "by_device")
"""An aggregate, an outer join, an ordered merge, a lookup, and windows closed by source."""

FILES = 8
FIRST_ROUND = 1
BEFORE_END = 4
"""No worker is killed in one of the last rounds: the one that is added has to have something to do."""

LONG_ROUND = 5.0
"""Seconds. Workers die some share of the last round's time after it, but no later than this."""

MOST_RESTARTS = 3


@dataclass
class Struck:
    """What came of some runs: rows that differ, workers that were killed, programs that had to be started again."""

    found: Differences = field(default_factory=Differences)
    worker_kills: int = 0
    restarts: int = 0


def measure(runs: int, folder: Path, files: int = FILES, chosen: Sequence[str] = CHOSEN) -> dict[str, int]:
    """So many runs on one cluster, a worker killed in each."""
    expected = calm(folder / "calm", files, chosen)
    dice, struck = random.Random(runs), Struck()
    with standalone_cluster(workers=2) as cluster:
        alive = [0, 1]
        for number in range(runs):
            place = folder / f"run-{number}"
            record(place, files)
            victim = alive.pop(dice.randrange(len(alive)))
            moment = dice.randrange(FIRST_ROUND, max(FIRST_ROUND + 1, files - BEFORE_END)), dice.random()
            killed, restarts = _lived(cluster, place, chosen, victim, moment)
            alive.append(len(cluster.workers) - 1)
            differing = differences(place, expected)
            say(f"run {number}: worker {victim} killed after round {moment[0]}: {differing}, {restarts} restarts")
            struck.found += differing
            struck.worker_kills += killed
            struck.restarts += restarts
            _wait(lambda: cluster.alive_workers() == len(alive))
    return {
        "lost": struck.found.lost,
        "duplicated": struck.found.duplicated,
        "worker_kills": struck.worker_kills,
        "restarts": struck.restarts,
        "runs": runs,
    }


def _lived(
    cluster: StandaloneCluster, place: Path, chosen: Sequence[str], victim: int, moment: tuple[int, float]
) -> tuple[int, int]:
    """Run the program to its end; how many workers were killed while it ran, and how often it had to start again."""
    round, share = moment
    killed = restarts = 0
    before = len(cluster.workers)
    with _program(cluster, place, chosen) as (process, rounds):
        began = time.monotonic()
        for number in rounds:
            lasted, began = time.monotonic() - began, time.monotonic()
            if number == round:
                # Before both workers have executors there is nothing to lose.
                _wait(lambda: cluster.used_cores() >= 2 or process.poll() is not None)
                time.sleep(share * min(lasted, LONG_ROUND))
                killed = int(process.poll() is None)
                cluster.kill_worker(victim)
            elif number == round + 2:
                cluster.add_worker()
    if len(cluster.workers) == before:
        # It has ended too early; the next run finds two workers all the same.
        cluster.kill_worker(victim)
        cluster.add_worker()
    while process.returncode != 0:
        restarts += 1
        if restarts > MOST_RESTARTS:
            raise RuntimeError(f"the program ends again and again after a worker was killed: {process.returncode}")
        with _program(cluster, place, chosen) as (process, rounds):
            deque(rounds, maxlen=0)
    return killed, restarts


@contextmanager
def _program(
    cluster: StandaloneCluster, place: Path, chosen: Sequence[str]
) -> Iterator[tuple[subprocess.Popen[str], Iterator[int]]]:
    """The program on the cluster, and the rounds that it tells of; left when it has ended."""
    command = [sys.executable, "-m", "benchmarks.crash.program", str(place), "--engine", "spark", "--tell"]
    command += [part for query in chosen for part in ("--query", query)]
    command += ["--master", cluster.url, "--driver-memory", "0", "--conf", "spark.executor.memory=512m"]
    environment = {"JAVA_TOOL_OPTIONS": QUICK_JVM, **os.environ}
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        yield process, (int(line.split()[1]) for line in process.stdout if line.startswith("round "))


def _wait(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            raise RuntimeError("the Spark cluster is not as it should be by now")
        time.sleep(0.05)
