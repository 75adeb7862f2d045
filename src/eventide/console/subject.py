"""What a console shows: an engine at work, or the record that one has left.

Law: both stand still while they are looked at: `Standing` is of one committed round, and asking for it waits for none.
A stopped run is told from its checkpoint alone; nothing is written there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from eventide.console.history import RoundHistory
from eventide.console.log_lines import LogLines
from eventide.engine.checkpoint.record import RoundRecord
from eventide.engine.introspection.status import QueryStatus, Status, StreamStatus
from eventide.engine.introspection.why import ProgressReport
from eventide.engine.operators.open_windows import known
from eventide.engine.operators.placement import state_bytes
from eventide.engine.running import Running
from eventide.errors import EventideError
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query
from eventide.results.accuracy import AccuracySummary
from eventide.results.breakdown import ByPoint
from eventide.storage.storage import Storage
from eventide.telemetry.heartbeat_trace import HeartbeatTrace
from eventide.telemetry.tracing import stopped_traces, traced
from eventide.watch.alert import Alert
from eventide.watch.watching import watch


@dataclass(frozen=True)
class Learned:
    """How early answers of a query have done: in all, and by how early they came."""

    summary: AccuracySummary
    values: tuple[str, ...]
    by_point: ByPoint


@dataclass(frozen=True)
class About:
    """The run itself; times are of this machine, in seconds since 1970. `running` is False for a record."""

    running: bool
    checkpoint: str
    started: float | None = None
    continued_after: int | None = None
    state_bytes: int = 0
    spark: str | None = None
    failure: str | None = None


@dataclass(frozen=True)
class Standing:
    """How a program stands after a round."""

    program: Program
    status: Status
    progress: ProgressReport | None
    about: About
    early: Mapping[str, Learned] = field(default_factory=dict)
    alerts: tuple[Alert, ...] = ()
    traces: tuple[HeartbeatTrace, ...] = ()


@dataclass(frozen=True)
class Look:
    """What somebody wants to see of a standing: a page's own choices, and only what came after round `since`."""

    standing: Standing
    history: RoundHistory
    log: tuple[str, ...]
    asked: Mapping[str, str]
    since: int = -1


class Subject(Protocol):
    """Whatever a console can show."""

    history: RoundHistory
    log: LogLines

    @property
    def version(self) -> tuple[int, bool]:
        """What changes whenever there is something new: the last round, and whether it was the end."""
        ...

    @property
    def storage(self) -> Storage:
        """The checkpoint."""
        ...

    def standing(self) -> Standing:
        """How things stand now."""
        ...

    def plan(self) -> object:
        """What is another object when the plan has changed."""
        ...


class LiveSubject:
    """An engine that runs; it is listened to from the first look on."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.history, self.log = RoundHistory(), LogLines()
        self._started = time.time()
        self._continued_after = running.engine.state.round
        self._listening = False

    def begin(self) -> None:
        """Remember rounds from now on; safe to call again."""
        if not self._listening:
            self._listening = True
            self._running.on_round(self.history.note)
            watch(self._running)
            traced(self._running)
            self.log.begin()

    def end(self) -> None:
        """Listen to the log no more."""
        self.log.end()

    @property
    def version(self) -> tuple[int, bool]:
        """The last round, and whether it was the end."""
        return self._running.engine.state.round, self._running.ended.is_set()

    @property
    def storage(self) -> Storage:
        """The checkpoint."""
        return self._running.engine.checkpoint.storage

    def plan(self) -> object:
        """The plan that is run."""
        return self._running.engine.plan

    def standing(self) -> Standing:
        """How the engine stands after its last round."""
        running, engine = self._running, self._running.engine
        spark = getattr(running, "spark", None)
        failure = running.failure
        about = About(
            not running.ended.is_set(),
            engine.checkpoint.storage.where,
            self._started,
            self._continued_after if self._continued_after >= 0 else None,
            sum(map(state_bytes, engine.state.operators.values())),
            None if spark is None else spark.sparkContext.uiWebUrl,
            str(failure) if isinstance(failure, EventideError) else None,
        )
        early = {
            name: Learned(state.accuracy.summary(), tuple(state.accuracy.values), state.accuracy.by_point.copy())
            for name, state in engine.early.states.items()
        }
        progress = engine.state.progress(engine.program, engine.scheduling)
        alerts, traces = watch(running).board.standing, traced(running).traces()
        return Standing(engine.program, running.status(), progress, about, early, alerts, traces)


class StoppedSubject:
    """The record of a run: nothing about it changes."""

    def __init__(self, progress: ProgressReport, storage: Storage) -> None:
        self.history, self.log = RoundHistory(), LogLines()
        self._progress, self._storage = progress, storage

    @property
    def version(self) -> tuple[int, bool]:
        """The round of the record."""
        return self._progress.record.round, True

    @property
    def storage(self) -> Storage:
        """The checkpoint."""
        return self._storage

    def plan(self) -> object:
        """The program of the record."""
        return self._progress.program

    def standing(self) -> Standing:
        """How the run stood when it ended."""
        record, progress = self._progress.record, self._progress
        size = sum(file.bytes for file in record.files)
        last = _last_write(self._storage, record.round)
        about = About(False, self._storage.where, started=last, continued_after=record.round, state_bytes=size)
        return Standing(progress.program, status_of(progress), progress, about, traces=tuple(stopped_traces(progress)))


def status_of(progress: ProgressReport) -> Status:
    """The status of the engine that wrote a record."""
    record, program = progress.record, progress.program
    streams = tuple(
        StreamStatus.of(progress.as_it_is(stream)[0]).with_left_out(progress, stream) for stream in program.streams
    )
    queries = tuple(
        _query_status(record, progress, step.name, isinstance(step, Query))
        for step in program.steps
        if step.name in record.queries
    )
    words = progress.scheduling.words
    return Status("stopped", record.round, record.clock, record.ended, streams, queries, scheduling=words)


def _query_status(record: RoundRecord, progress: ProgressReport, name: str, windows: bool) -> QueryStatus:
    saved: dict[str, Any] = record.queries[name]
    parts = [part for kind in saved["state"].values() for part in kind]
    rows, size = sum(part["rows"] for part in parts), sum(part["bytes"] for part in parts)
    if windows:
        opened = progress.open(name)
        return QueryStatus(
            name, saved["place"], len(opened.open()), rows, size, known(opened.closed_before), progress.next_data(name)
        )
    time_of = known(int(saved["frontier"]["time"]))
    return QueryStatus(name, saved["place"], 0, rows, size, time_of, progress.operator_data(name))


def _last_write(storage: Storage, round: int) -> float | None:
    """When the record was written, where the checkpoint is a folder of this machine."""
    for file in Path(storage.where).glob(f"rounds/*{round}.json"):
        return file.stat().st_mtime
    return None


def about_data(about: About) -> dict[str, Any]:
    """The run as plain data."""
    return asdict(about)
