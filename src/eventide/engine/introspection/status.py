"""The status of an engine, the times of its sources, and a warning when state grows because a source is idle.

Laws. `Status` is plain values, ready for JSON. `SourceTimes` has arrays over sources, for those who show many of them.
Both are read from the record of the last committed round, so asking changes nothing and disturbs nobody. `NEVER` stands
for what is not known. A source that a rule leaves out is waited for by nobody; its rule is named. The one that `holds`
time back is the least far of those that are waited for, and only where it is behind most others. `StateGrowth` warns
when state is large, and again each time it has doubled; not of state that is small, or that waits for rows which still
come. When state has shrunk, it warns anew as it grows.

>>> Status("local", 3, 10, False, (), (), {}).as_json()["round"]
3
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eventide.engine.introspection.why import ProgressReport
from eventide.engine.operators.frontier import after
from eventide.engine.operators.operator import Operator, Work
from eventide.engine.operators.placement import place, state_bytes, state_rows
from eventide.engine.stream_progress import StreamProgress
from eventide.eventtime.arrays import grown
from eventide.eventtime.instant import EDGE, NEVER, Instants
from eventide.plan.declared.stream import Stream, TimeKind
from eventide.profile.amounts import size_words


@dataclass(frozen=True)
class StreamStatus:
    """A stream: rows so far, how far its time is, how far behind the clock, and what was lost.

    `left_out` has an entry for each rule by which sources are not waited for: how many, and the first few. `backlog` is
    how many records wait in each partition of a topic, where the local engine reads one.
    """

    name: str
    rows: int
    wanted: int
    late: int
    revising: int
    rejected: int
    drop_ratio: float
    recent_drop_ratio: float
    sources: int
    heartbeat: int | None
    latest: int | None
    lag: int | None
    punctuations: int = 0
    left_out: tuple[dict[str, Any], ...] = ()
    prods: int = 0
    unitless: bool = False
    """Its times are numbers of a sequence."""
    backlog: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, stream: StreamProgress) -> StreamStatus:
        """The status of a stream; `lag` is how far the heartbeat is behind the largest time seen."""
        losses = stream.losses
        beat, latest = _known(stream.heartbeat), _known(stream.latest)
        return cls(
            stream.stream.name,
            losses.rows,
            losses.wanted,
            losses.late,
            losses.revising,
            losses.rejected,
            losses.drop_ratio,
            losses.recent_drop_ratio,
            max(1, len(stream.sources)),
            beat,
            latest,
            None if beat is None or latest is None else max(0, latest - beat),
            losses.punctuations,
            prods=losses.prods,
            unitless=stream.stream.time_kind is TimeKind.SEQUENCE,
        )

    def with_left_out(self, progress: ProgressReport | None, stream: Stream) -> StreamStatus:
        """A copy with the sources that nobody waits for."""
        return self if progress is None else replace(self, left_out=tuple(progress.left_out_data(stream)))


@dataclass(frozen=True)
class QueryStatus:
    """A query: where its state is and how large, how far it is closed, and what its next window or row waits for.

    `early` tells how its early answers have done, where someone has asked for some.
    """

    name: str
    placement: str
    open_slices: int
    state_rows: int
    state_bytes: int
    bound: int | None
    waits_for: dict[str, Any] | None = None
    early: dict[str, Any] | None = None

    @classmethod
    def of(
        cls,
        operator: Operator,
        progress: ProgressReport | None = None,
        on_cluster: bool = False,
    ) -> QueryStatus:
        """The status of an operator; `on_cluster`: what it keeps is there, also if that is nothing now."""
        opened, waits_for = operator.open(), None
        closed = after(operator.frontier.time) if opened is None else opened.closed_before
        if progress is not None:
            name = operator.name
            waits_for = progress.operator_data(name) if opened is None else progress.next_data(name)
        return cls(
            operator.name,
            "cluster" if on_cluster else place(operator),
            len(operator.holds),
            state_rows(operator),
            state_bytes(operator),
            _known(closed),
            waits_for,
        )


@dataclass(frozen=True)
class Status:
    """An engine after its last round; `seconds` is the time of that round by step.

    `warnings` has a sentence for everything in the checkpoint that was found damaged; `scheduling` says when silent
    streams are asked, and by which heartbeats operators go. `work` is what was done since the start for each stream
    (read) and each query and operator: rows in and out, seconds.
    """

    engine: str
    round: int
    clock: int
    ended: bool
    streams: tuple[StreamStatus, ...]
    queries: tuple[QueryStatus, ...]
    seconds: dict[str, float] = field(default_factory=dict)
    rows_per_second: float = 0.0
    warnings: tuple[str, ...] = ()
    scheduling: dict[str, str] = field(default_factory=dict)
    work: Mapping[str, Work] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain data: instants in microseconds, those of streams and the clock in ISO 8601 as well.

        >>> cars = StreamStatus("cars", 1, 1, 0, 0, 0, 0.0, 0.0, 1, 60_000_000, 62_500_000, 2_500_000)
        >>> data = Status("local", 3, 63_000_000, False, (cars,), ()).as_json()
        >>> data["clock_at"], [data["streams"][0][name] for name in ("heartbeat_at", "latest_at", "lag_seconds")]
        ('1970-01-01T00:01:03.000000Z', ['1970-01-01T00:01:00.000000Z', '1970-01-01T00:01:02.500000Z', 2.5])
        """
        data = asdict(replace(self, work={}))
        data["work"] = {name: one.as_json() for name, one in self.work.items()}
        times = [stream for stream in self.streams if not stream.unitless]
        data["clock_at"] = moment(self.clock) if times else None
        for stream, shown in zip(self.streams, data["streams"], strict=True):
            known = stream in times
            shown["heartbeat_at"] = moment(stream.heartbeat) if known else None
            shown["latest_at"] = moment(stream.latest) if known else None
            shown["lag_seconds"] = stream.lag / 1_000_000 if known and stream.lag is not None else None
        return data


def moment(instant: int | None) -> str | None:
    """A time as ISO 8601 in UTC; None for what is not known, or beyond the calendar."""
    if instant is None:
        return None
    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)
    except OverflowError:
        return None
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _known(instant: int) -> int | None:
    """None for the ends of time, which mean nothing to a reader."""
    return None if instant == NEVER or abs(instant) >= EDGE else instant


SEPARATOR = "\x1f"
"""Between the values that name a source together."""


@dataclass(frozen=True)
class SourceTimes:
    """The sources of a stream by number: what each has promised, the largest time it spoke of, when it was heard.

    `left_out` is 0 for a source that is waited for; for others the number of its rule, `rules` from 1 on. `clock` is
    that of the round.

    >>> never, nobody = np.array([5, 5, 5]), np.zeros(3, dtype=np.intp)
    >>> times = SourceTimes(pa.array(["a", "b", "c"]), np.array([70, 20, 80]), never, never, nobody, (), 9, 20)
    >>> times.name(times.holds), [times.name(one) for one in times.furthest_behind(2)]
    ('b', ['b', 'a'])
    """

    names: pa.Array
    heartbeats: Instants
    largest: Instants
    heard: Instants
    left_out: NDArray[np.intp]
    rules: tuple[str, ...]
    clock: int
    heartbeat: int
    ahead: int | None = None
    """Rows whose time is so far ahead of the clock are from the future, where the stream says so."""

    @classmethod
    def of(cls, time: StreamProgress, heartbeats: Instants, moment: int) -> SourceTimes:
        """The sources of a stream that has given these heartbeats; copies of what the next round changes."""
        count = len(heartbeats)
        numbers, rules = np.zeros(count, dtype=np.intp), []
        for out in time.left_out():
            rules.append(out.reason.rule)
            left = out.sources[out.sources < count]
            numbers[left[numbers[left] == 0]] = len(rules)
        largest, heard = (grown(one, count, NEVER)[:count].copy() for one in (time.hearing.largest, time.hearing.heard))
        ahead = None if time.stream.future is None else int(time.stream.future.ahead)
        names = time.sources if time.stream.source else pa.array([time.stream.name])
        return cls(names, heartbeats, largest, heard, numbers, tuple(rules), moment, time.heartbeat, ahead)

    def __len__(self) -> int:
        return len(self.heartbeats)

    def name(self, source: int) -> str:
        """The name of a source as a person reads it."""
        return str(self.names[source]).replace(SEPARATOR, "|") if source < len(self.names) else f"source {source}"

    def rule(self, source: int) -> str | None:
        """The rule by which a source is left out; None where it is waited for."""
        number = int(self.left_out[source])
        return self.rules[number - 1] if number else None

    @cached_property
    def waited_for(self) -> NDArray[np.bool_]:
        """Which sources are waited for, as truth values."""
        found: NDArray[np.bool_] = self.left_out == 0
        return found

    def furthest_behind(self, most: int) -> list[int]:
        """So many sources: those that are waited for first, the least far of them first."""
        order = np.lexsort((self.largest, self.heartbeats, ~self.waited_for))
        return [int(one) for one in order[:most]]

    @cached_property
    def holds(self) -> int:
        """The source that holds all others back; -1 where no single one does."""
        waited = self.heartbeats[self.waited_for]
        if len(waited) < 2 or not np.median(waited) > waited.min():
            return -1
        return self.furthest_behind(1)[0]

    def silent(self, source: int) -> int | None:
        """For how long a source has not been heard, by the clock; None where it never was."""
        return None if self.heard[source] == NEVER else max(0, self.clock - int(self.heard[source]))


def source_times(progress: ProgressReport, stream: Stream) -> SourceTimes:
    """The sources of a stream as of the last round; none where rows are stamped with the clock."""
    time, heartbeats = progress.as_it_is(stream)
    return SourceTimes.of(time, heartbeats, time.moment_of(progress.record.clock))


log = logging.getLogger(__name__)

LARGE = 64 * 1024 * 1024
"""Bytes of state from which on growth is reported."""


class StateGrowth:
    """Warns when state is large and waits for an idle source, and again each time the state has doubled."""

    def __init__(self, large: int = LARGE) -> None:
        self._large = self._next = large

    def look(self, operators: Mapping[str, Operator], progress: ProgressReport | None, on_cluster: bool) -> None:
        """Look at the state after a round; `on_cluster`: what is too large for the driver goes there."""
        size = sum(map(state_bytes, operators.values()))
        if size < self._next:
            while self._next > self._large and size < self._next // 8:
                self._next //= 2
            return
        largest = max(operators.values(), key=state_bytes)
        held = _silent_source(QueryStatus.of(largest, progress).waits_for)
        if held is None:
            return
        while self._next <= size:
            self._next *= 2
        stream, source, heard = held
        where = (
            "what is above driver.memory goes to files of the checkpoint"
            if on_cluster
            else "all of it is in the memory of this process"
        )
        log.warning(
            "state has grown to %s (%s, %s rows) and waits for source %r of stream %r, %s: let it speak, end it, or "
            "declare IDLE AFTER, which leaves a silent source out, or a DRATIO or SLACK, which limits what is held; %s",
            size_words(size),
            largest.name,
            f"{state_rows(largest):,}",
            source,
            stream,
            "which has never spoken" if heard is None else f"silent since {_moment(heard)}",
            where,
            extra={"event": "state has grown"},
        )


def _silent_source(waits_for: dict[str, Any] | None) -> tuple[str, str, int | None] | None:
    """The stream and the first source that are waited for at the end of the way, if that is silent."""
    while waits_for is not None and "stream" not in waits_for:
        below = waits_for.get("waits_for")
        waits_for = below[0] if isinstance(below, list) and below else below if isinstance(below, dict) else None
    if waits_for is None or not waits_for["sources"] or not waits_for["sources"][0]["silent"]:
        return None
    first = waits_for["sources"][0]
    return waits_for["stream"], first["source"], first["heard"]


def _moment(clock: int) -> str:
    return f"{datetime.fromtimestamp(clock / 1_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
