"""The skew of two common systems, from what one knows of each source (Srivastava and Widom, section 4).

>>> global_counter(fastest=[1, 2], slowest=[4, 9], latency=[0, 0]).bounds(0, 1)
(TimeBound(after=8, lag=0), RowBound(rows=1, lag=0))
>>> distributed_sensors(deviation=[5, 3], latency=[0, 0], rate=[2, 2]).bounds(0, 1)
(TimeBound(after=0, lag=8), TimeBound(after=4, lag=0))
"""

from __future__ import annotations

from collections.abc import Sequence

from eventide.errors import DeclarationError
from eventide.eventtime.per_source_skew import PerSourceSkew, RowTerm, TimeTerm
from eventide.eventtime.skew_bounds import TimeBound, check_length


def global_counter(fastest: Sequence[int], slowest: Sequence[int], latency: Sequence[int]) -> PerSourceSkew:
    """Sources that stamp rows with tokens of one rising counter, a new token only after the last row is out.

    A source takes from `fastest` to `slowest` of clock time from the counter's issue of a token to the row. A slow
    target may still hold an older token for slowest[j] - fastest[i] after a row of i, and for at most one row. No
    timeout is needed.
    """
    if not len(fastest) == len(slowest) == len(latency):
        raise DeclarationError(
            f"{len(fastest)} fastest, {len(slowest)} slowest times and {len(latency)} latencies: give one per source"
        )
    for source, (low, high) in enumerate(zip(fastest, slowest, strict=True)):
        check_length("fastest", low)
        if low > high:
            raise DeclarationError(
                f"source {source}: its fastest time {low} is more than its slowest {high}: swap them"
            )
    zeros = (0,) * len(latency)
    return PerSourceSkew.of(
        latency,
        between=[TimeTerm.of(give=[-low for low in fastest], take=slowest), RowTerm(1, out=zeros, into=zeros)],
        own=[[TimeBound(0, 0)]] * len(latency),
    )


def distributed_sensors(
    deviation: Sequence[int], latency: Sequence[int], rate: Sequence[float] | None = None
) -> PerSourceSkew:
    """Sources with clocks of their own, each off by less than `deviation` from a common application clock.

    A clock that is set right goes back by less than its deviation; rows between two settings rise. (A clock that may
    be off by exactly d, or that repeats a reading, declares d + 1.) `rate` is the least application time that passes
    at a source, settings included, for each unit of the clock. With it every lag vanishes after a while and no
    timeout is needed.
    """
    terms = [TimeTerm.of(out=deviation, into=deviation)]
    own = [[TimeBound(0, d)] for d in deviation]
    if rate is not None:
        caught_up = TimeTerm.of(give=deviation, take=deviation, rate=rate)
        alone = TimeTerm.of(take=deviation, rate=rate)
        terms.append(caught_up)
        own = [[*bounds, alone.bound(i, i)] for i, bounds in enumerate(own)]
    return PerSourceSkew.of(latency, between=terms, own=own)
