"""Why a window is open: as a sentence, and as a value with its parts.

A sentence names the window, who holds it and how far that is, the rule, since when time stands, and when the window
closes if nothing more arrives; or what has to happen, where the clock alone never closes it.

*As a value.* Print it and read a sentence, or take its parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from eventide.engine.introspection.waits import OperatorWait, SlowSource, StreamWait
from eventide.engine.introspection.why import OpenWindow
from eventide.eventtime.reason import EXPECTED
from eventide.plan.declared.stream import Stream, TimeKind, Timestamps, kind_of
from eventide.profile.amounts import spoken

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(instant: int, unitless: bool = False) -> str:
    """An instant for people: a time in UTC, or the number of a sequence.

    >>> moment(1_700_000_000_500_000), moment(12, unitless=True)
    ('2023-11-14 22:13:20.5', '12')
    """
    if unitless:
        return str(instant)
    try:
        text = (EPOCH + timedelta(microseconds=instant)).strftime("%Y-%m-%d %H:%M:%S.%f")
    except OverflowError:
        return str(instant)
    return text.rstrip("0").rstrip(".")


@dataclass(frozen=True)
class StreamAmounts:
    """Tells amounts of a stream; a day that was said before is not said again."""

    stream: Stream
    names: pa.Array
    day: str = ""
    several: bool = False
    """Whether other streams are on the way too, so that the stream of a source has to be said."""

    @property
    def _unitless(self) -> bool:
        return self.stream.time_kind is TimeKind.SEQUENCE

    @property
    def _unitless_clock(self) -> bool:
        arrival = self.stream.arrival
        return arrival is not None and kind_of(self.stream.column(arrival)) is TimeKind.SEQUENCE

    def length(self, amount: int) -> str:
        """A distance between times."""
        return spoken(amount, self._unitless)

    def wait(self, amount: int) -> str:
        """A distance between readings of the clock."""
        return spoken(amount, self._unitless_clock)

    def time(self, instant: int) -> str:
        """A time of rows, in the words of the stream."""
        return self._short(moment(instant, self._unitless))

    def clock(self, instant: int) -> str:
        """A reading of the clock, to the millisecond: nobody reads more."""
        rounded = instant if self._unitless_clock else -(-instant // 1000) * 1000
        return self._short(moment(rounded, self._unitless_clock))

    def source(self, number: int) -> str:
        """The name of a source, by its number."""
        return str(self.names[number]).replace("\x1f", "|") if number < len(self.names) else f"source {number}"

    def _short(self, text: str) -> str:
        return text.removeprefix(self.day) if self.day else text


def window_words(window: OpenWindow) -> str:
    """The sentence about an open window."""
    unitless = window.query.kind is TimeKind.SEQUENCE
    start, end = moment(window.start, unitless), moment(window.end, unitless)
    day = "" if unitless else start[: start.index(" ") + 1]
    steps, way = window.wait.path
    chain_of = [step.title for step in steps]
    rows = max(window.rows, window.wait.rows_missing)
    telling = StreamAmounts(way.stream, way.names, day, several=any(step.many_streams for step in steps))
    opening = f"{window.query.noun} {start} to {end.removeprefix(day) if day else end} "
    if rows:
        more = f"{rows:,} more row{'' if rows == 1 else 's'}"
        return opening + f"waits for {', which waits for '.join([*chain_of, more])} of stream {way.stream.name}"
    chain = ", which waits for ".join([*chain_of, _who(way, telling)])
    parts = [f"{opening}waits for {chain}, {way.reason.words(telling)}"]
    if way.since is not None:
        parts.append(f"time stands since {telling.clock(way.since)}")
    parts.append(_ending(window, way, telling))
    return "; ".join(parts)


def operator_words(wait: OperatorWait, time: int | None, unitless: bool) -> str:
    """The sentence about a merge or join: how far it has come, and what it waits for to go on."""
    steps, way = wait.path
    telling = StreamAmounts(way.stream, way.names, several=True)
    chain = ", which waits for ".join([*(step.title for step in steps[1:]), _who(way, telling)])
    so_far = "has emitted nothing yet" if time is None else f"has come up to {moment(time, unitless)}"
    since = "" if way.since is None else f"; time stands since {telling.clock(way.since)}"
    return f"{wait.title} {so_far} and waits for {chain}, {way.reason.words(telling)}{since}"


def _who(wait: StreamWait, telling: StreamAmounts) -> str:
    if not wait.holders:
        at = "" if wait.heartbeat is None else f" (time is at {telling.time(wait.heartbeat)})"
        return f"stream {wait.stream.name}{at}"
    named = [_named(holder, wait, telling) for holder in wait.holders]
    more = wait.count - len(named)
    if more:
        named.append(f"{more:,} more source{'' if more == 1 else 's'}")
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def _named(holder: SlowSource, wait: StreamWait, telling: StreamAmounts) -> str:
    stream = f"stream {wait.stream.name}"
    name = stream if holder.name is None else f"{holder.name} of {stream}" if telling.several else holder.name
    if holder.heard is None:
        # Checkpoints of before this was kept do not know.
        known = [] if holder.heartbeat is None else [f"at {telling.time(holder.heartbeat)}"]
        return f"{name} ({', '.join(known) or 'not heard yet'})"
    at = f"at {telling.time(holder.largest)}" if holder.largest is not None else "without a time"
    heard = telling.clock(holder.heard)
    return f"{name} ({at}, {f'silent since {heard}' if holder.idle else f'heard at {heard}, but behind'})"


def _ending(window: OpenWindow, wait: StreamWait, telling: StreamAmounts) -> str:
    if window.closes_at is not None:
        return f"closes at {telling.clock(window.closes_at)} if nothing more arrives"
    kept = next((step.until for step in window.wait.path[0] if step.until is not None), None)
    if kept is not None:
        return f"closes when {kept}"
    who = "a row comes"
    if len(wait.holders) == 1 and wait.holders[0].name is not None:
        who = f"{wait.holders[0].name} speaks"
    if wait.stream.timestamps is Timestamps.EXTERNAL and wait.stream.arrival is not None:
        return f"closes only when {who}: the clock of stream {wait.stream.name} is its column {wait.stream.arrival}"
    if not wait.is_asked:
        return f"closes only when {who}: silent streams are not asked for their time (SET timestamps = 'none')"
    if wait.reason.rule == EXPECTED:
        return f"closes only when {who}: declare GIVE UP AFTER to wait no longer than that"
    lifted = {rule.rule for rule in wait.reason.lifted}
    latest = wait.latest
    if latest is None or wait.needed > latest:
        return "closes only when a row after its end comes: CLOCK SKEW or ON DEMAND would let the clock close it"
    if "idle after" in lifted:
        return (
            f"closes only when {who}, or another source once it is not waited for; declare TIMEOUT for a common silence"
        )
    ways = "TIMEOUT" if wait.reason.common or len(wait.names) < 2 else "IDLE AFTER or TIMEOUT"
    return f"closes only when {who}: no bound lets its time go on in silence; declare {ways}"


@dataclass(frozen=True)
class WhyOpen:
    """An open window and what it waits for; `closes_at` is the clock at which it closes if nothing more arrives.

    Times are whole numbers, microseconds or the numbers of a sequence. `closes_at` is None where only a row can close
    it. `waits_for` is plain data: the stream, its sources that hold the window with the rule of each, or a query and
    what that waits for.

    >>> str(WhyOpen(0, 10, None, {"stream": "s"}, "window 0 to 10 waits for stream s"))
    'window 0 to 10 waits for stream s'
    """

    window_start: int
    window_end: int
    closes_at: int | None
    waits_for: dict[str, Any]
    words: str

    @classmethod
    def of(cls, window: OpenWindow) -> WhyOpen:
        """From an open window of the engine."""
        waits = window.wait.as_data()
        return cls(window.start, window.end, window.closes_at, waits, window_words(window))

    def __str__(self) -> str:
        return self.words
