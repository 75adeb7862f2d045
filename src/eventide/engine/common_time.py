"""The streams of a program while they run, those whose time is found together linked with each other.

Law: streams under one declaration of bounds have one heartbeat generator, whichever of them asks it; its state is saved
with the first of them. A common silence is judged by when any of the streams was last heard and by the largest time of
any of them, which are saved with each stream; so nothing else has to be, and a copy of some streams says the same as
the running ones.

>>> from eventide.eventtime.policies.fixed_delay import FixedDelay
>>> from eventide.eventtime.policies.wrappers.timeout import Timeout
>>> from eventide.plan.declared.rows import Rows
>>> from eventide.plan.declared.stream import Stream, columns
>>> a, b = (Stream(name, columns("t BIGINT"), time="t", policy=Timeout(FixedDelay(0), 5)) for name in "ab")
>>> running = started(Program((a, b), operators=(Rows("both", ("a", "b")),)))
>>> cells = pa.table({"__n": [1], "__lo": [100], "__hi": [100]})
>>> running["a"].observe(10, cells, ())
>>> [running["b"].promise(clock).combined == 100 for clock in (14, 15)]
[False, True]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventide.engine.learning import begun
from eventide.engine.stream_progress import StreamProgress
from eventide.eventtime.heartbeat import HeartbeatGenerator, layers
from eventide.eventtime.instant import NEVER
from eventide.eventtime.policies.skew.between_streams import BetweenStreamsGenerator
from eventide.plan.declared.common_time import common_silences, sharing, timeout_of
from eventide.plan.declared.program import Program
from eventide.plan.declared.stream import Stream

Saved = Mapping[str, Mapping[str, Any]]


def started(program: Program) -> dict[str, StreamProgress]:
    """The streams of a program, of which nothing has been seen."""
    return _linked(program, {stream.name: begun(stream) for stream in program.streams})


def restored(
    program: Program, saved: Saved, names: Callable[[str], pa.Array], only: Collection[str] | None = None
) -> dict[str, StreamProgress]:
    """The streams, or `only` some of them with all that their time depends on, as they were saved."""
    wanted = {stream.name for stream in program.streams} if only is None else _related(program, only)
    return _linked(
        program,
        {
            # A stream that is new, or whose time is read otherwise now, has nothing that was saved.
            stream.name: StreamProgress.restored(stream, dict(saved[stream.name]), names(stream.name))
            if stream.name in saved
            else _begun(program, stream, saved)
            for stream in program.streams
            if stream.name in wanted
        },
    )


def _begun(program: Program, stream: Stream, saved: Saved) -> StreamProgress:
    """A stream that begins: nothing of it was seen, but of a twin the rows that have come before it did."""
    found = begun(stream)
    if stream.twin_of in saved and program.stream(stream.rows_of).time == stream.time:
        found.latest, found.clock = saved[stream.rows_of]["latest"], saved[stream.rows_of]["clock"]
    return found


@dataclass(frozen=True)
class _Silences:
    """How far common silences let the time of a stream come."""

    silences: tuple[tuple[tuple[StreamProgress, ...], int], ...]

    def __call__(self, clock: int) -> int:
        """The largest time of streams that have all been silent for so long."""
        return max((_caught_up(streams, after, clock) for streams, after in self.silences), default=NEVER)


def _caught_up(streams: tuple[StreamProgress, ...], after: int, clock: int) -> int:
    heard = max((int(one.hearing.heard.max(initial=NEVER)) for one in streams), default=NEVER)
    if heard == NEVER or clock < heard + after:
        return NEVER
    return max(_believed(one) for one in streams)


def _believed(stream: StreamProgress) -> int:
    """The largest time that a stream spoke of; a row of the future moves nobody."""
    future = stream.stream.future
    return stream.latest if future is None else min(stream.latest, stream.clock + future.ahead)


def _linked(program: Program, streams: dict[str, StreamProgress]) -> dict[str, StreamProgress]:
    for group in sharing(program.streams):
        there = [streams[stream.name] for stream in group if stream.name in streams]
        # Streams may have been declared in another order when the state of all was saved with one of them.
        there.sort(key=lambda one: not _between(one.generator).saves)
        for one in there[1:]:
            _between(one.generator).share(_between(there[0].generator))
        for one in there:
            one.moved_by = frozenset(other.stream.name for other in there if other is not one)
    silences = [(silence.streams, silence.after) for silence in common_silences(program)]
    for name, one in streams.items():
        if timeout_of(one.stream) is not None:
            met = [(names, after) for names, after in silences if name in names and streams.keys() >= set(names)]
            one.catches_up = _Silences(tuple((tuple(streams[other] for other in names), after) for names, after in met))
    return streams


def _related(program: Program, names: Collection[str]) -> set[str]:
    """Some streams, and those on which their time depends."""
    groups = [{stream.name for stream in group} for group in sharing(program.streams)]
    groups += [set(silence.streams) for silence in common_silences(program)]
    found = set(names).union(*(group for group in groups if not group.isdisjoint(names)))
    # Whoever shares bounds is restored with the first, which has the state of all.
    return found.union(*(group for group in groups[: len(sharing(program.streams))] if not group.isdisjoint(found)))


def _between(generator: HeartbeatGenerator) -> BetweenStreamsGenerator:
    return next(layer for layer in layers(generator) if isinstance(layer, BetweenStreamsGenerator))
