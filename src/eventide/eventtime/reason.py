"""Why time has come no further: the rule that holds a source back, and the rules by which one is not waited for.

Law: a reason is data, and changes nothing. Its text has places for amounts, each with its scale, so
that whoever shows it can say them in his own units: a `length` or a `time` of the rows, a `wait` or a moment of the
`clock`, a `source` by its number, a `count`, a `share`; and for the `name` of who is no source of the stream.

A generator may have two methods, `why` and `left_out`. One that has neither, and wraps another, is explained by that
one; else by the least that is true of every policy.

>>> reason = Reason("bound", "{lag:length} behind {sender:source}", {"lag": 2, "sender": 7})
>>> reason.words(BareAmounts())
'2 behind source 7'
>>> idle = Reason("idle after", "not waited for after {after:wait} of silence", {"after": 30})
>>> reason.unless(idle).words(BareAmounts())
'2 behind source 7; not waited for after 30 of silence'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from string import Formatter
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.heartbeat import HeartbeatGenerator
from eventide.eventtime.instant import NEVER

EXPECTED = "expected"
"""The rule of a source that is waited for before it has spoken."""


class AmountFormatter(Protocol):
    """Writes the amounts of a reason in words."""

    def length(self, amount: int) -> str:
        """A distance between times of rows."""
        ...

    def wait(self, amount: int) -> str:
        """A distance between readings of the clock."""
        ...

    def time(self, instant: int) -> str:
        """A time of rows, in words."""
        ...

    def clock(self, instant: int) -> str:
        """A reading of the clock, in words."""
        ...

    def source(self, number: int) -> str:
        """The name of a source, by its number."""
        ...


class BareAmounts:
    """Tells amounts as the numbers they are."""

    def length(self, amount: int) -> str:
        """A length, as its number."""
        return str(amount)

    wait = time = clock = length

    def source(self, number: int) -> str:
        """A source, by its number."""
        return f"source {number}"


@dataclass(frozen=True)
class Reason:
    """A rule by its short name, what it does in words, and the amounts in them.

    `common`: the rule has one heartbeat for all sources, so that no single one of them holds time back. `lifted` are
    the rules that would let time go on without the source.
    """

    rule: str
    text: str
    values: Mapping[str, float | str] = field(default_factory=dict)
    common: bool = False
    lifted: tuple[Reason, ...] = ()

    def words(self, speaker: AmountFormatter) -> str:
        """The text, with its amounts as the speaker tells them."""
        return "; ".join((_filled(self, speaker), *(_filled(rule, speaker) for rule in self.lifted)))

    def unless(self, rule: Reason) -> Reason:
        """A copy with one more rule that would let time go on all the same."""
        return replace(self, lifted=(*self.lifted, rule))

    def as_data(self) -> dict[str, Any]:
        """The reason as plain data.

        >>> Reason("slack", "{rows:count} rows are held back", {"rows": 3}, common=True).as_data()
        {'rule': 'slack', 'rows': 3}
        """
        lifted = {"unless": [rule.as_data() for rule in self.lifted]} if self.lifted else {}
        return {"rule": self.rule, **self.values, **lifted}


class LeftOut(NamedTuple):
    """Sources that are not waited for, and the rule."""

    reason: Reason
    sources: NDArray[np.intp]


@runtime_checkable
class Explains(Protocol):
    """A heartbeat generator that can say why its heartbeats are where they are, as of when they were last asked for."""

    def why(self, source: int) -> Reason:
        """The rule that holds back the heartbeat of a source."""
        ...

    def left_out(self) -> tuple[LeftOut, ...]:
        """The sources that the combined heartbeat does not wait for though it is beyond what they promise."""
        ...


NOT_HEARD = Reason(EXPECTED, "it is expected and has not spoken yet")
NOT_EXPECTED = Reason("not expected", "it has not spoken yet, and is not expected")


def reason_of(generator: HeartbeatGenerator, source: int) -> Reason:
    """Why the heartbeat of a source is where it is.

    >>> from eventide.eventtime.policies.fixed_delay import FixedDelay
    >>> reason_of(FixedDelay(5).start(), 0).words(BareAmounts())
    '5 behind the largest time of all'
    """
    if isinstance(generator, Explains):
        return generator.why(source)
    inner = getattr(generator, "inner", None)
    if isinstance(inner, HeartbeatGenerator):
        return reason_of(inner, source)
    return Reason("policy", "the policy of the stream promises no more")


def left_out_of(generator: HeartbeatGenerator) -> tuple[LeftOut, ...]:
    """The sources that are not waited for, and by which rule.

    >>> from eventide.eventtime.policies.fixed_delay import FixedDelay
    >>> left_out_of(FixedDelay(5).start())
    ()
    """
    if isinstance(generator, Explains):
        return generator.left_out()
    inner = getattr(generator, "inner", None)
    return left_out_of(inner) if isinstance(inner, HeartbeatGenerator) else ()


def those(reason: Reason, left: NDArray[np.bool_]) -> tuple[LeftOut, ...]:
    """The sources of a mask, left out by one rule; nothing where there are none.

    >>> those(NOT_HEARD, np.array([False, True]))[0].sources.tolist()
    [1]
    """
    sources = np.flatnonzero(left)
    return (LeftOut(reason, sources),) if len(sources) else ()


def not_expected(heard: NDArray[np.bool_], known: int = 0) -> tuple[LeftOut, ...]:
    """The sources that have not been heard, but for sources 0 to `known` - 1, which are waited for.

    >>> not_expected(np.array([False, True, False]), known=1)[0].sources.tolist()
    [2]
    """
    return those(NOT_EXPECTED, ~heard & (np.arange(len(heard)) >= known))


def beyond(reason: Reason, raised_to: int, promised: NDArray[np.int64]) -> tuple[LeftOut, ...]:
    """The sources that are behind the combined heartbeat, which a rule has raised.

    >>> beyond(NOT_HEARD, 7, np.array([9, 5]))[0].sources.tolist()
    [1]
    """
    return () if raised_to == NEVER else those(reason, promised < raised_to)


def _filled(reason: Reason, speaker: AmountFormatter) -> str:
    parts = []
    for as_data, name, scale, _ in Formatter().parse(reason.text):
        parts.append(as_data)
        if name is not None:
            amount = reason.values[name]
            if isinstance(amount, str):
                parts.append(amount)
            elif scale == "count":
                parts.append(f"{amount:,}")
            elif scale == "share":
                parts.append(f"{100 * amount:.4g} %")
            else:
                tell = getattr(speaker, scale or "length")
                parts.append(tell(int(amount)))
    return "".join(parts)
