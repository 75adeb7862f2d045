"""The frontier: which application time is closed, for each source and for all together.

Law: time t is closed for a source when it is at or below the source's heartbeat, or in a span that was closed ahead
(a range punctuation), and not in a span that was sidelined. For all sources together, the combined heartbeat takes
the place of the source's, only spans closed for every source count, and a span sidelined for anyone is open. What is
closed stays closed: a frontier is a value, and each step gives one that is greater or equal.

A sidelined span is a hole: it was set aside while it was open (a burst too large to digest now), heartbeats pass over
it, and it stays open until it is settled. Thus a range punctuation lets later slices close while an earlier one is
held up (prodding thesis, section 6, after Tucker).

Limits: a span closed for each known source one by one is not closed for all together, for nobody has spoken for
sources still unknown; heartbeats close it in the end. Spans are meant to be few: comparing k of
them takes about k squared passes over the sources.

>>> f = Frontier.start().sidelining(Span(40, 50)).advanced(Heartbeats(59, np.array([59, 99])))
>>> f.closed(0, 40), f.closed(40, 50), f.closed(50, 60), f.is_closed(80), f.is_closed(80, source=1)
(True, False, True, False, True)
>>> f.settled(Span(40, 50)).closed(0, 60)
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrays import grown
from eventide.eventtime.heartbeat import Heartbeats, Snapshot, check_snapshot
from eventide.eventtime.instant import NEVER, Instants, shift, shift_all
from eventide.eventtime.punctuation import Span, merged

KIND, VERSION = "frontier", 1


@dataclass(frozen=True, eq=False)
class Frontier:
    """Heartbeats, spans closed `ahead` of them, and spans `sidelined` behind or ahead of them.

    Ordered by what is closed: `a <= b` when all that is closed in a is closed in b; `a == b` when the same is closed.
    This is a partial order: of two frontiers, neither may be ahead of the other.

    >>> a, b = Frontier.start().closing(Span(0, 10)), Frontier.start().closing(Span(5, 15))
    >>> a <= b, b <= a, a <= a.closing(Span(20, 30))
    (False, False, True)
    """

    combined: int
    by_source: Instants
    ahead: tuple[Span, ...] = field(default=())
    sidelined: tuple[Span, ...] = field(default=())

    @classmethod
    def start(cls) -> Frontier:
        """The frontier of a new stream: nothing is closed.

        >>> Frontier.start().is_closed(-(10**18))
        False
        """
        return cls(NEVER, np.zeros(0, dtype=np.int64))

    def advanced(self, heartbeats: Heartbeats) -> Frontier:
        """A copy closed up to these heartbeats as well; a new source joins at the combined one."""
        sources = max(len(self.by_source), len(heartbeats.by_source))
        combined = max(self.combined, heartbeats.combined)
        here, there = grown(self.by_source, sources, NEVER), grown(heartbeats.by_source, sources, NEVER)
        by_source = np.maximum(np.maximum(here, there), combined)
        return replace(self, combined=combined, by_source=by_source)._absorbed()

    def closing(self, span: Span) -> Frontier:
        """A copy closed in this span as well, wherever the heartbeats are (a range punctuation)."""
        known = 0 if span.source is None else span.source + 1
        by_source = grown(self.by_source, known, self.combined)
        return replace(self, by_source=by_source, ahead=merged((*self.ahead, span)))._absorbed()

    def sidelining(self, span: Span) -> Frontier:
        """A copy with this span set aside: it stays open until it is settled. Only open time can be set aside.

        >>> Frontier.start().advanced(Heartbeats(45, np.array([45]))).sidelining(Span(40, 50))
        Traceback (most recent call last):
            ...
        eventide.errors.DeclarationError: 40 to 50 is closed up to 45: what is closed stays closed, sideline from 46 on
        """
        reached = self._reached(span.source)
        if span.start <= reached:
            raise DeclarationError(
                f"{span.start} to {span.end} is closed up to {reached}: "
                f"what is closed stays closed, sideline from {reached + 1} on"
            )
        for closed in self.ahead:
            if closed.overlaps(span):
                raise DeclarationError(
                    f"{span.start} to {span.end} meets {closed.start} to {closed.end}, which is closed: go around it"
                )
        if span in self.sidelined:
            raise DeclarationError(f"{span.start} to {span.end} is sidelined already: settle it first")
        known = 0 if span.source is None else span.source + 1
        by_source = grown(self.by_source, known, self.combined)
        return replace(self, by_source=by_source, sidelined=(*self.sidelined, span))

    def settled(self, span: Span) -> Frontier:
        """A copy with a span no longer set aside: it is closed as soon as the heartbeats say so, perhaps at once."""
        if span not in self.sidelined:
            raise DeclarationError(f"{span.start} to {span.end} is not sidelined: settle a span as it was set aside")
        return replace(self, sidelined=tuple(other for other in self.sidelined if other != span))

    def is_closed(self, time: int, source: int | None = None) -> bool:
        """Whether no row with this time is accepted any more from the source, or from any."""
        return self.closed(time, time + 1, source)

    def closed(self, start: int, end: int, source: int | None = None) -> bool:
        """Whether the whole slice from `start` up to, not including, `end` is closed for the source, or for all."""
        slice_ = Span(start, end, source)
        if any(slice_.overlaps(hole) for hole in self.sidelined):
            return False
        heartbeat = self._heartbeat(source)
        reached = start if heartbeat < start else heartbeat + 1
        for span in self.ahead:
            if span.source in (None, source) and span.start <= reached:
                reached = max(reached, span.end)
        return reached >= end

    def _heartbeat(self, source: int | None) -> int:
        unknown = source is None or source >= len(self.by_source)
        return self.combined if unknown else int(self.by_source[source])

    def _reached(self, source: int | None) -> int:
        """How far the foremost of those concerned has closed."""
        if source is None:
            return int(self.by_source.max(initial=self.combined))
        return self._heartbeat(source)

    def _absorbed(self) -> Frontier:
        """Heartbeats moved over the spans that they touch; spans that lie behind them forgotten."""
        combined, by_source = self.combined, self.by_source
        for span in self.ahead:
            last = span.end - 1
            if span.source is None:
                combined = max(combined, last) if span.start <= combined + 1 else combined
                by_source = np.where(by_source >= shift(span.start, -1), np.maximum(by_source, last), by_source)
            elif by_source[span.source] >= shift(span.start, -1):
                by_source = by_source.copy()
                by_source[span.source] = max(int(by_source[span.source]), last)
        ahead = tuple(
            span
            for span in self.ahead
            if span.end - 1 > (combined if span.source is None else int(by_source[span.source]))
        )
        return replace(self, combined=combined, by_source=by_source, ahead=ahead)

    def __le__(self, other: Frontier) -> bool:
        sources = max(len(self.by_source), len(other.by_source))
        mine, others = self._heartbeats(sources), other._heartbeats(sources)
        if not (self.ahead or self.sidelined or other.ahead or other.sidelined):
            return bool((mine <= others).all())
        return not any(
            (self._closed_at(at, mine) & ~other._closed_at(at, others)).any()
            for at in self._turning_points(other, mine, others)
        )

    def __eq__(self, other: object) -> bool:
        return self <= other and other <= self if isinstance(other, Frontier) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equal frontiers may be written differently

    def _heartbeats(self, sources: int) -> Instants:
        """The heartbeats of so many sources, and the combined one at the end."""
        return np.append(grown(self.by_source, sources, self.combined), self.combined)

    def _closed_at(self, times: Instants, heartbeats: Instants) -> NDArray[np.bool_]:
        """Whether `times[i]` is closed for source i, the last one for all together."""
        closed = times <= heartbeats
        for span in self.ahead:
            of = slice(None) if span.source is None else slice(span.source, span.source + 1)
            closed[of] |= span.contains(times[of])
        for hole in self.sidelined:
            open_for = np.arange(len(times)) if hole.source is None else np.array([hole.source, -1])
            closed[open_for] &= ~hole.contains(times[open_for])
        return closed

    def _turning_points(self, other: Frontier, mine: Instants, others: Instants) -> Iterator[Instants]:
        """Where something may turn from open to closed: what holds at these times holds at all."""
        yield np.full(len(mine), NEVER + 1, dtype=np.int64)
        yield shift_all(mine, 1)
        yield shift_all(others, 1)
        for span in (*self.ahead, *self.sidelined, *other.ahead, *other.sidelined):
            yield np.full(len(mine), span.start, dtype=np.int64)
            yield np.full(len(mine), span.end, dtype=np.int64)

    def snapshot(self) -> Snapshot:
        """The frontier as plain data."""
        return {
            "kind": KIND,
            "version": VERSION,
            "combined": self.combined,
            "by_source": self.by_source.tolist(),
            "ahead": [span.saved() for span in self.ahead],
            "sidelined": [span.saved() for span in self.sidelined],
        }

    @classmethod
    def restored(cls, snapshot: Snapshot) -> Frontier:
        """The frontier that `snapshot` described.

        >>> f = Frontier.start().closing(Span(5, 9, source=2))
        >>> Frontier.restored(f.snapshot()) == f
        True
        """
        check_snapshot(snapshot, KIND, VERSION)
        return cls(
            snapshot["combined"],
            np.array(snapshot["by_source"], dtype=np.int64),
            tuple(Span(*span) for span in snapshot["ahead"]),
            tuple(Span(*span) for span in snapshot["sidelined"]),
        )
