"""Heartbeat traces of an engine at work, from the first question on, and of a run that has stopped.

Laws. Where nobody asks nothing is sampled. From then on a heartbeat of each stream that has rows is sampled at most
every `EVERY` seconds, of one source after the other, and following those on their way costs a round some microseconds.
A stopped run has not been followed: its record tells where the last heartbeats of each stream stand, and what they wait
for, and no times of the machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from eventide.engine.introspection.passage import carried, inputs_of, through
from eventide.engine.introspection.status import SEPARATOR, moment, source_times
from eventide.engine.introspection.why import ProgressReport
from eventide.engine.operators.open_windows import Need
from eventide.engine.round.report import RoundReport, RoundTimes
from eventide.engine.running import Running
from eventide.eventtime.instant import EDGE
from eventide.plan.declared.program import Program
from eventide.plan.declared.stream import TimeKind
from eventide.telemetry.heartbeat_trace import (
    HeartbeatTrace,
    HeartbeatTraces,
    Moment,
    Passage,
    Visit,
    waits_of,
)

EVERY = 1.0
"""Seconds from one sample of a stream to the next."""
MOST = 32
"""So many traces that are on their way are told, and as many that are over."""
STOPPED = 8
"""So many sources of each stream of a stopped run are shown, the furthest ahead first."""

Finished = Callable[[HeartbeatTrace], object]


class Tracing:
    """Traces the heartbeats of an engine, from now to its end."""

    def __init__(self, running: Running, every: float | None = None, now: Callable[[], float] = time.time) -> None:
        self._running, self._now = running, now
        self._every = EVERY if every is None else every
        self._lock = threading.Lock()
        self._traces = HeartbeatTraces()
        self._due: dict[str, float] = {}
        self._turn: dict[str, int] = {}
        self._last: dict[tuple[str, str], int] = {}
        self._listeners: list[Finished] = []
        running.on_round(self._after)

    def listen(self, listener: Finished) -> None:
        """Call a function with every trace that is over."""
        self._listeners.append(listener)

    def traces(self) -> tuple[HeartbeatTrace, ...]:
        """All that are kept: those on their way, then the finished ones, the newest first."""
        with self._lock:
            return (*reversed(self._traces.in_flight), *reversed(self._traces.finished))

    def _after(self, work: RoundReport) -> None:
        now = self._now()
        engine = self._running.engine
        progress = engine.state.progress(engine.program, engine.scheduling)
        with self._lock:
            if not work.ending:
                self._sample(work, now)
            if progress is None or not self._traces.in_flight:
                return
            at = Moment(work.number, work.clock, now)
            over = self._traces.follow(passage_of(progress, at, work.times))
        for listener in self._listeners if over else ():
            for trace in over:
                listener(trace)

    def _sample(self, work: RoundReport, now: float) -> None:
        """A heartbeat of each stream that has rows and whose turn it is."""
        at = Moment(work.number, work.clock, work.times.done("", "heartbeats"))
        for name, arrivals in work.arrivals.items():
            if now < self._due.get(name, 0.0) or not len(arrivals.source):
                continue
            turn = self._turn.get(name, 0)
            source, by_source = int(arrivals.sources[turn % len(arrivals.sources)]), work.by_source.get(name)
            known = by_source is not None and source < len(by_source)
            beat = int(by_source[source]) if by_source is not None and known else work.heartbeats[name]
            stream = self._running.engine.streams[name]
            who = stream.name_of(source).replace(SEPARATOR, "|") if stream.stream.source else ""
            self._turn[name] = turn + 1
            if abs(beat) < EDGE and self._last.get((name, who)) != beat:
                self._last = {**(self._last if len(self._last) < 1000 else {}), (name, who): beat}
                self._due[name] = now + self._every
                self._traces.sample(name, who, beat, at)


def passage_of(progress: ProgressReport, at: Moment, times: RoundTimes | None = None) -> Passage:
    """How far everything had come with a record; `times` are those of its round, where it has just been run."""
    program, record = progress.program, progress.record
    streams = record.streams.keys()

    def done(step: str) -> float | None:
        if times is None:
            return None
        # Its own reading is over before a stream promises anything.
        return times.done("", "heartbeats") if step in streams else times.done(step)

    return Passage(
        at,
        inputs_of(program, record),
        lambda step: through(program, record, step),
        lambda step, time: carried(program, step, time),
        done,
    )


_traced: WeakKeyDictionary[Running, Tracing] = WeakKeyDictionary()
_once = threading.Lock()


def traced(running: Running) -> Tracing:
    """The tracing of an engine, begun if nobody has asked for it yet."""
    with _once:
        if running not in _traced:
            _traced[running] = Tracing(running)
        return _traced[running]


def stopped_traces(progress: ProgressReport) -> list[HeartbeatTrace]:
    """Where the last heartbeats of a stopped run stand: of each stream, those of a few sources."""
    record = progress.record
    at = Moment(record.round, record.clock, None)
    passage, found = passage_of(progress, at), HeartbeatTraces()
    for stream in progress.program.streams:
        known = source_times(progress, stream) if stream.source else None
        beats = {"": through(progress.program, record, stream.name)}
        if known is not None and len(known):
            ahead = np.argsort(-known.heartbeats, kind="stable")
            ahead = ahead[np.abs(known.heartbeats[ahead]) < EDGE][:STOPPED]
            beats = {known.name(int(one)): int(known.heartbeats[one]) for one in ahead}
        for who, beat in beats.items():
            if abs(beat) < EDGE:
                found.sample(stream.name, who, beat, at)
    return [passage.follow(trace) for trace in found.in_flight]


def traces_data(traces: Iterable[HeartbeatTrace], progress: ProgressReport | None, most: int = MOST) -> dict[str, Any]:
    """Traces as plain data, so many that are on their way and as many that are over; and what all waited at each step.

    What waits is told what it waits for.
    """
    kept = list(traces)
    waits = [
        {"step": one.step, "traces": one.traces, "mean": one.mean, "longest": one.longest} for one in waits_of(kept)
    ]
    ways = ([one for one in kept if one.over is None], [one for one in kept if one.over is not None])
    shown = [] if progress is None else [_data(trace, progress) for way in ways for trace in way[:most]]
    return {"traces": shown, "waits": waits}


def _data(trace: HeartbeatTrace, progress: ProgressReport) -> dict[str, Any]:
    program = progress.program
    unitless = program.stream(trace.stream).time_kind is TimeKind.SEQUENCE
    return {
        "trace": trace.number,
        "stream": trace.stream,
        "source": trace.source,
        "time": trace.time,
        "time_at": None if unitless else moment(trace.time),
        "sampled": vars(trace.sampled),
        "visits": [_visit_data(visit, program, progress) for visit in trace.visits],
        "over": None if trace.over is None else vars(trace.over),
    }


def _visit_data(visit: Visit, program: Program, progress: ProgressReport) -> dict[str, Any]:
    queries = {one.name for one in program.queries}
    kind = "query" if visit.step in queries else "stream" if program.operator(visit.step) is None else "operator"
    return {
        "step": visit.step,
        "kind": kind,
        "time": visit.time,
        "arrived": vars(visit.arrived),
        "left": None if visit.left is None else vars(visit.left),
        "waited": visit.waited,
        "waits_for": None if visit.left else _waits_for(visit, kind == "query", progress),
    }


def _waits_for(visit: Visit, query: bool, progress: ProgressReport) -> dict[str, Any] | None:
    """What would let it go on, as `why` tells it of a window."""
    if progress.record.ended or (query and visit.step not in progress.record.queries):
        return None
    if not query:
        return progress.wait(visit.step, Need(visit.time)).as_data()
    # The windows that hold it are over when what the query reads has come to their end.
    end = carried(progress.program, visit.step, visit.time)
    return progress.reading(visit.step, Need(visit.time if end is None else end)).as_data()
