"""Why a window is open: who holds it, by which rule, since when, and when it closes if nothing more arrives.

Law: everything is read from the last committed round, so asking changes nothing and disturbs nobody. A window waits for
what its query reads. That is a stream, and then it is held by the sources whose heartbeats are least and not far
enough, leaving out those that a rule leaves out; or it is another query, or an operator, which waits for what it reads
in turn. Each kind of reader has its own function, and the answer is the chain of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter

import numpy as np
import pyarrow as pa

from eventide.engine.checkpoint.record import RoundRecord
from eventide.engine.common_time import restored
from eventide.engine.introspection.waits import Json, OperatorWait, QueryWait, SlowSource, StreamWait, Wait
from eventide.engine.operators.open_windows import Need, OpenQuery, known
from eventide.engine.scheduling.frontier_limits import others_of, shape_of
from eventide.engine.stream_progress import StreamProgress
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants
from eventide.eventtime.reason import EXPECTED, Reason, reason_of
from eventide.eventtime.scheduling.expensive import SelectivityTracker
from eventide.eventtime.scheduling.labels import HeartbeatScope
from eventide.eventtime.scheduling.options import Scheduling, When
from eventide.plan.binding import through
from eventide.plan.declared.join import JoinKind, Lookup
from eventide.plan.declared.program import Operator, Program
from eventide.plan.declared.query import Query
from eventide.plan.declared.rows import Queue, Rows
from eventide.plan.declared.stream import Stream, Timestamps

FIRST_FEW = 3
"""So many of the sources that hold a window are named."""

HORIZON = 2**49
"""How far ahead is looked: about 18 years of microseconds. What has not closed by then waits for a row."""

INTERNAL = Reason("clock", "rows are stamped with the clock: time is as far as that", common=True)
NOBODY = Reason("silence", "every source is left out by a rule: time goes on with the next row", common=True)
NO_ROWS = Reason("rows", "no row has come yet", common=True)


@dataclass(frozen=True)
class OpenWindow:
    """An open window, what it waits for, and the clock at which it closes if nothing more arrives.

    `rows` more have to come before it can close at all, where it is a window over a count of rows.
    """

    query: OpenQuery
    start: int
    end: int
    rows: int
    wait: Wait
    closes_at: int | None

    def as_data(self) -> Json:
        """The window as plain data."""
        return {
            "window_start": self.start,
            "window_end": self.end,
            "rows_missing": self.rows,
            "waits_for": self.wait.as_data(),
            "closes_at": self.closes_at,
        }


@dataclass(frozen=True)
class ProgressReport:
    """How a program stood after its last committed round: all that is needed to say why."""

    program: Program
    record: RoundRecord
    names: Callable[[str], pa.Array]
    """The names of the sources of a stream."""
    open: Callable[[str], OpenQuery]
    """What is open of a query."""
    waiting: Callable[[str], Instants]
    """The times of the rows that a lookup has not emitted yet."""
    scheduling: Scheduling
    _now: dict[str, tuple[StreamProgress, Instants]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def windows(self, query: str, most: int | None = None) -> list[OpenWindow]:
        """Every open window of a query that holds rows, or the first so many of them, with what each waits for."""
        opened = self.open(self.program.query(query).name)
        found: list[OpenWindow] = []
        for start, end in opened.open()[:most]:
            # What the clock alone does not close in the end, it does not close further on either.
            by_clock = not found or found[-1].closes_at is not None
            found.append(self._window(opened, start, end, by_clock))
        return found

    def window(self, query: str, start: int) -> OpenWindow | None:
        """The window that starts there, with rows or without; None if it is closed."""
        opened = self.open(self.program.query(query).name)
        end = opened.end_of(start)
        return None if opened.is_closed(end) or self.record.ended else self._window(opened, start, end)

    def next_data(self, query: str) -> Json | None:
        """The next window of a query to close and what it waits for; None where nothing is open.

        The clock at which it closes is not searched.
        """
        opened = self.open(query)
        windows = opened.open()
        if not windows or self.record.ended:
            return None
        start, end = windows[0]
        return {"window_start": start, **self.reading(query, opened.needs(end)).as_data()}

    def operator(self, name: str) -> tuple[int | None, OperatorWait] | None:
        """How far an operator has come, and what it waits for to go on; None where it does not run by itself."""
        operator, saved = self.program.operator(name), self.record.queries.get(name)
        if operator is None or saved is None or self.record.ended:
            return None
        time = int(saved["frontier"]["time"])
        return known(time), self._of_operator(operator, Need(max(time, -EDGE) + 1))

    def operator_data(self, name: str) -> Json | None:
        """How far an operator has come and what it waits for; None where it does not run by itself."""
        found = self.operator(name)
        return None if found is None else {"time": found[0], **found[1].as_data()}

    def _window(self, opened: OpenQuery, start: int, end: int, by_clock: bool = True) -> OpenWindow:
        need = opened.needs(end)
        wait = self.reading(opened.query, need)
        closes = wait.closes_at(self._reached_at) if by_clock and not need.rows else None
        return OpenWindow(opened, start, end, need.rows, wait, closes)

    def reading(self, query: str, need: Need) -> Wait:
        """What a query waits for, to have the heartbeat it needs; it may read through a merge to the inputs."""
        reads = self.program.query(query).stream
        sources = through(self.program, self.program.query(query))
        own = self.wait(reads, need) if sources == (reads,) else self._of_merge(reads, sources, need)
        schedule = self._schedule(query, need)
        if schedule is None or own.has_come:
            return schedule or own
        return replace(schedule, inputs=tuple(sorted((own, *schedule.inputs), key=attrgetter("least"))))

    def _schedule(self, name: str, need: Need) -> OperatorWait | None:
        """The slower streams by which a query or operator goes without reading them, if there are any."""
        others = [self._of_stream(self.program.stream(other), need) for other in self._others.get(name, ())]
        behind = tuple(sorted((wait for wait in others if not wait.has_come), key=attrgetter("least")))
        return OperatorWait(self.scheduling.heartbeats.value, "schedule", need.heartbeat, behind) if behind else None

    @cached_property
    def _others(self) -> Mapping[str, tuple[str, ...]]:
        level, program = self.scheduling.heartbeats, self.program
        if level is HeartbeatScope.OPERATOR:
            return {}
        inputs = {query.name: through(program, query) for query in program.queries}
        inputs |= {one.name: one.inputs for one in program.operators}
        shape = shape_of(program, {name: read for name, read in inputs.items() if name in self.record.queries})
        return others_of(program, shape, level, SelectivityTracker(self.record.queries).ratios())

    def wait(self, reads: str, need: Need) -> Wait:
        """What a reader waits for, to have the heartbeat it needs of a stream, a query or an operator."""
        operator = self.program.operator(reads)
        if operator is not None:
            return self._of_operator(operator, need)
        if any(query.name == reads for query in self.program.queries):
            return self._of_query(self.program.query(reads), need)
        return self._of_stream(self.program.stream(reads), need)

    def _of_query(self, query: Query, need: Need) -> QueryWait:
        below = self.open(query.name).below(need.heartbeat)
        return QueryWait(query.name, need.heartbeat, below.rows, self.reading(query.name, below))

    def _of_operator(self, operator: Operator, need: Need) -> OperatorWait:
        """The rows of an operator are as far as the least of its inputs: later ones make later rows."""
        if isinstance(operator, Queue):
            saved = self.record.queries[operator.name]
            waiting, aside = saved["waiting"]["count"], saved["aside"]["count"]
            found = self._of_merge(operator.name, operator.inputs, need)
            found = replace(found, kind="queue", queued=waiting + aside, aside=aside)
        elif isinstance(operator, Rows):
            found = self._of_merge(operator.name, operator.inputs, need)
        elif isinstance(operator, Lookup):
            found = self._of_lookup(operator, need)
        else:
            inputs = self._slowest_first([(name, need) for name in operator.inputs])
            found = OperatorWait(operator.name, "join", need.heartbeat, inputs, operator.kind is not JoinKind.INNER)
        schedule = self._schedule(operator.name, need)
        if schedule is None:
            return found
        return replace(found, inputs=(schedule,) if found.has_come else (schedule, *found.inputs))

    def _of_merge(self, name: str, sources: tuple[str, ...], need: Need) -> OperatorWait:
        kind = "merge" if len(sources) > 1 else "rows"
        return OperatorWait(name, kind, need.heartbeat, self._slowest_first([(source, need) for source in sources]))

    def _of_lookup(self, lookup: Lookup, need: Need) -> OperatorWait:
        """Later rows come after the heartbeat of the stream; the table has to pass only the rows that wait for it."""
        waiting = self.waiting(lookup.name)
        waiting = waiting[waiting <= need.heartbeat]
        needs = [(lookup.rows.input, need)]
        needs += [(lookup.versions.input, Need(int(waiting.max())))] if len(waiting) else []
        return OperatorWait(lookup.name, "lookup", need.heartbeat, self._slowest_first(needs))

    def _slowest_first(self, needs: Iterable[tuple[str, Need]]) -> tuple[Wait, ...]:
        """What each input waits for, but for those that have come so far; all of them where none is behind."""
        waits = [self.wait(source, need) for source, need in dict.fromkeys(needs)]
        behind = [wait for wait in waits if not wait.has_come] or waits
        return tuple(sorted(behind, key=attrgetter("least")))

    def _of_stream(self, stream: Stream, need: Need) -> StreamWait:
        time, by_source = self.as_it_is(stream)
        beat = known(time.heartbeat)

        def wait_for(reason: Reason, holders: tuple[SlowSource, ...] = (), count: int = 0) -> StreamWait:
            moved, latest = known(time.moved), known(time.latest)
            asked = self.scheduling.timestamps.when is not When.NEVER
            names = time.sources
            return StreamWait(stream, need.heartbeat, beat, moved, latest, reason, holders, count, names, asked)

        if stream.timestamps is not Timestamps.EXTERNAL:
            return wait_for(INTERNAL)
        if len(by_source) == 0:
            return wait_for(NO_ROWS)
        waited_for = np.ones(len(by_source), dtype=np.bool_)
        for out in time.left_out():
            waited_for[out.sources[out.sources < len(by_source)]] = False
        # The least first; of those that stand at the same, the one that spoke of the least time.
        order = np.lexsort((time.hearing.largest[: len(by_source)], by_source))
        behind = order[waited_for[order] & (by_source[order] < need.heartbeat)]
        if len(behind) == 0:
            return wait_for(NOBODY if not waited_for.any() else reason_of(time.generator, int(order[0])))
        first = reason_of(time.generator, int(behind[0]))
        if first.common:
            return wait_for(first)
        if first.rule == EXPECTED:
            behind = behind[time.hearing.heard[behind] == NEVER]
        return wait_for(
            first, tuple(self._holder(time, int(s), int(by_source[s])) for s in behind[:FIRST_FEW]), len(behind)
        )

    def _holder(self, time: StreamProgress, source: int, heartbeat: int) -> SlowSource:
        heard = time.hearing.heard_of(source)
        return SlowSource(
            source,
            name_of(time, source),
            known(heartbeat),
            known(time.hearing.largest_of(source)),
            known(heard),
            heard < time.clock,
            reason_of(time.generator, source),
        )

    def _reached_at(self, wait: StreamWait) -> int | None:
        """The clock at which a stream is there without another row; None where the clock alone does not bring it."""
        if self.record.ended:
            return None
        time = self.stream_time(wait.stream)
        moment = time.moment_of(self.record.clock)
        if time.heartbeat >= wait.needed:
            return moment
        clock = reached_at(lambda: self.stream_time(wait.stream), moment, wait.needed)
        asked = FOREVER if clock is None else self.scheduling.timestamps.asked_at(self.record.clock, clock)
        return None if asked == FOREVER else asked

    def left_out_data(self, stream: Stream) -> list[Json]:
        """The sources of a stream that nobody waits for: by which rule, how many, and the first few by name."""
        time = self.as_it_is(stream)[0]
        return [
            {
                **out.reason.as_data(),
                "count": len(out.sources),
                "sources": [name_of(time, int(source)) for source in out.sources[:FIRST_FEW]],
            }
            for out in time.left_out()
        ]

    def as_it_is(self, stream: Stream) -> tuple[StreamProgress, Instants]:
        """The time of a stream and the heartbeats of its sources as of the last round: asked once, then only read."""
        with self._lock:
            if stream.name not in self._now:
                time = self.stream_time(stream)
                by_source = np.zeros(0, dtype=np.int64)
                if stream.timestamps is Timestamps.EXTERNAL:
                    moment = time.moment_of(self.record.clock)
                    time.promise(moment)
                    by_source = time.generator.heartbeats(moment).by_source
                time.hearing.grow(len(by_source))
                self._now[stream.name] = time, by_source
            return self._now[stream.name]

    def stream_time(self, stream: Stream) -> StreamProgress:
        """The time of a stream as it was committed, anew each time."""
        return restored(self.program, self.record.streams, self.names, only=(stream.name,))[stream.name]


def name_of(time: StreamProgress, source: int) -> str | None:
    """The name of a source as a person reads it; None where the stream itself is the source."""
    return time.name_of(source).replace("\x1f", "|") if time.stream.source else None


def reached_at(copy: Callable[[], StreamProgress], moment: int, heartbeat: int) -> int | None:
    """The first clock from `moment` on at which a stream promises `heartbeat`; None if the clock alone never does.

    `copy` gives the stream as it was at `moment`, anew each time: nothing is changed. Law: between two rounds what a
    stream promises depends on the clock alone and never falls, so there is a first such clock, or there is none. A
    policy that is asked more often may promise earlier than at one late moment; the true clock is earlier then.

    >>> from eventide.eventtime.policies.clock_skew import ClockSkew
    >>> from eventide.plan.declared.stream import Stream, columns
    >>> stream = Stream("s", columns("t BIGINT"), time="t", policy=ClockSkew(5))
    >>> reached_at(lambda: StreamProgress.start(stream), 0, 94)
    100
    """
    stream = copy()
    if stream.promise(moment).combined >= heartbeat:
        return moment
    if stream.stream.arrival is not None and not stream.stream.stamped_by_broker:
        # Its clock is in the rows.
        return None
    if stream.stream.timestamps is not Timestamps.EXTERNAL:
        return heartbeat
    if copy().promise(moment + HORIZON).combined < heartbeat:
        return None
    before, step = 0, 1
    while stream.promise(moment + step).combined < heartbeat:
        before, step = step, step * 2
    while step - before > 1:
        middle = (before + step) // 2
        if copy().promise(moment + middle).combined >= heartbeat:
            step = middle
        else:
            before = middle
    return moment + step
