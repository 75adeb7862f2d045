"""When a heartbeat will be reached if nothing more arrives.

Law: between two rounds what a stream promises depends on the clock alone and never falls. So there is a first clock at
which a heartbeat is reached, or there is none; it is found on copies, and nothing is changed. A policy that is asked
more often may promise a little earlier than it would at one late moment; then the true clock is earlier, never later.
"""

from __future__ import annotations

from collections.abc import Callable

from eventide.engine.stream_progress import StreamProgress
from eventide.plan.declared.stream import Timestamps

HORIZON = 2**49
"""How far ahead is looked: about 18 years of microseconds. What has not closed by then waits for a row."""


def reached_at(copy: Callable[[], StreamProgress], moment: int, heartbeat: int) -> int | None:
    """The first clock from `moment` on at which a stream promises `heartbeat`; None if the clock alone never does.

    `copy` gives the stream as it was at `moment`, anew each time.

    >>> from eventide.eventtime.policies.clock_skew import ClockSkew
    >>> from eventide.plan.declared.stream import Stream, columns
    >>> stream = Stream("s", columns("t BIGINT"), time="t", policy=ClockSkew(5))
    >>> reached_at(lambda: StreamProgress.start(stream), 0, 94)
    100
    """
    stream = copy()
    if stream.promise(moment).combined >= heartbeat:
        return moment
    if stream.stream.arrival is not None:
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
