"""The frontier of a stream or operator: what is known of its later rows.

Laws. After heartbeat h a later row of a stream has a time after h, so its time column is at least h + 1. What holds for
several inputs is the least of theirs. A frontier never goes back.

>>> from eventide.plan.expressions.columns import columns
>>> of_stream(Stream("s", columns("t BIGINT, v INT"), time="t"), 9)
OperatorFrontier(time=9, least={'t': 10}, holes=())
>>> least_time([OperatorFrontier(9), OperatorFrontier(4)])
4
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from eventide.eventtime.instant import EDGE, FOREVER, NEVER
from eventide.eventtime.punctuation import Span
from eventide.plan.declared.stream import Stream


@dataclass(frozen=True)
class OperatorFrontier:
    """What is known of the later rows of a stream or operator.

    Their times are after `time`, or in one of `holes`, spans that were set aside; a column in `least` has no smaller
    value than that in any of them.

    >>> OperatorFrontier(9, {"t": 10}).is_over, OperatorFrontier(FOREVER).is_over
    (False, True)
    """

    time: int = NEVER
    least: Mapping[str, int | Fraction] = field(default_factory=dict)
    holes: tuple[Span, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether there are no later rows."""
        return self.time == FOREVER

    def further(self, now: OperatorFrontier) -> OperatorFrontier:
        """The further of two frontiers, field by field: no frontier goes back.

        >>> OperatorFrontier(5, {"t": 6}).further(OperatorFrontier(7, {"t": 4})) == OperatorFrontier(7, {"t": 6})
        True
        """
        columns = dict.fromkeys((*self.least, *now.least))
        least = {name: max(one.least[name] for one in (self, now) if name in one.least) for name in columns}
        return OperatorFrontier(max(self.time, now.time), least)

    def saved(self) -> dict[str, Any]:
        """Plain data for the round record.

        >>> OperatorFrontier.restored(OperatorFrontier(5, {"t": Fraction(1, 2)}).saved())
        OperatorFrontier(time=5, least={'t': Fraction(1, 2)}, holes=())
        """
        least = {
            name: value if isinstance(value, int) else [value.numerator, value.denominator]
            for name, value in self.least.items()
        }
        return {"time": self.time, "least": least}

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> OperatorFrontier:
        """The frontier that was saved."""
        least = {
            name: value if isinstance(value, int) else Fraction(value[0], value[1])
            for name, value in saved["least"].items()
        }
        return cls(saved["time"], least)


UNKNOWN = OperatorFrontier()
"""Nothing is known."""


def of_stream(stream: Stream, heartbeat: int) -> OperatorFrontier:
    """The frontier of a stream after a heartbeat."""
    if heartbeat <= -EDGE:
        return OperatorFrontier()
    if heartbeat >= EDGE:
        return OperatorFrontier(FOREVER)
    return OperatorFrontier(heartbeat, {} if stream.time is None else {stream.time: heartbeat + 1})


def least_time(frontiers: Iterable[OperatorFrontier]) -> int:
    """The time up to which all of them have come."""
    return min((frontier.time for frontier in frontiers), default=FOREVER)


def after(heartbeat: int) -> int:
    """The first instant after a heartbeat; the ends of time stay what they are.

    >>> after(9), after(FOREVER) == FOREVER
    (10, True)
    """
    if heartbeat <= -EDGE:
        return NEVER
    return FOREVER if heartbeat >= EDGE else heartbeat + 1


def before(limit: int) -> int:
    """The last instant before a limit; the ends of time stay what they are."""
    return limit if limit in (NEVER, FOREVER) else limit - 1
