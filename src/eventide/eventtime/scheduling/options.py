"""Options of scheduling: by which heartbeats operators advance, and when idle sources are asked.

Law: neither changes which rows are in an answer that all rows reach in time; they change when it comes, how many rows
wait meanwhile, and so which rows come too late. The default asks on demand, and every operator goes by its own inputs.

>>> Scheduling().words
{'timestamps': 'on demand', 'heartbeats': 'operator'}
>>> Scheduling(IdlePolling.every(1_500_000), HeartbeatScope.MEMORY).words
{'timestamps': 'every 1500000', 'heartbeats': 'memory'}

*Idle sources.* When is a silent source asked how far its time has come? A source that sends rows in a round promises
time in that round, whatever the mode. A silent one promises

- *on demand*: when an operator waits for it (Stream Mill paper, section 5), in that round;
- *every* interval: whether anyone waits or not, in the first round of each interval of the clock (Gigascope paper,
  section 4; scenario B of the Stream Mill paper, section 6);
- *never*: not before it sends rows again (scenario A).

What a source answers is for its policy to say; the mode says only when it is asked. Whether a round is the first of its
interval is seen from its clock and that of the round before, so a run continued from a checkpoint asks at the same
clocks.

>>> IdlePolling.every(10).is_due(before=18, clock=19), IdlePolling.every(10).is_due(before=18, clock=20)
(False, True)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from eventide.errors import DeclarationError
from eventide.eventtime.instant import FOREVER, NEVER, shift
from eventide.eventtime.scheduling.labels import HeartbeatScope


class When(Enum):
    """When idle sources are asked for their time."""

    ON_DEMAND = "on demand"
    EVERY = "every"
    NEVER = "none"


@dataclass(frozen=True)
class IdlePolling:
    """A mode, made by `on_demand`, `every` or `never`.

    >>> IdlePolling.every(0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: timestamps every 0: give an interval above zero
    """

    when: When
    interval: int = 0

    def __post_init__(self) -> None:
        if self.when is When.EVERY and self.interval <= 0:
            raise DeclarationError(f"timestamps every {self.interval}: give an interval above zero")

    @classmethod
    def on_demand(cls) -> IdlePolling:
        """A silent source is asked where an operator waits for it."""
        return cls(When.ON_DEMAND)

    @classmethod
    def every(cls, interval: int) -> IdlePolling:
        """Silent sources are asked once in every interval of the clock."""
        return cls(When.EVERY, interval)

    @classmethod
    def never(cls) -> IdlePolling:
        """Silent sources are not asked."""
        return cls(When.NEVER)

    def is_due(self, before: int, clock: int) -> bool:
        """Whether a round at `clock` is the first of its interval; `before` is the clock of the round before."""
        if self.when is not When.EVERY:
            return False
        return before <= NEVER or clock // self.interval > before // self.interval

    def asked_at(self, before: int, clock: int) -> int:
        """The first clock from `clock` on at which silent sources are asked, if no rows come; `FOREVER` if never.

        >>> IdlePolling.every(10).asked_at(18, 19), IdlePolling.every(10).asked_at(18, 21)
        (20, 30)
        >>> IdlePolling.on_demand().asked_at(18, 21)
        21
        """
        if self.when is When.NEVER:
            return FOREVER
        if self.when is When.ON_DEMAND:
            return clock
        return max(self.next_due(before), clock + -clock % self.interval)

    def next_due(self, before: int) -> int:
        """The least clock after `before` at which a round asks unasked; `FOREVER` where none does.

        >>> IdlePolling.every(10).next_due(18), IdlePolling.on_demand().next_due(18) == FOREVER
        (20, True)
        """
        if self.when is not When.EVERY:
            return FOREVER
        return NEVER if before <= NEVER else shift(before - before % self.interval, self.interval)


class IdlePoller:
    """Remembers when rounds without rows asked last: periodically that is once in an interval, whatever came of it.

    >>> asker = IdlePoller(IdlePolling.every(10))
    >>> [asker.asks(18, clock) for clock in (19, 20, 21, 30)]
    [False, True, False, True]
    """

    def __init__(self, polling: IdlePolling) -> None:
        self._polling = polling
        self._asked = NEVER

    def asks(self, before: int, clock: int) -> bool:
        """Whether silent sources may be asked now; `before` is the clock of the last round."""
        if self._polling.is_due(max(before, self._asked), clock):
            self._asked = clock
            return True
        return self._polling.when is When.ON_DEMAND


@dataclass(frozen=True)
class Scheduling:
    """How a program is scheduled: whose heartbeats count, and when sources are asked."""

    timestamps: IdlePolling = field(default_factory=IdlePolling.on_demand)
    heartbeats: HeartbeatScope = HeartbeatScope.OPERATOR

    @property
    def words(self) -> dict[str, str]:
        """Plain data for a status; an interval is in the units of the clock."""
        polling = self.timestamps
        timestamps = f"every {polling.interval}" if polling.when is When.EVERY else polling.when.value
        return {"timestamps": timestamps, "heartbeats": self.heartbeats.value}
