"""An engine that is watched: its rounds go through the detectors, and what they find to everybody who wants to know.

Law: an engine is watched once, however many ask. A stream from which nothing comes any more has no rounds that would
tell; so every second somebody looks up from the clock on the wall, and says it when the stream has been silent for
longer than its past allows.

>>> past = StreamSilence()
>>> [past.look(at, rows=1) for at in range(20)][-1], past.look(22, rows=0), past.look(30, rows=0)
(None, None, (4.0, 11))
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from eventide.engine.operators.placement import state_rows
from eventide.engine.round.report import RoundReport
from eventide.engine.running import Running
from eventide.plan.declared.alert import AlertRule
from eventide.plan.declared.rows import Queue
from eventide.profile.amounts import spoken
from eventide.watch.alert import AlertBoard, Finding
from eventide.watch.detectors import QueueDetector, SinkDetector, StreamDetector
from eventide.watch.measures import MeasureBook

if TYPE_CHECKING:
    from eventide.watch.rules import Rules

EVERY = 1.0
ENOUGH = 8
FACTOR = 4.0
LEAST = 2.0
"""Seconds that a stream may be silent, whatever its past."""


class StreamSilence:
    """How long a stream has been without rows by the wall, and how long that may be."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._longest, self._times = 0.0, 0

    def look(self, at: float, rows: int) -> tuple[float, float] | None:
        """What is allowed and what is, where that is longer; `rows` came just now."""
        if rows:
            if self._last is not None:
                self._longest = max(self._longest * 0.5 ** (1 / 256), at - self._last)
            self._last, self._times = at, self._times + 1
            return None
        allowed = max(LEAST, FACTOR * self._longest)
        if self._last is None or self._times < ENOUGH or at - self._last <= allowed:
            return None
        return allowed, at - self._last


class Watch:
    """Watches an engine, from `watch` to its end; `board` has what was found."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.board = AlertBoard()
        self._streams: dict[str, StreamDetector] = {}
        self._silences: dict[str, StreamSilence] = {}
        self._queues, self._sinks = QueueDetector(), SinkDetector()
        self._found: list[Finding] = []
        self._book = MeasureBook(running.engine, time.monotonic)
        self._rules: Rules | None = None
        self._lock = threading.Lock()
        running.on_round(self._after)
        running.on_end(self._ended)
        running.in_thread("eventide-watch", self._look_up)

    def add(self, rules: Iterable[AlertRule]) -> None:
        """Watch by rules of a script, too; one that cannot be computed is refused."""
        # Only who has rules waits for what it takes to compute them.
        from eventide.watch.rules import Rules

        given = list(rules)
        if given and self._rules is None:
            self._rules = Rules(self._book.of)
            self._running.engine.on_results.append(self._rules.look)
        if given and self._rules is not None:
            self._rules.add(given, self._running.engine.plan)

    def _after(self, work: RoundReport) -> None:
        engine = self._running.engine
        self._book.note(work)
        found: list[Finding] = []
        for stream in engine.program.streams:
            if stream.name not in self._streams:
                self._streams[stream.name] = StreamDetector(stream, partial(self._name, stream.name))
                self._silences[stream.name] = StreamSilence()
            found += self._streams[stream.name].look(work, engine.streams[stream.name].losses)
        found += self._queues.look(
            {
                one.name: state_rows(engine.state.operators[one.name])
                for one in engine.program.operators
                if isinstance(one, Queue) and one.name in engine.state.operators
            }
        )
        found += self._sinks.look(work.sinks)
        with self._lock:
            self._found = found
        self._settle({name: cells.total for name, cells in work.arrivals.items() if work.rows})

    def _name(self, stream: str, source: int) -> str:
        return self._running.engine.streams[stream].name_of(source).replace("\x1f", "|")

    def _look_up(self) -> None:
        while not self._running.ended.wait(EVERY) and not self._running.stopping.is_set():
            self._settle({})

    def _settle(self, came: dict[str, int]) -> None:
        now = time.monotonic()
        with self._lock:
            found = list(self._found)
            for name, silence in self._silences.items():
                if (beyond := silence.look(now, came.get(name, 0))) is not None:
                    allowed, seen = (spoken(round(one * 1_000_000), False) for one in beyond)
                    found.append(
                        Finding("silence", name, "", f"a row within {allowed}, by its past", f"none for {seen}")
                    )
            if self._rules is not None and not self._running.stopping.is_set():
                found += self._rules.found(now)
            self.board.settle(found, time.time())

    def _ended(self) -> None:
        with self._lock:
            self._found = []
            if self._rules is not None:
                self._rules.close()
        self.board.settle([], time.time())


_watched: WeakKeyDictionary[Running, Watch] = WeakKeyDictionary()
_once = threading.Lock()


def watch(running: Running) -> Watch:
    """The watch over an engine, begun if it is not watched yet."""
    with _once:
        if running not in _watched:
            _watched[running] = Watch(running)
        return _watched[running]


def watched(running: Running) -> Watch | None:
    """The watch over an engine, if it is watched."""
    with _once:
        return _watched.get(running)
