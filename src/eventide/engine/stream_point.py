"""How far a stream had come at one moment.

Law: it is a value. The time of a stream (`StreamTime`) is changed by the round that looks at it, long before that round
is committed; whoever asks beside the round goes by the point of the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from eventide.plan.stream import Stream


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
