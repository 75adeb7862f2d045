"""Streams whose time is found together: by bounds between them, or because a query reads them all.

*Bounds.* The streams of one declaration share a heartbeat generator (`BetweenStreams`), so all of them are there, count
time in the same units, and read the same clock.

*Silence* (STREAM paper, section 3.3). When no row comes from any stream that a query reads for as long as their longest
TIMEOUT, whatever comes afterwards is declared to be later than the largest time that any of them had. So time catches
up with that in all of them that have a TIMEOUT, also in one that never spoke. It holds for streams whose times are on
one scale (not where a join relates `R.t` to `2 * S.t`, nor above windows over counts of rows) and that read the same
clock: the wall clock, or the arrival times of rows.

>>> from eventide.eventtime.policies.fixed_delay import FixedDelay
>>> from eventide.plan.declared.rows import Rows
>>> from eventide.plan.declared.stream import Stream, columns
>>> a, b = (
...     Stream(name, columns("t BIGINT"), time="t", policy=Timeout(FixedDelay(0), wait))
...     for name, wait in (("a", 3), ("b", 5))
... )
>>> common_silences(Program((a, b), operators=(Rows("both", ("a", "b")),)))
(CommonSilence(streams=('a', 'b'), after=5),)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import layers
from eventide.eventtime.policies.skew.between_streams import BetweenStreams, between_streams
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.plan.declared.join import Join
from eventide.plan.declared.program import Program, Step, reads
from eventide.plan.declared.query import Query
from eventide.plan.declared.stream import Stream, TimeKind, Timestamps, kind_of
from eventide.plan.declared.window import RowWindow
from eventide.plan.expressions.parse import parsed


@dataclass(frozen=True)
class CommonSilence:
    """Streams that a query reads, and after how long a silence of all of them time catches up."""

    streams: tuple[str, ...]
    after: int


def common_silences(program: Program) -> tuple[CommonSilence, ...]:
    """The streams that are read together, by every query and operator that reads more than one."""
    streams = {stream.name: stream for stream in program.streams}
    together: dict[str, tuple[str, ...]] = {}
    for step in program.steps:
        together[step.name] = tuple(sorted(set(chain(*(together.get(name, (name,)) for name in reads(step))))))
        if not _on_one_scale(step):
            together[step.name] = ()
    found = []
    # A table that is joined as it is has no time of its own.
    with_time = {name for name, stream in streams.items() if stream.table is None}
    for names in dict.fromkeys(tuple(name for name in every if name in with_time) for every in together.values()):
        if any(streams[name].timestamps is not Timestamps.EXTERNAL for name in names):
            continue
        waits = [wait for name in names if (wait := timeout_of(streams[name])) is not None]
        if len(names) > 1 and waits and len({_clock(streams[name]) for name in names}) == 1:
            found.append(CommonSilence(names, max(waits)))
    return tuple(found)


def timeout_of(stream: Stream) -> int | None:
    """How long a silence may last before time catches up; None without TIMEOUT.

    >>> from eventide.plan.expressions.columns import columns
    >>> timeout_of(Stream("s", columns("t BIGINT"), time="t")) is None
    True
    """
    return next((layer.after for layer in layers(stream.policy) if isinstance(layer, Timeout)), None)


def sharing(streams: Iterable[Stream]) -> list[list[Stream]]:
    """The streams that share a heartbeat generator, by declaration."""
    groups: list[tuple[BetweenStreams, list[Stream]]] = []
    for stream in streams:
        policy = between_streams(stream.policy)
        if policy is None:
            continue
        group = next((group for other, group in groups if policy.shares_with(other)), None)
        if group is None:
            groups.append((policy, [stream]))
        else:
            group.append(stream)
    return [group for _, group in groups]


def check_shared(stream: Stream, first: Stream) -> None:
    """Refuse two streams in one declaration whose times or clocks do not compare.

    >>> from eventide.plan.expressions.columns import columns
    >>> a, b = Stream("a", columns("t BIGINT"), time="t"), Stream("b", columns("t TIMESTAMP"), time="t")
    >>> check_shared(b, a)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: bounds cannot relate 'a' to 'b': times of one are numbers, of the other instants
    """
    for one in (first, stream):
        if one.timestamps is not Timestamps.EXTERNAL:
            raise DeclarationError(f"bounds say nothing of {one.name!r}: its rows are stamped by the clock")
    pair = f"bounds cannot relate {first.name!r} to {stream.name!r}"
    if (stream.time_kind is TimeKind.SEQUENCE) is not (first.time_kind is TimeKind.SEQUENCE):
        raise DeclarationError(f"{pair}: times of one are numbers, of the other instants")
    if _clock(stream) != _clock(first):
        raise DeclarationError(
            f"{pair}: they go by different clocks; say ARRIVAL BY for both, with columns of one kind, or for neither"
        )


def _clock(stream: Stream) -> str:
    """What tells the clock of a stream, and the scale of its times."""
    kind = kind_of(stream.column(stream.arrival)) if stream.arrival is not None else None
    clock = "wall" if kind is None else "numbers" if kind is TimeKind.SEQUENCE else "arrival"
    return f"{clock} {stream.time_kind is TimeKind.SEQUENCE}"


def _on_one_scale(step: Step) -> bool:
    """Whether the times that come out of a step are on the scale of those that go in."""
    if isinstance(step, Query):
        return not isinstance(step.window, RowWindow)
    if not isinstance(step, Join):
        return True
    band = step.bands[0]
    return all(isinstance(parsed(side, "a band").unnest(), exp.Column) for side in (band.left, band.right))
