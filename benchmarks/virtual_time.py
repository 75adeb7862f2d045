"""Rounds in virtual time: the local engine, with a clock that is told and not read.

Rows come at the clock that they have; between them the engine is asked, as it asks itself, whether the clock alone
lets something go on: every `tick`, or at the interval of periodic timestamps, and only while something is held. What is
measured: when every row was told, how long each round took for real, and what operators hold after each round.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.eventtime.instant import NEVER
from eventide.eventtime.scheduling.options import Scheduling, When
from eventide.plan.declared.program import Program
from eventide.results.results import Results

SECOND = 1_000_000

Arrival = tuple[int, Mapping[str, pa.Table]]
"""A clock, and the rows that come then, by stream."""


@dataclass(frozen=True)
class Held:
    """What operators and queries hold after the round at a clock."""

    clock: int
    rows: int
    bytes: int


@dataclass
class Played:
    """A run: what was told at which clock, what was held, how long rounds took."""

    told: dict[str, list[tuple[int, float, pa.Table]]] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    until: int = 0

    @property
    def peak_rows(self) -> int:
        """The most rows that were held between two rounds."""
        return max((one.rows for one in self.held), default=0)

    @property
    def peak_bytes(self) -> int:
        """The most memory of rows that were held between two rounds."""
        return max((one.bytes for one in self.held), default=0)

    @property
    def waiting_share(self) -> float:
        """The share of the clock in which rows were held."""
        ends = [one.clock for one in self.held[1:]] + [self.until]
        waited = sum(end - one.clock for one, end in zip(self.held, ends, strict=True) if one.rows)
        return waited / (self.until - self.held[0].clock)


class _Keeps:
    """A sink that keeps tables by round."""

    def __init__(self) -> None:
        self.tables: list[tuple[str, pa.Table]] = []

    def emit(self, results: Results) -> None:
        if results.rows:
            self.tables.append((results.query, results.table()))

    def rewind(self, query: str, last: int) -> None:
        """Nothing is run again."""

    def close(self) -> None:
        """Nothing is held but memory."""


def play(
    program: Program,
    told: Iterable[str],
    arrivals: Iterable[Arrival],
    until: int,
    folder: Path,
    scheduling: Scheduling | None = None,
    tick: int = SECOND,
    waiting: Iterable[str] = (),
) -> Played:
    """Run a program over these arrivals, to the clock `until`, at which everything ends and is told.

    `told` are the queries and operators whose rows are kept; `waiting` are those whose rows count as held, all by
    default.
    """
    scheduling = scheduling or Scheduling()
    sink, played, counted = _Keeps(), Played(until=until), frozenset(waiting)
    sinks = dict.fromkeys(told, sink)
    engine = Engine(program, LocalBackend(), str(folder), sinks, scheduling=scheduling)

    def note(clock: int, started: float) -> None:
        seconds = time.perf_counter() - started
        played.seconds.append(seconds)
        for name, table in sink.tables:
            played.told.setdefault(name, []).append((clock, seconds, table))
        sink.tables.clear()
        states = [one for one in engine.status().queries if not counted or one.name in counted]
        rows, size = sum(one.state_rows for one in states), sum(one.state_bytes for one in states)
        played.held.append(Held(clock, rows, size))

    def tick_until(before: int, end: int) -> None:
        periodic = scheduling.timestamps.when is When.EVERY
        clock = scheduling.timestamps.next_due(before) if periodic else before + tick
        step = scheduling.timestamps.interval if periodic else tick
        while clock < end and played.held and played.held[-1].rows:
            started = time.perf_counter()
            if engine.tick(clock) is not None:
                note(clock, started)
            clock += step

    last = NEVER
    try:
        for clock, rows in arrivals:
            if last != NEVER:
                tick_until(last, clock)
            started = time.perf_counter()
            engine.round(rows, clock)
            note(clock, started)
            last = clock
        tick_until(last, until)
        started = time.perf_counter()
        engine.end(until)
        note(until, started)
    finally:
        engine.close()
        engine.backend.close()
    return played
