"""What a process costs: its processor time and its memory, as Linux tells them; and a process for one call.

>>> import os
>>> cpu_seconds(os.getpid()) > 0, rss_mb(os.getpid()) > 1
(True, True)
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used, its own and the kernel's for it, all threads together."""
    # The name of the program stands in brackets and may hold anything; the figures come after the last one.
    figures = _told(pid, "stat").rpartition(")")[2].split()
    return (int(figures[11]) + int(figures[12])) / TICKS


def rss_mb(pid: int) -> float:
    """Memory that a process holds now, in megabytes."""
    for line in _told(pid, "status").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def elsewhere(function: Callable[..., T], *arguments: object) -> T:
    """Call a function in a process of its own, whose memory goes with it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def jvm_of(spark: SparkSession) -> int:
    """The process of Spark's driver."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    return int(jvm.java.lang.ProcessHandle.current().pid())


def _told(pid: int, what: str) -> str:
    try:
        return (PROC / str(pid) / what).read_text(encoding="utf-8")
    except FileNotFoundError as missing:
        raise SystemExit(
            f"{missing.filename} is not there: processor time and memory are only measured on Linux"
        ) from missing


class PeakMemory:
    """The most memory that each of some processes held while the block ran, looked at every few milliseconds.

    >>> with PeakMemory([os.getpid()]) as peak:
    ...     pass
    >>> peak.mb[os.getpid()] > 1
    True
    """

    def __init__(self, pids: Iterable[int], every: float = 0.05) -> None:
        self.mb = dict.fromkeys(pids, 0.0)
        self._every = every
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look, name="peak-memory", daemon=True)

    def __enter__(self) -> PeakMemory:
        self._note()
        self._looking.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._looking.join()
        self._note()

    def _look(self) -> None:
        while not self._over.wait(self._every):
            self._note()

    def _note(self) -> None:
        for pid in self.mb:
            self.mb[pid] = max(self.mb[pid], rss_mb(pid))
