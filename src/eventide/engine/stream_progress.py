"""The time of one stream while it runs: who its sources are, what its policy has promised, what it lost.

Law: the heartbeat is that of all sources together, never goes back, and is moved only by rounds that are committed. The
heartbeats of single sources are the generator's, whose snapshot keeps them, and never behind the combined one.
Sources are numbered as they appear; a number is never given twice. A source that was declared over is not waited for,
until it speaks again; when all are over, time has come as far as the largest time seen.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eventide.engine.promises import source_names, take_promises
from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import HeartbeatGenerator, Heartbeats, Policy
from eventide.eventtime.instant import NEVER, Instants
from eventide.eventtime.policies.punctuated import PunctuatedGenerator, punctuated_in, tell_heard
from eventide.eventtime.policies.wrappers.expected_sources import tell_end
from eventide.eventtime.policies.wrappers.future_guard import FutureGuard
from eventide.eventtime.reason import LeftOut, Reason, beyond, left_out_of, those
from eventide.eventtime.sources import LastSeen, least_without
from eventide.plan.declared.stream import Stream, Timestamps


@dataclass(frozen=True)
class StreamPoint:
    """The names of the sources by number, the heartbeat, the clock, and the largest time of a row."""

    stream: Stream
    sources: pa.Array
    heartbeat: int
    clock: int
    latest: int

    def moment_of(self, clock: int) -> int:
        """The clock of a round without rows, for this stream."""
        return self.clock if self.stream.arrival is not None else max(clock, self.clock)


log = logging.getLogger(__name__)

ALL_SILENT = Reason("timeout", "all streams that are read with it were silent")

LEAP = 3_600_000_000
"""Microseconds by which the arrival time of a row may be ahead of the clock and be believed at once."""

RECENT_ROWS = 10_000
"""The drop ratio called recent forgets half of what it knows with every so many rows."""


@dataclass
class Losses:
    """How many rows were wanted by some query, and how many of them came too late; for all time, and lately."""

    rows: int = 0
    wanted: int = 0
    late: int = 0
    revising: int = 0
    rejected: int = 0
    recent_wanted: float = 0.0
    recent_late: float = 0.0
    punctuations: int = 0
    prods: int = 0

    def count(self, wanted: int, late: int) -> None:
        """Take a round into account."""
        self.wanted += wanted
        self.late += late
        kept = 0.5 ** (wanted / RECENT_ROWS)
        self.recent_wanted = self.recent_wanted * kept + wanted
        self.recent_late = self.recent_late * kept + late

    @property
    def drop_ratio(self) -> float:
        """The share of wanted rows that were late, over all time."""
        return self.late / self.wanted if self.wanted else 0.0

    @property
    def recent_drop_ratio(self) -> float:
        """The share of wanted rows that were late, lately."""
        return self.recent_late / self.recent_wanted if self.recent_wanted else 0.0


@dataclass
class StreamProgress:
    """A stream while it runs: its sources, heartbeats, clock and losses."""

    stream: Stream
    generator: HeartbeatGenerator
    sources: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    heartbeat: int = NEVER
    clock: int = NEVER
    latest: int = NEVER
    losses: Losses = field(default_factory=Losses)
    hearing: LastSeen = field(default_factory=LastSeen)
    over: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """The sources that were declared over."""
    moved: int = NEVER
    """The clock at which the heartbeat moved last."""
    arrivals: Arrivals | None = None
    """The cells of the last round that had rows."""
    moved_by: frozenset[str] = frozenset()
    """The other streams whose rows move its time, by bounds between them."""
    catches_up: Callable[[int], int] = lambda clock: NEVER
    """How far a silence of all streams that are read with it lets time come at a clock."""
    leap: int | None = None
    """An arrival time far beyond the clock, which no later round has confirmed yet."""
    _caught_up: int = field(default=NEVER, init=False)
    _own: Instants = field(default_factory=lambda: np.zeros(0, dtype=np.int64), init=False)
    """How far a common silence, and the sources themselves, had come when they were asked last."""

    @classmethod
    def start(cls, stream: Stream) -> StreamProgress:
        """A stream of which nothing has been seen."""
        return cls(stream, policy_of(stream).start(), pa.array(stream.known, pa.string()))

    def moment(self, clock: int, summary: pa.Table, promises: pa.Table | None = None) -> int:
        """The clock of a round for this stream: the largest arrival time so far where rows, or promises, know it."""
        if self.stream.arrival is not None:
            return self._arrived(summary, promises)[0]
        return max(self.clock, clock)

    def _arrived(self, summary: pa.Table, promises: pa.Table | None) -> tuple[int, int | None]:
        """The clock by what rows and promises say of their arrival, and a leap that it does not follow yet.

        One row may say that it arrived a day after all others. The clock could never go back from there, and every
        later row would be late. So beyond an hour it goes only as far as two cells, or two rounds, agree.
        """
        assert self.stream.arrival is not None
        columns = [table.column("__at").drop_null() for table in (summary, promises) if table is not None]
        times = np.sort(np.concatenate([np.asarray(column.to_numpy(), dtype=np.int64) for column in columns]))
        if not len(times):
            return self.clock, self.leap
        last = int(times[-1])
        if self.stream.column(self.stream.arrival).type.upper() not in ("TIMESTAMP", "TIMESTAMP_NTZ"):
            return max(self.clock, last), None
        clock = self.clock if self.clock != NEVER else int(times[0])
        if self.leap is not None and last >= self.leap - LEAP and times[0] > clock + LEAP:
            clock = max(clock, min(self.leap, last))
        for together in np.split(times, np.flatnonzero(np.diff(times) > LEAP) + 1):
            if len(together) > 1 or together[0] <= clock + LEAP:
                clock = max(clock, int(together[-1]))
        return clock, last if last > clock else None

    def number_sources(self, cells: pa.Table, columns: tuple[str, ...]) -> pa.Table:
        """The sources of some rows: the columns that name each (`__s0`, ...), its name (`__name`) and number (`__by`).

        New ones get a number.
        """
        cells = cells.filter(pc.is_valid(cells.column("__lo")))
        found, first = np.unique(self._numbers(cells, columns), return_index=True)
        names = self.sources.take(pa.array(found)) if columns else pa.nulls(len(found), pa.string())
        named = {f"__s{j}": cells.column(name).take(pa.array(first)) for j, name in enumerate(columns)}
        return pa.table({**named, "__name": names, "__by": pa.array(found, pa.int64())})

    def observe(
        self, clock: int, summary: pa.Table, source_columns: tuple[str, ...], promises: pa.Table | None = None
    ) -> None:
        """Learn from the cells of a round, then from the promises in it: rows of one round come together."""
        if self.stream.arrival is not None:
            before, (_, self.leap) = self.leap, self._arrived(summary, promises)
            if before is not None and self.leap is None and clock < before - LEAP:
                log.warning(
                    "stream %r: a row said that it arrived %d s after the clock, and later ones did not agree: it has "
                    "not moved time",
                    self.stream.name,
                    (before - self.clock) // 1_000_000,
                    extra={"event": "arrival ahead of the clock"},
                )
        self.clock = clock
        self.losses.rows += int(pc.sum(summary.column("__n")).as_py() or 0)
        if self.stream.timestamps is not Timestamps.EXTERNAL:
            # Rows are stamped with the clock of their round, so time is exactly as far as the clock.
            return
        cells = summary.filter(pc.is_valid(summary.column("__lo")))
        arrivals = Arrivals.silence(clock)
        if cells.num_rows:
            lows, highs = _int64(cells, "__lo"), _int64(cells, "__hi")
            self.latest = max(self.latest, int(highs.max()))
            arrivals = Arrivals.of_cells(clock, self._numbers(cells, source_columns), _int64(cells, "__n"), lows, highs)
        self.arrivals = arrivals
        self.hearing.note(arrivals)
        self.over[arrivals.sources[arrivals.sources < len(self.over)]] = False
        self.generator.observe(arrivals)
        if promises is not None and promises.num_rows:
            self._believe(promises)

    def end_sources(self, names: Iterable[str]) -> None:
        """These sources are over, until one of them speaks again."""
        for name in names:
            number = pc.index(self.sources, name).as_py()
            if number < 0:
                number = len(self.sources)
                self.sources = pa.concat_arrays([self.sources, pa.array([name], pa.string())])
            self.over = grown(self.over, number + 1, False)
            self.over[number] = True
            tell_end(self.generator, number)

    def promise(self, clock: int, explicit: int | None = None) -> Heartbeats:
        """How far time has come at this clock, for all sources together and for each by its number.

        `explicit` is a promise given from outside, for all of them. No source is behind the combined heartbeat.
        """
        external = self.stream.timestamps is Timestamps.EXTERNAL
        heartbeats = self.generator.heartbeats(clock) if external else Heartbeats(clock, np.zeros(0, dtype=np.int64))
        together = self._combined(heartbeats) if external else clock
        self._caught_up = self.catches_up(clock) if external else NEVER
        given = explicit if explicit is not None else NEVER
        combined = max(self.heartbeat, together, self._caught_up, given)
        own = self._own = grown(heartbeats.by_source, len(self.sources), NEVER)
        over = grown(self.over, len(own), False)
        return Heartbeats(combined, np.maximum(np.where(over, np.maximum(own, self.latest), own), combined))

    def promised(self) -> Heartbeats:
        """What the last committed round has promised of all, which holds for each."""
        return Heartbeats(self.heartbeat, np.full(len(self.sources), self.heartbeat, dtype=np.int64))

    def _believe(self, promises: pa.Table) -> None:
        """Give the promises of a round to the policy, and count them."""
        self.losses.punctuations += int(pc.sum(promises.column("__n")).as_py())
        if self.stream.future is not None:
            # A promise from the future moves time no more than a row does.
            promises = promises.filter(pc.less_equal(promises.column("__hi"), self.clock + self.stream.future.ahead))
        generator = punctuated_in(self.generator)
        assert isinstance(generator, PunctuatedGenerator)
        columns = tuple(f"__s{j}" for j in range(len(self.stream.source)))
        spoken_for = take_promises(generator, promises, columns, self._numbers, lambda: self.sources)
        tell_heard(self.generator, spoken_for, self.clock)
        self.hearing.hear(spoken_for, self.clock)

    def _combined(self, heartbeats: Heartbeats) -> int:
        """What is promised for all together, without those who are over."""
        if not self.over.any():
            return heartbeats.combined
        absent = grown(self.over, max(len(self.sources), len(heartbeats.by_source)), False).copy()
        for out in left_out_of(self.generator):
            absent[out.sources[out.sources < len(absent)]] = True
        if absent.all():
            return max(heartbeats.combined, self.latest)
        return least_without(heartbeats, absent)

    def left_out(self) -> tuple[LeftOut, ...]:
        """The sources that nobody waits for, and the rules; as of the last promise."""
        if self.stream.timestamps is not Timestamps.EXTERNAL:
            return ()
        passed = beyond(ALL_SILENT, self._caught_up, self._own)
        return (*those(Reason("over", "it was declared over"), self.over), *left_out_of(self.generator), *passed)

    def reach(self, heartbeat: int, clock: int) -> None:
        """A round is committed with this heartbeat."""
        if heartbeat > self.heartbeat:
            self.heartbeat, self.moved = heartbeat, self.moment_of(clock)

    def moment_of(self, clock: int) -> int:
        """The clock of a round without rows, for this stream."""
        return self.point().moment_of(clock)

    def point(self) -> StreamPoint:
        """How far it has come now."""
        return StreamPoint(self.stream, self.sources, self.heartbeat, self.clock, self.latest)

    def name_of(self, number: int) -> str:
        """The name of a source."""
        return str(self.sources[number].as_py()) if number < len(self.sources) else f"source {number}"

    def _numbers(self, cells: pa.Table, source_columns: tuple[str, ...]) -> NDArray[np.intp]:
        if not source_columns:
            return np.zeros(cells.num_rows, dtype=np.intp)
        names = source_names(cells, source_columns)
        found = pc.index_in(names, value_set=self.sources)
        if found.null_count:
            fresh = pc.unique(pc.filter(names, pc.is_null(found)))
            self.sources = pa.concat_arrays([self.sources, fresh])
            found = pc.index_in(names, value_set=self.sources)
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.intp)

    def saved(self) -> dict[str, Any]:
        """Plain data for the round record; the names of the sources are saved apart."""
        return {
            "pacemaker": self.generator.snapshot(),
            "heartbeat": self.heartbeat,
            "clock": self.clock,
            "latest": self.latest,
            "losses": vars(self.losses).copy(),
            "hearing": self.hearing.snapshot(),
            "over": np.flatnonzero(self.over).tolist(),
            "moved": self.moved,
            "leap": self.leap,
        }

    @classmethod
    def restored(cls, stream: Stream, saved: dict[str, Any], sources: pa.Array) -> StreamProgress:
        """Continue from what was saved."""
        # A stream whose policy became another one has its heartbeat, and learns anew.
        snapshot = saved["pacemaker"]
        generator = policy_of(stream).start() if snapshot is None else policy_of(stream).resume(snapshot)
        losses = Losses(**saved["losses"])
        # Rounds that were committed before these were kept do not have them.
        hearing = LastSeen.restored(saved["hearing"]) if "hearing" in saved else LastSeen()
        over = np.zeros(max(saved.get("over", ()), default=-1) + 1, dtype=np.bool_)
        over[saved.get("over", [])] = True
        moved = saved.get("moved", NEVER)
        beat, clock, latest = saved["heartbeat"], saved["clock"], saved["latest"]
        leap = saved.get("leap")
        return cls(stream, generator, sources, beat, clock, latest, losses, hearing, over, moved, leap=leap)


def policy_of(stream: Stream) -> Policy:
    """The declared policy, guarded against the future where rows from it are to wait."""
    if stream.future is not None:
        return FutureGuard(stream.policy, stream.future.ahead)
    return stream.policy


def _int64(table: pa.Table, name: str) -> NDArray[np.int64]:
    return np.asarray(table.column(name).to_numpy(), dtype=np.int64)
