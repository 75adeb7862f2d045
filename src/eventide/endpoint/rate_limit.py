"""How often may be asked: a bucket that fills at a rate, from which every request takes one.

Law: in any stretch of t seconds at most `burst + rate * t` requests pass, by the clock that was given. One that does
not pass is told after how many seconds it would.

>>> now = [0.0]
>>> bucket = TokenBucket(rate=2, burst=1, clock=lambda: now[0])
>>> bucket.take(), bucket.take()
(0.0, 0.5)
>>> now[0] = 0.5
>>> bucket.take()
0.0
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from eventide.errors import DeclarationError


class TokenBucket:
    """Holds up to `burst`, and gains `rate` a second; safe to use from several threads."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        if not rate > 0 or not burst >= 1:
            raise DeclarationError(f"a rate of {rate} with bursts of {burst} lets nobody pass: give more than 0, and 1")
        self._rate, self._burst, self._clock = rate, burst, clock
        self._lock = threading.Lock()
        self._held, self._since = float(burst), clock()

    def take(self) -> float:
        """0 when one could be taken; otherwise the seconds until one can be."""
        with self._lock:
            now = self._clock()
            # A clock that was set back gives nothing.
            self._held = min(self._burst, self._held + max(0.0, now - self._since) * self._rate)
            self._since = now
            if self._held >= 1.0:
                self._held -= 1.0
                return 0.0
            return (1.0 - self._held) / self._rate
