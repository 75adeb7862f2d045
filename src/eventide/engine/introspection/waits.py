"""What an open window waits for: a stream, or a query or operator and what that waits for in turn.

Law: a wait is a value, and its ends are streams. What it waits for comes the slowest first, so going from each wait to
its first input (`path`) leads to the stream that holds everything back. A wait is over (`has_come`) when every stream
at its ends has reached what is needed of it, no row is missing, and none is queued.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventide.eventtime.instant import NEVER
from eventide.eventtime.reason import Reason
from eventide.plan.declared.stream import Stream

Json = dict[str, Any]


@dataclass(frozen=True)
class SlowSource:
    """A source that is not far enough: its heartbeat, the largest time it spoke of, the clock it was heard at."""

    source: int
    name: str | None
    heartbeat: int | None
    largest: int | None
    heard: int | None
    idle: bool
    reason: Reason

    def as_data(self) -> Json:
        """The source as plain data."""
        return {
            "source": self.name,
            "heartbeat": self.heartbeat,
            "largest": self.largest,
            "heard": self.heard,
            "silent": self.idle,
            "rule": self.reason.as_data(),
        }


class Wait(ABC):
    """What somebody waits for: that `needed` is reached there."""

    needed: int

    @property
    @abstractmethod
    def ends(self) -> tuple[StreamWait, ...]:
        """The streams at the ends, the slowest first."""

    @property
    @abstractmethod
    def path(self) -> tuple[tuple[StepWait, ...], StreamWait]:
        """The queries and operators on the way down to the slowest stream, and what is waited for there."""

    @property
    @abstractmethod
    def rows_missing(self) -> int:
        """How many rows have to come before time can bring what is waited for."""

    @abstractmethod
    def closes_at(self, of_stream: Callable[[StreamWait], int | None]) -> int | None:
        """The clock at which all is there, where `of_stream` says it of a stream; None: the clock does not bring it."""

    @abstractmethod
    def as_data(self) -> Json:
        """The wait as plain data: times are int64 as inside, lengths too; None where there is none."""

    @property
    def has_come(self) -> bool:
        """Whether what is waited for is there already."""
        return not self.rows_missing and all(
            end.heartbeat is not None and end.heartbeat >= end.needed for end in self.ends
        )

    @property
    def least(self) -> int:
        """The heartbeat of the slowest stream."""
        return min(end.least for end in self.ends)


@dataclass(frozen=True)
class StreamWait(Wait):
    """What is waited for in a stream: that its heartbeat, now at `heartbeat` since clock `since`, reaches `needed`.

    `latest` is the largest time that any row of it had.
    `holders` are the first few of `count` sources that are not there yet; none where the rule is common to all.
    """

    stream: Stream
    needed: int
    heartbeat: int | None
    since: int | None
    latest: int | None
    reason: Reason
    holders: tuple[SlowSource, ...]
    count: int
    names: pa.Array
    """Of all its sources, by their numbers."""
    is_asked: bool = True
    """Whether a silent stream is asked for its time at all."""

    @property
    def ends(self) -> tuple[StreamWait, ...]:
        """The stream itself."""
        return (self,)

    @property
    def path(self) -> tuple[tuple[StepWait, ...], StreamWait]:
        """No step, and the stream itself."""
        return (), self

    @property
    def rows_missing(self) -> int:
        """None: time alone is waited for."""
        return 0

    @property
    def least(self) -> int:
        """How far the stream is."""
        return NEVER if self.heartbeat is None else self.heartbeat

    def closes_at(self, of_stream: Callable[[StreamWait], int | None]) -> int | None:
        """The clock at which the stream is there."""
        return of_stream(self)

    def as_data(self) -> Json:
        """The stream, its heartbeat, the rule, and who holds it."""
        return {
            "stream": self.stream.name,
            "needed": self.needed,
            "heartbeat": self.heartbeat,
            "since": self.since,
            "rule": self.reason.as_data(),
            "sources": [holder.as_data() for holder in self.holders],
            "count": self.count,
        }


class StepWait(Wait):
    """A query or operator on the way from a window to a stream, in words."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is called in a sentence."""

    @property
    def until(self) -> str | None:
        """What has to happen besides, where that is more than time."""
        return None

    @property
    def many_streams(self) -> bool:
        """Whether it may read several streams, so that the stream of a source has to be said."""
        return False


@dataclass(frozen=True)
class QueryWait(StepWait):
    """What is waited for in a query: that it promises `needed`, for which `below` has to be; or more rows."""

    query: str
    needed: int
    rows: int
    below: Wait

    @property
    def ends(self) -> tuple[StreamWait, ...]:
        """The ends of what it reads."""
        return self.below.ends

    @property
    def path(self) -> tuple[tuple[StepWait, ...], StreamWait]:
        """The query, and on from what it reads."""
        steps, end = self.below.path
        return (self, *steps), end

    @property
    def rows_missing(self) -> int:
        """How many rows it needs, or what it reads needs, whichever is more."""
        return max(self.rows, self.below.rows_missing)

    @property
    def title(self) -> str:
        """The query by name."""
        return f"query {self.query}"

    def closes_at(self, of_stream: Callable[[StreamWait], int | None]) -> int | None:
        """The clock of what it reads, unless rows have to come."""
        return None if self.rows else self.below.closes_at(of_stream)

    def as_data(self) -> Json:
        """The query, and what it waits for."""
        return {
            "query": self.query,
            "needed": self.needed,
            "rows_missing": self.rows,
            "waits_for": self.below.as_data(),
        }


@dataclass(frozen=True)
class OperatorWait(StepWait):
    """What is waited for in a merge or join: that its inputs, the slowest first, have all come up to `needed`.

    The kind `schedule` is no operator: a reader goes by the time of streams that it does not read.
    `partners`: it is an outer join, which holds time back until no partner can come any more for the rows it keeps.
    `queued`: so many rows wait in it for an expensive function, `aside` of them set aside in a burst.
    """

    operator: str
    kind: str
    needed: int
    inputs: tuple[Wait, ...]
    partners: bool = False
    queued: int = 0
    aside: int = 0

    @property
    def ends(self) -> tuple[StreamWait, ...]:
        """The ends of all inputs, the slowest first."""
        return tuple(sorted((end for one in self.inputs for end in one.ends), key=lambda end: end.least))

    @property
    def path(self) -> tuple[tuple[StepWait, ...], StreamWait]:
        """The operator, and on from its slowest input."""
        steps, end = self.inputs[0].path
        return (self, *steps), end

    @property
    def rows_missing(self) -> int:
        """The largest number of rows that any input needs."""
        return max(one.rows_missing for one in self.inputs)

    @property
    def has_come(self) -> bool:
        """Whether all inputs are there, and no row is queued."""
        return not self.queued and super().has_come

    @property
    def title(self) -> str:
        """Kind and name, how many inputs are behind, and how many rows are queued."""
        is_schedule = self.kind == "schedule"
        name = f"the schedule (SET heartbeats = '{self.operator}')" if is_schedule else f"{self.kind} {self.operator}"
        behind = f" ({len(self.inputs)} inputs are behind)" if len(self.inputs) > 1 else ""
        aside = f", {self.aside:,} of them set aside" if self.aside else ""
        rows = f"{self.queued:,} row{'' if self.queued == 1 else 's'}"
        queued = f" ({rows} before an expensive function{aside})" if self.queued else ""
        return name + behind + queued

    @property
    def until(self) -> str | None:
        """What an outer join or a queue keeps."""
        if self.partners:
            return f"no partner can come any more for a row that join {self.operator} keeps"
        return f"its rows have gone through queue {self.operator}" if self.queued else None

    @property
    def many_streams(self) -> bool:
        """True: inputs may be different streams."""
        return True

    def closes_at(self, of_stream: Callable[[StreamWait], int | None]) -> int | None:
        """The clock of the last input, unless it waits for partners or for queued rows."""
        clocks = [one.closes_at(of_stream) for one in self.inputs]
        known = [clock for clock in clocks if clock is not None]
        by_clock = len(known) == len(clocks) and not self.partners and not self.queued
        return max(known) if by_clock else None

    def as_data(self) -> Json:
        """The operator, and what it waits for."""
        return {
            self.kind: self.operator,
            "needed": self.needed,
            "partners": self.partners,
            **({"queued": self.queued, "set_aside": self.aside} if self.kind == "queue" else {}),
            "waits_for": [one.as_data() for one in self.inputs],
        }
