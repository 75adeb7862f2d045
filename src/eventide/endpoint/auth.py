"""Who may ask, and how often.

Law: nothing is looked at or computed for a request that does not have the token, whatever it asks for; the time that
the comparison takes tells nothing of the token. Guessing is slowed down without slowing down those who know it. A page
in a browser cannot ask: it would have to call the server by an address, come from that address, and have the token.

How often may be asked: a bucket that fills at a rate, from which every request takes one.

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

import hmac
import math
import threading
from collections.abc import Callable, Mapping

from eventide.endpoint.address import Address, same_origin
from eventide.endpoint.limits import HttpError, Limits
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


class Gate:
    """Lets requests pass, or refuses them.

    >>> import time
    >>> gate = Gate(Address(), "secret", Limits(), time.monotonic)
    >>> gate.check({"host": "localhost", "authorization": "Bearer secret"})
    >>> gate.check({"host": "localhost"})
    Traceback (most recent call last):
        ...
    eventide.endpoint.limits.HttpError: the token is missing or wrong
    """

    def __init__(self, address: Address, token: str, limits: Limits, clock: Callable[[], float]) -> None:
        self._address = address
        self._token = token.encode()
        self._requests = TokenBucket(limits.rate, limits.burst, clock)
        self._guesses = TokenBucket(limits.guesses, limits.guesses_at_once, clock)

    def check(self, headers: Mapping[str, str]) -> None:
        """Raise a refusal unless a request with these headers may be answered."""
        # Only HTTP/1.0 may leave the host out, and no browser speaks that.
        host = headers.get("host", "localhost")
        if not self._address.is_called(host):
            raise HttpError(403, "the engine is not known by this name", f"ask it at {self._address.url}")
        if "origin" in headers and not same_origin(headers["origin"], host):
            raise HttpError(403, "pages of other servers may not ask", "ask from a program, with the token")
        if not self._knows_the_token(headers.get("authorization", "")):
            self._limit(self._guesses, "too many wrong tokens")
            raise HttpError(
                401,
                "the token is missing or wrong",
                "send the header Authorization: Bearer TOKEN, with the text of the engine's token file",
                WWW_Authenticate="Bearer",
            )
        self._limit(self._requests, "too many requests")

    def _knows_the_token(self, authorization: str) -> bool:
        scheme, _, token = authorization.partition(" ")
        # Headers were read as Latin-1; so the bytes are those that came.
        same = hmac.compare_digest(token.strip().encode("latin-1", "replace"), self._token)
        return same and scheme.lower() == "bearer"

    @staticmethod
    def _limit(bucket: TokenBucket, error: str) -> None:
        if wait := bucket.take():
            raise HttpError(429, error, f"wait {wait:.2f} seconds", Retry_After=str(math.ceil(wait)))
