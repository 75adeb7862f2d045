"""How an engine stands: plain values, ready for JSON.

>>> Status("local", 3, 10, False, (), (), {}).as_json()["round"]
3
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from eventide.engine.introspection.why import ProgressReport
from eventide.engine.introspection.why_data import left_out_data, next_data, operator_data
from eventide.engine.operators.frontier import after
from eventide.engine.operators.operator import Operator
from eventide.engine.round.placement import place, state_bytes, state_rows
from eventide.engine.streams.progress import StreamProgress
from eventide.eventtime.instant import EDGE, NEVER
from eventide.plan.declared.stream import Stream


@dataclass(frozen=True)
class StreamStatus:
    """A stream: rows so far, how far its time is, how far behind the clock, and what was lost.

    `left_out` has an entry for each rule by which sources are not waited for: how many, and the first few.
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
        )

    def with_left_out(self, progress: ProgressReport | None, stream: Stream) -> StreamStatus:
        """The same, with the sources that nobody waits for."""
        return self if progress is None else replace(self, left_out=tuple(left_out_data(progress, stream)))


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
    def of(cls, operator: Operator, progress: ProgressReport | None = None, on_cluster: bool = False) -> QueryStatus:
        """The status of an operator; `on_cluster`: what it keeps is there, also if that is nothing now."""
        opened, waits_for = operator.open(), None
        closed = after(operator.frontier.time) if opened is None else opened.closed_before
        if progress is not None:
            name = operator.name
            waits_for = operator_data(progress, name) if opened is None else next_data(progress, name)
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
    streams are asked, and by which heartbeats operators go.
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

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def _known(instant: int) -> int | None:
    """None for the ends of time, which mean nothing to a reader."""
    return None if instant == NEVER or abs(instant) >= EDGE else instant
