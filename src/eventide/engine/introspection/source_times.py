"""How far every source of a stream is, as of the last committed round: arrays over sources, for those who show many.

Law: everything is told from the record of that round, so asking changes nothing and disturbs nobody. `NEVER` stands for
what is not known. A source that a rule leaves out is waited for by nobody; its rule is named. The one that `holds` time
back is the least far of those that are waited for, and only where it is behind most others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eventide.engine.introspection.why import ProgressReport
from eventide.eventtime.arrays import grown
from eventide.eventtime.instant import NEVER, Instants
from eventide.plan.declared.stream import Stream

SEPARATOR = "\x1f"
"""Between the values that name a source together."""


@dataclass(frozen=True)
class SourceTimes:
    """The sources of a stream by number: what each has promised, the largest time it spoke of, when it was heard.

    `rules` is the rule by which a source is left out, empty where it is waited for; `clock` is that of the round.

    >>> never = np.array([5, 5, 5])
    >>> times = SourceTimes(pa.array(["a", "b", "c"]), np.array([70, 20, 80]), never, never, ("", "", ""), 9, 20)
    >>> times.name(times.holds), [times.name(one) for one in times.furthest_behind(2)]
    ('b', ['b', 'a'])
    """

    names: pa.Array
    heartbeats: Instants
    largest: Instants
    heard: Instants
    rules: tuple[str, ...]
    clock: int
    heartbeat: int
    ahead: int | None = None
    """Rows whose time is so far ahead of the clock are from the future, where the stream says so."""

    def __len__(self) -> int:
        return len(self.heartbeats)

    def name(self, source: int) -> str:
        """The name of a source as a person reads it."""
        return str(self.names[source]).replace(SEPARATOR, "|") if source < len(self.names) else f"source {source}"

    @cached_property
    def waited_for(self) -> NDArray[np.bool_]:
        """Which sources somebody waits for."""
        return np.array([not rule for rule in self.rules], dtype=np.bool_)

    def furthest_behind(self, most: int) -> list[int]:
        """So many sources: those that are waited for first, the least far of them first."""
        order = np.lexsort((self.largest, self.heartbeats, ~self.waited_for))
        return [int(one) for one in order[:most]]

    @property
    def holds(self) -> int:
        """The source that holds all others back; -1 where no single one does."""
        waited = self.heartbeats[self.waited_for]
        if len(waited) < 2 or not np.median(waited) > waited.min():
            return -1
        return self.furthest_behind(1)[0]

    def silent(self, source: int) -> int | None:
        """For how long a source has not been heard, by the clock; None where it never was."""
        return None if self.heard[source] == NEVER else max(0, self.clock - int(self.heard[source]))


def source_times(standing: ProgressReport, stream: Stream) -> SourceTimes:
    """The sources of a stream as of the last round; none where rows are stamped with the clock."""
    time, said = standing.as_it_is(stream)
    count = len(said)
    rules = [""] * count
    for out in standing.left_out(stream):
        for source in out.sources[out.sources < count].tolist():
            rules[source] = rules[source] or out.reason.rule
    largest, heard = (grown(one, count, NEVER)[:count] for one in (time.hearing.largest, time.hearing.heard))
    ahead = None if stream.future is None else int(stream.future.ahead)
    moment = time.moment_of(standing.record.clock)
    names = time.sources if stream.source else pa.array([stream.name])
    return SourceTimes(names, said, largest, heard, tuple(rules), moment, time.heartbeat, ahead)
