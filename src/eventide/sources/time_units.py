"""Times that were counted in other units than they are read in: 1769850000000 in a TIMESTAMP column is the year 58054.

Law: whoever reads rows is told once, by the first rows that are that far off, what to declare instead.

>>> from eventide.plan.declared.stream import columns
>>> s = Stream("s", columns("ts TIMESTAMP"), time="ts")
>>> kind = pa.timestamp("us", "UTC")
>>> seconds, millis = (pa.table({"ts": pa.array([n * 10**6], kind)}) for n in (1769850000, 1769850000000))
>>> wrong_unit(s, seconds), wrong_unit(s, millis).split(":")[1].strip()
(None, 'ts is in the year 58054')
"""

from __future__ import annotations

import logging

import pyarrow as pa
import pyarrow.compute as pc

from eventide.plan.declared.stream import Stream

FAR = 32_503_680_000
"""Seconds from 1970 to the year 3000."""

MICROS_FROM = 10**14
"""As seconds, a number of microseconds of our time is beyond this; one of milliseconds is not."""

YEAR = 31_556_952

LOG = logging.getLogger(__name__)


def wrong_unit(stream: Stream, rows: pa.Table) -> str | None:
    """What to say of the times of these rows, if most of them cannot be meant."""
    if stream.time is None or not rows.num_rows:
        return None
    name = stream.column(stream.time).name
    times = rows.column(name) if name in rows.column_names else None
    if times is None or not pa.types.is_timestamp(times.type):
        return None
    first = pc.min(pc.cast(times, pa.timestamp("us", times.type.tz)).cast(pa.int64())).as_py()
    if first is None or first // 10**6 < FAR:
        return None
    seconds = first // 10**6
    unit, minute = ("microseconds", 60_000_000) if seconds >= MICROS_FROM else ("milliseconds", 60_000)
    return (
        f"stream {stream.name!r}: {name} is in the year {1970 + seconds // YEAR}: numbers in a TIMESTAMP column are "
        f"seconds, and these look like {unit}. Declare {name} BIGINT, and windows in {unit} ([RANGE {minute}] is one "
        "minute); or let the times be written as 2026-01-31T09:00:00Z"
    )


class UnitWatch:
    """Looks at the rows of a stream until it has seen some, and warns once."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._done = stream.time is None

    def look(self, rows: pa.Table | None) -> None:
        """Look at rows that were just read."""
        if self._done or rows is None or not rows.num_rows:
            return
        self._done = True
        if (wrong := wrong_unit(self._stream, rows)) is not None:
            LOG.warning("%s", wrong)
