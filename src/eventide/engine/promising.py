"""Step 2 of a round: what was reduced goes to whom it is for, and streams promise how far their time has come.

Laws. A row is judged by the heartbeats of the round before: what its own round brings cannot make it late. Streams
learn from all rows of a round before they promise. A stream without rows promises only when it is asked
(`eventtime.asking`). Arrival times that rows know are one clock for all streams that have them, so a stream that falls
silent in a recording grows old with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from eventide.engine.backend import Backend
from eventide.engine.delivery import deliver
from eventide.engine.groupwise_run import late_among, met
from eventide.engine.ledger import late_rows
from eventide.engine.stream_time import StreamTime
from eventide.engine.taken import Taken
from eventide.engine.work import Round
from eventide.eventtime.asking import Asking, When
from eventide.eventtime.instant import NEVER, Instants
from eventide.plan.binding import BoundProgram, Way
from eventide.plan.broken import careful
from eventide.plan.reduce_text import late_text

TimeOf = Callable[[str], int]
"""How far a stream, query or operator had come after the last round."""


class Promise:
    """Gives the rows of a round out, and asks the streams for their heartbeats that have rows, or are asked anyway."""

    def __init__(
        self,
        plan: BoundProgram,
        streams: Mapping[str, StreamTime],
        backend: Backend,
        time_of: TimeOf,
        asking: Asking,
        last_clock: int,
    ) -> None:
        self._plan = plan
        self._streams = streams
        self._backend = backend
        self._time_of = time_of
        self._asking = asking
        self._last_clock = last_clock

    def run(self, work: Round) -> None:
        """Heartbeats are left in the round."""
        moments = self._moments(work)
        is_due = self._asking.is_due(self._last_clock, work.clock)
        for name, stream in self._streams.items():
            reduction, moment = work.reductions.get(name), moments[name]
            if reduction is not None:
                self._meet(work, name)
                for way in self._plan.ways_from(name):
                    self._set_aside(work, way, deliver(work, way, reduction.chunks[way.name], moment))
                stream.observe(moment, reduction.cells, reduction.source_columns, reduction.promises)
                stream.losses.rejected += sum(part.num_rows for part in work.rejects.get(name, ()))
            elif stream.stream.arrival is not None:
                stream.clock = moment
            stream.end_sources(work.over.get(name, ()))
            if is_due or name in work.over or (reduction is not None and reduction.spoke):
                beats = stream.promise(moment, work.promises.get(name))
                work.heartbeats[name] = beats.combined
                self._meet(work, name, beats.by_source)
            else:
                self._leave(work, name, moment)

    def _leave(self, work: Round, name: str, moment: int) -> None:
        """A silent stream stays where it is, unless a promise came from outside; it may be asked if someone waits."""
        stream = self._streams[name]
        heartbeat = work.heartbeats[name] = max(stream.heartbeat, work.promises.get(name, NEVER))
        self._meet(work, name, np.full(len(stream.sources), heartbeat, dtype=np.int64))
        if self._asking.when is When.ON_DEMAND:
            work.silent[name] = moment

    def _moments(self, work: Round) -> dict[str, int]:
        """The clock of this round for each stream."""
        found = {}
        for name, stream in self._streams.items():
            reduction = work.reductions.get(name)
            if reduction is None:
                found[name] = stream.moment_of(work.clock)
            else:
                found[name] = stream.moment(work.clock, reduction.cells, reduction.promises)
        recorded = [name for name, stream in self._streams.items() if stream.stream.arrival is not None]
        arrived = max((found[name] for name in recorded), default=NEVER)
        return {**found, **dict.fromkeys(recorded, arrived)}

    def _meet(self, work: Round, name: str, promises: Instants | None = None) -> None:
        """Tell the queries that close source by source who the sources of a stream are, and what each has promised."""
        for query in self._plan.program.of_stream(name):
            work.runs[query.name] = met(work.runs[query.name], self._streams[name].sources, promises)

    def _set_aside(self, work: Round, way: Way, taken: Taken) -> None:
        """Count what is late for a query or operator, and fetch the rows."""
        losses = self._streams[way.source].losses
        losses.count(taken.wanted, taken.late_rows)
        losses.revising += taken.revising_rows
        if taken.late_panes:
            bound = careful(way.bound) if way.source in work.careful else way.bound
            rows = self._backend.ask(late_text(bound, taken.late_panes, taken.late_where))
            heartbeat = min(self._time_of(source) for source in self._plan.judged_by(way))
            behind: int | Instants = heartbeat
            if not way.into_port:
                rows, behind = late_among(work.runs[way.step], rows, heartbeat)
            work.late.setdefault(way.source, []).append(late_rows(way.bound, rows, work.number, behind))
