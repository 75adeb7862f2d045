"""Bounds between streams: one heartbeat generator for all of them, so that whoever speaks moves the others too.

**Law.** The members of a declaration are streams, or single sources of streams, and the bounds are those of
`DeclaredSkew` between members (Srivastava and Widom, sections 2 and 3: the paper's streams, one source each). A row of
any member promises to every member what the bounds of the pair say. The heartbeat of a stream is the least of those of
its own members, so a stream that is silent goes on by the rows of the others. A stream without sources that are
members is one member, whatever its sources: its own bound says how far all its rows are out of order (the group of
section 5.2).

Each stream has a generator of its own, which only translates: the sources of the stream into members on the way in,
heartbeats of members into those of sources on the way out. Behind all of them is one (`share`). What came in a round is
given to it as one round when it is asked the first time, because a bound that counts rows must not mistake rows of the
same round for later ones. Of the generators that share, the first saves the state of all.

>>> from eventide.eventtime.policies.skew.bounds import TimeBound
>>> from eventide.eventtime.policies.skew.declared import DeclaredSkew
>>> from eventide.eventtime.policies.skew.matrix import SkewMatrix
>>> in_order, trails = [TimeBound(0, 0)], [TimeBound(0, 5)]
>>> skew = DeclaredSkew(SkewMatrix.of([[in_order, trails], [trails, in_order]], latency=[0, 0]))
>>> sensors = Member("temp"), Member("pressure")
>>> temp, pressure = (BetweenStreams(skew, sensors, one.stream).start() for one in sensors)
>>> pressure.share(temp)
>>> temp.observe(Arrivals.of_row(clock=0, source=0, time=100))
>>> temp.heartbeats(0).combined, pressure.heartbeats(0).combined
(100, 95)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals, renumbered, together
from eventide.eventtime.heartbeat import (
    Heartbeats,
    Policy,
    SavedGenerator,
    SavedPolicy,
    SavedState,
    Snapshot,
    Wrapped,
    layers,
)
from eventide.eventtime.reason import NOT_HEARD, LeftOut, Reason, left_out_of, reason_of


@dataclass(frozen=True)
class Member:
    """A source of a stream by its name; or the stream, for all its sources that are no members themselves.

    >>> str(Member("temp", "s-1")), str(Member("pressure"))
    ('temp.s-1', 'pressure')
    """

    stream: str
    source: str | None = None

    def __str__(self) -> str:
        """The stream, and its source behind a dot."""
        return self.stream if self.source is None else f"{self.stream}.{self.source}"


@dataclass(frozen=True)
class BetweenStreams(SavedPolicy["BetweenStreamsGenerator"]):
    """The part of `stream` in bounds between streams; `inner` runs over all `members`, numbered as they are listed.

    >>> BetweenStreams(None, (Member("a"), Member("b", "x")), "c")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: these bounds name a, b.x, and nothing of stream 'c'
    """

    inner: Policy
    members: tuple[Member, ...]
    stream: str

    def __post_init__(self) -> None:
        """Check that the stream is a member, whole or by sources."""
        if not any(member.stream == self.stream for member in self.members):
            members = ", ".join(map(str, self.members))
            raise DeclarationError(f"these bounds name {members}, and nothing of stream {self.stream!r}")

    @property
    def sources(self) -> dict[str, int]:
        """The sources of the stream that are members, each with its number as one."""
        own = [(member.source, number) for number, member in enumerate(self.members) if member.stream == self.stream]
        return {source: number for source, number in own if source is not None}

    @property
    def others(self) -> int | None:
        """The number of the member that stands for all other sources of the stream; None where these have no bounds."""
        return next((i for i, one in enumerate(self.members) if one == Member(self.stream)), None)

    def shares_with(self, other: BetweenStreams) -> bool:
        """Whether both are parts of one declaration."""
        return (self.members, self.inner) == (other.members, other.inner)

    def start(self) -> BetweenStreamsGenerator:
        """A heartbeat generator that has seen nothing."""
        return BetweenStreamsGenerator(self)


def between_streams(whole: object) -> BetweenStreams | None:
    """The policy of bounds between streams, at the bottom of what guards it; None where there is none.

    >>> from eventide.eventtime.policies.fixed_delay import FixedDelay
    >>> between_streams(FixedDelay(3)) is None
    True
    """
    return next((layer for layer in layers(whole) if isinstance(layer, BetweenStreams)), None)


class OneForAll(SavedState):
    """The generator over all members, and what has come since it was asked last."""

    SAVED = ("inner",)

    def __init__(self, policy: Policy) -> None:
        self.inner = Wrapped(policy)
        self._came: list[Arrivals] = []

    def observe(self, arrivals: Arrivals) -> None:
        """Take in what one stream brought in a round."""
        self._came.append(arrivals)

    def heartbeats(self, clock: int) -> Heartbeats:
        """What is promised to the members at this clock."""
        self._settle()
        return self.inner.heartbeats(clock)

    def snapshot(self) -> Snapshot:
        """Everything needed to go on to the same heartbeats."""
        self._settle()
        return super().snapshot()

    def _settle(self) -> None:
        if self._came:
            self.inner.observe(together(self._came))
            self._came = []


class BetweenStreamsGenerator(SavedGenerator):
    """Translates between the sources of a stream and members."""

    KIND = "between_streams"
    SAVED = ("_shared", "_sources")

    def __init__(self, policy: BetweenStreams) -> None:
        # Private: whoever goes through the layers of a generator speaks of sources, which have other numbers in there.
        self._shared = OneForAll(policy.inner)
        self._names = [str(member) for member in policy.members]
        self._stream = policy.stream
        self._named: NDArray[np.intp] = np.array(list(policy.sources.values()), dtype=np.intp)
        self._others = policy.others
        self._sources = len(self._named)
        self.saves = True
        """Whether the state of all is in its snapshot."""

    def share(self, first: BetweenStreamsGenerator) -> None:
        """Go by the generator of another stream, which also saves it."""
        self._shared, self.saves = first._shared, False

    def observe(self, arrivals: Arrivals) -> None:
        """Pass the round on, under the numbers of the members."""
        if arrivals.places > len(self._named) and self._others is None:
            raise DeclarationError(
                f"a row came from source {arrivals.source[-1]} of stream {self._stream!r}, but bounds name "
                f"{len(self._named)} sources of it: name every source, or the stream as a whole"
            )
        self._sources = max(self._sources, arrivals.places)
        self._shared.observe(renumbered(arrivals, self._members[arrivals.source]))

    def heartbeats(self, clock: int) -> Heartbeats:
        """To each source what its member was promised; to the stream, the least of what its members were."""
        promised = self._shared.heartbeats(clock).by_source
        own = self._named if self._others is None else np.append(self._named, self._others)
        return Heartbeats(int(promised[own].min()), promised[self._members])

    def why(self, source: int) -> Reason:
        """The reason of its member, with the members by their names."""
        member = self._members[source] if source < self._sources else self._others
        return NOT_HEARD if member is None else _by_names(reason_of(self._shared.inner, int(member)), self._names)

    def left_out(self) -> tuple[LeftOut, ...]:
        """The sources whose members are not waited for."""
        found = left_out_of(self._shared.inner)
        return tuple(
            LeftOut(_by_names(out.reason, self._names), np.flatnonzero(np.isin(self._members, out.sources)))
            for out in found
        )

    @property
    def _members(self) -> NDArray[np.intp]:
        """The number as a member of every source that is known."""
        unnamed = self._sources - len(self._named)
        return np.concatenate([self._named, np.full(unnamed, self._others or 0, dtype=np.intp)])

    def snapshot(self) -> Snapshot:
        """What it needs to go on; the state of all only in the snapshot of the first."""
        saved = super().snapshot()
        return saved if self.saves else saved | {"shared": None}

    def restore(self, saved: Snapshot) -> None:
        """Go on from what `snapshot` described."""
        super().restore(saved)
        self.saves = saved["shared"] is not None


def _by_names(reason: Reason, names: list[str]) -> Reason:
    """The same with sources by their names: their numbers mean nothing to who knows one stream."""
    called = {name: names[int(reason.values[name])] for name in re.findall(r"\{(\w+):source\}", reason.text)}
    text = re.sub(r"\{(\w+):source\}", r"{\1:name}", reason.text)
    lifted = tuple(_by_names(rule, names) for rule in reason.lifted)
    return Reason(reason.rule, text, {**reason.values, **called}, reason.common, lifted)
