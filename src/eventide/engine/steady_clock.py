"""The clock of this machine, guarded against leaps.

Law: while the engine runs, a wall clock that is suddenly more than an hour ahead of the time that has really passed is
not followed for a minute: time goes on as if it had not leapt. If it has come back by then, the leap was a glitch, and
no row is late because of it. If it stays there, it is believed; a machine whose clock is set right does that. Clocks
never go back, so without the guard one wrong second would make every row of the next day late.

>>> wall, passed = [1_000_000], [0]
>>> clock = SteadyClock(lambda: wall[0], lambda: passed[0])
>>> wall[0] += 86_400_000_000; passed[0] += 500_000
>>> clock()
1500000
>>> wall[0] = 3_000_000; passed[0] = 2_000_000
>>> clock()
3000000
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

LEAP = 3_600_000_000
"""Microseconds: so far no honest clock runs ahead of the time that passes."""

BELIEVED_AFTER = 60_000_000
"""Microseconds after which a clock that stays ahead is believed."""


def wall_clock() -> int:
    """Microseconds since 1970, as the machine believes."""
    return time.time_ns() // 1000


def time_passed() -> int:
    """Microseconds since some moment, also while the machine sleeps; nobody can set it."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return (time.monotonic_ns() if boot_time is None else time.clock_gettime_ns(boot_time)) // 1000


class SteadyClock:
    """Reads the wall clock, and compares it with the time that has passed since it was last believed."""

    def __init__(self, wall: Callable[[], int] = wall_clock, passed: Callable[[], int] = time_passed) -> None:
        self._wall, self._passed = wall, passed
        self._ahead = wall() - passed()
        self._leapt_at: int | None = None

    def __call__(self) -> int:
        """Microseconds since 1970."""
        wall, passed = self._wall(), self._passed()
        leap = wall - passed - self._ahead
        if leap > LEAP:
            if self._leapt_at is None:
                self._leapt_at = passed
                log.warning(
                    "the clock of this machine leapt ahead by %d s: it is not followed for %d s, in which it may come "
                    "back",
                    leap // 1_000_000,
                    BELIEVED_AFTER // 1_000_000,
                    extra={"event": "clock leap"},
                )
            if passed - self._leapt_at < BELIEVED_AFTER:
                return passed + self._ahead
            log.warning(
                "the clock of this machine has stayed %d s ahead: it is believed now",
                leap // 1_000_000,
                extra={"event": "clock leap believed"},
            )
        self._leapt_at = None
        self._ahead = wall - passed
        return wall
